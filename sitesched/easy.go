package sitesched

import "kith/internal/job"

// passEASY is the cycle of spec 001 section 2.1: heads start while they fit,
// and what waits behind the blocked head may start if the head can still
// start at t*.
func (s *Scheduler) passEASY(now job.Time, q *queue) {
	i := q.seen
	if s.blocked == gap {
		if i = s.startHeads(now, q); i < 0 {
			return
		}
	}
	s.extra = s.backfill(now, q, i, s.freeNow(), s.shadow, s.extra)
}

// backfill starts the copies of q from place i on that fit into free and either end
// by shadow or need no more than extra (spec 001 section 2.1 step 4). It
// returns what is left of extra: a copy that ends by shadow uses up none.
func (s *Scheduler) backfill(now job.Time, q *queue, i int, free int32, shadow job.Time, extra int32) int32 {
	window := shadow.Sub(now)
	for free > 0 {
		if i = q.nextFit(i, free, extra, window); i < 0 {
			break
		}
		charge := q.charge[i]
		if q.wall[i] > window {
			extra -= charge
		}
		free -= charge
		s.surfaceValid = false
		s.start(now, q, i)
	}
	return extra
}
