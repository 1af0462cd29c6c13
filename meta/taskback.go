package meta

import (
	"slices"

	"kith/internal/job"
	"kith/meta/bags"
)

// What an origin wants back or stopped, leases, and restarts, at the host of tasks.

// onRecall gives back tasks of a bundle that have not begun.
func (th *taskHost) onRecall(now job.Time, from job.SiteID, m Recall) {
	if b := th.bundles[m.Bundle]; b != nil && b.line.origin == from {
		th.drop(now, b, b.line.stock.Recall(m.Bundle, m.Most))
		th.look(b.line)
	}
}

// onStopTasks gives back the tasks of a bundle that have not begun, and stops those that
// run.
func (th *taskHost) onStopTasks(now job.Time, from job.SiteID, m StopTasks) {
	b := th.bundles[m.Bundle]
	if b != nil && b.unwanted {
		return
	}
	if b == nil {
		if _, claiming := th.claiming(from); !claiming { // else it may be on its way
			th.decline(now, m.Bundle, job.UnknownCopy)
		}
		return
	}
	tasks := job.TaskRange(0, job.MaxTasks)
	if m.Tasks != nil {
		tasks = m.Tasks.Clone()
	}
	back := b.line.stock.Remove(m.Bundle, &tasks)
	for task := range b.waiting.All {
		if tasks.Has(task) {
			back.Add(task)
		}
	}
	b.waiting.RemoveAll(&back)
	th.drop(now, b, back)
	th.look(b.line)
	if m.Waiting {
		return
	}
	bag := th.st.Bag(m.Bundle.Job) // of this site, else there is none
	for _, r := range b.sorted() {
		if tasks.Has(r.task) && !r.killed {
			th.kill(r, Kill{Early: from != th.self || bag != nil && bag.Stopping.Has(r.task)})
		}
	}
}

// onStop stops a bundle of a bag that its origin knows no more, and reports whether there is
// one.
func (th *taskHost) onStop(now job.Time, from job.SiteID, m Stop) bool {
	if th.bundles[m.Attempt] == nil {
		return false
	}
	th.onTaskResultsAck(now, from, TaskResultsAck{Bundle: m.Attempt, Unknown: true})
	return true
}

// drain takes up that a drain begins or ends.
func (th *taskHost) drain() { th.lookAll() }

// keepLease makes renewals go on for as long as a bundle has tasks, or results that the
// origin has yet to acknowledge.
func (th *taskHost) keepLease(now job.Time, b *heldTasks) {
	th.leased = append(th.leased, b)
	th.nextRenew = min(th.nextRenew, max(b.lease.renewAt, now))
}

// renewLeases asks for what is due, and stops what has no lease any more.
func (th *taskHost) renewLeases(now job.Time) {
	if now < th.nextRenew {
		return
	}
	next := job.Never
	th.leased = slices.DeleteFunc(th.leased, func(b *heldTasks) bool {
		// What waits for its files to be fetched is not to run again meanwhile.
		return b.unwanted || b.lapsed || b.rec.Tasks.Empty() && len(b.rec.Unacked) == 0
	})
	for _, b := range slices.Clone(th.leased) {
		l := &b.lease
		if l.until != 0 && l.until <= now {
			th.lapse(now, b)
			continue
		}
		if l.renewAt <= now {
			th.peers.send(b.line.origin, Renew{Attempt: b.rec.ID, Sent: now})
			l.renewAt = now.Add(max(l.every, th.cfg.Timing.Lease/16))
		}
		if next = min(next, l.renewAt); l.until != 0 {
			next = min(next, l.until)
		}
	}
	th.nextRenew = next
}

// lapse stops the tasks of a bundle that has no lease any more, and gives back those that
// have not begun.
func (th *taskHost) lapse(now job.Time, b *heldTasks) {
	b.lapsed = true
	all := job.TaskRange(0, job.MaxTasks)
	back := b.line.stock.Remove(b.rec.ID, &all)
	back.AddAll(&b.waiting)
	b.waiting.Clear()
	th.drop(now, b, back)
	for _, r := range b.sorted() {
		th.kill(r, Kill{Lease: true, Early: true})
	}
	th.look(b.line)
}

// renewed takes up the answer to a renewal of a bundle.
func (th *taskHost) renewed(now job.Time, m Renewed) {
	b := th.bundles[m.Attempt]
	if b == nil || b.unwanted || !leased(&b.rec.Request) || b.lapsed || b.line.origin == th.self {
		return
	}
	if m.Lease <= 0 {
		th.lapse(now, b) // the origin has gone on without us
		return
	}
	if !b.lease.take(now, m.Sent, m.Lease, th.host.began, now) {
		return
	}
	th.nextRenew = min(th.nextRenew, b.lease.renewAt)
	for _, r := range b.sorted() {
		th.emit(Extend{Attempt: r.id, Until: b.lease.until})
	}
	if !b.waiting.Empty() { // they may begin now
		b.line.stock.Add(b.rec.ID, b.rec.Request.Walltime, b.waiting)
		b.waiting = job.TaskSet{}
		th.look(b.line)
	}
}

// restore takes up the bundles of an earlier run. The driver is asked about each of their
// tasks; until it has answered, nothing is started whose processors such a task may hold.
func (th *taskHost) restore(now job.Time) {
	th.adoptBy = now.Add(th.cfg.Timing.Claim)
	for _, rec := range th.st.HeldBundles() {
		origin := rec.ID.Job.Origin
		b := th.addBundle(th.lineOf(now, origin, bags.ShapeOf(&rec.Request)), rec)
		for i := range rec.Unacked {
			th.unacked[origin] += len(rec.Unacked[i].Results)
		}
		if leased(&rec.Request) && origin != th.self {
			th.keepLease(now, b)
		}
		for task := range rec.Tasks.All {
			r := &taskRun{id: rec.RunID(task), bundle: b, task: task, begun: rec.Accepted, adopted: true, asked: true}
			th.addRun(r)
			th.adopting++
			th.emit(Adopt{
				Attempt: r.id, Request: rec.Request, Task: &TaskRun{Bundle: rec.ID, Ordinal: task}, BootID: rec.BootID,
				Leased: leased(&rec.Request) && origin != th.self,
			})
		}
		if th.host.revoked(origin) { // what stops it may have died with the daemon before
			th.disown(now, b, !th.st.TrustedSite(origin).LetRun, Kill{Stale: true, Lease: true, Early: true})
		}
		if origin == th.self && th.st.TaskBundle(rec.ID) == nil { // with itself a site compares nothing
			th.disown(now, b, true, Kill{Stale: true})
		}
		if len(rec.Unacked) > 0 && !b.unwanted {
			th.report(now, b)
		}
		th.look(b.line)
	}
}
