package bags

import (
	"slices"
	"time"

	"kith/internal/job"
)

// Stock is what a host has of an origin's tasks of one shape at one node that have not
// begun: all pilots of the shape there take from it, so that a slow task holds up no
// other. A task that was added leaves it once: to begin ([Stock.Next]), or to go back (the
// other methods that return tasks). The zero value is empty.
type Stock struct {
	lots  []lot // oldest first, none is empty
	count int
}

// lot is what is left of a bundle.
type lot struct {
	bundle   job.AttemptID
	walltime time.Duration
	tasks    job.TaskSet
}

// Lot is some tasks of a bundle.
type Lot struct {
	Bundle job.AttemptID
	Tasks  job.TaskSet
}

// Count returns how many tasks are in the stock.
func (s *Stock) Count() int { return s.count }

// Add adds tasks of a bundle, behind those that are there. Walltime is that of one. Tasks
// of a bundle that the stock has go to the others of theirs; none may be there already.
// The set belongs to the stock.
func (s *Stock) Add(bundle job.AttemptID, walltime time.Duration, tasks job.TaskSet) {
	if tasks.Empty() {
		return
	}
	s.count += tasks.Count()
	if at := s.find(bundle); at >= 0 {
		s.lots[at].tasks.AddAll(&tasks)
		return
	}
	s.lots = append(s.lots, lot{bundle, walltime, tasks})
}

func (s *Stock) find(bundle job.AttemptID) int {
	return slices.IndexFunc(s.lots, func(l lot) bool { return l.bundle == bundle })
}

// Next takes the task that a pilot should begin which may run for left: the first one of
// the oldest bundle whose walltime fits; false if there is none.
func (s *Stock) Next(left time.Duration) (bundle job.AttemptID, task uint32, ok bool) {
	for i := range s.lots {
		l := &s.lots[i]
		if l.walltime > left {
			continue
		}
		for task = range l.tasks.All {
			break
		}
		bundle = l.bundle
		l.tasks.Remove(task)
		s.count--
		s.settle(i)
		return bundle, task, true
	}
	return job.AttemptID{}, 0, false
}

// Has reports whether tasks of a bundle are there.
func (s *Stock) Has(bundle job.AttemptID) bool { return s.find(bundle) >= 0 }

// Fits reports whether [Stock.Next] would find a task.
func (s *Stock) Fits(left time.Duration) bool {
	return slices.ContainsFunc(s.lots, func(l lot) bool { return l.walltime <= left })
}

func (s *Stock) settle(at int) {
	if s.lots[at].tasks.Empty() {
		s.lots = slices.Delete(s.lots, at, at+1)
	}
}

// Recall takes at most so many tasks of a bundle, those that would begin last.
func (s *Stock) Recall(bundle job.AttemptID, most int) job.TaskSet {
	at := s.find(bundle)
	if at < 0 || most <= 0 {
		return job.TaskSet{}
	}
	l := &s.lots[at]
	stay := l.tasks.Take(max(0, l.tasks.Count()-most))
	back := l.tasks
	l.tasks = stay
	s.count -= back.Count()
	s.settle(at)
	return back
}

// Remove takes those of some tasks of a bundle that are there: their user wants them
// ended.
func (s *Stock) Remove(bundle job.AttemptID, tasks *job.TaskSet) job.TaskSet {
	at := s.find(bundle)
	if at < 0 {
		return job.TaskSet{}
	}
	l := &s.lots[at]
	gone := l.tasks.Clone()
	gone.RetainAll(tasks)
	l.tasks.RemoveAll(&gone)
	s.count -= gone.Count()
	s.settle(at)
	return gone
}

// RemoveBag takes all tasks of a bag: it is held, or cancelled.
func (s *Stock) RemoveBag(bag job.ID) []Lot {
	return s.removeLots(func(l lot) bool { return l.bundle.Job == bag })
}

// Clear takes all tasks.
func (s *Stock) Clear() []Lot { return s.removeLots(func(lot) bool { return true }) }

func (s *Stock) removeLots(which func(lot) bool) (gone []Lot) {
	s.lots = slices.DeleteFunc(s.lots, func(l lot) bool {
		if !which(l) {
			return false
		}
		gone = append(gone, Lot{l.bundle, l.tasks})
		s.count -= l.tasks.Count()
		return true
	})
	return gone
}
