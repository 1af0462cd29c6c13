package place

import (
	"cmp"
	"math"
	"slices"
	"time"

	"kith/cluster"
	"kith/internal/job"
	"kith/store"
)

// Candidate is a site on its way through the stages.
type Candidate struct {
	// SiteDecision is what the decision will tell of it.
	store.SiteDecision
	// Own says that it is the job's origin.
	Own bool
	// Connected says that a stream to it is up.
	Connected bool
	// Eligible says that no filter refused it.
	Eligible bool
	// Blind says that there was nothing to score it by: it ranks behind all others.
	Blind bool
	// Digest is what the site says of itself; nil if it never did. It is only read.
	Digest *cluster.Digest
	cluster.Lacks
	// Promised is when the job would be completed there, from now on; zero if
	// the estimate does not say.
	Promised time.Duration
	// Sent is what the origin knows of it from its own dealings; nil for the origin.
	// It is only read.
	Sent *cluster.Sent
	// Tie decides between equal scores, before the origin does; less is better.
	Tie float64
}

// Refuse takes the site out of the choice.
func (c *Candidate) Refuse(why job.Reason) { c.Eligible, c.Reason = false, why }

// Speed returns the speed of one processor, 1 if the site does not say. The
// site must have told its load.
func (c *Candidate) Speed() float64 {
	if s := c.Digest.Speed; s > 0 && !math.IsNaN(s) {
		return s
	}
	return 1
}

// Rate is how fast a job that takes so many of its processors gets on there: the speed, less
// what the owner of the machine is expected to take.
func (c *Candidate) Rate(processors int32) float64 {
	return c.Speed() * c.Digest.Owner.Left(processors, c.Digest.Processors)
}

// compare ranks: eligible sites before refused ones, sites with a score before
// blind ones, then by score, then by Tie, then the origin, then by a draw if the
// policy has one, then by name.
func (r *Round) compare(a, b *Candidate) int {
	switch {
	case a.Eligible != b.Eligible:
		return first(a.Eligible)
	case a.Blind != b.Blind:
		return first(b.Blind)
	}
	if c := cmp.Compare(a.Score, b.Score); c != 0 {
		return c
	}
	if c := cmp.Compare(a.Tie, b.Tie); c != 0 {
		return c
	}
	if a.Own != b.Own {
		return first(a.Own)
	}
	if r.Policy.Draws {
		if c := cmp.Compare(r.draw(a.Site), r.draw(b.Site)); c != 0 {
			return c
		}
	}
	return cmp.Compare(a.Site, b.Site)
}

// first is the result of a comparison that a wins if it is so.
func first(a bool) int {
	if a {
		return -1
	}
	return 1
}

// RankFirst brings the best n sites to the front, in order.
func (r *Round) RankFirst(n int) {
	list := r.Sites
	if n >= len(list)/8 {
		slices.SortFunc(list, func(a, b Candidate) int { return r.compare(&a, &b) })
		return
	}
	for i := range n {
		best := i
		for k := i + 1; k < len(list); k++ {
			if r.compare(&list[k], &list[best]) < 0 {
				best = k
			}
		}
		list[i], list[best] = list[best], list[i]
	}
}
