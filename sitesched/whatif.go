package sitesched

import (
	"errors"

	"kith/internal/job"
)

// Prediction is when a copy would start.
type Prediction struct {
	// Start is the predicted start, [job.Never] if there is none, as while draining.
	Start job.Time
	// Exact says that the scheduler itself was played forward. Else the
	// question cost too much and Start is that of [Scheduler.EarliestStart].
	Exact bool
}

// ErrStarted is returned when a prediction is asked for a copy that already
// holds its processors.
var ErrStarted = errors.New("already started")

// WhatIf predicts when c would start here if nothing else arrived and every
// copy ran for its estimate (spec 004 section 2.1). It plays the very same
// scheduler forward on a copy of its state, within the configured number of
// steps; s itself is not changed. Where nothing overtakes, the answer is read
// off a plan that is kept along the way, and costs next to nothing. If c.ID is queued here, the answer is for
// that copy; else c arrives now, whatever its Arrival says. The error wraps
// [ErrTooWide] or [ErrStarted]. A copy that is set aside has no start.
//
// Copies past their estimate are taken to end a second from now.
func (s *Scheduler) WhatIf(now job.Time, c job.Copy) (Prediction, error) {
	slot, known := s.lookup(&c.ID)
	if known && s.table.rows[slot].state.holds() {
		return Prediction{}, ErrStarted
	}
	if err := s.cfg.Fits(&c.Request); err != nil && !known {
		return Prediction{}, err
	}
	if s.draining || known && s.table.rows[slot].state == aside {
		return Prediction{Start: job.Never, Exact: true}, nil
	}
	e := entryOf(&c)
	if !known {
		e.arrival = now
		if start, ok := s.foretell(now, &e); ok {
			return Prediction{Start: start, Exact: true}, nil
		}
	}
	return s.simulate(now, &e, slot, known), nil
}

// Predict says when c would start here if nothing else arrived, see
// [Scheduler.WhatIf]; false if it would not.
func (s *Scheduler) Predict(now job.Time, c job.Copy) (job.Time, bool) {
	p, err := s.WhatIf(now, c)
	return p.Start, err == nil && p.Start != job.Never
}

// simulate plays a copy of s forward until c starts. It is at slot if it is
// known here, else it arrives now.
func (s *Scheduler) simulate(now job.Time, c *entry, slot int32, known bool) Prediction {
	if s.trial == nil {
		s.trial = &Scheduler{}
	}
	t := s.trial
	t.copyFrom(s)
	t.notes = noteNothing
	t.foresee(now)
	if !known {
		slot = t.table.add(c, s.chargeOf(c))
		t.table.rows[slot].probe = true // the question is not about its origin
		t.admit(slot)
	}
	if start, ok := t.play(now, slot); ok {
		return Prediction{Start: start, Exact: true}
	}
	return Prediction{Start: s.estimate(now, c, known)}
}

// foresee gives overdue copies an end that a simulation can reach.
func (s *Scheduler) foresee(now job.Time) {
	for _, set := range [...]*runSet{&s.run, &s.guests.run} {
		for set.overdue(now) {
			it := set.items()[0]
			r := &s.table.rows[it.slot]
			set.remove(&s.table, it.end, it.slot)
			s.sums.run(r, -1)
			it.end = now.Add(overdueGrace)
			r.end = it.end
			s.sums.run(r, 1)
			set.insert(&s.table, it)
			if set == &s.guests.run {
				s.guests.stale = true
			} else {
				s.stale, s.surfaceValid = true, false
			}
		}
	}
}

// play runs the site forward until the copy at slot starts, and returns when
// that is. It gives up, with ok false, when it has used up its steps.
func (s *Scheduler) play(now job.Time, slot int32) (start job.Time, ok bool) {
	limit := s.cfg.WhatIfSteps
	if limit == 0 {
		limit = DefaultWhatIfSteps
	}
	for limit += s.work(); ; {
		s.pass(now)
		if s.table.rows[slot].state != queued {
			return now, true
		}
		next := min(s.due, s.eligible, s.ages)
		next = min(next, s.run.first(), s.guests.run.first())
		if next == job.Never {
			return next, true
		}
		if next <= now || s.work() > limit {
			return 0, false
		}
		for now = next; s.run.overdue(now); {
			s.vacate(now, s.run.items()[0].slot)
		}
		for s.guests.run.overdue(now) {
			s.vacate(now, s.guests.run.items()[0].slot)
		}
		// The pass itself, and its search for t*.
		s.passSteps += 5 + int64(len(s.run.items())>>groupBits)
	}
}

// work returns the steps taken so far: passes, groups of copies and stretches
// of the surface looked at.
func (s *Scheduler) work() int64 {
	return s.local.scanned + s.remote.scanned + s.surface.visited + s.behind.visited + s.scratch.visited + s.allotment.visited + s.passSteps
}

// estimate is the cheap prediction for c, which may be queued already.
func (s *Scheduler) estimate(now job.Time, c *entry, known bool) job.Time {
	if !known {
		return s.earliestStart(now, c)
	}
	s.gather(now)
	slot, _ := s.lookup(&c.id)
	r := &s.table.rows[slot]
	return s.slotBehind(max(now, r.notBefore), s.queueOf(&r.copy), int(r.position), r.charge, r.wall)
}
