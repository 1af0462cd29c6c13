package sitesched

import (
	"math"

	"kith/internal/job"
)

// pass runs one scheduling pass over both queues and notes what it starts.
//
// Refusals only harden while nothing but arrivals happens: free processors do
// not grow, t* and x stay, and the time left until t* shrinks. So such a pass
// looks at the arrivals alone, and every other one (stale) looks at all.
func (s *Scheduler) pass(now job.Time) {
	s.starts, s.moved, s.guests.told = s.starts[:0], gap, s.guests.told[:0]
	if s.draining {
		return
	}
	s.gather(now)
	if s.cfg.Queues == DualPreempt {
		s.passPreempting(now)
		return
	}
	if s.run.overdue(now) || now < s.passed {
		// What is overdue is expected a second from now, wherever now is.
		s.disturb()
	}
	if !s.stale && s.local.seen == len(s.local.slot) && s.remote.seen == len(s.remote.slot) && now < s.due && now < s.ages {
		return
	}
	if s.stale {
		s.blocked = gap
		s.local.seen, s.remote.seen = 0, 0
	}
	if s.elder != gap && (s.local.seen < len(s.local.slot) || now >= s.due) {
		s.remote.seen = 0 // local jobs may move its reservation back, and make room for others
	}
	waiting := s.local.live
	s.passLocal(now)
	if s.local.live < waiting && s.cfg.Scope == ScopeAll && !s.cfg.Backfill.plans() {
		// A local job that overtakes others may push their plans back. What
		// stood in the way of a remote copy may be gone.
		s.remote.seen = 0
	}
	if s.ages = job.Never; s.remote.live > 0 && s.wanted == 0 {
		guests := s.remote.live
		if s.passRemote(now); s.remote.live < guests && s.notes == noteNames {
			s.moved = s.promiseKept(now)
		}
	}
	s.local.tidy(&s.table)
	s.remote.tidy(&s.table)
	s.local.seen, s.remote.seen = len(s.local.slot), len(s.remote.slot)
	s.passed = now
	s.stale, s.ended = false, false
}

// gather brings the queues up to now: copies that came out of order are put
// in their places, and postponements that are over end.
func (s *Scheduler) gather(now job.Time) {
	s.settle()
	if s.eligible <= now {
		s.reveal(now)
	}
}

// disturb notes that more changed than what arrivals at the end of a queue
// change.
func (s *Scheduler) disturb() {
	s.stale = true
	s.breakLines()
	if !s.cfg.Backfill.plans() {
		s.surfaceValid = false // the cached plan
	}
}

// settle merges the copies that came out of order.
func (s *Scheduler) settle() {
	if len(s.remote.late) > 0 {
		s.remote.settle(&s.table)
		s.disturbGuests()
	}
	if len(s.local.late) > 0 {
		s.local.settle(&s.table)
		s.disturb()
	}
}

// disturbGuests is disturb for what happens in the remote queue.
func (s *Scheduler) disturbGuests() {
	if s.staleGuests(); s.cfg.Queues != DualPreempt {
		s.disturb()
	}
}

// staleGuests notes that the remote queue must be looked at again.
func (s *Scheduler) staleGuests() {
	if s.cfg.Queues == DualPreempt {
		s.guests.stale = true // of which local jobs know nothing
	} else {
		s.stale = true
	}
}

// reveal makes postponed copies eligible whose time has come.
func (s *Scheduler) reveal(now job.Time) {
	s.eligible = job.Never
	if s.hidden == 0 {
		return
	}
	for _, q := range []*queue{&s.local, &s.remote} {
		for i, slot := range q.slot {
			if slot == gap || !s.table.rows[slot].hidden {
				continue
			}
			r := &s.table.rows[slot]
			if r.notBefore > now {
				s.eligible = min(s.eligible, r.notBefore)
				continue
			}
			r.hidden = false
			s.hidden--
			q.put(&s.table, i, slot)
			q.changes++
			if q == &s.remote {
				s.disturbGuests()
			} else {
				s.disturb()
			}
		}
	}
}

