package bags

import (
	"fmt"

	"kith/store"
)

const (
	// HoldRuns is how many runs must have failed before a bag of which none succeeded is held.
	HoldRuns = 50
	// HoldSites is at how many sites they must have, if the bag has as many.
	HoldSites = 2
)

// Hold returns why a bag should be held that is offered to so many sites, false if it
// should not: all of its first [HoldRuns] results are failures, at [HoldSites] sites or
// the only one. Then the fault is the bag's and no host's, and a million tasks need not
// fail for its user to learn of it. What was lost with a host, or stopped there, is no
// failure. A bag that its user has released is not held again.
//
// Source: design, blame is relative; spec 002 section 2.8 for black holes, which a second
// site tells apart.
func Hold(b *store.Bag, sites int) (reason string, hold bool) {
	if !b.State.Gives() || !b.Done.Empty() {
		return "", false
	}
	runs, at := uint64(0), 0
	for i := range b.Sums.Sites {
		s := &b.Sums.Sites[i]
		if s.Done > 0 {
			return "", false // of a task that is run again
		}
		if runs += s.Failed; s.Failed > 0 {
			at++
		}
	}
	if runs < HoldRuns || at < min(HoldSites, max(1, sites)) {
		return "", false
	}
	for i := range b.Acts {
		if b.Acts[i].Kind == store.ActRelease {
			return "", false
		}
	}
	where := fmt.Sprintf("at %d sites", at)
	if at == 1 {
		where = "at " + onlyFailed(b)
	}
	return fmt.Sprintf("the first %d results, %s, are all failures", runs, where), true
}

func onlyFailed(b *store.Bag) string {
	for i := range b.Sums.Sites {
		if b.Sums.Sites[i].Failed > 0 {
			return string(b.Sums.Sites[i].Site)
		}
	}
	return ""
}
