package sitesched

import (
	"slices"
	"sort"

	"kith/internal/job"
)

// mostSpared is how many guests MakeWay tries to do without, of those that it has chosen: each
// costs a pass on a copy of the scheduler.
const mostSpared = 32

// MakeWay chooses guests that have to leave for a copy of this site's own that waits and that
// guests alone block ([Scheduler.Blocked]). Without them, and those that were told before, a
// Pass would start it now. They are planned to be gone by an instant. Until the copy starts or
// leaves the queue, no other guest starts. Without effect on a copy that is not blocked so, and
// under [DualPreempt], where [Scheduler.Evicted] says who leaves.
//
// Who leaves first is as there, and so is who stays. The slice is valid until the next Pass or
// MakeWay. It plays passes on a copy of the scheduler: one if those that were told before suffice,
// else some twice as many as the number of guests told has binary digits, and up to 32 more.
func (s *Scheduler) MakeWay(now job.Time, id job.AttemptID, until job.Time) []job.AttemptID {
	s.clock = now
	g := &s.guests
	g.told = g.told[:0]
	slot, known := s.find(&id)
	if !known || s.draining || s.cfg.Queues == DualPreempt || s.cfg.Queues == Single {
		return nil
	}
	r := &s.table.rows[slot]
	if r.state != queued || r.copy.remote || r.hidden {
		return nil
	}
	s.gather(now)
	if r.wanted && s.startsWithout(now, slot, nil) {
		return nil // those that were told before suffice
	}
	s.lineUpLeavers(now, until)
	if !s.startsWithout(now, slot, g.order) {
		if g.staying > 0 {
			s.madeWay(r) // it has to wait for guests that cannot leave
		}
		return nil
	}
	if !r.wanted {
		r.wanted = true
		s.wanted++
	}
	chosen := g.order[:s.fewest(now, slot)]
	for i, tried := len(chosen)-2, 0; i >= 0 && tried < mostSpared; i, tried = i-1, tried+1 {
		if fewer := slices.Delete(slices.Clone(chosen), i, i+1); s.startsWithout(now, slot, fewer) {
			chosen = fewer
		}
	}
	for _, l := range chosen {
		s.leaveBy(l.slot, until)
		g.told = append(g.told, s.table.name(l.slot))
	}
	return g.told
}

// fewest returns how many guests have to go, in the order in which they are lined up, for the local
// copy at slot to start. Without all it does. It is few as a rule, so that the search begins there.
func (s *Scheduler) fewest(now job.Time, slot int32) int {
	order, from, to := s.guests.order, 0, 1
	for to < len(order) && !s.startsWithout(now, slot, order[:to]) {
		from, to = to+1, 2*to
	}
	to = min(to, len(order))
	return from + sort.Search(to-from, func(n int) bool { return s.startsWithout(now, slot, order[:from+n]) })
}

// startsWithout reports whether a Pass now would start the local copy at slot, if guests that
// were told to leave and some others were gone.
func (s *Scheduler) startsWithout(now job.Time, slot int32, others []leaver) bool {
	if s.trial == nil {
		s.trial = &Scheduler{}
	}
	t := s.trial
	t.copyFrom(s)
	t.notes = noteNothing
	s.trials++
	leave := func(slot int32) {
		t.vacate(now, slot)
		t.table.rows[slot].state = vacant // so that nothing looks at it
	}
	for i := range s.table.rows {
		if r := &s.table.rows[i]; r.leaving && r.state.holds() {
			leave(int32(i)) //nolint:gosec // 2^31 copies need more memory than there is.
		}
	}
	for _, l := range others {
		leave(l.slot)
	}
	t.pass(now)
	return t.table.rows[slot].state != queued
}

// leaveBy notes that the guest at slot was told to leave, and is gone at an instant.
func (s *Scheduler) leaveBy(slot int32, until job.Time) {
	r := &s.table.rows[slot]
	r.leaving = true
	if r.end <= until {
		return
	}
	s.lift(slot)
	r.wall = max(until.Sub(r.since), 1)
	s.occupy(r.since, slot, r.state)
	s.stale, s.surfaceValid = true, false
	s.ended, s.compressed = true, false
	s.breakLines()
}

// madeWay notes that a local copy leaves the queue. If guests made way for it, others may start again.
func (s *Scheduler) madeWay(r *row) {
	if !r.wanted {
		return
	}
	r.wanted = false
	if s.wanted--; s.wanted == 0 {
		s.remote.seen, s.stale = 0, true
	}
}
