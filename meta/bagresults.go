package meta

import (
	"slices"

	"kith/internal/job"
	"kith/meta/bags"
	"kith/store"
)

// How tasks end, at their origin.

// onTaskResults takes a batch of a bundle. It is acknowledged when it is recorded, and that
// when what its tasks left is home. Batches are taken in the order of their numbers: one
// that comes too early is told again.
func (bo *bagOrigin) onTaskResults(now job.Time, from job.SiteID, m TaskResults) {
	o, t := bo.live(m.Bundle, from)
	switch {
	case t == nil:
		bo.acknowledge(now, from, TaskResultsAck{Bundle: m.Bundle, Batch: m.Batch, Unknown: true})
	case m.Batch <= t.Batch:
		bo.acknowledge(now, from, TaskResultsAck{Bundle: m.Bundle, Batch: t.Batch})
	case m.Batch > t.Batch+1:
	case slices.ContainsFunc(m.Files, func(f store.TaskFiles) bool { return t.Tasks.Has(f.Ordinal) }):
		// What the bundle does not have counts for nothing, and nothing of it is brought here.
		m.Files = slices.DeleteFunc(slices.Clone(m.Files), func(f store.TaskFiles) bool { return !t.Tasks.Has(f.Ordinal) })
		if f := o.fetching[t.Number]; f == nil || f.Batch != m.Batch {
			o.fetching[t.Number] = &m
		}
		bo.emit(FetchTasks{Bundle: m.Bundle, Batch: m.Batch, From: from, Run: m.Run, Files: m.Files})
	default:
		m.Files = nil
		bo.take(now, o, t, &m)
	}
}

func (bo *bagOrigin) acknowledge(now job.Time, to job.SiteID, m TaskResultsAck) {
	if to == bo.self {
		bo.host.onTaskResultsAck(now, bo.self, m)
	} else {
		bo.peers.send(to, m)
	}
}

// tasksHome records a batch whose files are home.
func (bo *bagOrigin) tasksHome(now job.Time, ev TasksHome) {
	o := bo.byID[ev.Bundle.Job]
	var t *store.TaskBundle
	if o != nil {
		t = o.rec.Bundle(ev.Bundle.Number)
	}
	if t == nil { // a late result has ended its tasks meanwhile; this site's own host does not say so again
		if o != nil {
			delete(o.fetching, ev.Bundle.Number)
		}
		bo.host.onTaskResultsAck(now, bo.self, TaskResultsAck{Bundle: ev.Bundle, Batch: ev.Batch, Unknown: true})
		return
	}
	m := o.fetching[t.Number]
	if m == nil || m.Batch != ev.Batch {
		return
	}
	delete(o.fetching, t.Number)
	if m.Batch == t.Batch+1 {
		bo.take(now, o, t, m)
	} // else the host learns of it when it says so again
}

// take records a batch of results.
func (bo *bagOrigin) take(now job.Time, o *openBag, t *store.TaskBundle, m *TaskResults) {
	site, late := t.Site, t.Late
	var others []*store.TaskBundle
	if late {
		others = bo.alsoAt(o, m)
	}
	err := store.Record(bo.st, store.RecordResults{
		Bundle: m.Bundle, Site: site, Batch: m.Batch, Results: m.Results, Files: m.Files, Returned: m.Returned, Time: now,
	})
	if err != nil { // no task can have such results: whatever the host has is not this bundle
		bo.revoke(now, o, t, false)
		bo.acknowledge(now, site, TaskResultsAck{Bundle: m.Bundle, Batch: m.Batch, Unknown: true})
		return
	}
	bo.counters.TaskResults += int64(len(m.Results))
	if used := usedBy(o.rec); used > o.cpu {
		bo.usage.Add(o.rec.Request.User, used-o.cpu, now)
		o.cpu = used
	}
	k := bo.seatOf(stockAt{site, seat{t.Node, bo.works[o.at].Shape}})
	for i := range m.Results {
		r := &m.Results[i]
		if k != nil && r.Kind != job.Cancel {
			k.mean.Add(r.Run)
			k.heard = now
		}
		if (r.Kind == job.Failure || r.Kind == job.Timeout) && o.rec.Again.Has(r.Ordinal) {
			bo.elsewhere.Failed(o.rec.ID, r.Ordinal, site, now)
		}
	}
	if !m.Returned.Empty() {
		delete(o.recalled, t.Number)
	}
	if o.rec.Bundle(t.Number) == nil {
		bo.forgetBundle(o, t.Number)
	}
	bo.changed(o)
	bo.stopBeaten(now, o, others, m)
	if reason, hold := bags.Hold(o.rec, len(o.sites)); hold {
		record(bo.st, store.HoldBag{Bag: o.rec.ID, Reason: reason, Time: now})
		bo.held(now, o)
	}
	bo.close(now, o)
	bo.acknowledge(now, site, TaskResultsAck{Bundle: m.Bundle, Batch: m.Batch})
}

