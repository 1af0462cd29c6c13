package sitesched

import "kith/internal/job"

// behind is the plan of the whole local queue where it is longer than the guarantee
// depth: a copy of the surface with the copies behind that depth placed in it. It is
// kept, as a question comes with each copy that arrives: those that came since the last
// question are added to it.
type behind struct {
	profile
	kept bool
	// surface and queue are the changes of both with which the plan was begun.
	surface, queue int64
	// planned counts the places of the queue whose copies are in it.
	planned int
	floor   job.Time
	// due is the first slot behind the depth. Until then a plan made anew would be the same.
	due job.Time
}

// planBehind returns the plan of the whole local queue, and its floor: the surface, or what
// is kept behind it. The caller changes neither.
func (s *Scheduler) planBehind(now job.Time) (*profile, job.Time) {
	q, b := &s.local, &s.behind
	from := q.next(q.within)
	if from < 0 {
		return &s.surface, s.floor
	}
	if !b.kept || b.surface != s.surface.changes || b.queue != q.changes || b.due < now {
		b.copyFrom(&s.surface)
		b.kept, b.surface, b.queue = true, s.surface.changes, q.changes
		b.planned, b.floor, b.due = from, s.floor, job.Never
	}
	for i := q.next(b.planned); i >= 0; i = q.next(i + 1) {
		at := s.slotIn(&b.profile, now, b.floor, q, q.charge[i], q.wall[i])
		if at == job.Never {
			continue
		}
		b.place(at, q.charge[i], q.wall[i])
		b.floor, b.due = at, min(b.due, at)
	}
	b.planned = len(q.slot)
	return &b.profile, b.floor
}
