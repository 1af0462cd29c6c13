package sitesched

import "kith/internal/job"

// HomeStarts reports whether a copy of this site's own origin that waits would start now if
// some others, queued or holding processors, were not here. It plays a pass on a copy of the
// scheduler, which is not changed.
func (s *Scheduler) HomeStarts(now job.Time, without []job.AttemptID) bool {
	if s.draining || s.sums.queuedHome == 0 {
		return false
	}
	if s.trial == nil {
		s.trial = &Scheduler{}
	}
	t := s.trial
	t.copyFrom(s)
	t.notes = noteNothing
	t.foresee(now)
	for i := range without {
		slot, known := s.lookup(&without[i]) // slots are the same in both
		if !known {
			continue
		}
		switch state := t.table.rows[slot].state; {
		case state == queued:
			t.dequeue(slot)
			t.table.rows[slot].state = aside // so that nothing looks at it
		case state.holds():
			t.vacate(now, slot)
		}
	}
	waiting := t.sums.queuedHome
	t.pass(now)
	return t.sums.queuedHome < waiting
}
