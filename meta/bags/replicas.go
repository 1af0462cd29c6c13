package bags

import (
	"cmp"
	"math"
	"math/rand/v2"
	"slices"
	"time"

	"kith/internal/job"
	"kith/store"
)

const (
	// ReplicaCycle is how often tasks are drawn in the tail that should be with one more site,
	// where an engine is not configured otherwise.
	ReplicaCycle = time.Minute
	// ReplicaShare is the part of a user's places that replicas of his tasks may have.
	ReplicaShare = 0.1
)

// TailBegins reports whether the tail of a bag begins of which so many tasks wait while so
// many places serve it (spec 002 section 2.4). A threshold of 0 is as many as there are
// places: then places idle from here on.
func TailBegins(b *store.Bag, places int) bool {
	at := int64(b.TailAt)
	if at == 0 {
		at = int64(places)
	}
	return b.TailSince == 0 && b.State.Gives() && int64(b.Waiting()) < at
}

// MostReplicas returns how many replicas of a user's tasks there may be at once while so many
// places serve him.
func MostReplicas(places int) int { return max(1, int(ReplicaShare*float64(places))) }

// Replicable are the tasks that may be with one more site, and where they are, by ordinals.
// Late bundles do not count: whoever has them may be gone.
func Replicable(b *store.Bag) []TaskRuns {
	if b.TailSince == 0 || b.MaxReplicas == 0 || !b.State.Gives() {
		return nil
	}
	var list []TaskRuns
	at := make(map[uint32]int)
	for t := range b.Bundles {
		if t.Late {
			continue
		}
		for task := range t.Tasks.All {
			if !b.MayReplicate(task) {
				continue
			}
			i, known := at[task]
			if !known {
				i = len(list)
				at[task] = i
				list = append(list, TaskRuns{Task: task, Failures: int(b.Tries[task].Failures) + int(b.Tries[task].Losses)})
			}
			list[i].At = append(list[i].At, RunAt{Site: t.Site, Node: t.Node, Granted: t.Granted})
		}
	}
	slices.SortFunc(list, func(a, b TaskRuns) int { return cmp.Compare(a.Task, b.Task) })
	return list
}

// Draw returns at most n of some tasks, drawn with weights of one through the number of
// their runs (spec 002 section 2.3), in the order in which they were drawn. It changes the
// order of the list.
func Draw(list []TaskRuns, n int, rng *rand.Rand) []TaskRuns {
	// Those with the greatest u^(1/weight) are a weighted draw without replacement
	// (Efraimidis and Spirakis 2006).
	keys := make(map[uint32]float64, len(list))
	for i := range list {
		keys[list[i].Task] = math.Pow(rng.Float64(), float64(len(list[i].At)))
	}
	slices.SortFunc(list, func(a, b TaskRuns) int {
		return cmp.Or(cmp.Compare(keys[b.Task], keys[a.Task]), cmp.Compare(a.Task, b.Task))
	})
	return list[:min(n, len(list))]
}

// Replicas are the tasks that were drawn and have not been granted yet, by bag. They are
// volatile, and hold until the next draw. The zero value is empty.
type Replicas struct {
	bags map[job.ID]*wanted
}

type wanted struct {
	bag   *store.Bag
	tasks job.TaskSet
}

// Want has a task of a bag given to one more site.
func (r *Replicas) Want(b *store.Bag, task uint32) {
	if r.bags == nil {
		r.bags = make(map[job.ID]*wanted)
	}
	w := r.bags[b.ID]
	if w == nil {
		w = &wanted{bag: b}
		r.bags[b.ID] = w
	}
	w.tasks.Add(task)
}

// Count returns how many tasks of a bag are wanted, after those were dropped that may not be
// with one more site any more.
func (r *Replicas) Count(b *store.Bag) int {
	w := r.bags[b.ID]
	if w == nil {
		return 0
	}
	if !b.State.Gives() || b.TailSince == 0 {
		delete(r.bags, b.ID)
		return 0
	}
	tasks := w.tasks.Clone()
	for task := range tasks.All {
		if !b.MayReplicate(task) {
			w.tasks.Remove(task)
		}
	}
	if w.tasks.Empty() {
		delete(r.bags, b.ID)
		return 0
	}
	return w.tasks.Count()
}

// Any reports whether any task is.
func (r *Replicas) Any() bool { return len(r.bags) > 0 }

// Tasks returns at most n of the wanted tasks of a bag that a site does not have, as many as
// may be with sites.
func (r *Replicas) Tasks(b *store.Bag, site job.SiteID, n int) (tasks job.TaskSet) {
	if r.Count(b) == 0 {
		return tasks
	}
	n = min(n, store.MaxBundleTasks, b.Room())
	here := b.TasksAt(site)
	for task := range r.bags[b.ID].tasks.All {
		if tasks.Count() >= n {
			break
		}
		if !here.Has(task) {
			tasks.Add(task)
		}
	}
	return tasks
}

// countAt is how many of them a site could have.
func (r *Replicas) countAt(w *Work, site job.SiteID) int {
	b := r.bags[w.Bag]
	if b == nil || w.Twice == 0 {
		return 0
	}
	tasks := r.Tasks(b.bag, site, math.MaxInt)
	return tasks.Count()
}

// Granted notes that tasks have got one more site.
func (r *Replicas) Granted(b *store.Bag, tasks *job.TaskSet) {
	if w := r.bags[b.ID]; w != nil {
		w.tasks.RemoveAll(tasks)
	}
	r.Count(b)
}

// Forget lets go of what is wanted of a bag, and reports whether anything was.
func (r *Replicas) Forget(bag job.ID) bool {
	_, any := r.bags[bag]
	delete(r.bags, bag)
	return any
}
