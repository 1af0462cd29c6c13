package sitesched

import "kith/internal/job"

// QueuedCopy is a waiting copy, for display.
type QueuedCopy struct {
	// Copy lacks the words of its request: name, user and directory.
	Copy job.Copy
	// NotBefore is the end of its last postponement, which may be over; zero if there was none.
	NotBefore job.Time
	// Guarantee is what [Scheduler.Guarantee] returns, [job.Never] if it owns none.
	Guarantee job.Time
	// Within says that a local copy is within the guarantee depth: no start of a
	// remote copy delays its place in the plan of all that are, where the site
	// promises that at all ([ScopeAll], conservative guarantees).
	Within bool
}

// RunningCopy is a copy that holds processors, for display.
type RunningCopy struct {
	// Copy lacks the words of its request: name, user and directory.
	Copy job.Copy
	// Reserved says that its claim is still under way.
	Reserved bool
	// Waits says that it has its turn and waits for guests to leave, see [Scheduler.Evicted], and Leaving that it is such a guest.
	Waits, Leaving bool
	// Since is when it was reserved, confirmed or adopted, End when its
	// walltime is used up.
	Since, End job.Time
}

// Queued yields the waiting copies in queue order, local ones first where
// there are two queues. s must not change meanwhile.
func (s *Scheduler) Queued(yield func(QueuedCopy) bool) {
	s.settle()
	for _, q := range []*queue{&s.local, &s.remote} {
		for _, slot := range q.slot {
			if slot == gap {
				continue
			}
			r := &s.table.rows[slot]
			c := QueuedCopy{Copy: r.copy.copy(), NotBefore: r.notBefore, Guarantee: job.Never}
			c.Within = q == &s.local && int(r.position) < q.within
			if at, ok := s.guarantee(slot); ok {
				c.Guarantee = at
			}
			if !yield(c) {
				return
			}
		}
	}
}

// Aside yields the copies that are set aside, in no order; they lack the words of their
// requests. s must not change meanwhile.
func (s *Scheduler) Aside(yield func(job.Copy) bool) {
	if s.away == 0 {
		return
	}
	for slot := range s.table.rows {
		if r := &s.table.rows[slot]; r.state == aside && !yield(r.copy.copy()) {
			return
		}
	}
}

// Running yields the copies that hold processors in the order of their
// estimated end. s must not change meanwhile.
func (s *Scheduler) Running(yield func(RunningCopy) bool) {
	home, guests := s.run.items(), s.guests.run.items()
	for len(home)+len(guests) > 0 {
		from := &home
		if len(home) == 0 || len(guests) > 0 && s.endsBefore(&guests[0], &home[0]) {
			from = &guests
		}
		r := &s.table.rows[(*from)[0].slot]
		*from = (*from)[1:]
		if !yield(RunningCopy{r.copy.copy(), r.state == reserved, r.waits, r.leaving, r.since, r.end}) {
			return
		}
	}
}

// Guarantee returns the instant by which the queued copy id was promised to
// start at the last pass, if it owns a guarantee (spec 001 sections 2.1 and
// 2.2): the blocked head of the queue its t*, and under the conservative
// disciplines every copy within the guarantee depth its slot. Remote copies in a queue of their own have none.
func (s *Scheduler) Guarantee(id job.AttemptID) (job.Time, bool) {
	slot, ok := s.lookup(&id)
	if !ok || s.table.rows[slot].state != queued {
		return 0, false
	}
	return s.guarantee(slot)
}

// Behind reports whether id waits in the local queue behind the guarantee
// depth, so that the site promises nothing about it yet.
func (s *Scheduler) Behind(id job.AttemptID) bool {
	s.settle()
	slot, ok := s.lookup(&id)
	if !ok || s.table.rows[slot].state != queued {
		return false
	}
	r := &s.table.rows[slot]
	return s.queueOf(&r.copy) == &s.local && int(r.position) >= s.local.within
}

func (s *Scheduler) guarantee(slot int32) (job.Time, bool) {
	r := &s.table.rows[slot]
	q := s.queueOf(&r.copy)
	switch {
	case q == &s.remote || r.position < 0:
		return 0, false
	case s.cfg.Backfill.plans():
		at := q.plan[r.position]
		return at, at != job.Never
	default:
		return s.shadow, s.blocked == slot
	}
}

// NextWake returns the earliest instant from now on at which a Pass could
// start something although nothing else happened: events wait for their Pass,
// a postponement ends, or a slot of a conservative plan comes due. It may name
// an instant at which nothing starts after all. It is [job.Never] if there is
// no such instant, and while draining.
func (s *Scheduler) NextWake(now job.Time) job.Time {
	if s.draining {
		return job.Never
	}
	if s.stale || s.guests.stale || s.local.seen < len(s.local.slot) || s.remote.seen < len(s.remote.slot) ||
		len(s.local.late)+len(s.remote.late) > 0 {
		return now
	}
	if s.comesDue(now) {
		return now
	}
	wake := min(s.due, s.ages)
	if s.hidden > 0 {
		wake = min(wake, s.eligible)
	}
	return max(wake, now)
}

// Started reports whether id holds processors here.
func (s *Scheduler) Started(id job.AttemptID) bool {
	slot, ok := s.lookup(&id)
	return ok && s.table.rows[slot].state.holds() && !s.table.rows[slot].waits
}
