package place

import (
	"time"

	"kith/internal/job"
)

// Bounds of [Options.Weight] and of the weights learnt.
const (
	minWeight = 0.01
	maxWeight = 100
)

const (
	// promiseFade is what is left of a promise after each later one of its
	// site: about the last 50 count.
	promiseFade = 0.98
	// promisePrior is how many promises a site is credited with that were worth
	// as much as those of all sites.
	promisePrior = 2
)

// Promises sums up what sites promised and what became of it (spec 004 section
// 4). The zero Promises knows nothing. It holds one record for each site that
// ever was learnt of.
type Promises struct {
	bySite  map[job.SiteID]*promised
	overall promised
}

// promised sums up promises and actual times, in seconds. Old ones fade.
type promised struct{ promised, actual float64 }

func (p *promised) add(promise, actual float64) {
	p.promised = p.promised*promiseFade + promise
	p.actual = p.actual*promiseFade + actual
}

// Learn records that site promised to complete a job after promise, and did
// so after actual.
func (p *Promises) Learn(site job.SiteID, promise, actual time.Duration) {
	if p.bySite == nil {
		p.bySite = make(map[job.SiteID]*promised)
	}
	s := p.bySite[site]
	if s == nil {
		s = &promised{}
		p.bySite[site] = s
	}
	s.add(promise.Seconds(), actual.Seconds())
	p.overall.add(promise.Seconds(), actual.Seconds())
}

// Ratio returns the ratio of actual to promised completion times of a site,
// 0.01 to 100. Of a site without a history it is that of all sites, so that it
// is neither sought nor shunned; 1 if nothing is known at all.
func (p *Promises) Ratio(site job.SiteID) float64 {
	if p == nil || p.overall.promised <= 0 {
		return 1
	}
	usual := p.overall.actual / p.overall.promised
	s := p.bySite[site]
	if s == nil {
		return clamp(usual)
	}
	prior := promisePrior * p.overall.promised * (1 - promiseFade)
	return clamp((s.actual + prior*usual) / (s.promised + prior))
}

func clamp(w float64) float64 { return min(max(w, minWeight), maxWeight) }

// keptPromises multiplies the score of each site with how much later than
// promised it completed jobs lately.
func keptPromises(r *Round) {
	for i := range r.Sites {
		if c := &r.Sites[i]; c.Eligible {
			c.Weight *= r.View.Promises.Ratio(c.Site)
		}
	}
}