// alsoAt returns the bundles that have tasks which a bundle that was taken back tells of.
func (bo *bagOrigin) alsoAt(o *openBag, m *TaskResults) []*store.TaskBundle {
	var others []*store.TaskBundle
	for t := range o.rec.Bundles {
		if !t.Late && slices.ContainsFunc(m.Results, func(r job.TaskResult) bool { return t.Tasks.Has(r.Ordinal) }) {
			others = append(others, t)
		}
	}
	return others
}

// stopBeaten stops runs of tasks that have ended elsewhere first.
func (bo *bagOrigin) stopBeaten(now job.Time, o *openBag, others []*store.TaskBundle, m *TaskResults) {
	for _, t := range others {
		var ended job.TaskSet
		for i := range m.Results {
			if task := m.Results[i].Ordinal; o.rec.Ended(task) {
				ended.Add(task)
			}
		}
		if !ended.Empty() {
			bo.askStop(now, t.Site, StopTasks{Bundle: job.AttemptID{Job: o.rec.ID, Number: t.Number}, Tasks: &ended})
		}
	}
}

// close ends a bag all of whose tasks have ended. What they left is home: no result is
// recorded before.
func (bo *bagOrigin) close(now job.Time, o *openBag) {
	if o.rec.State != job.BagReturning {
		return
	}
	record(bo.st, store.CloseBag{Bag: o.rec.ID, Time: now})
	bo.say(o.rec.ID)
	bo.removeOpen(o)
}

// stopAt has sites, or one of them, give tasks back or stop them, as their user wants.
func (bo *bagOrigin) stopAt(now job.Time, o *openBag, at job.SiteID) {
	stopping := !o.rec.Stopping.Empty()
	if !stopping && o.rec.State != job.BagOnHold {
		return
	}
	if stopping {
		bo.nextStop = min(bo.nextStop, now.Add(bo.cfg.Timing.Resend))
	}
	for t := range o.rec.Bundles {
		if at != "" && t.Site != at || t.Late {
			continue
		}
		m := StopTasks{Bundle: job.AttemptID{Job: o.rec.ID, Number: t.Number}}
		switch {
		case stopping && o.rec.Stopping.Covers(&t.Tasks):
		case stopping && o.rec.Stopping.Intersects(&t.Tasks):
			tasks := t.Tasks.Clone()
			tasks.RetainAll(&o.rec.Stopping)
			m.Tasks = &tasks
		case o.rec.State == job.BagOnHold:
			m.Waiting = true
		default:
			continue
		}
		bo.askStop(now, t.Site, m)
	}
}

func (bo *bagOrigin) askStop(now job.Time, to job.SiteID, m StopTasks) {
	if to == bo.self {
		bo.host.onStopTasks(now, bo.self, m)
	} else {
		bo.peers.send(to, m)
	}
}

// stopAgain repeats what was asked of sites that have tasks which are to be stopped.
func (bo *bagOrigin) stopAgain(now job.Time) {
	if now < bo.nextStop {
		return
	}
	bo.nextStop = job.Never
	for _, o := range bo.open {
		bo.stopAt(now, o, "")
	}
}
