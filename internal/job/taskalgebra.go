package job

import "slices"

// AddAll adds the tasks of o to s. The sets share nothing afterwards.
func (s *TaskSet) AddAll(o *TaskSet) {
	if len(s.pages) == 0 {
		*s = o.Clone()
		return
	}
	missing := o.pagesMissingIn(s)
	if missing == 0 {
		for p, q := range s.pairs(o, false) {
			s.count += p.addAll(q)
		}
		return
	}
	// From the back, so that no page is overwritten before it is read.
	merged := slices.Grow(s.pages, missing)[:len(s.pages)+missing]
	i, j := len(s.pages)-1, len(o.pages)-1
	for k := len(merged) - 1; j >= 0; k-- {
		switch {
		case i < 0 || s.pages[i].index < o.pages[j].index:
			merged[k] = o.pages[j].clone()
			s.count += int(merged[k].count)
			j--
		case s.pages[i].index > o.pages[j].index:
			merged[k] = s.pages[i]
			i--
		default:
			merged[k] = s.pages[i]
			s.count += merged[k].addAll(&o.pages[j])
			i, j = i-1, j-1
		}
	}
	s.pages = merged
}

// pagesMissingIn counts the pages that o lacks.
func (s *TaskSet) pagesMissingIn(o *TaskSet) int {
	n := 0
	for range s.pairs(o, true) {
		n++
	}
	return n
}

// RemoveAll removes the tasks of o from s.
func (s *TaskSet) RemoveAll(o *TaskSet) {
	emptied := false
	for p, q := range s.pairs(o, false) {
		s.count -= p.removeAll(q)
		emptied = emptied || p.count == 0
	}
	s.dropEmpty(emptied)
}

// RetainAll removes the tasks that o has not from s.
func (s *TaskSet) RetainAll(o *TaskSet) {
	emptied := false
	for p := range s.pairs(o, true) {
		s.count -= int(p.count)
		p.count, emptied = 0, true
	}
	for p, q := range s.pairs(o, false) {
		s.count -= p.retainAll(q)
		emptied = emptied || p.count == 0
	}
	s.dropEmpty(emptied)
}

func (s *TaskSet) dropEmpty(some bool) {
	if some {
		s.pages = slices.DeleteFunc(s.pages, func(p page) bool { return p.count == 0 })
	}
}

// Intersects reports whether a task is in both sets.
func (s *TaskSet) Intersects(o *TaskSet) bool {
	for p, q := range s.pairs(o, false) {
		if p.shared(q) > 0 {
			return true
		}
	}
	return false
}

// Covers reports whether every task of o is in s.
func (s *TaskSet) Covers(o *TaskSet) bool {
	covered := 0
	for p, q := range s.pairs(o, false) {
		covered += p.shared(q)
	}
	return covered == o.count
}

// Equal reports whether both sets have the same tasks.
func (s *TaskSet) Equal(o *TaskSet) bool { return s.count == o.count && s.Covers(o) }

// pairs yields the pages that both sets have, or, with alone, those that only s has,
// beside nil. It looks for the pages of the set with fewer of them in the other one.
func (s *TaskSet) pairs(o *TaskSet, alone bool) func(yield func(p, q *page) bool) {
	return func(yield func(p, q *page) bool) {
		if !alone && len(o.pages) < len(s.pages) {
			for j := range o.pages {
				if at, ok := s.find(int(o.pages[j].index)); ok && !yield(&s.pages[at], &o.pages[j]) {
					return
				}
			}
			return
		}
		for i := range s.pages {
			at, ok := o.find(int(s.pages[i].index))
			switch {
			case ok && !alone && !yield(&s.pages[i], &o.pages[at]), !ok && alone && !yield(&s.pages[i], nil):
				return
			}
		}
	}
}

// addAll adds the positions of q, a page of the same index, and returns how many were
// missing.
func (p *page) addAll(q *page) int {
	before := int(p.count)
	if p.bits == nil && q.bits == nil && int(q.first) <= p.end() && int(p.first) <= q.end() {
		lo, hi := min(p.first, q.first), max(p.end(), q.end())
		*p = runPage(int(p.index), int(lo), hi-int(lo))
		return int(p.count) - before
	}
	p.spread()
	if q.bits == nil {
		p.bits.setRun(int(q.first), q.end())
	} else {
		for w := range p.bits {
			p.bits[w] |= q.bits[w]
		}
	}
	*p = packed(int(p.index), p.bits)
	return int(p.count) - before
}

// removeAll removes the positions of q and returns how many there were. The page may be
// empty then.
func (p *page) removeAll(q *page) int {
	before := int(p.count)
	if p.bits == nil && q.bits == nil {
		lo, hi := max(p.first, q.first), min(p.end(), q.end())
		switch {
		case int(lo) >= hi:
			return 0
		case lo == p.first:
			p.first, p.count = uint16(hi), uint16(p.end()-hi)
			return before - int(p.count)
		case hi == p.end():
			p.count = lo - p.first
			return before - int(p.count)
		}
	}
	p.spread()
	if q.bits == nil {
		p.bits.clearRun(int(q.first), q.end())
	} else {
		for w := range p.bits {
			p.bits[w] &^= q.bits[w]
		}
	}
	*p = packed(int(p.index), p.bits)
	return before - int(p.count)
}

// retainAll removes the positions that q has not and returns how many there were. The
// page may be empty then.
func (p *page) retainAll(q *page) int {
	before := int(p.count)
	var buf bitmap
	other := q.bitmap(&buf)
	p.spread()
	for w := range p.bits {
		p.bits[w] &= other[w]
	}
	*p = packed(int(p.index), p.bits)
	return before - int(p.count)
}

// shared counts the positions of both pages.
func (p *page) shared(q *page) int {
	if p.bits == nil && q.bits == nil {
		return max(0, min(p.end(), q.end())-max(int(p.first), int(q.first)))
	}
	if p.full() {
		return int(q.count)
	}
	if q.full() {
		return int(p.count)
	}
	var bufP, bufQ bitmap
	a, b := *p.bitmap(&bufP), q.bitmap(&bufQ)
	for w := range a {
		a[w] &= b[w]
	}
	return a.count()
}
