package meta

import (
	"time"

	"kith/cluster"
	"kith/internal/job"
	"kith/sitesched/level"
	"kith/store"
)

// What a site that is a level tells others of the same level for load sharing (spec 000 section 2.5),
// and what it makes of a copy that comes because of it; push.go has copies moved.

// levelShare is what a host has seen of its own level. It is sampled when somebody is told of it, which is
// more often than once a period; a restart forgets it.
type levelShare struct {
	sampled   job.Time // the latest of the samples, 0 for none
	available float64
	started   bool    // an attempt has started here
	latency   float64 // in ns
}

// sampleShare smooths how many processors jobs of the hierarchy have here or could have.
func (h *host) sampleShare(now job.Time) {
	s, period := &h.level.share, h.cfg.Level.sharePeriod()
	n := int(now.Sub(s.sampled) / period)
	if n <= 0 && s.sampled != 0 {
		return
	}
	a := h.availableNow(now)
	if s.sampled == 0 {
		s.sampled, s.available = now, a
		return
	}
	s.available, s.sampled = level.Smooth(s.available, a, n), s.sampled.Add(time.Duration(n)*period)
}

// availableNow are the free processors and those that jobs of the hierarchy have.
func (h *host) availableNow(now job.Time) float64 {
	if h.st.Site().Draining || h.starting.stopped() {
		return 0
	}
	n := h.site.Load(now).Free
	h.lookLevel(now)
	for _, c := range h.level.here {
		if c.rec.Phase == store.CopyBegun || c.status == claiming {
			n += c.rec.Request.Processors
		}
	}
	n = min(max(n, 0), h.cfg.Self.Processors)
	return float64(n) * h.owner.Left(n, h.cfg.Self.Processors)
}

// startTook learns how long an attempt of the hierarchy took from its claim to its start.
func (h *host) startTook(now job.Time, c *hostCopy) {
	if c.rec.Request.Level == 0 || c.adopted {
		return
	}
	s, took := &h.level.share, float64(min(max(0, now.Sub(c.rec.Begun)), job.MaxWalltime))
	if !s.started {
		s.started, s.latency = true, took
	}
	s.latency = level.Smooth(s.latency, took, 1)
}

// notSooner says that a copy that waits at another site of this level would not be better off here, by what is
// known now: when it was sent for, others may have been on their way, too.
func (h *host) notSooner(now job.Time, m *PlaceCopy) job.Reason {
	if m.Elsewhere <= 0 {
		return job.NoReason
	}
	d := h.describe(now)
	if eta, ok := etaAt(&d, 0, &m.Request, &m.Before); !ok || !level.Sooner(eta, m.Elsewhere) {
		return job.NotSooner
	}
	return job.NoReason
}

// queueOf is the queue of a site of a level as it tells it, false if it tells too little.
func queueOf(d *cluster.Digest) (level.Queue, bool) {
	l := d.Level
	if l == nil || !l.Shares || d.Processors <= 0 || l.Queue <= 0 {
		return level.Queue{}, false
	}
	rate := l.Limit / (l.Queue.Seconds() * float64(d.Processors)) // φ(T_q) is T_q·N·P·β
	return level.Queue{Work: level.Complexity(l.Work), Available: l.Available, Processors: d.Processors, Rate: rate, Latency: l.Latency}, rate > 0
}

// leftAt is the work that a job counts for at a site that tells a queue, as the site itself counts it:
// what is left of its bound, or what the level lets one such job use.
func leftAt(d *cluster.Digest, q *level.Queue, r *job.Request, before *job.Progress) level.Complexity {
	if left := before.Bound - before.Done; before.Bound > 0 && left >= 0 {
		return level.Complexity(left)
	}
	run := max(0, d.Level.Run-usedBefore(before))
	return level.Complexity(run.Seconds() * q.Rate * float64(min(r.Processors, d.Processors)))
}

// etaAt is when a site would be done with a job that came now, behind all that is there and more.
func etaAt(d *cluster.Digest, more level.Complexity, r *job.Request, before *job.Progress) (time.Duration, bool) {
	q, ok := queueOf(d)
	return q.ETA(q.Work+more, leftAt(d, &q, r, before)), ok
}
