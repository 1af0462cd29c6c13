package store

import (
	"cmp"
	"slices"

	"kith/internal/job"
)

// holders are the bundles that are not late and have a task, by number, the oldest first.
type holders struct {
	n  uint8
	by [1 + MaxReplicas]uint32
}

// join counts that a bundle has tasks.
func (b *Bag) join(number uint32, tasks *job.TaskSet) {
	if b.copies == nil {
		b.given += tasks.Count()
		return
	}
	for task := range tasks.All {
		h := b.copies[task]
		if int(h.n) < len(h.by) { // a file that says otherwise is refused by [State.Check]
			h.by[h.n] = number
		}
		if h.n++; h.n == 1 {
			b.given++
		} else {
			b.twins++
		}
		b.copies[task] = h
	}
}

// part counts that a bundle has a task no more, and reports whether no other has it.
func (b *Bag) part(number, task uint32) (last bool) {
	h := b.copies[task]
	if h.n <= 1 {
		delete(b.copies, task)
		b.given--
		return true
	}
	at := slices.Index(h.by[:h.n], number)
	copy(h.by[at:], h.by[at+1:])
	h.n--
	b.copies[task] = h
	b.twins--
	return false
}

// Holding returns the bundles that have one of some tasks and are not late, the oldest first,
// without the one that tells of them. In a bag without replicas only a late one can tell of
// tasks that another has.
func (b *Bag) Holding(t *TaskBundle, results []job.TaskResult) (list []*TaskBundle) {
	switch {
	case b.copies != nil:
		for i := range results {
			h := b.copies[results[i].Ordinal]
			for _, number := range h.by[:h.n] {
				if o := b.Live[number]; o != t && !slices.Contains(list, o) {
					list = append(list, o)
				}
			}
		}
	case t.Late:
		for o := range b.Bundles {
			if o != t && !o.Late && slices.ContainsFunc(results, func(r job.TaskResult) bool { return o.Tasks.Has(r.Ordinal) }) {
				list = append(list, o)
			}
		}
	}
	slices.SortFunc(list, func(a, b *TaskBundle) int { return cmp.Compare(a.Number, b.Number) })
	return list
}

// LateBundles returns the bundles that were taken back and may still report, the oldest first.
// The caller must not change them, and the list holds until the next change of the state.
func (b *Bag) LateBundles() []*TaskBundle { return b.late }
