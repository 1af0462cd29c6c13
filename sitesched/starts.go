package sitesched

import (
	"iter"

	"kith/internal/job"
)

// Starts yields the copies at the head of the local queue, at most that many and
// none behind the guarantee depth, each with when it would start if all that run
// and wait ahead of it used their limits. Postponed copies are left out, and while
// draining all are.
//
// The conservative disciplines yield the slots of their plan, which are guarantees
// ([ConservativeReplan]: plans). The others keep no plan: the copies are placed
// once in queue order, beside what runs. There the first that waits has its t*,
// which is a guarantee; under EASY a copy that overtakes may delay those after it.
//
// It changes no plan, and costs one search of the surface for each copy yielded.
// s must not change meanwhile.
func (s *Scheduler) Starts(now job.Time, most int) iter.Seq2[job.AttemptID, job.Time] {
	return func(yield func(job.AttemptID, job.Time) bool) {
		if s.draining || most <= 0 {
			return
		}
		s.settle()
		q, floor := &s.local, now
		plans := s.cfg.Backfill.plans()
		if !plans {
			s.scratch.build(now, s.free, &s.run)
		}
		for i := q.next(0); i >= 0 && i < q.within && most > 0; i = q.next(i + 1) {
			most--
			at := q.plan[i]
			if !plans {
				at = s.slotIn(&s.scratch, now, floor, q, q.charge[i], q.wall[i])
				s.scratch.place(at, q.charge[i], q.wall[i])
				floor = at
			}
			// A slot in the past was missed, and will be given anew.
			if at >= now && at != job.Never && !yield(s.table.name(q.slot[i]), at) {
				return
			}
		}
	}
}
