package meta

import (
	"cmp"
	"slices"

	"kith/internal/job"
	"kith/store"
)

// Restore takes up the facts of an earlier run: queues what was queued, asks
// the driver about what was begun, and goes on with what was under way. It is
// called once, before the first Step. peers are the sites that the
// configuration names.
func (e *Engine) Restore(now job.Time, peers []job.SiteID) []Effect {
	e.out = e.out[:0]
	e.stamp = uint64(max(0, e.st.Site().Latest.Add(store.Late)))
	e.began, e.nextRenew, e.nextLease = now, job.Never, job.Never
	e.nextLoad, e.nextCheck, e.nextRetry = now, now.Add(e.cfg.Timing.AntiEntropy), now
	for _, p := range peers {
		if p != e.self {
			e.view.Expect(now, p)
		}
	}
	if e.st.Site().Draining {
		e.site.Drain(now, true)
	}
	ended := e.restoreCopies(now)
	e.restoreJobs(now)
	for _, c := range ended {
		if c.rec.ID.Job.Origin == e.self {
			e.report(now, c)
		}
	}
	e.passing = true
	return e.out
}

// restoreCopies queues and adopts, and returns the copies that have ended.
func (e *Engine) restoreCopies(now job.Time) []*hostCopy {
	records := slices.SortedFunc(e.st.Copies(), func(a, b *store.Copy) int {
		return cmp.Or(cmp.Compare(a.Arrived, b.Arrived), a.ID.Compare(b.ID))
	})
	var ended []*hostCopy
	for _, rec := range records {
		c := e.addCopy(rec)
		e.stamp = max(e.stamp, uint64(max(rec.Arrived, rec.Begun)))
		queueEntry := job.Copy{ID: rec.ID, Request: e.here(&rec.Request), Arrival: rec.Arrived, Remote: rec.ID.Job.Origin != e.self}
		switch rec.Phase {
		case store.CopyQueued:
			e.site.Enqueue(now, queueEntry)
		case store.CopyBegun:
			c.status, c.adopted = launched, true
			e.site.Adopt(now, queueEntry, rec.Begun)
			e.keepLease(now, c)
			e.emit(Adopt{Attempt: rec.ID, Request: queueEntry.Request, BootID: rec.BootID, Leased: queueEntry.Remote && leased(&rec.Request)})
		case store.CopyEnded:
			ended = append(ended, c)
		}
	}
	return ended
}

// restoreJobs goes on with jobs submitted here.
func (e *Engine) restoreJobs(now job.Time) {
	var closed []*store.Job
	away := make(map[job.SiteID]bool)
	for j := range e.st.Jobs(job.ID{}) {
		if j.State.Terminal() {
			closed = append(closed, j)
			continue
		}
		o := e.addOpen(j)
		for _, s := range j.Sites {
			away[s] = s != e.self
		}
		if j.State.Claim() == job.ClaimHeld && j.Outcome == nil {
			e.grantLease(now, o) // what was granted before has begun before
		}
		switch j.State {
		case job.Pending:
			e.addHomeless(o)
		case job.Queued:
			// Where they are not, comparing copies will show.
			o.at = slices.Repeat([]copyAt{queued}, len(j.Sites))
		case job.Returning:
			e.restoreReturning(now, o)
		case job.Cancelling:
			e.stopEarlier(now, j)
			e.stopHolder(now, o)
		}
	}
	slices.SortStableFunc(closed, func(a, b *store.Job) int { return cmp.Compare(a.Closed, b.Closed) })
	for _, j := range closed {
		e.closed.push(j.ID)
	}
	for _, p := range e.view.Peers() {
		delete(away, p.Site)
		e.vanished.push(vanishDue{at: now.Add(e.cfg.Timing.Vanish), since: now, site: p.Site})
	}
	for _, s := range slices.Sorted(func(yield func(job.SiteID) bool) {
		for s, is := range away {
			if is && !yield(s) {
				return
			}
		}
	}) {
		e.view.Expect(now, s)
		e.vanished.push(vanishDue{at: now.Add(e.cfg.Timing.Vanish), since: now, site: s})
	}
}

func (e *Engine) restoreReturning(now job.Time, o *openJob) {
	if o.rec.Outcome.FilesRemain && o.rec.Holder != e.self {
		e.emit(Fetch{Attempt: o.rec.AttemptID(), From: o.rec.Holder, Files: o.rec.Outcome.Files})
		return
	}
	e.closeJob(now, o, "")
}
