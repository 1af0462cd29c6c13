package meta

import (
	"slices"

	"kith/internal/job"
	"kith/store"
)

// TaskState says where a task is, as its origin knows. The numbers are those of
// kith.v1.Task.State.
type TaskState uint8

// The states of a task. Each task is in one of them.
const (
	TaskWaiting   TaskState = 1
	TaskAtSite    TaskState = 2
	TaskStopping  TaskState = 3 // at a site, and to be ended
	TaskDone      TaskState = 4
	TaskFailed    TaskState = 5
	TaskCancelled TaskState = 6

	taskStateCount = 7
)

// Ended reports whether the task has ended.
func (s TaskState) Ended() bool { return s >= TaskDone }

// TaskView is what is known of a task without looking at its result.
type TaskView struct {
	Ordinal uint32
	State   TaskState
	Site    job.SiteID // that has it
}

// TaskQuery says which tasks of a bag a list is to have.
type TaskQuery struct {
	Bag job.ID
	// From is the ordinal with which the list begins.
	From uint32
	// Limit is how many tasks it may have, at least 1.
	Limit int
	// Wanted says which states are asked for, by their numbers.
	Wanted [taskStateCount]bool
	// Among are the only tasks that are asked for, nil for all. It is read only.
	Among *job.TaskSet
}

// TaskList is the answer to a [TaskQuery].
type TaskList struct {
	// Tasks are in the order of ordinals.
	Tasks []TaskView
	// Next is where the list goes on, More whether it may.
	Next uint32
	More bool
}

// tasksLookedAt is how many tasks are looked at between two events of the site: so many
// cost some tens of microseconds.
const tasksLookedAt = 1 << 20

// ListTasks looks through a part of the tasks of a bag: the caller asks again from where
// the list ends. The errors are those of [Views.BagView].
func (v Views) ListTasks(q TaskQuery) (TaskList, error) {
	b, err := v.bag(q.Bag)
	if err != nil {
		return TaskList{}, err
	}
	lo, hi := q.From, min(uint64(q.From)+tasksLookedAt, uint64(b.Tasks()))
	if uint64(lo) >= hi {
		return TaskList{Next: lo}, nil
	}
	list := TaskList{Next: uint32(hi), More: hi < uint64(b.Tasks())}
	w := window{b: b, lo: lo, hi: uint32(hi)}
	tasks := w.wanted(&q)
	for task := range tasks.All {
		if len(list.Tasks) == q.Limit {
			list.Next, list.More = task, true
			break
		}
		list.Tasks = append(list.Tasks, TaskView{Ordinal: task, State: w.stateOf(task)})
	}
	w.addSites(list.Tasks)
	return list, nil
}

// window is the tasks of a bag from lo to before hi.
type window struct {
	b      *store.Bag
	lo, hi uint32
	given  job.TaskSet // those at sites
}

func (w *window) part(set *job.TaskSet) job.TaskSet {
	part := job.TaskRange(w.lo, w.hi)
	part.RetainAll(set)
	return part
}

// wanted returns the tasks that a query asks for. It sets given: what was given out and
// neither waits again nor has ended. Bundles may be many, and are not looked at.
func (w *window) wanted(q *TaskQuery) job.TaskSet {
	w.given.AddRange(w.lo, max(w.lo, min(w.hi, w.b.Next)))
	for _, set := range []*job.TaskSet{&w.b.Again, &w.b.Done, &w.b.Failed, &w.b.Cancelled} {
		w.given.RemoveAll(set)
	}
	var tasks job.TaskSet
	add := func(state TaskState, set *job.TaskSet) {
		if q.Wanted[state] {
			part := w.part(set)
			tasks.AddAll(&part)
		}
	}
	waiting := w.part(&w.b.Again)
	waiting.AddRange(max(w.b.Next, w.lo), max(w.b.Next, w.hi))
	add(TaskWaiting, &waiting)
	add(TaskDone, &w.b.Done)
	add(TaskFailed, &w.b.Failed)
	add(TaskCancelled, &w.b.Cancelled)
	atSite := w.given.Clone()
	atSite.RemoveAll(&w.b.Stopping)
	add(TaskAtSite, &atSite)
	add(TaskStopping, &w.b.Stopping)
	if q.Among != nil {
		tasks.RetainAll(q.Among)
	}
	return tasks
}

func (w *window) stateOf(task uint32) TaskState {
	switch {
	case w.b.Done.Has(task):
		return TaskDone
	case w.b.Failed.Has(task):
		return TaskFailed
	case w.b.Cancelled.Has(task):
		return TaskCancelled
	case w.b.Stopping.Has(task):
		return TaskStopping
	case w.given.Has(task):
		return TaskAtSite
	}
	return TaskWaiting
}

// addSites says which site has which of the tasks, which are in the order of ordinals.
func (w *window) addSites(tasks []TaskView) {
	if !slices.ContainsFunc(tasks, func(t TaskView) bool { return t.State == TaskAtSite || t.State == TaskStopping }) {
		return
	}
	at := make(map[uint32]job.SiteID)
	last := tasks[len(tasks)-1].Ordinal
	for _, t := range w.b.Live {
		if t.Late {
			continue
		}
		for task := range t.Tasks.From(tasks[0].Ordinal) {
			if task > last {
				break
			}
			at[task] = t.Site
		}
	}
	for i := range tasks {
		tasks[i].Site = at[tasks[i].Ordinal]
	}
}
