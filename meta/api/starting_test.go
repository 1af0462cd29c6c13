package api

import (
	"strings"
	"testing"

	kithv1 "kith/proto/gen/kith/v1"

	"kith/meta"
)

// A site that cannot start jobs says so to every caller that asks, until it can; the job waits.
func TestASiteSaysThatItCannotStart(t *testing.T) {
	t.Parallel()
	s, m := serve(t)
	id := submit(t, s, nil)
	m.mu.Lock()
	m.settle(m.engine.Step(m.now, meta.StartFailed{Attempt: m.launched[0], Reason: "too many open files"}))
	m.launched = m.launched[1:]
	m.mu.Unlock()
	r, err := s.ListSites(t.Context(), &kithv1.ListSitesRequest{})
	if err != nil {
		t.Fatal(err)
	}
	if own := r.GetSites()[0]; !own.GetNotStarting() || !strings.Contains(own.GetStartTrouble(), "tries again in 1s: too many open files") {
		t.Errorf("%v", own)
	}
	j, err := s.GetJob(t.Context(), &kithv1.GetJobRequest{JobId: id})
	if err != nil || j.GetJob().GetStatus().GetState() != kithv1.JobStatus_STATE_QUEUED {
		t.Errorf("the job: %v, %v", j, err)
	}
}
