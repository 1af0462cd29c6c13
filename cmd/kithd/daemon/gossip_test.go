package daemon

import (
	"context"
	"fmt"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"kith/cluster/gossip"
	"kith/cluster/gossip/plain"
	"kith/internal/job"
	kithv1 "kith/proto/gen/kith/v1"
)

// everyTwo reports whether something is so of every site and every other.
func everyTwo(sites []*testSite, is func(a *testSite, b job.SiteID) bool) bool {
	for _, a := range sites {
		for _, b := range sites {
			if a != b && !is(a, job.SiteID(b.cfg.Site)) {
				return false
			}
		}
	}
	return true
}

// laned reports whether no load needs a stream any more. It takes the place of the first
// load on each stream, which would go over that.
func laned(sites []*testSite) bool {
	return everyTwo(sites, func(a *testSite, b job.SiteID) bool { return !a.d.effects.spread.needsStream(b) })
}

// heardDraining returns how many of the others have heard that a site drains, or not.
func heardDraining(sites []*testSite, of *testSite, draining bool) (n int) {
	for _, s := range sites {
		if s == of {
			continue
		}
		r, err := s.sites.ListSites(s.ctx(), &kithv1.ListSitesRequest{})
		if err != nil {
			continue
		}
		for _, site := range r.GetSites() {
			if site.GetId() == of.cfg.Site && site.GetDraining() == draining {
				n++
			}
		}
	}
	return n
}

// Loads travel by gossip: among twenty sites, of which each can be dialled by those with later names
// only, what one says is heard by all, though nothing of it goes over their streams;
// also after a restart.
func TestLoadsTravelByGossip(t *testing.T) {
	t.Parallel()
	count := 20
	if testing.Short() {
		count = 4
	}
	var names []string
	for i := range count {
		names = append(names, fmt.Sprintf("s%02d", i))
	}
	sites := federation(t, nil, names...)
	began := time.Now()
	sites[0].eventually("a lane between every two", func() bool { return laned(sites) })
	t.Log("lanes after", time.Since(began))
	for i, s := range []*testSite{sites[0], sites[count-1], sites[1]} {
		if i == 2 {
			s.restart()
			sites[0].eventually("a lane between every two after a restart", func() bool { return laned(sites) })
		}
		began = time.Now()
		if _, err := s.sites.DrainSite(s.ctx(), &kithv1.DrainSiteRequest{}); err != nil {
			t.Fatal(err)
		}
		s.eventually("all have heard that it drains", func() bool { return heardDraining(sites, s, true) == count-1 })
		t.Logf("all have heard after %v, with %d calls to find out", time.Since(began), count-1)
	}
	if !everyTwo(sites, func(a *testSite, b job.SiteID) bool { return a.d.gossip.Up(b) }) {
		t.Error("a lane has ended, so that a load may have gone over a stream")
	}
}

// Who opens a lane without TLS has to be a peer, and to mean this site.
func TestLanesOfStrangers(t *testing.T) {
	t.Parallel()
	s := federation(t, nil, "alpha", "beta")[0]
	for name, c := range map[string]struct {
		site, means job.SiteID
		code        codes.Code
	}{
		"a stranger":        {"gamma", "alpha", codes.PermissionDenied},
		"this site":         {"alpha", "alpha", codes.PermissionDenied},
		"no name":           {"No Site", "alpha", codes.InvalidArgument},
		"for another site":  {"beta", "gamma", codes.FailedPrecondition},
		"a peer, as it may": {"beta", "alpha", codes.OK},
	} {
		l := plain.New(plain.Config{
			Site: c.site, Address: func(job.SiteID) string { return s.d.Address() }, Admit: func(job.SiteID) bool { return false },
			Accept: func(job.SiteID, gossip.Conn) {}, DialOptions: dialOptions(),
		})
		defer l.Close()
		client := plainDial(t, l, c.means)
		if got := status.Code(client); got != c.code {
			t.Errorf("%s: %v", name, client)
		}
	}
}

func plainDial(t *testing.T, l *plain.Lanes, site job.SiteID) error {
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	c, err := l.Dial(ctx, site)
	if err == nil {
		c.Close() //nolint:errcheck // it cannot fail
	}
	return err
}
