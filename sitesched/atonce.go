package sitesched

import "kith/internal/job"

// StartsAtOnce reports whether a Pass now would start c, a local copy, if it arrived now. Unlike
// [Scheduler.EarliestStart] it knows that under EASY a copy may overtake others than
// the head, which it delays. Where more than arrivals at the end of the queue happened since
// the latest Pass, or a copy runs longer than its estimate, it says what EarliestStart says.
func (s *Scheduler) StartsAtOnce(now job.Time, c job.Copy) bool {
	e := entryOf(&c)
	charge := s.chargeOf(&e)
	if s.draining || charge > s.freeNow() {
		return false
	}
	s.gather(now)
	if s.cfg.Backfill != EASY || !s.keepsSurface(now) || s.local.seen != len(s.local.slot) {
		return s.earliestStart(now, &e) <= now
	}
	return s.local.next(0) < 0 || charge <= s.extra || now.Add(s.planned(&e)) <= s.shadow
}
