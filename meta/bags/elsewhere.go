package bags

import (
	"time"

	"kith/internal/job"
)

// ElsewhereFirst is for how long at least a task that failed at a site, and is to run
// again, is kept from that site if its bag has others; twice that at most.
const ElsewhereFirst = time.Minute

// Elsewhere has the tasks that wait again after they failed by themselves, by the site
// where they did: another site tries them first. After a while any site may, so that
// none waits for a site that never asks. It is volatile: what it forgets costs a run at
// the same site. The zero value is empty.
type Elsewhere struct {
	bags map[job.ID]map[job.SiteID]*failed
}

// failed are tasks that failed at a site in a span of ElsewhereFirst, and in the one before.
type failed struct {
	since       job.Time
	last, early job.TaskSet
}

// Failed notes that a task failed at a site and waits again.
func (e *Elsewhere) Failed(bag job.ID, task uint32, site job.SiteID, now job.Time) {
	if e.bags == nil {
		e.bags = make(map[job.ID]map[job.SiteID]*failed)
	}
	sites := e.bags[bag]
	if sites == nil {
		sites = make(map[job.SiteID]*failed)
		e.bags[bag] = sites
	}
	f := sites[site]
	if f == nil {
		f = &failed{since: now}
		sites[site] = f
	}
	f.age(now)
	f.early.Remove(task)
	f.last.Add(task)
}

// age lets go of what is too old.
func (f *failed) age(now job.Time) {
	switch past := now.Sub(f.since); {
	case past >= 2*ElsewhereFirst:
		f.last.Clear()
		f.early.Clear()
		f.since = now
	case past >= ElsewhereFirst:
		f.early, f.last = f.last, job.TaskSet{}
		f.since = f.since.Add(ElsewhereFirst)
	}
}

// Leave notes that tasks of a bag wait no longer.
func (e *Elsewhere) Leave(bag job.ID, tasks *job.TaskSet) {
	sites := e.bags[bag]
	for site, f := range sites {
		f.last.RemoveAll(tasks)
		f.early.RemoveAll(tasks)
		if f.last.Empty() && f.early.Empty() {
			delete(sites, site)
		}
	}
	if len(sites) == 0 {
		delete(e.bags, bag)
	}
}

// Forget lets go of a bag.
func (e *Elsewhere) Forget(bag job.ID) { delete(e.bags, bag) }

// at returns what is kept from a site, nil if that is nothing.
func (e *Elsewhere) at(w *Work, site job.SiteID, now job.Time) *failed {
	if len(w.Sites) < 2 {
		return nil // there is no other
	}
	f := e.bags[w.Bag][site]
	if f != nil {
		f.age(now)
	}
	return f
}

// Count returns how many waiting tasks of a bag are kept from a site.
func (e *Elsewhere) Count(w *Work, site job.SiteID, now job.Time) int {
	if f := e.at(w, site, now); f != nil {
		return f.last.Count() + f.early.Count()
	}
	return 0
}

// Tasks returns the waiting tasks of a bag that are kept from a site; the caller owns them.
func (e *Elsewhere) Tasks(w *Work, site job.SiteID, now job.Time) job.TaskSet {
	f := e.at(w, site, now)
	if f == nil {
		return job.TaskSet{}
	}
	tasks := f.last.Clone()
	tasks.AddAll(&f.early)
	return tasks
}
