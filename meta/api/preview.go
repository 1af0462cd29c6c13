package api

import (
	"context"
	"slices"

	"kith/internal/identity"
	"kith/internal/job"
	"kith/meta"
	kithv1 "kith/proto/gen/kith/v1"
	"kith/store"
)

// preview checks a request as [Server.submission] does, but for its files, and says
// what would become of it.
func (s *Server) preview(ctx context.Context, r *kithv1.SubmitJobRequest) (*kithv1.SubmitJobResponse, error) {
	if err := checkSubmission(r); err != nil {
		return nil, err
	}
	request := requestOf(r.GetJob(), s.userOf(identity.From(ctx)))
	var p meta.Preview
	var refused error
	if err := s.Node.Look(ctx, func(now job.Time, v meta.Views) { p, refused = v.Preview(now, &request) }); err != nil {
		return nil, err
	}
	if refused != nil {
		return nil, refused
	}
	status := &kithv1.JobStatus{Rank: meta.Rank(p.Decision.Rank).String(), EstimatedStartTime: stamp(p.Start)}
	if !slices.ContainsFunc(p.Decision.Sites, func(d store.SiteDecision) bool { return d.Chosen }) {
		status.Reason = "no site can take it now" + blockers(&p.Decision)
	}
	for i := range p.Decision.Sites {
		status.Decisions = append(status.Decisions, decisionMessage(&p.Decision.Sites[i]))
	}
	return &kithv1.SubmitJobResponse{Preview: status}, nil
}

// userOf returns the user that a caller's jobs carry.
func (s *Server) userOf(c identity.Caller) string {
	if c.Proof != identity.NoProof {
		return string(c.Actor)
	}
	return s.User
}
