package api

import (
	"context"

	"google.golang.org/protobuf/types/known/timestamppb"

	"kith/internal/identity"
	"kith/internal/job"
	"kith/meta"
	kithv1 "kith/proto/gen/kith/v1"
)

var _ kithv1.SiteServiceServer = (*Server)(nil)

// GetSite implements kithv1.SiteServiceServer.
func (s *Server) GetSite(ctx context.Context, _ *kithv1.GetSiteRequest) (*kithv1.GetSiteResponse, error) {
	d := s.Node.Describe()
	resp := &kithv1.GetSiteResponse{Capabilities: d.Capabilities}
	err := s.Node.Glance(ctx, func(now job.Time, v meta.Views) {
		own := v.Sites(now)[0]
		resp.Site = siteMessage(&own, now, "", d.Trouble[own.Site])
		describeOwn(resp.GetSite(), &d)
		resp.Counters = countersMessage(v.Counters(), &d)
	})
	if err != nil {
		return nil, err
	}
	return resp, nil
}

// describeOwn adds what is known of the answering site only.
func describeOwn(m *kithv1.Site, d *Description) {
	m.DiskTrouble = d.DiskTrouble
	if k := d.Keys; k != nil {
		m.CertificateExpireTime, m.CaExpireTime, m.KeyTrouble = timestamppb.New(k.Leaf), timestamppb.New(k.CA), k.Trouble
		m.Fingerprints, m.BundleSequence = k.Fingerprints, int64(k.Bundle) //nolint:gosec // at most 2^62
	}
}

// ListSites implements kithv1.SiteServiceServer.
func (s *Server) ListSites(ctx context.Context, _ *kithv1.ListSitesRequest) (*kithv1.ListSitesResponse, error) {
	d := s.Node.Describe()
	resp := &kithv1.ListSitesResponse{}
	err := s.Node.Glance(ctx, func(now job.Time, v meta.Views) {
		views, hosts := v.Sites(now), v.Standings(now, mostStandings)
		for i := range views {
			resp.Sites = append(resp.Sites, siteMessage(&views[i], now, d.Addresses[views[i].Site], d.Trouble[views[i].Site]))
			resp.GetSites()[i].Hosts = standingMessages(hosts[views[i].Site], now)
			if views[i].Self {
				describeOwn(resp.GetSites()[i], &d)
			}
		}
	})
	if err != nil {
		return nil, err
	}
	return resp, nil
}

// commands refuses a caller whose token says that it is a user. A site without keys cannot
// tell users from operators.
func commands(ctx context.Context) error {
	if identity.From(ctx).Proof == identity.Token {
		return ErrNotOperator
	}
	return nil
}

// DrainSite implements kithv1.SiteServiceServer.
func (s *Server) DrainSite(ctx context.Context, r *kithv1.DrainSiteRequest) (*kithv1.DrainSiteResponse, error) {
	running, err := s.drain(ctx, true, r.GetReason(), r.GetRequestId())
	if err != nil {
		return nil, err
	}
	return &kithv1.DrainSiteResponse{RunningAttempts: running}, nil
}

// ResumeSite implements kithv1.SiteServiceServer.
func (s *Server) ResumeSite(ctx context.Context, r *kithv1.ResumeSiteRequest) (*kithv1.ResumeSiteResponse, error) {
	if _, err := s.drain(ctx, false, "", r.GetRequestId()); err != nil {
		return nil, err
	}
	return &kithv1.ResumeSiteResponse{}, nil
}

func (s *Server) drain(ctx context.Context, on bool, reason, requestID string) (running int64, err error) {
	if err := commands(ctx); err != nil {
		return 0, err
	}
	var f fieldErrors
	checkRequestID(&f, requestID)
	if len(f) > 0 {
		return 0, f
	}
	if err := checkReason(reason); err != nil {
		return 0, err
	}
	if _, err := s.Node.Ask(ctx, func(token uint64) meta.Event {
		return meta.SetDrain{Token: token, On: on, Reason: reason, Actor: identity.From(ctx).Actor}
	}); err != nil {
		return 0, err
	}
	if on {
		s.told(ctx, "site drains", "reason", reason)
	} else {
		s.told(ctx, "site resumed")
	}
	err = s.Node.Look(ctx, func(now job.Time, v meta.Views) {
		_, n := v.Draining(now)
		running = int64(n)
	})
	return running, err
}

// ForgetSite implements kithv1.SiteServiceServer.
func (s *Server) ForgetSite(ctx context.Context, r *kithv1.ForgetSiteRequest) (*kithv1.ForgetSiteResponse, error) {
	if err := commands(ctx); err != nil {
		return nil, err
	}
	site, err := job.ParseSiteID(r.GetSiteId())
	if err != nil {
		return nil, &FieldError{Field: "site_id", Reason: err.Error(), Err: err}
	}
	reply, err := s.Node.Ask(ctx, func(token uint64) meta.Event {
		return meta.ForgetSite{Token: token, Site: site, Requeue: r.GetRequeue(), Actor: identity.From(ctx).Actor}
	})
	if err != nil {
		return nil, err
	}
	f := reply.Forgotten
	s.told(ctx, "site forgotten", "site", site, "requeue", r.GetRequeue(),
		"jobs_revoked", f.Revoked, "copies_replaced", f.Replaced, "copies_dropped", f.Dropped)
	return &kithv1.ForgetSiteResponse{JobsRevoked: int64(f.Revoked), CopiesReplaced: int64(f.Replaced), CopiesDropped: int64(f.Dropped)}, nil
}
