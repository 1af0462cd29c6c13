package meta

import (
	"kith/cluster"
	"kith/internal/job"
)

// describe says what this site is and how loaded it is.
func (h *host) describe(now job.Time) cluster.Digest {
	s := &h.cfg.Self
	load := h.site.Load(now)
	load.Work = max(0, load.Work-h.tasks.yielding(now)) / h.owner.Left(1, s.Processors)
	return cluster.Digest{
		Site: h.self, Incarnation: h.st.Site().Incarnation, Sequence: h.loadSeq, Address: s.Address,
		Processors: s.Processors, MemoryBytes: s.MemoryBytes, Load: load, HomeJobs: s.HomeJobs, Policy: s.Policy,
		Speed: s.Speed, Draining: h.st.Site().Draining, NotStarting: h.starting.stopped(), Time: now, Version: s.Version,
		Owner: h.owner, Level: h.describeLevel(now), Settings: h.settings,
		GuestWalltime: h.cfg.NoHarm.GuestWalltime, KeptFree: s.KeptFree, TimesFreed: h.dry.times,
	}
}

// digest is what one site is told of this one now.
func (h *host) digest(now job.Time) cluster.Digest {
	h.loadSeq++
	d := h.describe(now)
	d.NotStarting = d.NotStarting || h.starting.low != ""
	return d
}

// digestForAll is what all other sites are told of this one now.
func (h *host) digestForAll(now job.Time) cluster.Digest {
	h.dry.count()
	d := h.digest(now)
	h.dry.told(now, &d)
	return d
}

// advertise tells the other sites how loaded this one is.
func (h *host) advertise(now job.Time) {
	h.nextLoad = now.Add(h.cfg.Timing.Load)
	d := h.digestForAll(now)
	var m Message = LoadDigest{Digest: d} // one for all: a digest is long
	for _, l := range h.peers.linked {
		h.peers.send(l.site, m)
	}
	h.emit(Advertise{Digest: d})
}
