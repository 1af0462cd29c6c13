package job

import (
	"cmp"
	"fmt"
	"slices"
)

// MaxTasks is the most tasks that a bag can have: ordinals lie below it.
const MaxTasks = 1 << 24

// TaskSet is a set of task ordinals, 0 to [MaxTasks]-1. The zero value is the empty set.
//
// It is a bitmap in pages of 4,096 ordinals. A page without tasks costs nothing, one
// whose tasks follow one another, a full one among them, 16 bytes, any other 528: a set
// of ordinals below n costs at most n/8 bytes and a thirtieth more, one of some ranges
// next to nothing.
//
// A set belongs to one goroutine. Assigning it makes no copy: see [TaskSet.Clone].
type TaskSet struct {
	pages []page // by index, none is empty
	count int
}

// TaskRange returns the set of the ordinals from lo to before hi.
func TaskRange(lo, hi uint32) TaskSet {
	var s TaskSet
	s.AddRange(lo, hi)
	return s
}

// Count returns how many tasks are in the set.
func (s *TaskSet) Count() int { return s.count }

// Empty reports whether no task is in the set.
func (s *TaskSet) Empty() bool { return s.count == 0 }

// find returns where the page of an index is, or would have to be.
func (s *TaskSet) find(index int) (int, bool) {
	if index < len(s.pages) && int(s.pages[index].index) == index {
		return index, true // nothing is missing before it
	}
	if n := len(s.pages); n == 0 || int(s.pages[n-1].index) < index {
		return n, false
	}
	return slices.BinarySearchFunc(s.pages, index, func(p page, index int) int { return cmp.Compare(int(p.index), index) })
}

// split returns the page index and the position in the page of an ordinal.
func split(task uint32) (index, i int) { return int(task >> pageShift), int(task % pageTasks) }

// mustBeTask panics for what is no ordinal: a bug of the caller, who has checked what came
// from outside.
func mustBeTask(task uint32) {
	if task >= MaxTasks {
		panic(fmt.Sprintf("job: task ordinal %d is not below %d", task, MaxTasks))
	}
}

// Has reports whether the task is in the set; an ordinal of [MaxTasks] or more never is.
func (s *TaskSet) Has(task uint32) bool {
	index, i := split(task)
	at, ok := s.find(index)
	return ok && s.pages[at].has(i)
}

// Add adds a task and reports whether it was not there. It panics if the ordinal is not
// below [MaxTasks].
func (s *TaskSet) Add(task uint32) bool {
	mustBeTask(task)
	index, i := split(task)
	at, ok := s.find(index)
	if !ok {
		s.pages = slices.Insert(s.pages, at, runPage(index, i, 1))
	} else if !s.pages[at].add(i) {
		return false
	}
	s.count++
	return true
}

// Remove removes a task and reports whether it was there.
func (s *TaskSet) Remove(task uint32) bool {
	index, i := split(task)
	at, ok := s.find(index)
	if !ok || !s.pages[at].remove(i) {
		return false
	}
	if s.pages[at].count == 0 {
		s.pages = slices.Delete(s.pages, at, at+1)
	}
	s.count--
	return true
}

// AddRange adds the tasks from lo to before hi. It panics if hi is above [MaxTasks].
func (s *TaskSet) AddRange(lo, hi uint32) {
	if lo >= hi {
		return
	}
	mustBeTask(hi - 1)
	added := TaskSet{pages: rangePages(lo, hi), count: int(hi - lo)}
	if s.count == 0 {
		*s = added
		return
	}
	s.AddAll(&added)
}

// RemoveRange removes the tasks from lo to before hi. It panics if hi is above [MaxTasks].
func (s *TaskSet) RemoveRange(lo, hi uint32) {
	if lo >= hi {
		return
	}
	mustBeTask(hi - 1)
	removed := TaskSet{pages: rangePages(lo, hi), count: int(hi - lo)}
	s.RemoveAll(&removed)
}

// rangePages returns the pages of the tasks from lo to before hi.
func rangePages(lo, hi uint32) []page {
	first, i := split(lo)
	last, j := split(hi - 1)
	pages := make([]page, 0, last-first+1)
	for index := first; index <= last; index++ {
		from, to := 0, pageTasks
		if index == first {
			from = i
		}
		if index == last {
			to = j + 1
		}
		pages = append(pages, runPage(index, from, to-from))
	}
	return pages
}

// Clone returns a copy that shares nothing with s.
func (s *TaskSet) Clone() TaskSet {
	c := TaskSet{pages: slices.Clone(s.pages), count: s.count}
	for i := range c.pages {
		c.pages[i] = c.pages[i].clone()
	}
	return c
}

// Clear empties the set and lets go of its memory.
func (s *TaskSet) Clear() { *s = TaskSet{} }

// Take removes the n lowest tasks and returns them; all, if there are no more than n.
func (s *TaskSet) Take(n int) TaskSet {
	var taken TaskSet
	if n >= s.count {
		taken, *s = *s, taken
		return taken
	}
	whole := 0
	for left := n; left > 0; {
		p := &s.pages[whole]
		if int(p.count) > left {
			taken.pages = append(taken.pages, p.cut(left))
			break
		}
		taken.pages = append(taken.pages, *p)
		left -= int(p.count)
		whole++
	}
	s.pages = slices.Delete(s.pages, 0, whole)
	taken.count = max(n, 0)
	s.count -= taken.count
	return taken
}

// Last returns the highest ordinal, false if the set is empty.
func (s *TaskSet) Last() (uint32, bool) {
	if s.count == 0 {
		return 0, false
	}
	p := &s.pages[len(s.pages)-1]
	if p.bits == nil {
		return p.base() + uint32(p.end()) - 1, true
	}
	i := pageTasks - 1
	for !p.bits.has(i) {
		i--
	}
	return p.base() + uint32(i), true
}

// All yields the tasks from the lowest on. The set must not be changed meanwhile.
func (s *TaskSet) All(yield func(task uint32) bool) { s.From(0)(yield) }

// From yields the tasks at or above an ordinal, from the lowest on. The set must not be
// changed meanwhile.
func (s *TaskSet) From(task uint32) func(yield func(task uint32) bool) {
	return func(yield func(uint32) bool) {
		for lo, hi := range s.pageRuns(task) {
			for ; lo < hi; lo++ {
				if !yield(lo) {
					return
				}
			}
		}
	}
}

// Ranges yields the longest ranges of tasks without a gap, from lo to before hi, from the
// lowest on. The set must not be changed meanwhile.
func (s *TaskSet) Ranges(yield func(lo, hi uint32) bool) {
	var from, to uint32
	for lo, hi := range s.pageRuns(0) {
		if lo == to && to > 0 {
			to = hi
			continue
		}
		if from < to && !yield(from, to) {
			return
		}
		from, to = lo, hi
	}
	if from < to {
		yield(from, to)
	}
}

// pageRuns yields the ranges without a gap at or above an ordinal, each within a page.
func (s *TaskSet) pageRuns(task uint32) func(yield func(lo, hi uint32) bool) {
	return func(yield func(lo, hi uint32) bool) {
		index, i := split(task)
		at, found := s.find(index)
		if !found {
			i = 0
		}
		for ; at < len(s.pages); at++ {
			p := &s.pages[at]
			for {
				lo, hi, ok := p.run(i)
				if !ok {
					break
				}
				if !yield(p.base()+uint32(lo), p.base()+uint32(hi)) {
					return
				}
				i = hi
			}
			i = 0
		}
	}
}
