package meta

import (
	"slices"

	"kith/internal/job"
	"kith/store"
)

// A site may come back smaller than it was: with fewer processors, less memory,
// other folders. What it had queued and can no longer run must not stay unseen, as
// the local scheduler does not take it: copies go back to their origins, and jobs
// of its own look for another place. What has begun runs on.

// outgrown says why this site can no longer run a request that it had accepted,
// [job.NoReason] if it can.
func (h *host) outgrown(r *job.Request) job.Reason {
	if r.Directory != "" && (h.cfg.AllowDirectory == nil || !h.cfg.AllowDirectory(r.Directory)) {
		return job.Directory
	}
	if r.Level > 0 && r.Level != h.level.limits.Rank { // it is another level than it was
		return job.Level
	}
	here := h.here(r)
	return h.site.Refuse(&here)
}

// returnOutgrown deals with the copies that a restart found outgrown. Those of own
// jobs are dropped; those of other origins go back once these are in reach, see
// [host.revive], and are in no queue until then.
func (h *host) returnOutgrown(now job.Time, outgrown []*hostCopy) {
	var told []Outgrown
	for _, c := range outgrown {
		own := c.rec.ID.Job.Origin == h.self
		i := slices.IndexFunc(told, func(o Outgrown) bool { return o.Own == own && o.Reason == c.outgrown })
		if i < 0 {
			i = len(told)
			told = append(told, Outgrown{First: c.rec.ID, Own: own, Reason: c.outgrown})
		}
		told[i].Copies++
		if own {
			h.drop(now, c)
			h.origin.outgrownHere(now, c.rec.ID, c.outgrown)
		}
	}
	for _, o := range told {
		h.emit(o)
	}
}

// outgrownHere learns that this very site can no longer run a job that it had queued.
func (or *origin) outgrownHere(now job.Time, a job.AttemptID, reason job.Reason) {
	o := or.open.Get(a.Job)
	if o == nil || o.rec.State != job.Queued || o.rec.Attempt != a.Number {
		return
	}
	if i := slices.Index(o.rec.Sites, or.self); i >= 0 {
		or.copyReturned(now, o, i, store.CopyReturned, reason)
	}
}

// missingOutgrown deals with an attempt that was begun, never started, and no longer
// fits this site; false if it fits.
func (h *host) missingOutgrown(now job.Time, c *hostCopy) bool {
	reason := h.outgrown(c.rec.Request)
	if reason == job.NoReason {
		return false
	}
	h.emit(Outgrown{First: c.rec.ID, Copies: 1, Own: c.rec.ID.Job.Origin == h.self, Reason: reason})
	h.returnBegun(now, c, reason)
	return true
}

// returnBegun gives an attempt back that was begun and never started, once its origin is in
// reach; it is in no queue until then.
func (h *host) returnBegun(now job.Time, c *hostCopy, reason job.Reason) {
	a := c.rec.ID
	record(h.st, store.RequeueCopy{Attempt: a})
	h.site.Finish(now, a)
	h.passing = true
	c.status, c.returned, c.adopted, c.lapsed, c.lease = waiting, true, false, false, attemptLease{}
	switch {
	case a.Job.Origin == h.self:
		h.drop(now, c)
		h.origin.givenBack(now, a, reason)
	case h.peers.reachable(a.Job.Origin):
		h.giveBack(now, c, reason)
	default:
		c.outgrown = reason
		h.dequeueOutside(a)
	}
}

// launchAgain launches an attempt of this site's own that was begun before a restart and never
// started, unless what runs takes more than there is: then it goes back. What the tasks hold
// that may run here is not known before the driver has said so.
func (h *host) launchAgain(now job.Time, c *hostCopy) {
	switch {
	case !c.adopted: // it has had its processors since it was begun
		h.launch(now, c, nil)
	case h.tasks.adopting > 0:
		h.unlaunched = append(h.unlaunched, c)
	case h.site.Overfull(now):
		h.returnBegun(now, c, job.CannotStart)
	default:
		h.launch(now, c, nil)
	}
}

// launchUnlaunched deals with the attempts that had to wait until it is known which tasks run.
func (h *host) launchUnlaunched(now job.Time) {
	if h.tasks.adopting > 0 {
		return
	}
	waiting := h.unlaunched
	h.unlaunched = nil
	for _, c := range waiting {
		switch {
		case h.copies.Get(c.rec.ID) != c || c.rec.Phase != store.CopyBegun:
		case c.killed: // the driver knows it no more
			h.end(now, c, Kill{Attempt: c.rec.ID}.Unstarted(now))
		default:
			h.launchAgain(now, c)
		}
	}
}
