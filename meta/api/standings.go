package api

import (
	"context"
	"math"

	"kith/internal/identity"
	"kith/internal/job"
	"kith/meta"
	kithv1 "kith/proto/gen/kith/v1"
)

// How hosts stand that have tasks of bags.

// mostStandings is of how many hosts of a site a list of sites tells.
const mostStandings = 16

func standingMessages(hosts []meta.HostView, now job.Time) []*kithv1.HostStanding {
	var list []*kithv1.HostStanding
	for i := range hosts {
		h := &hosts[i]
		m := &kithv1.HostStanding{
			Node: clip(h.Node), HeldBack: h.Held, ErrorRate: h.ErrorRate, RecentDone: h.Done, RecentFailed: h.Failed, Quota: h.Quota,
		}
		if !math.IsNaN(h.Turnaround) {
			m.TurnaroundSeconds = h.Turnaround
		}
		if h.Held && h.Quota < 1 {
			m.NextProbeTime = stamp(max(now, h.Until))
		}
		list = append(list, m)
	}
	return list
}

// TrustHost implements kithv1.SiteServiceServer.
func (s *Server) TrustHost(ctx context.Context, r *kithv1.TrustHostRequest) (*kithv1.TrustHostResponse, error) {
	if err := commands(ctx); err != nil {
		return nil, err
	}
	site, err := job.ParseSiteID(r.GetSiteId())
	if err != nil {
		return nil, &FieldError{Field: "site_id", Reason: err.Error(), Err: err}
	}
	if _, err := s.Node.Ask(ctx, func(token uint64) meta.Event {
		return meta.TrustHost{Token: token, Site: site, Node: r.GetNode(), Actor: identity.From(ctx).Actor}
	}); err != nil {
		return nil, err
	}
	s.told(ctx, "host trusted", "site", site, "node", r.GetNode())
	return &kithv1.TrustHostResponse{}, nil
}
