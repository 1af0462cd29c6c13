package sim

import (
	"maps"
	"slices"

	"kith/internal/job"
	"kith/store"
)

// What must have become of bags and their tasks once all faults are over.

// fitsNowhere reports whether no site has so many processors any more: those that had them have
// left or come back smaller. What takes them waits for its user, or for a site that comes.
func (w *World) fitsNowhere(processors int32) bool {
	return !slices.ContainsFunc(w.sites, func(s *Site) bool { return !s.gone && s.cfg.Scheduler.Processors >= processors })
}

// checkEnded returns an error unless every bag has ended, with its results, and nothing of
// bags is left at any site.
func (x *taskWatch) checkEnded() error {
	w := x.x.w
	for _, id := range x.order {
		o := w.byID[id.Origin]
		if x.x.liars[id.Origin] || o.gone {
			continue
		}
		b := o.state.Bag(id)
		switch {
		case b == nil:
			return w.violation("S5: acknowledged bag %v is lost", id)
		case b.State.Terminal():
		case x.x.depends.keptBag(o, b), b.Given() == 0 && w.fitsNowhere(b.Request.Processors):
		default:
			return w.violation("L1: bag %v is %v: of %d tasks %d have ended, %d wait, %d are with sites", id, b.State, b.Tasks(), b.EndedCount(), b.Waiting(), b.Given())
		}
		if err := x.checkResults(o, b); err != nil {
			return err
		}
	}
	for _, id := range slices.SortedFunc(maps.Keys(x.tasks), job.TaskID.Compare) {
		for _, p := range x.tasks[id].running {
			return w.violation("L1: task %v still runs at %s", id, p.s.cfg.ID)
		}
	}
	for _, s := range w.sites {
		if s.gone || len(x.x.liars) > 0 { // what those offer others wait for
			continue
		}
		if n := len(s.state.HeldBundles()); n > 0 {
			return w.violation("L2: site %s still holds %d bundles", s.cfg.ID, n)
		}
		if l := s.scheduler.Load(s.now()); len(x.order) > 0 && (l.Queued > 0 || l.Free != s.cfg.Scheduler.Processors) {
			return w.violation("L2: at site %s %d copies wait and %d of %d processors are free", s.cfg.ID, l.Queued, l.Free, s.cfg.Scheduler.Processors)
		}
	}
	return nil
}

// withLiars reports whether a liar has tasks of a bag, which it may keep.
func (x *taskWatch) withLiars(b *store.Bag) bool {
	for t := range b.Bundles {
		if x.x.liars[t.Site] {
			return true
		}
	}
	return false
}

// checkResults checks that the results of a bag are those that were on disk first, with
// what the tasks left.
func (x *taskWatch) checkResults(o *Site, rec *store.Bag) error {
	if !o.w.cfg.Disk.Keep {
		return nil
	}
	b, results := x.bag(rec.ID), resultsOf{s: o, from: o.backend, bag: rec.ID}
	for _, task := range slices.Sorted(maps.Keys(b.records)) {
		id := job.TaskID{Bag: rec.ID, Ordinal: task}
		was := b.records[task]
		r, _ := results.of(task)
		if r != was {
			return o.w.violation("S3: the result of task %v was %+v and is %+v", id, was, r)
		}
		if o.w.output(rec.ID) == 0 || r.Result.Kind != job.Success || x.x.liars[r.Site] || x.lost[job.AttemptID{Job: rec.ID, Number: r.Bundle}] {
			continue
		}
		if files, err := o.backend.TaskFiles(rec.ID, task); err != nil || !x.task(id).left[string(files)] {
			return o.w.violation("S5: of task %v, which has succeeded at %s, there is %q, %v", id, r.Site, files, err)
		}
	}
	return nil
}

// givenUp reports whether the origin of a bag has given up a run of a task whose site came back
// without its data folder, where that need not keep the task from running: its bag waits for
// lost sites, and its user has said that tasks may run twice. Then the sites that had it beside
// decide as if they alone had had it, and if they give it back unrun it runs once more.
func (x *taskWatch) givenUp(run *process, id job.TaskID) bool {
	bag := x.x.w.bagOf(id.Bag)
	return bag.Request.OnSiteLost == job.Wait && bag.MaxReplicas > 0 && x.letGo(run, id)
}

// letGo reports whether the origin of a bag does not count on a run of a task any more.
func (x *taskWatch) letGo(run *process, id job.TaskID) bool {
	o := x.x.w.byID[id.Bag.Origin]
	if !o.Up() {
		return false
	}
	t := o.state.TaskBundle(run.task.Bundle)
	return t == nil || !t.Tasks.Has(id.Ordinal)
}
