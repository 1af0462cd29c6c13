package sitesched

import "kith/internal/job"

// StartsAtOnce reports whether a Pass now would start c, a local copy, if it arrived now. Unlike
// [Scheduler.EarliestStart] it knows that under EASY a copy may overtake others than
// the head, which it delays. Where a Pass would have to look at more than c, it says what
// EarliestStart says.
func (s *Scheduler) StartsAtOnce(now job.Time, c job.Copy) bool {
	e := entryOf(&c)
	charge := s.chargeOf(&e)
	if s.draining || charge > s.freeNow() {
		return false
	}
	s.gather(now)
	if s.cfg.Backfill != EASY || !s.sawAll(now) {
		return s.earliestStart(now, &e) <= now
	}
	head := s.local.next(0)
	if head < 0 {
		return true
	}
	shadow, extra := s.shadow, s.extra
	if s.run.overdue(now) { // what is overdue is expected a second from now, wherever now is
		shadow, extra = s.run.shadow(now, s.free, s.local.charge[head])
		if s.local.nextFit(head+1, s.freeNow(), extra, shadow.Sub(now)) >= 0 {
			return s.earliestStart(now, &e) <= now
		}
	}
	return charge <= extra || now.Add(s.planned(&e)) <= shadow
}

// sawAll reports whether the latest Pass saw all that waits at now in the local queue, and
// nothing has changed since but the time.
func (s *Scheduler) sawAll(now job.Time) bool {
	return !s.stale && now >= s.passed && !s.comesDue(now) && s.local.seen == len(s.local.slot)
}
