package place

import (
	"slices"
	"time"

	"kith/cluster"
	"kith/internal/forecast"
	"kith/internal/job"
	"kith/store"
)

// Job is a job that looks for sites.
type Job struct {
	// Request is what it asks for. It is only read.
	Request *job.Request
	// Tried are sites that hold a copy of the attempt already, or refused one.
	// They get none.
	Tried []job.SiteID
	// Seed is that of the draw between equal scores, see [Policy.Draws].
	Seed uint64
}

// View is what the origin of a job knows of all sites at one time.
type View struct {
	// Own is what the origin would say of itself now. Of its fields only those
	// that stages read must be set.
	Own cluster.Digest
	// Refusal says why the origin itself cannot take the job; NoReason if it can.
	Refusal job.Reason
	// Peers are the other sites, by name. They are only read.
	Peers []*cluster.Peer
	// Answers are what sites said when they were asked about the start of the
	// job; nil if none was asked.
	Answers []Answer
	// Promises are what earlier promises of the sites were worth; nil without any.
	Promises *Promises
}

// Answer is what one site said about the start of a job.
type Answer struct {
	Site job.SiteID
	// Awaited says that the site was asked and has not answered yet.
	Awaited bool
	// Known says that it answered with a time. Reason says why not; it is
	// NoReason if the site did not answer at all.
	Known  bool
	Reason job.Reason
	// Wait is how long the job would wait there.
	Wait time.Duration
	// Waits is a forecast of that, of which Wait is the median; nil if there is none.
	Waits *forecast.Waits
}

// Round is the work on one decision, as its stages see it. The zero Round is
// ready, and can be used again for the next decision. It belongs to one
// goroutine and is not copied while it is in use.
type Round struct {
	// What is decided on, as handed to [Round.Begin]. Stages only read it.
	Job    Job
	View   View
	Now    job.Time
	Policy *Policy
	// Sites are all sites: the origin, then the others by name. Stages change
	// them; the choosing stage also their order.
	Sites []Candidate
}

// Begin lists the sites and filters them. p must stay as it is until the round
// has ended.
func (r *Round) Begin(j Job, v View, now job.Time, p *Policy) {
	r.Job, r.View, r.Now, r.Policy = j, v, now, p
	r.list()
	for _, filter := range p.Filters {
		filter(r)
	}
}

// Decide runs the stages after the filters. r.View.Answers may be set
// before. r.Sites is in rank order then, as far as the decision goes.
func (r *Round) Decide() *store.Decision {
	rank := r.score()
	r.Policy.Choose(r)
	return r.decision(rank)
}

// Next returns the best site that no filter refused, "" if there is none.
func (r *Round) Next() job.SiteID {
	r.score()
	r.RankFirst(1)
	if len(r.Sites) == 0 || !r.Sites[0].Eligible {
		return ""
	}
	return r.Sites[0].Site
}

// list makes a candidate of each site.
func (r *Round) list() {
	r.Sites = slices.Grow(r.Sites[:0], len(r.View.Peers)+1)
	own := &r.View.Own
	r.Sites = append(r.Sites, Candidate{
		SiteDecision: store.SiteDecision{Site: own.Site, Weight: 1, Reason: r.View.Refusal},
		Own:          true, Connected: true, Eligible: r.View.Refusal == job.NoReason, Digest: own,
	})
	for _, p := range r.View.Peers {
		c := Candidate{
			SiteDecision: store.SiteDecision{Site: p.Site, Weight: 1}, Connected: p.Connected, Eligible: true,
			Lacks: p.Lacks,
		}
		if p.Known {
			c.Age, c.Digest = p.Age(r.Now), &p.Digest
		}
		c.Sent = &p.Sent
		r.Sites = append(r.Sites, c)
	}
}

// score runs the estimates and weights and returns what scores stand for.
func (r *Round) score() Rank {
	rank := RankNone
	for _, e := range r.Policy.Estimates {
		if e.Score(r) {
			rank = e.Rank
			break
		}
	}
	if len(r.Policy.Weights) > 0 {
		for _, weigh := range r.Policy.Weights {
			weigh(r)
		}
		for i := range r.Sites {
			r.Sites[i].Score *= r.Sites[i].Weight
		}
	}
	eligible := 0
	for i := range r.Sites {
		if r.Sites[i].Eligible {
			eligible++
		}
	}
	if eligible == 1 {
		return RankNone
	}
	return rank
}

// decision keeps what is worth keeping: chosen sites first, then by rank.
func (r *Round) decision(rank Rank) *store.Decision {
	n := 0
	for i := range r.Sites {
		if r.Sites[i].Chosen {
			n++
		}
	}
	n = min(len(r.Sites), max(n, r.Policy.kept()), store.MaxDecisionSites)
	d := newDecision(n)
	d.Rank = uint8(rank)
	for _, want := range []bool{true, false} {
		for i := range r.Sites {
			if r.Sites[i].Chosen == want && len(d.Sites) < n {
				d.Sites = append(d.Sites, r.Sites[i].SiteDecision)
			}
		}
	}
	return d
}

// newDecision returns a decision with room for n sites, few of them in one
// piece with it.
func newDecision(n int) *store.Decision {
	if n > 1 {
		return &store.Decision{Sites: make([]store.SiteDecision, 0, n)}
	}
	b := new(struct {
		store.Decision
		site [1]store.SiteDecision
	})
	b.Sites = b.site[:0]
	return &b.Decision
}
