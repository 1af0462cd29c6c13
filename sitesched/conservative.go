package sitesched

import (
	"time"

	"kith/internal/job"
)

// passPlanned is the pass of the two conservative disciplines over the local
// queue: every copy within the guarantee depth has a slot in the surface, and
// starts when it comes due. What waits behind them fits around.
func (s *Scheduler) passPlanned(now job.Time) {
	q := &s.local
	s.surface.trim(now)
	if s.cfg.Backfill == ConservativeReplan {
		if s.stale || !s.surfaceValid {
			s.replan(now)
		}
	} else {
		s.amend(now)
	}
	for again := true; again; {
		if s.placeArrivals(now, q) || s.due <= now {
			s.startDue(now)
		}
		again = q.planned < q.within // those that started let others move up
	}
	if q.within < len(q.slot) {
		s.fitAround(now, q, max(q.seen, q.within))
	}
}

// amend brings the standing plan up to now: it is mended where estimates were
// broken, and compressed where something has ended.
func (s *Scheduler) amend(now job.Time) {
	valid := s.surfaceValid && !s.run.overdue(now) && s.free >= 0
	// On time, what is due starts later, in one go with what moves up. If
	// things slipped, it goes before the plan is mended.
	if (s.due < now || s.due == now && !valid) && s.startDue(now) {
		valid = false
	}
	if !valid {
		s.repair(now)
	}
	if s.ended && !s.compressed {
		s.compress(now)
	}
}

// startDue starts, in queue order, the copies whose slot has come, as far as
// their processors are really free. It reports whether the surface no longer
// agrees with what runs: a pass that comes late moves the end of what it
// starts, and a copy that cannot start has missed its slot.
func (s *Scheduler) startDue(now job.Time) (slipped bool) {
	q := &s.local
	q.scanned += int64(q.within >> groupBits)
	s.due = job.Never
	for i := q.first; i < q.within; i++ {
		at := q.plan[i]
		if at > now {
			s.due = min(s.due, at)
			continue
		}
		if int64(q.charge[i]) > s.free {
			s.due, slipped = min(s.due, at), true
			continue
		}
		slipped = slipped || at < now
		s.start(now, q, i)
	}
	return slipped
}

// comesDue reports whether some slot lies at now or before. The first slot may
// have been given up since it was noted.
func (s *Scheduler) comesDue(now job.Time) bool {
	if s.due <= now {
		s.due = job.Never
		for _, at := range s.local.plan[:s.local.within] {
			s.due = min(s.due, at)
		}
	}
	return s.due <= now
}

// repair makes the surface anew and keeps every slot that is still possible,
// beside what runs and the copies ahead. The others move to their earliest
// hole. It is needed when the estimates were broken: a copy is overdue, was
// confirmed late or adopted, or a due copy started late.
func (s *Scheduler) repair(now job.Time) {
	q := &s.local
	s.surface.build(now, s.free, &s.run)
	s.surfaceValid, s.compressed = true, false
	s.due = job.Never
	for i := q.first; i < q.within; i++ {
		if q.plan[i] == job.Never {
			continue
		}
		if q.plan[i] <= now || !s.surface.fits(q.plan[i], q.charge[i], q.wall[i]) {
			q.plan[i] = s.surface.earliest(now, q.charge[i], q.wall[i], job.Never)
		}
		s.surface.place(q.plan[i], q.charge[i], q.wall[i])
		s.due = min(s.due, q.plan[i])
	}
}

// compress moves every queued copy, in queue order, to its earliest hole with
// all others in place. No slot moves back. Once a whole round has moved
// nothing, there is no need for another before processors are given back.
func (s *Scheduler) compress(now job.Time) {
	q := &s.local
	s.compressed = true
	for i := q.first; i < q.within; i++ {
		old := q.plan[i]
		if old == job.Never || old <= now {
			continue
		}
		at := s.surface.earliest(now, q.charge[i], q.wall[i], old)
		if at >= old {
			continue
		}
		s.compressed = false
		s.surface.change(old, old.Add(q.wall[i]), q.charge[i])
		s.surface.place(at, q.charge[i], q.wall[i])
		q.plan[i] = at
		s.due = min(s.due, at)
	}
}

// replan forgets all slots, so that all copies are placed like arrivals.
func (s *Scheduler) replan(now job.Time) {
	q := &s.local
	s.surface.build(now, s.free, &s.run)
	s.surfaceValid = true
	s.due = job.Never
	for i := range q.within {
		q.plan[i] = job.Never
	}
	q.seen = 0
}

