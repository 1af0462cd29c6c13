package meta

import (
	"time"

	"kith/internal/job"
	"kith/store"
)

// bringAgain is when an attempt whose inputs are being brought has its turn again at
// the latest, should the driver never say that they are here.
const bringAgain = time.Hour

// attemptMissing deals with an attempt that was begun and never started. A local
// one is launched at once, if it still fits. A remote one goes back to its place in the queue and
// claims again when its turn comes: its origin may want it no more, or be out of
// reach for long, and must not pin processors; and its payload comes with the
// grant.
func (h *host) attemptMissing(now job.Time, ev AttemptMissing) {
	a := ev.Attempt
	c := h.copies.Get(a)
	if c == nil {
		h.tasks.missing(now, a)
		return
	}
	if c.rec.Phase != store.CopyBegun {
		return
	}
	if a.Job.Origin == h.self {
		if h.origin.cancels(a.Job) {
			h.end(now, c, Kill{Attempt: a}.Unstarted(now))
			return
		}
		if !h.missingOutgrown(now, c) {
			h.launchAgain(now, c)
		}
		return
	}
	if c.killed || h.revoked(a.Job.Origin) { // the driver knows it no more: its end would never be told
		h.end(now, c, Kill{Attempt: a, Lease: c.lapsed}.Unstarted(now))
		return
	}
	if h.missingOutgrown(now, c) {
		return
	}
	h.requeue(now, c, ev.Bringing)
	if h.peers.reachable(a.Job.Origin) && h.st.Site().Draining {
		h.giveBack(now, c, job.Draining)
	} else if c.evicted {
		h.leftBegun(now, c)
	}
}

// requeue puts a copy that was begun back into its place in the queue.
func (h *host) requeue(now job.Time, c *hostCopy, bringing bool) {
	a := c.rec.ID
	record(h.st, store.RequeueCopy{Attempt: a})
	h.site.Finish(now, a)
	if o := a.Job.Origin; !h.peers.reachable(o) {
		h.outOfReach(now, o) // it may have been revoked and admitted again meanwhile
	}
	entry := h.entry(c.rec)
	h.site.Enqueue(now, entry)
	switch {
	case bringing:
		h.postpone(now, c, now.Add(bringAgain))
	case c.unstaged: // it goes back; or it has its turn, as the site drains no more
	case !c.adopted: // its inputs could not be had: others first
		h.postpone(now, c, now.Add(h.cfg.Timing.Backoff))
	case h.batch != nil:
		h.queueOutside(entry, 0) // what was started for it may still wait for a word
	}
	c.postponed = !c.adopted && !c.unstaged && !bringing
	c.status, c.returned, c.adopted, c.unstaged, c.lapsed, c.lease = waiting, true, false, false, false, attemptLease{}
	c.bringing = bringing
	if !bringing {
		h.holds(now, c)
	}
	h.passing = true
}

// filesHere lets a copy have its turn whose inputs have come.
func (h *host) filesHere(now job.Time, a job.AttemptID) {
	if c := h.copies.Get(a); c != nil && c.bringing && c.status == waiting {
		c.bringing = false
		h.holds(now, c)
		h.postpone(now, c, now)
	}
}

// unstageAll takes back what has begun here and not been started, of origins in reach.
func (h *host) unstageAll() {
	for _, l := range h.peers.linked {
		if !l.up {
			continue
		}
		for _, c := range h.copiesOf(l.site) {
			h.unstage(c)
		}
	}
}

// unstage takes back what has begun here and has not been started.
func (h *host) unstage(c *hostCopy) {
	if c.rec.Phase == store.CopyBegun && c.started == 0 && !c.adopted && !c.killed {
		c.unstaged = true
		h.emit(Unstage{Attempt: c.rec.ID})
	}
}
