package meta

import (
	"maps"
	"slices"

	"kith/internal/job"
	"kith/store"
)

// What an origin wants stopped or given back at sites, and how it says so until it is.

// beaten are tasks that have ended, by the bundles that had them when they ended otherwise:
// their sites have yet to say what became of them. It is volatile.
type beaten map[uint32]job.TaskSet

// heard takes up what a bundle tells.
func (b beaten) heard(bundle uint32, m *TaskResults) {
	tasks, is := b[bundle]
	if !is {
		return
	}
	for i := range m.Results {
		tasks.Remove(m.Results[i].Ordinal)
	}
	tasks.RemoveAll(&m.Returned)
	if b[bundle] = tasks; tasks.Empty() {
		delete(b, bundle)
	}
}

// otherHolder is what a bundle had of some tasks.
type otherHolder struct {
	bundle *store.TaskBundle
	tasks  job.TaskSet
}

// alsoAt returns what other bundles have of the tasks of which one tells, those that were
// taken back among them: what comes back ends if its user wants that.
func alsoAt(b *store.Bag, told *store.TaskBundle, results []job.TaskResult, returned *job.TaskSet) (others []otherHolder) {
	for _, t := range b.Holding(told, results) {
		h := otherHolder{bundle: t}
		for i := range results {
			if task := results[i].Ordinal; t.Tasks.Has(task) {
				h.tasks.Add(task)
			}
		}
		others = append(others, h)
	}
	if len(b.LateBundles()) == 0 {
		return others
	}
	tasks := returned.Clone()
	for i := range results {
		tasks.Add(results[i].Ordinal)
	}
	for _, h := range lateWith(b, &tasks) {
		if h.bundle != told {
			others = append(others, h)
		}
	}
	return others
}

// lateWith returns what the bundles have of some tasks that were taken back and may still run
// them: the facts take a task from these when it ends, and then nothing else tells their sites.
func lateWith(b *store.Bag, tasks *job.TaskSet) (others []otherHolder) {
	for _, t := range b.LateBundles() {
		if t.Tasks.Intersects(tasks) {
			h := otherHolder{t, t.Tasks.Clone()}
			h.tasks.RetainAll(tasks)
			others = append(others, h)
		}
	}
	return others
}

// stopBeaten stops runs of tasks that have ended otherwise first, and all of bundles that are
// forgotten: nothing of these counts any more.
func (bo *bagOrigin) stopBeaten(now job.Time, o *openBag, others []otherHolder) {
	for i := range others {
		t, ended := others[i].bundle, others[i].tasks.Clone()
		stop := StopTasks{Bundle: job.AttemptID{Job: o.rec.ID, Number: t.Number}}
		if o.rec.Bundle(t.Number) == nil { // comparing what is held tells the site, too
			bo.forgetBundle(o, t.Number)
			bo.askStop(now, t.Site, stop)
			continue
		}
		for task := range others[i].tasks.All {
			if !o.rec.Ended(task) {
				ended.Remove(task)
			}
		}
		if ended.Empty() {
			continue
		}
		stop.Tasks = &ended
		bo.askStop(now, t.Site, stop)
		tasks := o.beaten[t.Number]
		tasks.AddAll(&ended)
		o.beaten[t.Number] = tasks
		bo.nextStop = min(bo.nextStop, now.Add(bo.cfg.Timing.Resend))
	}
}

// stopEnded stops what may run at sites, or one of them, of tasks that have ended elsewhere
// first, when what is known of it may be lost. A bundle has what its site has, but for those.
func (bo *bagOrigin) stopEnded(now job.Time, o *openBag, at job.SiteID) {
	if o.rec.Sums.Replicas == 0 && o.rec.Request.OnSiteLost != job.Race {
		return
	}
	for t := range o.rec.Bundles {
		if at != "" && t.Site != at {
			continue
		}
		tasks := job.TaskRange(0, o.rec.Tasks())
		tasks.RemoveAll(&t.Tasks)
		if !tasks.Empty() {
			bo.askStop(now, t.Site, StopTasks{Bundle: job.AttemptID{Job: o.rec.ID, Number: t.Number}, Tasks: &tasks})
		}
	}
}

// stopAt has sites, or one of them, give tasks back or stop them, as their user wants: of a
// bag on hold, or whose budget is used up, those that have not begun. What was given at a level
// that the bag has left is stopped likewise.
func (bo *bagOrigin) stopAt(now job.Time, o *openBag, at job.SiteID) {
	stopping, waits := !o.rec.Stopping.Empty(), o.rec.State == job.BagOnHold || o.rec.Spent()
	if !stopping && !waits && len(o.rec.Demotions) == 0 {
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
		case o.rec.Leaving(t):
			bo.nextStop = min(bo.nextStop, now.Add(bo.cfg.Timing.Resend))
		case stopping && o.rec.Stopping.Covers(&t.Tasks):
		case stopping && o.rec.Stopping.Intersects(&t.Tasks):
			tasks := t.Tasks.Clone()
			tasks.RetainAll(&o.rec.Stopping)
			m.Tasks = &tasks
		case waits:
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
		for _, number := range slices.Sorted(maps.Keys(o.beaten)) {
			t := o.rec.Bundle(number)
			if t == nil {
				delete(o.beaten, number)
				continue
			}
			tasks := o.beaten[number]
			bo.askStop(now, t.Site, StopTasks{Bundle: job.AttemptID{Job: o.rec.ID, Number: number}, Tasks: &tasks})
			bo.nextStop = min(bo.nextStop, now.Add(bo.cfg.Timing.Resend))
		}
	}
}
