package sitesched

import "kith/internal/job"

// Moved names the home job to which the latest Pass had told a guarantee that starts of guests
// in the same pass then moved back; false if there is none. There is none unless the scheduler
// breaks its promise P3: it is looked for where the rules that choose guests do not look, in
// what runs after the pass, so that a site counts it in production. It is looked for at the
// head of the local queue, where there are two queues.
func (s *Scheduler) Moved() (job.AttemptID, bool) {
	if s.moved == gap || s.table.rows[s.moved].state != queued {
		return job.AttemptID{}, false
	}
	return s.table.name(s.moved), true
}

// promiseKept looks whether the local head can still start when it was told, after guests have
// started. It returns the slot of the head if not, else gap.
func (s *Scheduler) promiseKept(now job.Time) int32 {
	q := &s.local
	if !s.cfg.Backfill.plans() {
		if s.blocked == gap {
			return gap
		}
		if at, _ := s.run.shadow(now, s.free, s.table.rows[s.blocked].charge); at > s.shadow {
			return s.blocked
		}
		return gap
	}
	i := q.next(0)
	if i < 0 || q.plan[i] == job.Never || q.plan[i] <= now || s.free < 0 {
		return gap // it owns nothing, or has missed its slot already
	}
	s.scratch.build(now, s.free, &s.run)
	if s.scratch.fits(q.plan[i], q.charge[i], q.wall[i]) {
		return gap
	}
	return q.slot[i]
}
