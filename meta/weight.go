package meta

import (
	"slices"
	"strings"
	"time"

	"kith/internal/job"
)

// The weight stage (spec 004 sections 2.3 and 4). A site that starts its own
// jobs first cannot keep what it promises to others, as it does not know of
// the local jobs that will come. Weights make up for that: by the policy that
// sites say they have, or by what their promises were worth so far.

// Bounds of [Placement.Weight] and of the weights learnt.
const (
	minWeight = 0.01
	maxWeight = 100
)

// weigh multiplies the scores with the weights of the sites.
func (e *Engine) weigh(list []candidate) {
	e.weighPolicies(list)
	for i := range list {
		c := &list[i]
		if e.cfg.Placement.Adaptive && c.eligible {
			c.Weight *= e.reliability(c.Site)
		}
		c.Score *= c.Weight
	}
}

// weighPolicies gives the sites of other policies than the origin's the
// configured weight, if those that put local jobs first have more computing
// power than the others. On a tie they have not.
func (e *Engine) weighPolicies(list []candidate) {
	a := e.cfg.Placement.Weight
	if a == 0 || a == 1 {
		return
	}
	localFirst, even := 0.0, 0.0
	for i := range list {
		c := &list[i]
		if c.Reason == job.Unreachable || !c.own && c.digest == nil {
			continue
		}
		power := float64(e.processorsOf(c)) * e.speedOf(c)
		if putsLocalFirst(e.policyOf(c)) {
			localFirst += power
		} else {
			even += power
		}
	}
	if even >= localFirst {
		return
	}
	for i := range list {
		if c := &list[i]; c.eligible && e.policyOf(c) != e.cfg.Self.Policy {
			c.Weight = a
		}
	}
}

// putsLocalFirst reports whether a policy in words (sitesched.Config.Policy)
// names one of the dual queues.
func putsLocalFirst(policy string) bool { return strings.Contains(policy, "dual-") }

func (e *Engine) policyOf(c *candidate) string {
	if c.own {
		return e.cfg.Self.Policy
	}
	return c.digest.Policy
}

func (e *Engine) processorsOf(c *candidate) int32 {
	if c.own {
		return e.cfg.Self.Processors
	}
	return c.digest.Processors
}

// promise is what a site promised of a job: its completion after so long.
type promise struct {
	site job.SiteID
	in   time.Duration
}

// notePromises keeps what the chosen sites promised, for [Engine.learn].
func (e *Engine) notePromises(now job.Time, o *openJob, list []candidate) {
	if !e.cfg.Placement.Adaptive {
		return
	}
	o.promises, o.decided = nil, now
	for i := range list {
		if c := &list[i]; c.Chosen && c.promised > 0 {
			o.promises = append(o.promises, promise{site: c.Site, in: c.promised})
		}
	}
}

// promiseRecord sums up promises and what became of them, in seconds. Old
// ones fade: see promiseFade.
type promiseRecord struct{ promised, actual float64 }

const (
	// promiseFade is what is left of a promise after each later one of its
	// site: about the last 50 count.
	promiseFade = 0.98
	// promisePrior is how many promises a site is credited with that were worth
	// as much as those of all sites.
	promisePrior = 2
)

func (r *promiseRecord) add(promised, actual float64) {
	r.promised = r.promised*promiseFade + promised
	r.actual = r.actual*promiseFade + actual
}

// learn compares when a job was completed with what its holder had promised.
// Jobs that were stopped or lost say nothing.
func (e *Engine) learn(now job.Time, o *openJob, kind job.OutcomeKind) {
	i := slices.IndexFunc(o.promises, func(p promise) bool { return p.site == o.rec.Holder })
	if i < 0 || kind == job.Cancel || kind == job.Loss {
		return
	}
	if e.records == nil {
		e.records = make(map[job.SiteID]*promiseRecord)
	}
	r := e.records[o.rec.Holder]
	if r == nil {
		r = &promiseRecord{}
		e.records[o.rec.Holder] = r // as many as sites in the view
	}
	promised, actual := o.promises[i].in.Seconds(), now.Sub(o.decided).Seconds()
	r.add(promised, actual)
	e.overall.add(promised, actual)
}

// reliability returns the ratio of actual to promised completion times of a
// site. Of a site without a history it is that of all sites, so that it is
// neither sought nor shunned.
func (e *Engine) reliability(site job.SiteID) float64 {
	if e.overall.promised <= 0 {
		return 1
	}
	usual := e.overall.actual / e.overall.promised
	r := e.records[site]
	if r == nil {
		return clampWeight(usual)
	}
	prior := promisePrior * e.overall.promised * (1 - promiseFade)
	return clampWeight((r.actual + prior*usual) / (r.promised + prior))
}

func clampWeight(w float64) float64 { return min(max(w, minWeight), maxWeight) }
