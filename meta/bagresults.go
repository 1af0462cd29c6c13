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
		m.Results = slices.Clone(m.Results) // in this process they are the host's
		for i := range m.Results {
			r := &m.Results[i]
			r.FilesLost = r.FilesLost || slices.Contains(ev.Lost, r.Ordinal)
		}
		bo.take(now, o, t, m)
	} // else the host learns of it when it says so again
}

// take records a batch of results.
func (bo *bagOrigin) take(now job.Time, o *openBag, t *store.TaskBundle, m *TaskResults) {
	site, given, spent := t.Site, *t, o.rec.Spent()
	results := stoppedLate(now, o.rec, t, m.Results)
	others := alsoAt(o.rec, t, results, &m.Returned)
	had := bo.hadOf(o.rec, t, m)
	err := store.Record(bo.st, store.RecordResults{
		Bundle: m.Bundle, Site: site, Batch: m.Batch, Results: results, Files: m.Files, Returned: m.Returned, Time: now,
	})
	if err != nil { // no task can have such results: whatever the host has is not this bundle
		bo.revoke(now, o, t, store.RevokeBundle{})
		bo.acknowledge(now, site, TaskResultsAck{Bundle: m.Bundle, Batch: m.Batch, Unknown: true})
		return
	}
	bo.counters.TaskResults += int64(len(m.Results))
	if used := o.rec.Used(); used > o.cpu {
		bo.usage.Add(o.rec.Request.User, used-o.cpu, now)
		o.cpu = used
	}
	k := bo.seatOf(stockAt{site, seat{t.Node, bo.works[o.at].Shape}})
	for i := range results {
		r := &results[i]
		bo.noteStanding(now, o, &given, r, had[i])
		if k != nil && r.Kind != job.Cancel {
			k.mean.Add(r.Run)
			k.heard = now
		}
		late := r.Kind == job.Loss && m.Results[i].Kind == job.Cancel
		if (r.Kind == job.Failure || r.Kind == job.Timeout || late) && o.rec.Again.Has(r.Ordinal) {
			bo.elsewhere.Failed(o.rec.ID, r.Ordinal, site, now)
		}
	}
	if !m.Returned.Empty() {
		delete(o.recalled, t.Number)
	}
	if o.rec.Bundle(t.Number) == nil {
		bo.forgetBundle(o, t.Number)
	}
	o.beaten.heard(t.Number, m)
	bo.changed(o)
	bo.stopBeaten(now, o, others)
	if !spent && o.rec.Spent() { // what has not begun comes back
		bo.stopAt(now, o, "")
	}
	if reason, hold := bags.Hold(o.rec, len(o.sites)); hold {
		record(bo.st, store.HoldBag{Bag: o.rec.ID, Reason: reason, Time: now})
		bo.forgive(now, o)
		bo.held(now, o)
	}
	bo.close(now, o)
	bo.acknowledge(now, site, TaskResultsAck{Bundle: m.Bundle, Batch: m.Batch})
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
