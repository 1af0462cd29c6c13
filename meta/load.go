package meta

import (
	"kith/cluster"
	"kith/internal/job"
)

// describe says what this site is and how loaded it is.
func (e *Engine) describe(now job.Time) cluster.Digest {
	s := &e.cfg.Self
	return cluster.Digest{
		Site: e.self, Incarnation: e.cfg.Incarnation, Sequence: e.loadSeq, Address: s.Address,
		Processors: s.Processors, MemoryBytes: s.MemoryBytes, Load: e.site.Load(now), HomeJobs: s.HomeJobs, Policy: s.Policy,
		Speed: s.Speed, Draining: e.st.Site().Draining, Time: now, Version: s.Version,
	}
}

// digest is what other sites are told of this one now.
func (e *Engine) digest(now job.Time) cluster.Digest {
	e.loadSeq++
	return e.describe(now)
}

// Digest returns what this site says of itself now, for a driver that spreads
// it in its own way.
func (e *Engine) Digest(now job.Time) cluster.Digest { return e.digest(now) }

// advertise tells everybody how loaded this site is.
func (e *Engine) advertise(now job.Time) {
	e.nextLoad = now.Add(e.cfg.Timing.Load)
	d := e.digest(now)
	for _, l := range e.linked {
		e.send(l.site, LoadDigest{Digest: d})
	}
	e.emit(Advertise{Digest: d})
}

// loadSeen records what another site says of itself.
func (e *Engine) loadSeen(now job.Time, d cluster.Digest) {
	if d.Site == e.self || d.Processors < 0 {
		return
	}
	p := e.view.Get(d.Site)
	first := p == nil || !p.Known
	wasDraining := !first && p.Digest.Draining
	if e.view.Merge(now, d) && (first || (wasDraining && !d.Draining)) {
		e.nextRetry = now // there may be a place now
	}
}