// passLocal runs the discipline over the local queue, step 1 of spec 001
// section 2.2: local jobs see every hole before a remote copy does. With one
// queue this is all there is.
func (s *Scheduler) passLocal(now job.Time) {
	switch s.cfg.Backfill {
	case NoBackfill:
		s.passFCFS(now, &s.local)
	case EASY:
		s.passEASY(now, &s.local)
	default:
		s.passPlanned(now)
	}
}

// passRemote offers to the remote queue what the local one leaves.
func (s *Scheduler) passRemote(now job.Time) {
	switch {
	case s.cfg.Queues == DualStrict:
		s.passStrict(now)
	case s.cfg.Patience > 0 && s.passElders(now):
	case s.cfg.Backfill.plans() || s.cfg.Scope == ScopeAll && s.blocked != gap:
		s.passAround(now)
	default:
		s.passBeside(now)
	}
}

// passStrict runs the discipline over the remote queue if no local job waits
// (spec 004 section 1).
func (s *Scheduler) passStrict(now job.Time) {
	if s.local.next(0) >= 0 {
		return
	}
	switch s.cfg.Backfill {
	case NoBackfill:
		s.passFCFS(now, &s.remote)
	case EASY:
		s.passEASY(now, &s.remote)
	default:
		s.passReplanned(now, &s.remote)
	}
}

// passBeside starts remote copies that leave t* of the local head alone
// (spec 001 section 2.2, scope head). The remote queue never blocks: whatever
// fits may go.
func (s *Scheduler) passBeside(now job.Time) {
	shadow, extra := job.Never, int32(math.MaxInt32)
	if s.blocked != gap {
		shadow, extra = s.shadow, s.extra
	}
	extra = s.backfill(now, &s.remote, s.remote.seen, min(s.freeNow(), s.guestRoom()), shadow, extra)
	if s.blocked != gap {
		s.extra = extra
	}
}

// passAround starts remote copies that fit around the plan of the queued local
// jobs within the guarantee depth (spec 001 section 2.2, scope all, and
// conservative guarantees).
func (s *Scheduler) passAround(now job.Time) {
	s.fitAround(now, &s.remote, s.remote.seen)
}

// fitAround starts the copies of q from place i on that fit around what the
// surface holds.
func (s *Scheduler) fitAround(now job.Time, q *queue, i int) {
	room := int32(math.MaxInt32)
	if q == &s.remote {
		room = s.guestRoom()
	}
	free := min(s.freeNow(), room)
	if i = q.nextFit(i, free, free, 0); i < 0 {
		return
	}
	s.planLocal(now)
	w := &s.admission
	s.surface.window(now, w)
	for w.free() > 0 {
		if i = q.nextWithin(i, now, w, room); i < 0 {
			return
		}
		room -= q.charge[i]
		charge, end := q.charge[i], now.Add(q.wall[i])
		s.start(now, q, i)
		w.take(charge, end)
		// The plan is as if it had been made with this copy running.
		s.surface.change(now, end, -charge)
		if s.blocked != gap && end > s.shadow {
			s.extra -= charge
		}
	}
}

// guestRoom returns how many more processors remote copies may have.
func (s *Scheduler) guestRoom() int32 {
	if s.cfg.KeepFree == 0 {
		return math.MaxInt32
	}
	return int32(max(int64(s.cfg.Processors-s.cfg.KeepFree)-s.sums.guestCharge, 0)) // at most P
}

// RefuseGuest says why a remote copy of a request could never start here that a local one
// could, [job.NoReason] if it could.
func (s *Scheduler) RefuseGuest(r *job.Request) job.Reason {
	if s.cfg.KeepFree > 0 && s.cfg.Charge(r) > s.cfg.Processors-s.cfg.KeepFree {
		return job.KeptFree
	}
	return job.NoReason
}

// freeNow returns the processors that are free for local jobs, none if the site is over-committed.
func (s *Scheduler) freeNow() int32 {
	return int32(max(s.free, 0)) // at most P
}

// freeForGuests returns the processors that are free for remote copies.
func (s *Scheduler) freeForGuests() int32 {
	free := s.free
	if s.cfg.Queues == DualPreempt {
		free -= s.sums.guestCharge
	}
	return int32(max(free, 0)) // at most P
}
