package sitesched

import (
	"math"

	"kith/internal/job"
)

// Blocked appends to list the copies of this site's own jobs that wait after a Pass at now and
// are blocked by guests alone: a Pass on the same state, but without any copy of another site,
// queued, reserved or running, would start them at now. They come in the order in which it
// would. While draining there are none. Under [DualPreempt] they are those that wait for guests to leave.
//
// It is what guests cost a home job at this instant, whatever was promised to it. Between
// passes nothing changes, so that the answer holds until the next one. It changes nothing, and
// allocates nothing once list has room. It costs a pass over the local queue and a walk over
// what runs, and next to nothing where there is no guest.
func (s *Scheduler) Blocked(now job.Time, list []job.AttemptID) []job.AttemptID {
	guests := s.sums.guestCharge > 0 || s.cfg.Queues == Single && int64(s.local.live) > s.sums.queuedHome
	switch {
	case s.cfg.Queues == DualPreempt:
		return s.waiting(list)
	case s.draining || s.sums.queuedHome == 0 || !guests:
		return list // what can start has started
	case s.cfg.Backfill == Conservative || s.cfg.Queues == Single:
		return s.blockedInTrial(now, list)
	}
	s.gather(now)
	scanned := s.local.scanned
	if free := s.homeOnly(); s.cfg.Backfill.plans() {
		list = s.blockedReplanned(now, free, list)
	} else {
		list = s.blockedHere(now, free, list)
	}
	s.local.scanned = scanned // predictions are bounded by what they scan themselves
	return list
}

// homeOnly gathers what runs of this site's own jobs, and returns the processors that are free
// beside it.
func (s *Scheduler) homeOnly() (free int64) {
	home := &s.home
	home.buf, home.from, free = home.buf[:0], 0, int64(s.cfg.Processors)
	for _, it := range s.run.items() {
		if !s.table.rows[it.slot].copy.remote {
			home.buf = append(home.buf, it)
			free -= int64(it.charge)
		}
	}
	return free
}

// blockedReplanned is a pass that makes the plan of the local queue anew beside s.home. Nothing
// of the standing plan is left then, so that it is the same whatever guests had done to it. It
// goes no further than somebody can start.
func (s *Scheduler) blockedReplanned(now job.Time, free int64, list []job.AttemptID) []job.AttemptID {
	q, f := &s.local, &s.scratch
	f.build(now, free, &s.home)
	within, inside := q.within, q.inside
	fits := func(from int) bool {
		most := int32(max(free, 0)) // at most P
		return most > 0 && q.nextFit(from, most, most, 0) >= 0
	}
	if !fits(0) {
		return list
	}
	for i := q.next(0); i >= 0; i = q.next(i + 1) {
		for ; within <= i && inside < q.depth; within++ {
			if q.slot[within] != gap {
				inside++
			}
		}
		if i >= within {
			break
		}
		at := f.earliest(now, q.charge[i], q.wall[i], job.Never)
		f.place(at, q.charge[i], q.wall[i])
		if at > now || int64(q.charge[i]) > free {
			continue
		}
		list = append(list, s.table.name(q.slot[i]))
		inside-- // it leaves the window to another one
		if free -= int64(q.charge[i]); !fits(i + 1) {
			return list
		}
	}
	w := &s.admission
	f.window(now, w)
	for i := within; w.free() > 0; i++ { // they fit around the plan
		if i = q.nextWithin(i, now, w, math.MaxInt32); i < 0 {
			break
		}
		w.take(q.charge[i], now.Add(q.wall[i]))
		list = append(list, s.table.name(q.slot[i]))
	}
	return list
}

// blockedHere is a pass over a local queue that holds no guests and has no standing plan: who
// starts hangs on what runs and waits, and on nothing else.
func (s *Scheduler) blockedHere(now job.Time, free int64, list []job.AttemptID) []job.AttemptID {
	q, home := &s.local, &s.home
	i := q.next(0)
	for ; i >= 0 && int64(q.charge[i]) <= free; i = q.next(i + 1) {
		free -= int64(q.charge[i])
		home.insert(&s.table, runItem{now.Add(q.wall[i]), q.charge[i], q.slot[i]})
		list = append(list, s.table.name(q.slot[i]))
	}
	if i < 0 || s.cfg.Backfill != EASY {
		return list
	}
	shadow, extra := home.shadow(now, free, q.charge[i])
	window := shadow.Sub(now)
	for left := int32(max(free, 0)); left > 0; {
		if i = q.nextFit(i+1, left, extra, window); i < 0 {
			break
		}
		left -= q.charge[i]
		if q.wall[i] > window {
			extra -= q.charge[i]
		}
		list = append(list, s.table.name(q.slot[i]))
	}
	return list
}

// blockedInTrial plays a pass on a copy of s without guests.
func (s *Scheduler) blockedInTrial(now job.Time, list []job.AttemptID) []job.AttemptID {
	if s.trial == nil {
		s.trial = &Scheduler{}
	}
	t := s.trial
	t.copyFrom(s)
	t.notes = noteSlots
	t.gather(now)
	for slot := range t.table.rows {
		r := &t.table.rows[slot]
		if !r.copy.remote {
			continue
		}
		switch {
		case r.state == queued:
			t.dequeue(int32(slot)) //nolint:gosec // 2^31 copies need more memory than there is.
			r.state = aside        // so that nothing looks at it
		case r.state.holds():
			t.vacate(now, int32(slot)) //nolint:gosec // See above.
			r.state = vacant
		}
	}
	t.pass(now)
	for _, slot := range t.begun {
		list = append(list, t.table.name(slot))
	}
	return list
}
