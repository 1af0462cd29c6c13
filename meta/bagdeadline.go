package meta

import (
	"container/heap"
	"slices"
	"time"

	"kith/internal/job"
	"kith/meta/bags"
	"kith/store"
)

// What bags state of how long a run may take: bundles by when they should have ended. The
// deadline of a bundle is a fact; that it has passed is not, and is seen again after a
// restart.

// deadlines is an index by time of the bundles of bags that state a deadline. What has ended
// meanwhile is still in it: its owner asks the facts.
type deadlines struct {
	due dueBundles
	// most is how many there may be before those are looked for that have ended.
	most int
}

type dueBundle struct {
	at job.Time
	id job.AttemptID
	// again says that it was missed before, and the site was asked to stop.
	again bool
}

type dueBundles []dueBundle

func (d dueBundles) Len() int { return len(d) }
func (d dueBundles) Less(i, j int) bool {
	return d[i].at < d[j].at || d[i].at == d[j].at && d[i].id.Compare(d[j].id) < 0
}
func (d dueBundles) Swap(i, j int) { d[i], d[j] = d[j], d[i] }
func (d *dueBundles) Push(x any)   { *d = append(*d, x.(dueBundle)) }
func (d *dueBundles) Pop() any {
	old := *d
	last := old[len(old)-1]
	*d = old[:len(old)-1]
	return last
}

// leastIndexed is how many bundles are indexed at least before those are looked for that have
// ended.
const leastIndexed = 1024

func (d *deadlines) add(b dueBundle) { heap.Push(&d.due, b) }

// next returns when the next one passes.
func (d *deadlines) next() job.Time {
	if len(d.due) == 0 {
		return job.Never
	}
	return d.due[0].at
}

// minDeadline is the shortest deadline: below it all that runs would be lost on its way.
const minDeadline = time.Second

// statesDeadline reports whether a bag does.
func statesDeadline(b *store.Bag) bool { return bags.Deadline.Of(&b.Policies) != "" }

// deadlineOf returns until when a host should have ended so many tasks of a bag. What is
// stated is for one run; those that the host has already come before. It is never later
// than what the walltimes allow.
func (bo *bagOrigin) deadlineOf(now job.Time, o *openBag, a *bags.Ask, tasks int) job.Time {
	most := bo.longest(o, tasks)
	if !statesDeadline(o.rec) || o.judge == nil {
		return now.Add(most)
	}
	s := bo.desk.Scene
	s.Bag, s.Submitted, s.Now = o.scope, o.rec.Submitted, now
	seconds, stated := o.judge.Deadline(&s)
	if !stated {
		return now.Add(most)
	}
	places := max(1, a.Bounded().Places)
	rounds := (bo.tasksOf(a.Site, a.Node) + tasks + places - 1) / places
	if whole := seconds * float64(rounds); whole < most.Seconds() {
		most = max(minDeadline, time.Duration(whole*float64(time.Second)))
	}
	return now.Add(most)
}

// indexDeadline has the deadline of a bundle looked at when it passes.
func (bo *bagOrigin) indexDeadline(now job.Time, o *openBag, t *store.TaskBundle) {
	if !statesDeadline(o.rec) || t.Deadline == 0 || t.Late {
		return
	}
	d := &bo.deadlines
	if d.add(dueBundle{at: t.Deadline, id: job.AttemptID{Job: o.rec.ID, Number: t.Number}, again: t.Deadline <= now}); len(d.due) > max(d.most, leastIndexed) {
		d.due = slices.DeleteFunc(d.due, func(b dueBundle) bool {
			_, t := bo.due(b.id)
			return t == nil
		})
		heap.Init(&d.due)
		d.most = 2 * len(d.due)
	}
}

// indexDeadlines is indexDeadline for all bundles of a bag, which are indexed anew. What has
// passed was seen before.
func (bo *bagOrigin) indexDeadlines(now job.Time, o *openBag) {
	d := &bo.deadlines
	d.due = slices.DeleteFunc(d.due, func(b dueBundle) bool { return b.id.Job == o.rec.ID })
	heap.Init(&d.due)
	for t := range o.rec.Bundles {
		bo.indexDeadline(now, o, t)
	}
}

