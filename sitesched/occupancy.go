package sitesched

import "kith/internal/job"

// What an attempt does to the processors: it takes them, keeps them for longer, gives them back.

// vacate frees the processors of the copy at slot.
func (s *Scheduler) vacate(now job.Time, slot int32) {
	r := &s.table.rows[slot]
	s.lift(slot)
	s.outgrown -= btoi(r.outgrown)
	if s.invisible(r) {
		s.goneGuest(r)
		return
	}
	if r.waits {
		s.stopWaiting(slot)
	}
	r.leaving, r.stays = false, false
	s.stale = true
	if r.end != now {
		s.breakLines()
	}
	if !s.cfg.Backfill.plans() {
		s.surfaceValid = false
		return
	}
	// A pass has seen it overdue, or over-committed: the surface holds a guess.
	if r.end <= s.passed || s.free-int64(r.charge) < 0 {
		s.surfaceValid = false
	}
	s.restore(now, r.end, r.charge)
}

func (s *Scheduler) forget(slot int32) {
	s.index.Delete(s.table.rows[slot].copy.id, s.table.name)
	s.table.release(slot)
}

// lift takes the copy at slot out of those that hold processors.
func (s *Scheduler) lift(slot int32) {
	r := &s.table.rows[slot]
	s.sums.run(r, -1)
	if s.invisible(r) {
		s.guests.run.remove(&s.table, r.end, slot)
		return
	}
	s.run.remove(&s.table, r.end, slot)
	s.free += int64(r.charge)
}

// occupy makes the copy at slot hold its processors from since on.
func (s *Scheduler) occupy(since job.Time, slot int32, st state) {
	r := &s.table.rows[slot]
	r.state, r.since = st, since
	r.end = since.Add(r.wall)
	s.sums.run(r, 1)
	if s.invisible(r) {
		s.guests.run.insert(&s.table, runItem{r.end, r.charge, slot})
		return
	}
	s.free -= int64(r.charge)
	s.run.insert(&s.table, runItem{r.end, r.charge, slot})
}

// confirm notes that the copy at slot runs since a time.
func (s *Scheduler) confirm(since job.Time, slot int32) {
	r := &s.table.rows[slot]
	r.state, r.unconfirmed = running, false
	planned, wall := r.end, walltime(&r.copy)
	if r.leaving && !s.invisible(r) { // see MakeWay
		wall = min(wall, max(planned.Sub(since), 1))
	}
	if r.leaving && s.staysBeyond(r, since.Add(wall), s.clock.Add(s.grace)) {
		s.stayed(r) // it was told before it ran
		wall = walltime(&r.copy)
	}
	if since.Add(wall) == planned {
		r.since, r.wall = since, wall
		return
	}
	// The walltime counts from the real start: the end moves back, or to the
	// front if less than the margin was used up.
	s.lift(slot)
	r.wall = wall
	s.occupy(since, slot, running)
	if s.invisible(r) {
		s.guests.stale = true
		return
	}
	s.stale, s.surfaceValid = true, false
	if r.end < planned {
		s.ended, s.compressed = true, false
	}
	s.breakLines()
}

func (s *Scheduler) postpone(now job.Time, slot int32, at job.Time) {
	r := &s.table.rows[slot]
	r.notBefore = at
	switch r.state {
	case reserved:
		s.vacate(now, slot)
		r.probe = false // its claim was not answered
	case aside:
		return
	default:
		s.dequeue(slot)
	}
	if at > now && !s.isAside(r) {
		s.hide(r)
	}
	s.admit(slot)
}

func (s *Scheduler) adopt(now job.Time, c *entry, since job.Time) {
	if slot, ok := s.lookup(&c.id); ok {
		switch s.table.rows[slot].state {
		case running:
			return
		case queued:
			s.dequeue(slot)
		case aside:
			s.away--
		default:
			s.vacate(now, slot)
		}
		s.forget(slot)
	}
	charge := s.chargeOf(c)
	slot := s.table.add(c, min(charge, s.cfg.Processors))
	r := &s.table.rows[slot]
	r.adopted, r.unconfirmed, r.outgrown = true, true, charge > s.cfg.Processors
	s.outgrown += btoi(r.outgrown)
	r.wall = s.planned(c) // it may have begun and not yet started
	s.index.Put(slot, s.table.name)
	s.occupy(since, slot, running)
	if s.invisible(r) {
		s.guests.stale = true
		return
	}
	s.stale, s.surfaceValid = true, false
	s.breakLines()
}

// start reserves the processors of the copy at place i of q.
func (s *Scheduler) start(now job.Time, q *queue, i int) {
	slot := q.slot[i]
	r := &s.table.rows[slot]
	s.sums.queue(r, -1)
	s.leaveLine(now, q, i)
	q.remove(i)
	if r.copy.elder {
		q.flagged--
	}
	s.madeWay(r)
	s.occupy(now, slot, reserved)
	if s.cfg.Queues == DualPreempt && !r.copy.remote {
		s.wait(slot) // until there is room
		return
	}
	s.note(slot)
}

// note notes that the copy at slot starts.
func (s *Scheduler) note(slot int32) {
	switch s.notes {
	case noteNames:
		s.starts = append(s.starts, s.table.name(slot))
		s.recent = slot // it is asked for and confirmed next
	case noteSlots:
		s.begun = append(s.begun, slot)
	case noteNothing:
	}
}
