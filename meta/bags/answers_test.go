package bags

import (
	"testing"

	"kith/internal/job"
	"kith/store"
)

func TestClaimsAreAnsweredOnce(t *testing.T) {
	var a Answers
	for i, c := range []struct {
		site       job.SiteID
		generation uint32
		stamp      uint64
		want       bool
	}{
		{"beta", 1, 5, true}, {"beta", 1, 5, false}, {"beta", 1, 4, false}, {"beta", 1, 6, true}, {"gamma", 1, 5, true},
		{"beta", 2, 1, true}, {"beta", 2, 1, false}, {"beta", 2, 2, true},
	} {
		if got := a.New(c.site, c.generation, c.stamp); got != c.want {
			t.Errorf("claim %d, %+v: new %v", i, c, got)
		}
	}
	a.Forget("beta")
	if !a.New("beta", 2, 2) {
		t.Error("a site that was forgotten has asked before")
	}
}

// A repeated claim gets what is left of its bundles; one whose tasks have all ended gets
// none, and no new ones. So it is after a restart, for claims with live bundles.
func TestARepeatedClaimGetsTheSameBundles(t *testing.T) {
	s := store.NewState("alpha", 1)
	b := submit(t, s, 100, nil)
	var a Answers
	for _, stamp := range []uint64{1, 2} {
		if !a.New("beta", 1, stamp) {
			t.Fatalf("claim %d is not new", stamp)
		}
		give(t, s, b, "beta", 5) // its stamp is the bundle's number
	}
	end(t, s, job.AttemptID{Job: b.ID, Number: 1}, job.Success)
	for _, a := range []*Answers{&a, restored(b)} {
		if a.New("beta", 1, 1) || a.New("beta", 1, 2) || !a.New("beta", 1, 3) {
			t.Error("a repeated claim is new, or a new one is not")
		}
	}
	if got := s.BundlesOfClaim("beta", 1, 1); len(got) != 0 {
		t.Errorf("the claim whose tasks have ended gets %v", got)
	}
	if got := s.BundlesOfClaim("beta", 1, 2); len(got) != 1 || got[0].Number != 2 {
		t.Errorf("the other claim gets %v", got)
	}
}

func restored(b *store.Bag) *Answers {
	var a Answers
	for bundle := range b.Bundles {
		a.Restore(bundle.Site, bundle.Generation, bundle.Stamp)
	}
	a.Restore("beta", 1, 1) // an older one that comes later
	return &a
}