// due returns a bundle that is live and not taken back, and its bag, nil if there is none or
// the bag states no deadline any more.
func (bo *bagOrigin) due(id job.AttemptID) (*openBag, *store.TaskBundle) {
	o := bo.byID[id.Job]
	if o == nil || !statesDeadline(o.rec) {
		return nil, nil
	}
	t := o.rec.Bundle(id.Number)
	if t == nil || t.Late {
		return nil, nil
	}
	return o, t
}

// missDeadlines deals with the bundles that should have ended by now.
func (bo *bagOrigin) missDeadlines(now job.Time) {
	d := &bo.deadlines
	for d.next() <= now {
		b := heap.Pop(&d.due).(dueBundle)
		if o, t := bo.due(b.id); t != nil {
			bo.missDeadline(now, o, t, b)
		}
	}
}

// missDeadline deals with a bundle that should have ended, as its bag says of sites that are
// lost:
//
//	race   its tasks wait again at once; what the site still ends first counts
//	rerun  it is told to stop, and its lease ends; its tasks wait again when it has stopped, or
//	       the lease is over
//	wait   it is told to stop, and waited for; what has not begun waits again
//
// What had begun counts as lost then. It tells the site so until the bundle has ended.
func (bo *bagOrigin) missDeadline(now job.Time, o *openBag, t *store.TaskBundle, b dueBundle) {
	again := dueBundle{at: now.Add(bo.cfg.Timing.Resend), id: b.id, again: b.again}
	if !bo.overdue(now, o, t) {
		bo.deadlines.add(again)
		return
	}
	tasks := t.Tasks.Clone()
	if again.again = true; !b.again {
		bo.counters.DeadlinesMissed += int64(tasks.Count())
		o.missed += tasks.Count()
		for range tasks.All {
			bo.blame(now, o, t, true, now.Sub(t.Granted), false)
		}
	}
	if o.rec.Request.OnSiteLost == job.Race {
		site := t.Site
		bo.revoke(now, o, t, store.RevokeBundle{MayRun: true})
		bo.elsewhereFirst(now, o, &tasks, site)
		return
	}
	bo.deadlines.add(again)
	bo.askStop(now, t.Site, StopTasks{Bundle: b.id, Tasks: &tasks})
}

// overdue reports whether a bundle should have ended by now. While files of tasks that have
// ended are on their way, others may have ended that wait behind them: until the walltimes are
// over, too, nothing is held against it.
func (bo *bagOrigin) overdue(now job.Time, o *openBag, t *store.TaskBundle) bool {
	if t.Deadline == 0 || now < t.Deadline {
		return false
	}
	return o.fetching[t.Number] == nil || now >= t.Granted.Add(bo.longest(o, max(1, t.Tasks.Count())))
}

// elsewhereFirst has tasks that wait again tried at other sites first.
func (bo *bagOrigin) elsewhereFirst(now job.Time, o *openBag, tasks *job.TaskSet, site job.SiteID) {
	for task := range tasks.All {
		if o.rec.Again.Has(task) {
			bo.elsewhere.Failed(o.rec.ID, task, site, now)
		}
	}
}

// stoppedLate returns results of a bundle whose deadline has passed with what its site
// stopped as lost: so a task that takes longer than its deadline does not begin again and
// again for ever. What its user wants ended is not lost.
func stoppedLate(now job.Time, b *store.Bag, t *store.TaskBundle, results []job.TaskResult) []job.TaskResult {
	if !statesDeadline(b) || t.Late || t.Deadline == 0 || now < t.Deadline {
		return results
	}
	cloned := false
	for i := range results {
		if r := &results[i]; r.Kind == job.Cancel && !b.Stopping.Has(r.Ordinal) {
			if !cloned { // in this process they are the host's
				results, cloned = slices.Clone(results), true
			}
			results[i].Kind = job.Loss
		}
	}
	return results
}
