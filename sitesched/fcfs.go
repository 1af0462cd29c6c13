package sitesched

import "kith/internal/job"

// passFCFS starts copies of q in order as long as the head fits.
func (s *Scheduler) passFCFS(now job.Time, q *queue) {
	if s.blocked == gap {
		s.startHeads(now, q)
	}
}

// startHeads starts the copies of q from the front while they fit and notes
// the first that does not, with its t* and x (spec 001 section 2.1, steps 1
// to 3). It returns the place after that one, or -1 if none is left waiting.
func (s *Scheduler) startHeads(now job.Time, q *queue) int {
	for i := q.next(q.seen); i >= 0; i = q.next(i + 1) {
		if int64(q.charge[i]) > s.free {
			s.blocked = q.slot[i]
			s.shadow, s.extra = s.run.shadow(now, s.free, q.charge[i])
			return i + 1
		}
		s.surfaceValid = false
		s.start(now, q, i)
	}
	return -1
}
