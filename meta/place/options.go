package place

import (
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
	// (spec 004 section 4). It needs the ranks start, completion or forecast.
	Adaptive bool
	// Risk is how many standard deviations of when a job would end are added to the median with
	// rank forecast: a site of which little is known ranks behind one that is as good and
	// certain. 0 to 10, default 0.
	Risk float64
	// Copies is K where a job does not choose: 1 to job.MaxCopies. Default 3, for
	// which docs/adr/0013-default-placement.md has the reasons.
	Copies int32
	// Conserve keeps work where processors are (ADR 0026): loads count what the origin
	// has sent since they were told, draws decide between equal scores, full sites
	// are left alone for a while, and queued copies are added and moved later on.
	// The schemes of the papers are those without it.
	Conserve bool
	// MaxLoadAge is how old a load digest may be to rank by; what is older
	// ranks behind everything else. Default 60 s.
	MaxLoadAge time.Duration
	// QueryTimeout is how long placement waits for sites to say when a job
	// would start there. Default 500 ms.
	QueryTimeout time.Duration
}

// maxRisk bounds [Options.Risk]. 0 and 1 are what anybody would ask for.
const maxRisk = 10.0

// Default returns the options of an operator who chose none.
func Default() Options {
	return Options{Scheme: KDual, Rank: RankWork, Copies: 3, Conserve: true, MaxLoadAge: time.Minute, QueryTimeout: 500 * time.Millisecond}
}

// Policy puts the stages together. The options must be valid.
func (o *Options) Policy() Policy {
	c, rank := o.Scheme.composition(), o.rank()
	p := Policy{
		Filters:  slices.Concat(c.filters, []Filter{fitting, levels, ready, untried}),
		Question: rank.question(), KeepsOwn: c.keepsOwn, StaysHome: c.staysHome,
	}
	switch {
	case p.Question == AskNothing:
		p.Estimates = []Estimate{byLoad(rank, o.MaxLoadAge)}
	case p.Question == AskForecast:
		p.Estimates = []Estimate{byForecast(o.Risk), byLoad(RankWork, o.MaxLoadAge)}
	default:
		// Where no site was asked, loads have to do.
		p.Estimates = []Estimate{byAnswer(rank, c.loads), byLoad(RankWork, o.MaxLoadAge)}
	}
	if o.Conserve {
		p.Draws = true
		p.Filters = append(p.Filters, notFull)
		for i := range p.Estimates {
			p.Estimates[i] = counting(p.Estimates[i])
		}
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

// DefaultCopies returns how many sites a job gets copies at that does not say.
func (o *Options) DefaultCopies() int32 {
	if o.Scheme.composition().single {
		return 1
	}
	return o.Copies
}

// CopiesOf returns how many sites a job gets copies at.
func (o *Options) CopiesOf(r *job.Request) int {
	if r.Copies > 0 && !o.Scheme.composition().single {
		return int(r.Copies)
	}
	return int(o.DefaultCopies())
}

// rank returns what sites are ranked by.
func (o *Options) rank() Rank {
	if o.Rank != RankUnset {
		return o.Rank
	}
	implied, _ := o.Scheme.ImpliedRank() // or else RankWork
	return implied
}

// Check calls bad for everything that is wrong. key is named as a site's
// configuration file does, for example placement.copies; remedy says what to
// give instead of value.
func (o *Options) Check(bad func(key string, value any, remedy string)) {
	if o.Scheme.composition() == nil {
		bad("placement.scheme", o.Scheme, fmt.Sprintf("give one of %v", Schemes()))
	}
	rank := o.rank()
	if rank > RankCompletion && rank != RankForecast {
		bad("placement.rank", rank, "give work, procs, start, completion or forecast")
	}
	if implied, ok := o.Scheme.ImpliedRank(); ok && rank != implied {
		bad("placement.rank", rank, fmt.Sprintf("scheme %s ranks by %v; leave the rank out", o.Scheme, implied))
	}
	if w := o.Weight; w != 0 && !(w >= minWeight && w <= maxWeight) {
		bad("placement.weight", w, fmt.Sprintf("give %v to %v, or 0 for none", minWeight, maxWeight))
	}
	if o.Adaptive && rank.question() == AskNothing {
		bad("placement.adaptive", o.Adaptive, fmt.Sprintf("rank %v promises no time to compare with; choose rank start, completion or forecast with it", rank))
	}
	if r := o.Risk; !(r >= 0 && r <= maxRisk) {
		bad("placement.risk", r, fmt.Sprintf("give 0 to %v standard deviations", maxRisk))
	} else if r > 0 && rank != RankForecast {
		bad("placement.risk", r, fmt.Sprintf("rank %v knows no deviations; choose rank forecast with it, or leave it out", rank))
	}
	if o.Copies < 1 || o.Copies > job.MaxCopies {
		bad("placement.copies", o.Copies, fmt.Sprintf("give 1 to %d", job.MaxCopies))
	}
	if o.MaxLoadAge <= 0 {
		bad("placement.max_load_age", o.MaxLoadAge, "give a positive value")
	}
	if o.QueryTimeout <= 0 {
		bad("placement.query_timeout", o.QueryTimeout, "give a positive value")
	}
}
