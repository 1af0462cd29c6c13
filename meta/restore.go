package meta

import (
	"cmp"
	"maps"
	"slices"

	"kith/internal/job"
	"kith/store"
)

// Restore takes up the facts of an earlier run: queues what was queued, asks
// the driver about what was begun, and goes on with what was under way. It is
// called once, before the first Step. configured are the sites that the
// configuration names.
func (e *Engine) Restore(now job.Time, configured []job.SiteID) []Effect {
	e.out = e.out[:0]
	for _, s := range configured {
		if s != e.self && e.stranger(s) == "" {
			e.peers.view.Expect(now, s)
		}
	}
	e.restoreTrust(now)
	ended, outgrown := e.host.restore(now)
	e.origin.restore(now)
	e.bags.restore(now)
	e.deps.restore(now)
	e.host.returnOutgrown(now, outgrown)
	for _, c := range ended {
		if c.rec.ID.Job.Origin == e.self {
			e.host.report(now, c)
		}
	}
	e.tellUnlisted(now, configured)
	e.host.restoredOutside()
	e.host.wantPass()
	return e.out
}

// restore queues and adopts, and returns the copies that have ended, and those
// that no longer fit.
func (h *host) restore(now job.Time) (ended, outgrown []*hostCopy) {
	h.stamp = h.st.Site().Steps
	h.began, h.nextRenew = now, job.Never
	h.nextLoad, h.nextCheck = now, now.Add(h.cfg.Timing.AntiEntropy)
	if h.st.Site().Draining {
		h.site.Drain(now, true)
	}
	for _, rec := range h.records() {
		c := h.addCopy(rec)
		if origin := rec.ID.Job.Origin; origin != h.self && !h.isAside(origin) {
			h.outOfReach(now, origin)
		}
		switch rec.Phase {
		case store.CopyQueued:
			if c.outgrown = h.outgrown(rec.Request); c.outgrown != job.NoReason {
				outgrown = append(outgrown, c)
				continue
			}
			h.enqueue(now, rec)
		case store.CopyBegun:
			c.status, c.adopted = launched, true
			entry := h.entry(rec)
			h.site.Adopt(now, entry, rec.Begun)
			h.keepLease(now, c)
			h.emit(Adopt{Attempt: rec.ID, Request: h.limitedRequest(rec), BootID: rec.BootID, Leased: entry.Remote && leased(rec.Request), Ending: h.ending(rec), Estimate: h.estimate(now, rec)})
			if h.revoked(rec.ID.Job.Origin) { // what stops it may have died with the daemon before
				h.cutOff(c)
			}
		case store.CopyEnded:
			ended = append(ended, c)
		}
	}
	h.tasks.restore(now)
	return ended, outgrown
}

// restore goes on with jobs submitted here.
func (or *origin) restore(now job.Time) {
	or.nextLease, or.nextRetry, or.overdue.began = job.Never, now, now
	var closed []*store.Job
	away := make(map[job.SiteID]bool) // sites that hold copies
	for j := range or.st.Jobs(job.ID{}) {
		if j.State.Terminal() {
			closed = append(closed, j)
			continue
		}
		for _, s := range j.Sites {
			away[s] = true
		}
		or.restoreJob(now, or.addOpen(j))
	}
	slices.SortStableFunc(closed, func(a, b *store.Job) int { return cmp.Compare(a.Closed, b.Closed) })
	for _, j := range closed {
		or.closed.Push(j.ID)
	}
	delete(away, or.self)
	for _, p := range or.peers.view.Peers() {
		delete(away, p.Site)
		or.peers.watch(now, p.Site)
	}
	for _, s := range slices.Sorted(maps.Keys(away)) {
		if or.revoked(s) {
			continue
		}
		or.peers.view.Expect(now, s)
		or.peers.watch(now, s)
	}
}

func (or *origin) restoreJob(now job.Time, o *openJob) {
	j := o.rec
	or.addAway(o)
	if j.State.Claim() == job.ClaimTaken && j.Outcome == nil {
		or.grantLease(now, o) // what was granted before has begun before
		or.expectEnd(o)
	}
	switch j.State {
	case job.Pending:
		or.addUnplaced(o)
	case job.Queued:
		// Where they are not, comparing copies will show.
		o.at = slices.Repeat([]copyAt{queued}, len(j.Sites))
		if j.Level > 0 {
			or.pushSoon(now)
		}
		or.addIfShort(now, o)
	case job.Returning:
		or.restoreReturning(now, o)
	case job.Cancelling:
		or.stopEarlier(now, j)
		or.stopHolder(now, o)
	}
}

func (or *origin) restoreReturning(now job.Time, o *openJob) {
	if o.rec.Outcome.FilesRemain && o.rec.Holder != or.self {
		or.fetch(now, o)
		return
	}
	or.finish(now, o, "")
}