// placeArrivals gives the copies within the guarantee depth that have no slot
// their earliest hole, in queue order, and reports whether one of them can
// start now.
func (s *Scheduler) placeArrivals(now job.Time, q *queue) (due bool) {
	for i := q.next(min(q.seen, q.planned)); i >= 0 && i < q.within; i = q.next(i + 1) {
		if q.plan[i] != job.Never {
			continue
		}
		at := s.surface.earliest(now, q.charge[i], q.wall[i], job.Never)
		s.surface.place(at, q.charge[i], q.wall[i])
		q.plan[i] = at
		s.due = min(s.due, at)
		due = due || at <= now
	}
	q.planned = q.within
	return due
}

// passReplanned is the conservative pass over a queue without guarantees: it
// plans all of q afresh beside what runs and starts what comes first.
func (s *Scheduler) passReplanned(now job.Time, q *queue) {
	f := &s.scratch
	f.build(now, s.free, &s.run)
	for i := q.next(0); i >= 0 && s.free > 0; i = q.next(i + 1) {
		charge, wall := q.charge[i], q.wall[i]
		at := f.earliest(now, charge, wall, job.Never)
		f.place(at, charge, wall)
		if at > now {
			continue
		}
		s.start(now, q, i)
		// With no local job waiting, the surface is what runs.
		s.surface.change(now, now.Add(wall), -charge)
	}
}

// planLocal makes the surface hold the plan of the queued local jobs within the
// guarantee depth, each in its earliest hole in queue order (spec 001 section
// 2.2). The conservative disciplines always have it; for the others it is a
// cache, to which arrivals are added.
func (s *Scheduler) planLocal(now job.Time) {
	if s.cfg.Backfill.plans() {
		return
	}
	q := &s.local
	if !s.surfaceValid {
		s.surface.build(now, s.free, &s.run)
		q.planned = 0
		s.floor = now
		s.surfaceValid = true
	}
	s.floor = s.planQueue(&s.surface, now, s.floor, q, q.planned, q.within)
	q.planned = q.within
}

// planQueue places the copies of q from place i up to place end in f. It takes
// and returns the floor, see [Scheduler.slotIn].
func (s *Scheduler) planQueue(f *profile, now, floor job.Time, q *queue, i, end int) job.Time {
	for i = q.next(i); i >= 0 && i < end; i = q.next(i + 1) {
		at := s.slotIn(f, now, floor, q, q.charge[i], q.wall[i])
		if at == job.Never {
			continue // more is kept free than when it came
		}
		floor = at
		f.place(floor, q.charge[i], q.wall[i])
		if s.limitsGuests(q) {
			s.allotment.place(floor, q.charge[i], q.wall[i])
		}
	}
	return floor
}

// slotIn returns the earliest start in f of one more copy of q. Where nothing
// overtakes, that is not before the floor, the start of the copy ahead.
func (s *Scheduler) slotIn(
	f *profile, now, floor job.Time, q *queue, charge int32, wall time.Duration,
) job.Time {
	from := now
	if s.cfg.Backfill == NoBackfill && (q == &s.local || s.cfg.Queues == DualStrict) {
		from = max(now, floor)
	}
	if s.limitsGuests(q) {
		return s.slotWithin(f, from, charge, wall)
	}
	return f.earliest(from, charge, wall, job.Never)
}

// limitsGuests reports whether the copies of q may have but a part of the processors. Whoever
// places them calls [Scheduler.planRoom] first.
func (s *Scheduler) limitsGuests(q *queue) bool { return s.cfg.KeepFree > 0 && q == &s.remote }

// planRoom makes the surface of what guests may have beside those that run.
func (s *Scheduler) planRoom(now job.Time) {
	s.allotted.buf, s.allotted.from = s.allotted.buf[:0], 0
	run := &s.run
	if s.cfg.Queues == DualPreempt {
		run = &s.guests.run
	}
	for _, it := range run.items() {
		if s.table.rows[it.slot].copy.remote {
			s.allotted.buf = append(s.allotted.buf, it)
		}
	}
	s.allotment.build(now, int64(s.cfg.Processors-s.cfg.KeepFree)-s.sums.guestCharge, &s.allotted)
}

// slotWithin returns the earliest start in f of a guest that has room, too.
func (s *Scheduler) slotWithin(f *profile, from job.Time, charge int32, wall time.Duration) job.Time {
	if charge > s.cfg.Processors-s.cfg.KeepFree {
		return job.Never
	}
	for {
		at := f.earliest(from, charge, wall, job.Never)
		if at == job.Never {
			return at
		}
		if from = s.allotment.earliest(at, charge, wall, job.Never); from == at || from == job.Never {
			return from
		}
	}
}
