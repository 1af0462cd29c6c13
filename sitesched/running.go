package sitesched

import (
	"time"

	"kith/internal/job"
)

// overdueGrace is how far ahead a copy past its estimate is expected to end,
// until it does (spec 001 section 2.1).
const overdueGrace = time.Second

// runItem is one copy that holds processors.
type runItem struct {
	end    job.Time // start + estimate
	charge int32
	slot   int32
}

// runSet holds the reserved and running copies in the order (end, ID), with
// room at both ends so that either side can move over.
type runSet struct {
	buf  []runItem
	from int // buf[from:] is the set
}

func (s *runSet) items() []runItem { return s.buf[s.from:] }

// search returns the index in items of the first copy that is not before (end, slot's ID).
func (s *runSet) search(t *table, end job.Time, slot int32) int {
	items := s.items()
	lo, hi := 0, len(items)
	for lo < hi {
		mid := int(uint(lo+hi) >> 1)
		m := &items[mid]
		if m.end < end || m.end == end && t.rows[m.slot].copy.id.Compare(t.rows[slot].copy.id) < 0 {
			lo = mid + 1
		} else {
			hi = mid
		}
	}
	return lo
}

func (s *runSet) insert(t *table, it runItem) {
	i := s.search(t, it.end, it.slot)
	n := len(s.buf) - s.from
	if s.from > 0 && i < n/2 {
		copy(s.buf[s.from-1:], s.buf[s.from:s.from+i])
		s.from--
	} else {
		if len(s.buf) == cap(s.buf) && s.from > n {
			s.buf, s.from = s.buf[:copy(s.buf, s.items())], 0
		}
		s.buf = append(s.buf, runItem{})
		copy(s.buf[s.from+i+1:], s.buf[s.from+i:])
	}
	s.buf[s.from+i] = it
}

// remove takes out the copy at slot, whose estimated end is end.
func (s *runSet) remove(t *table, end job.Time, slot int32) {
	i := s.search(t, end, slot)
	items := s.items()
	if n := len(items); i < n/2 {
		copy(items[1:], items[:i])
		s.from++
	} else {
		copy(items[i:], items[i+1:])
		s.buf = s.buf[:len(s.buf)-1]
	}
	if s.from == len(s.buf) {
		s.buf, s.from = s.buf[:0], 0
	}
}

// overdue reports whether some copy has used up its estimate at now.
func (s *runSet) overdue(now job.Time) bool { return s.from < len(s.buf) && s.buf[s.from].end <= now }

// first returns when the first copy is expected to end, [job.Never] if there is none.
func (s *runSet) first() job.Time {
	if s.from == len(s.buf) {
		return job.Never
	}
	return s.buf[s.from].end
}

// releases walks the instants at which processors are expected to become free,
// in order of time: copies of one end come as one group, and copies past their
// estimate end a second from now.
type releases struct {
	items []runItem
	late  int64 // processors of overdue copies not handed out yet
	soon  job.Time
}

func (s *runSet) releases(now job.Time) releases {
	r := releases{items: s.items(), soon: now.Add(overdueGrace)}
	for len(r.items) > 0 && r.items[0].end <= now {
		r.late += int64(r.items[0].charge)
		r.items = r.items[1:]
	}
	return r
}

// next returns the next instant and the processors that become free there.
func (r *releases) next() (at job.Time, charge int64, ok bool) {
	if len(r.items) == 0 && r.late == 0 {
		return job.Never, 0, false
	}
	at = job.Never
	if len(r.items) > 0 {
		at = r.items[0].end
	}
	if r.late > 0 && r.soon <= at {
		at, charge, r.late = r.soon, r.late, 0
	}
	i := 0
	for i < len(r.items) && r.items[i].end == at {
		charge += int64(r.items[i].charge)
		i++
	}
	r.items = r.items[i:]
	return at, charge, true
}

// shadow returns the earliest instant t* at which need processors are free
// according to the estimates, and the extra x that is free beside them
// (spec 001 section 2.1 step 3).
func (s *runSet) shadow(now job.Time, free int64, need int32) (at job.Time, extra int32) {
	if s.overdue(now) {
		return s.shadowOverdue(now, free, need)
	}
	items := s.items()
	for i := range items {
		if free += int64(items[i].charge); free < int64(need) {
			continue
		}
		// All that end at t* count towards x.
		at = items[i].end
		for i++; i < len(items) && items[i].end == at; i++ {
			free += int64(items[i].charge)
		}
		return at, int32(free - int64(need)) // at most P
	}
	return job.Never, 0
}

// shadowOverdue is shadow when some copies are past their estimate.
func (s *runSet) shadowOverdue(now job.Time, free int64, need int32) (at job.Time, extra int32) {
	for r := s.releases(now); ; {
		at, charge, ok := r.next()
		if !ok {
			return job.Never, 0
		}
		if free += charge; free >= int64(need) {
			return at, int32(free - int64(need)) // at most P
		}
	}
}

func (s *runSet) copyFrom(o *runSet) { s.buf, s.from = append(s.buf[:0], o.items()...), 0 }
