package meta

import (
	"time"

	"kith/internal/job"
	"kith/store"
)

// A site may have guests leave that run, so that its own jobs start as if these were not there
// ([HarmInvisible]) or wait no longer than a bound for them ([HarmBounded]). Who leaves is the
// local scheduler's to say. How one leaves hangs on how far it has come:
//
//	claim under way        its processors are free again, and it waits for another turn
//	begun, not started     the driver takes it back, and it goes back to its origin
//	started                it saves what it has done and ends as [job.Demoted], [job.Evicted]
//	its limit is near      it stays: it is gone within the grace
//	it could not go on     it stays to its end, and others leave ([job.Copy].Stays, Evictor.Stays)
//	a task of a bag        it is stopped, and runs again from its begin
//
// None that could not go on elsewhere is taken as a guest, see [host.unevictable]. Some are there
// all the same: they were taken under another mode, before a restart.

// Evictor is a [Site] that says which guests leave for home jobs. One that does not, as a batch
// system, has none leave.
type Evictor interface {
	// Evicted names guests that the latest Pass has told to leave. It holds until the next call.
	Evicted() []job.AttemptID
	// MakeWay names guests that have to leave by an instant for a home job that they alone
	// block. It holds until the next call.
	MakeWay(now job.Time, id job.AttemptID, until job.Time) []job.AttemptID
	// SetGrace says how long guests take to leave.
	SetGrace(grace time.Duration)
	// Stays says that a guest that was told to leave stays to its end, so that others leave.
	Stays(now job.Time, id job.AttemptID)
}

// unevictable says why a guest is not taken that could neither go on elsewhere nor be gone in
// time. stays says that it is not to be made to leave.
func (h *host) unevictable(r *job.Request, stays bool) job.Reason {
	if n := &h.cfg.NoHarm; n.evicts() && r.Walltime > h.cfg.maxGrace() && (stays || !r.Movable()) {
		return job.NotEvictable
	}
	return job.NoReason
}

// Unevictable says why this site takes no copy of a request of another site that it could not make
// leave. stays says that its attempts were evicted too often.
func (v Views) Unevictable(r *job.Request, stays bool) job.Reason {
	here := v.host.here(r)
	return v.host.unevictable(&here, stays)
}

// evict has guests leave.
func (h *host) evict(now job.Time, guests []job.AttemptID) {
	for _, id := range guests {
		if c := h.copies.Get(id); c != nil {
			h.evictCopy(now, c)
		} else {
			h.tasks.evict(now, id)
		}
	}
}

func (h *host) evictCopy(now job.Time, c *hostCopy) {
	switch {
	case c.rec.ID.Job.Origin == h.self || c.rec.Phase == store.CopyEnded:
	case c.status == claiming: // its claim may be granted yet: then it starts, or goes back
		c.status = waiting
		h.putBack(now, c)
	case c.rec.Phase != store.CopyBegun || c.killed:
	case c.started == 0:
		c.evicted = true
		h.unstage(c)
	case h.endsSoon(now, c):
	case c.forgotten, c.rec.Stays, !c.rec.Request.Movable():
		c.evicted = false
		h.evictor.Stays(now, c.rec.ID)
		h.harm.told++ // who was to go with it may not suffice
		h.passing = true
	default:
		c.evicted = true
		_ = h.demote(c.rec.ID, job.Evicted, 0) // else it ends anyway
	}
}

// leftBegun gives a copy back to its origin that had to leave after it had begun and before it was
// started, and that is in the queue again. While its input comes it holds no processors, and
// waits on.
func (h *host) leftBegun(now job.Time, c *hostCopy) {
	c.evicted = false
	if !c.bringing && h.peers.reachable(c.rec.ID.Job.Origin) {
		h.giveBack(now, c, job.MadeWay)
	}
}

// endsSoon reports whether an attempt that has started ends within the grace anyway. How long one has
// run that a daemon of before has begun is not known: on another machine, or by a clock that was set
// since.
func (h *host) endsSoon(now job.Time, c *hostCopy) bool {
	if c.adopted {
		return h.entry(c.rec).Request.Walltime <= h.cfg.maxGrace()
	}
	return h.restOf(now, c) <= h.cfg.maxGrace()
}

// restOf returns how long an attempt that has started may go on at most.
func (h *host) restOf(now job.Time, c *hostCopy) time.Duration {
	return c.since.Add(h.entry(c.rec).Request.Walltime).Sub(now)
}

// keepBound has guests leave that would alone keep a home job waiting for too long. It is called
// when the clocks were looked at ([host.lookHarm]). They are told two graces ahead of the bound:
// while the first of them leave, another home job may start on what comes free, and others have to
// leave in their place. To look costs passes on a copy of the local scheduler: it is done for
// [mostWays] jobs of a second, those first for which nobody was told yet, for the others a second
// later; and again for one only when a home job has started, or a guest turned out to stay, or
// after the grace.
func (h *host) keepBound(now job.Time) {
	m := &h.harm
	m.due = job.Never
	if h.cfg.NoHarm.Mode != HarmBounded || h.evictor == nil {
		return
	}
	if now.Sub(m.wayed) >= time.Second || now < m.wayed {
		m.wayed, m.ways = now, 0
	}
	for _, again := range [...]bool{false, true} {
		for _, id := range m.blocked {
			c := h.copies.Get(id)
			if c == nil || !c.harm.runs() || (c.harm.looked > 0) != again {
				continue
			}
			switch due := h.wayDue(c); {
			case due > now:
				m.due = min(m.due, due)
			case m.ways >= mostWays:
				m.due = min(m.due, now.Add(time.Second))
			default:
				m.ways++
				c.harm.looked, c.harm.told = now, m.told
				h.evict(now, h.evictor.MakeWay(now, id, now.Add(h.cfg.maxGrace())))
				m.due = min(m.due, h.wayDue(c))
			}
		}
	}
}

// mostWays is for how many jobs guests are told in a second that they have to leave.
const mostWays = 16

// wayDue returns when guests have to be told for a home job that they block, or looked at again.
func (h *host) wayDue(c *hostCopy) job.Time {
	grace := h.cfg.maxGrace()
	switch {
	case c.harm.looked == 0:
		before := h.st.Harm(c.rec.ID.Job).Blocked + c.harm.total
		return c.harm.since.Add(h.cfg.NoHarm.Bound - 2*grace - before)
	case c.harm.told != h.harm.told:
		return c.harm.looked
	}
	return c.harm.looked.Add(grace)
}

// evict stops what a pilot runs, and ends it.
func (th *taskHost) evict(now job.Time, id job.AttemptID) {
	p := th.pilots[id]
	switch {
	case p == nil || p.began == 0 || p.line.origin == th.self:
	case p.run == nil:
		th.finish(now, p)
	default:
		p.evicted = true
		if !p.stopped {
			p.stopped = true
			th.kill(p.run, Kill{})
		}
	}
}
