package place

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"kith/internal/job"
)

// Options are what an operator chooses of a [Policy].
type Options struct {
	Scheme Scheme
	// Rank is what sites are ranked by. [RankUnset] leaves it to the scheme, see
	// [Scheme.ImpliedRank], or else means RankWork.
	Rank Rank
	// Weight multiplies the score of sites of the other policy group than the
	// origin's, while the sites that start their own jobs first have more
	// computing power than the others (spec 004 section 2.3, there a = 1.3). 0.01
	// to 100; 0 means 1, no weights.
	Weight float64
	// Adaptive multiplies the score of each site with how much later than
	// promised it completed jobs of this origin lately, whatever its policy
	// (spec 004 section 4). It needs the ranks start or completion.
	Adaptive bool
	// Copies is K where a job does not choose: 1 to job.MaxCopies. Default 3, for
	// which docs/adr/0013-default-placement.md has the reasons.
	Copies int32
	// MaxLoadAge is how old a load digest may be to rank by; what is older
	// ranks behind everything else. Default 60 s.
	MaxLoadAge time.Duration
	// QueryTimeout is how long placement waits for sites to say when a job
	// would start there. Default 500 ms.
	QueryTimeout time.Duration
}

// Default returns the options of an operator who chose none.
func Default() Options {
	return Options{Scheme: KDual, Rank: RankWork, Copies: 3, MaxLoadAge: time.Minute, QueryTimeout: 500 * time.Millisecond}
}

// Policy puts the stages together. The options must be valid.
func (o *Options) Policy() Policy {
	c, rank := o.Scheme.composition(), o.rank()
	p := Policy{
		Filters:  slices.Concat(c.filters, []Filter{fitting, ready, untried}),
		Question: rank.question(), KeepsOwn: c.keepsOwn, StaysHome: c.staysHome,
	}
	switch {
	case p.Question == AskNothing:
		p.Estimates = []Estimate{byLoad(rank, o.MaxLoadAge)}
	default:
		// Where no site was asked, loads have to do.
		p.Estimates = []Estimate{byAnswer(rank, c.loads), byLoad(RankWork, o.MaxLoadAge)}
	}
	if o.Weight != 0 && o.Weight != 1 {
		p.Weights = append(p.Weights, groups(o.Weight))
	}
	if o.Adaptive {
		p.Weights = append(p.Weights, keptPromises)
	}
	copies := wanted(o.Copies)
	if c.single {
		copies = one
	}
	p.Choose = best(copies)
	if c.keepsOwn {
		p.Choose = ownAndBest(copies)
	}
	return p
}

// rank returns what sites are ranked by.
func (o *Options) rank() Rank {
	if o.Rank != RankUnset {
		return o.Rank
	}
	implied, _ := o.Scheme.ImpliedRank() // or else RankWork
	return implied
}

// Validate returns all that is wrong, joined, each naming field, value and remedy.
func (o *Options) Validate() error {
	var errs []error
	bad := func(format string, args ...any) { errs = append(errs, fmt.Errorf(format, args...)) }
	if o.Scheme.composition() == nil {
		bad("placement scheme %q: choose one of %v", o.Scheme, Schemes())
	}
	rank := o.rank()
	if rank > RankCompletion {
		bad("placement rank %v: choose work, procs, start or completion", rank)
	}
	if implied, ok := o.Scheme.ImpliedRank(); ok && rank != implied {
		bad("placement rank %v: scheme %s ranks by %v", rank, o.Scheme, implied)
	}
	if w := o.Weight; w != 0 && !(w >= minWeight && w <= maxWeight) {
		bad("placement weight %v: choose %v to %v, or 0 for none", w, minWeight, maxWeight)
	}
	if o.Adaptive && rank.question() == AskNothing {
		bad("placement adaptive with rank %v: only start and completion promise a time to compare with", rank)
	}
	if o.Copies < 1 || o.Copies > job.MaxCopies {
		bad("placement copies %d: choose 1 to %d", o.Copies, job.MaxCopies)
	}
	for _, x := range []struct {
		name string
		d    time.Duration
	}{{"max_load_age", o.MaxLoadAge}, {"query_timeout", o.QueryTimeout}} {
		if x.d <= 0 {
			bad("placement %s %v: choose a positive duration", x.name, x.d)
		}
	}
	return errors.Join(errs...)
}
