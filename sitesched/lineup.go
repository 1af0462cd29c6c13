package sitesched

import (
	"slices"
	"time"

	"kith/internal/job"
)

// lineup is the plan of copies of which none overtakes another, as far as a
// newcomer behind them all needs to know it: when the last of them starts, and
// which processors become free then and later. A newcomer's start is read off
// in a step or two, however many copies wait (spec 004 section 2.1, where it
// is the list of node-free times).
//
// What goes as planned leaves a lineup as it is: arrivals at the end, starts
// and completions on time. Everything else makes it invalid.
type lineup struct {
	ends  []relief // in order of time
	free  int64    // processors free at floor, beside the ends
	floor job.Time
	valid bool
}

// relief is when processors become free, and how many.
type relief struct {
	at     job.Time
	charge int64
}

// start returns when charge processors are free for one more copy, after how
// many of the ends, and how many processors are free then.
func (l *lineup) start(now job.Time, charge int32) (at job.Time, ended int, free int64) {
	at, free = max(now, l.floor), l.free
	for free < int64(charge) {
		if ended == len(l.ends) {
			return job.Never, ended, free
		}
		free += l.ends[ended].charge
		at = max(at, l.ends[ended].at)
		ended++
	}
	return at, ended, free
}

// place adds a copy at the end and returns when it starts.
func (l *lineup) place(now job.Time, charge int32, wall time.Duration) job.Time {
	at, ended, free := l.start(now, charge)
	l.ends = slices.Delete(l.ends, 0, ended)
	l.free, l.floor = free-int64(charge), at
	l.occupy(at.Add(wall), charge)
	return at
}

// occupy notes that a copy gives back its processors at the instant at.
func (l *lineup) occupy(at job.Time, charge int32) {
	i := len(l.ends)
	for i > 0 && l.ends[i-1].at > at {
		i--
	}
	l.ends = slices.Insert(l.ends, i, relief{at, int64(charge)})
}

func (l *lineup) copyFrom(o *lineup) {
	l.ends = append(l.ends[:0], o.ends...)
	l.free, l.floor, l.valid = o.free, o.floor, o.valid
}

// lineups are those of a site: ahead of a copy in the local queue is that
// queue, ahead of one in a strict remote queue are both.
type lineups struct {
	local, both lineup
}

// lineupOf returns the lineup at whose end a copy of q is.
func (s *Scheduler) lineupOf(q *queue) *lineup {
	if q == &s.remote {
		return &s.lines.both
	}
	return &s.lines.local
}

// breakLines notes that something happens that was not planned.
func (s *Scheduler) breakLines() { s.lines.local.valid, s.lines.both.valid = false, false }

// joinLine plans a copy that has come to the end of its queue, at place i.
func (s *Scheduler) joinLine(q *queue, i int) {
	l := s.lineupOf(q)
	if l.valid {
		q.plan[i] = l.place(s.clock, q.charge[i], q.wall[i])
	}
	if q == &s.local {
		s.lines.both.valid = false
	}
}

// leaveLine notes that the copy at place i of q starts.
func (s *Scheduler) leaveLine(now job.Time, q *queue, i int) {
	if q.plan[i] != now {
		s.breakLines()
	} else if q == &s.remote {
		s.lines.local.valid = false // in which it was not
	}
}

// foretell is WhatIf for a copy that arrives now, read off the lineups. It
// answers only where nothing overtakes and nothing is out of the ordinary.
func (s *Scheduler) foretell(now job.Time, c *entry) (at job.Time, ok bool) {
	q := s.queueOf(c)
	if s.cfg.Backfill != NoBackfill || s.cfg.Queues == DualBackfill && (c.remote || s.remote.live > 0) || s.cfg.Queues == DualPreempt && c.remote {
		return 0, false
	}
	if s.hidden > 0 || len(s.local.late)+len(s.remote.late) > 0 {
		return 0, false
	}
	if n := len(q.slot); n > 0 && !s.table.rows[q.slot[n-1]].copy.before(c) {
		return 0, false // it would go ahead of some
	}
	if !s.onTime(now) {
		s.breakLines()
	}
	if !s.lines.local.valid {
		s.lineUp(now)
	}
	if q == &s.remote && !s.lines.both.valid {
		s.lines.both.copyFrom(&s.lines.local)
		s.planLine(&s.lines.both, now, q)
	}
	at, _, _ = s.lineupOf(q).start(now, s.chargeOf(c))
	if s.run.overdue(now) {
		s.breakLines() // when those end is a guess that holds only now
	}
	return at, true
}

// onTime reports whether what is planned for now or earlier has happened or is
// about to happen in the next pass.
func (s *Scheduler) onTime(now job.Time) bool {
	if s.run.overdue(now) {
		return false
	}
	for _, q := range []*queue{&s.local, &s.remote} {
		if s.lineupOf(q).valid && q.live > 0 && q.plan[q.first] < now {
			return false
		}
	}
	return true
}

// lineUp plans the local queue.
func (s *Scheduler) lineUp(now job.Time) {
	l := &s.lines.local
	l.ends, l.free, l.floor, l.valid = l.ends[:0], s.free, now, true
	for r := s.run.releases(now); ; {
		at, charge, ok := r.next()
		if !ok {
			break
		}
		l.ends = append(l.ends, relief{at, charge})
	}
	s.planLine(l, now, &s.local)
}

func (s *Scheduler) planLine(l *lineup, now job.Time, q *queue) {
	for i := q.next(0); i >= 0; i = q.next(i + 1) {
		q.plan[i] = l.place(now, q.charge[i], q.wall[i])
	}
}
