package daemon

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"google.golang.org/protobuf/proto"

	"kith/cmd/kithd/config"
	"kith/internal/job"
	kithv1 "kith/proto/gen/kith/v1"
	"kith/store"
	"kith/store/boltstore"
)

// aheadBy makes a site's data folder what a version before this one left whose clock
// was ahead: a time that it showed, and no count of starts. (The folder keeps its name,
// which the other site knows by now.)
func (s *testSite) aheadBy(d time.Duration) {
	s.t.Helper()
	s.change(func(state *store.State) {
		site := state.Site()
		site.Incarnation, site.Steps, site.Latest = 0, 0, job.Instant(time.Now().Add(d))
		state.RestoreSite(site)
		if err := store.Record(state, store.SetDrain{Draining: true, Reason: "to be written"}); err != nil {
			s.t.Fatal(err)
		}
		if err := store.Record(state, store.SetDrain{}); err != nil {
			s.t.Fatal(err)
		}
	})
}

// change edits the facts of a site that is down.
func (s *testSite) change(edit func(*store.State)) {
	s.t.Helper()
	b, err := boltstore.Open(filepath.Join(s.d.cfg.Data, boltstore.FileName), "")
	if err != nil {
		s.t.Fatal(err)
	}
	defer b.Close() //nolint:errcheck // it is only looked at
	state, err := b.Load()
	if err != nil {
		s.t.Fatal(err)
	}
	edit(state)
	if err := b.Seal(state).Commit(); err != nil {
		s.t.Fatal(err)
	}
}

// A host whose clock was a year ahead, and was set right while its daemon was down,
// is granted claims, and its drain and its load are seen at once.
func TestClockThatWasAheadAndWasMended(t *testing.T) {
	t.Parallel()
	sites := federation(t, func(c *config.Config) { c.Timing.Load = 200 * time.Millisecond }, "alpha", "beta")
	alpha, beta := sites[0], sites[1]
	beta.stop()
	beta.aheadBy(365 * 24 * time.Hour)
	beta.open()
	alpha.eventually("alpha sees beta", func() bool { return alpha.reaches("beta") })
	if !beta.logged("the clock was set back while kithd was down") {
		t.Error("the log does not say that the clock was set back")
	}
	beta.digestsAreOfNow()
	alpha.eventually("gossip alone carries the loads", func() bool { return laned(sites) })
	release := alpha.busy()
	defer release()
	j := shell("true")
	j.Copies = 2
	got := alpha.waitState(alpha.submit(j), completed, failed)
	if st := got.GetStatus(); st.GetHostSiteId() != "beta" || st.GetAttempt() != 1 {
		t.Errorf("%v", st)
	}
	drain := func(on bool) {
		t.Helper()
		var err error
		if on {
			_, err = beta.sites.DrainSite(beta.ctx(), &kithv1.DrainSiteRequest{})
		} else {
			_, err = beta.sites.ResumeSite(beta.ctx(), &kithv1.ResumeSiteRequest{})
		}
		if err != nil {
			t.Fatal(err)
		}
		alpha.eventually("alpha sees the drain", func() bool { return alpha.seen("beta").GetDraining() == on })
	}
	drain(true)
	drain(false)
	// And again after another restart.
	beta.restart()
	beta.digestsAreOfNow()
	drain(true)
}

// digestsAreOfNow checks that the digest that a site spreads has the wall's time.
func (s *testSite) digestsAreOfNow() {
	s.t.Helper()
	var load kithv1.LoadDigest
	s.eventually("a digest of "+s.cfg.Site, func() bool {
		var own kithv1.GossipState
		if err := proto.Unmarshal(s.d.gossip.LocalState(true), &own); err != nil {
			s.t.Fatal(err)
		}
		for _, note := range own.GetNotes() {
			if d := note.GetDigest(); d != nil {
				return proto.Unmarshal(d.GetDigest(), &load) == nil
			}
		}
		return false
	})
	if skew := job.Time(load.GetTimeNs()).Sub(job.Instant(time.Now())); skew.Abs() > time.Hour {
		s.t.Errorf("the digest of %s is %v from the wall's time", s.cfg.Site, skew)
	}
}

func (s *testSite) stop() {
	s.t.Helper()
	if err := s.d.Close(); err != nil {
		s.t.Fatal(err)
	}
}

// seen returns what a site says of another one.
func (s *testSite) seen(site string) *kithv1.Site {
	s.t.Helper()
	r, err := s.sites.ListSites(s.ctx(), &kithv1.ListSitesRequest{})
	if err != nil {
		s.t.Fatal(err)
	}
	for _, other := range r.GetSites() {
		if other.GetId() == site {
			return other
		}
	}
	return nil
}

func (s *testSite) reaches(site string) bool {
	return s.seen(site).GetReachability() == kithv1.Site_REACHABILITY_CONNECTED
}

// A start is counted in the data folder, and the folder keeps its name.
func TestStartsAreCounted(t *testing.T) {
	t.Parallel()
	s := startSite(t, testConfig(t, "alpha"))
	last := s.d.self
	for range 3 {
		s.restart()
		now := s.d.self
		if now.Incarnation != last.Incarnation+1 || now.Folder != last.Folder || now.Folder == (store.Folder{}) {
			t.Errorf("start %d on folder %x after start %d on %x", now.Incarnation, now.Folder, last.Incarnation, last.Folder)
		}
		last = now
	}
}

// A site that comes back with an old state of its data folder is refused by the
// others, and both say so: it may have granted since what it would grant again.
func TestOldDataFolderPutBack(t *testing.T) {
	t.Parallel()
	sites := federation(t, nil, "alpha", "beta")
	alpha, beta := sites[0], sites[1]
	beta.stop()
	old := t.TempDir()
	if err := os.CopyFS(old, os.DirFS(beta.d.cfg.Data)); err != nil {
		t.Fatal(err)
	}
	beta.open() // the start that the copy knows nothing of
	alpha.eventually("alpha sees beta", func() bool { return alpha.reaches("beta") && beta.reaches("alpha") })
	beta.stop()
	alpha.eventually("alpha misses beta", func() bool { return !alpha.reaches("beta") })
	if err := os.RemoveAll(beta.d.cfg.Data); err != nil {
		t.Fatal(err)
	}
	if err := os.CopyFS(beta.d.cfg.Data, os.DirFS(old)); err != nil {
		t.Fatal(err)
	}
	beta.open()
	alpha.eventually("alpha says that beta is behind", func() bool {
		return alpha.logged("peer is not what it was", "old state of its data folder")
	})
	beta.eventually("beta says that it is behind", func() bool {
		return beta.logged("a peer refuses this site for its data folder", "old state of its data folder")
	})
	if alpha.reaches("beta") || beta.reaches("alpha") {
		t.Error("they talk to each other")
	}
	// Its operator may have it so.
	if _, err := alpha.sites.ForgetSite(alpha.ctx(), &kithv1.ForgetSiteRequest{SiteId: "beta"}); err != nil {
		t.Fatal(err)
	}
	alpha.eventually("alpha sees beta as it is", func() bool { return alpha.reaches("beta") })
	// An empty folder is another one.
	beta.stop()
	if err := os.RemoveAll(beta.d.cfg.Data); err != nil {
		t.Fatal(err)
	}
	beta.open()
	alpha.eventually("alpha sees beta", func() bool { return alpha.reaches("beta") })
}
