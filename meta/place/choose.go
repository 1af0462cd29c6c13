package place

import (
	"slices"

	"kith/internal/job"
)

// best gives copies to the sites that rank best.
func best(copies func(r *Round) int) Choose {
	return func(r *Round) { r.mark(copies(r)) }
}

// ownAndBest gives a copy to the origin, unless a filter refused it, and the
// others to the sites that rank best.
func ownAndBest(copies func(r *Round) int) Choose {
	return func(r *Round) {
		k := copies(r)
		own := slices.IndexFunc(r.Sites, func(c Candidate) bool { return c.Own })
		if own >= 0 && r.Sites[own].Eligible && k > 0 {
			r.Sites[own].Chosen = true
			k--
		}
		r.mark(k)
	}
}

// mark ranks the sites and chooses the first k that are not chosen yet.
func (r *Round) mark(k int) {
	r.RankFirst(max(k, r.Policy.kept()) + 1) // the origin may be among them
	for i := range r.Sites {
		c := &r.Sites[i]
		switch {
		case !c.Eligible || c.Chosen:
		case k > 0:
			c.Chosen = true
			k--
		case c.Reason == job.NoReason:
			c.Reason = job.Outranked
		}
	}
}

// one is one copy, whatever the job asks for.
func one(*Round) int { return 1 }

// wanted is what the job asks for, or else k.
func wanted(k int32) func(r *Round) int {
	return func(r *Round) int {
		if n := r.Job.Request.Copies; n > 0 {
			return int(n)
		}
		return int(k)
	}
}
