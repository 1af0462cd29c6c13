package sitesched

import "kith/internal/job"

// A remote copy is an elder once it has waited for Config.Patience, and at once
// if its origin can never run it (job.Copy.Elder). Beside a remote queue in which
// nothing blocks, any stream of narrow copies could keep a wide one waiting for
// ever. So the first elder that cannot start owns a reservation, as the head of an
// EASY queue does: the earliest hole for it beside what runs and what is promised
// to local jobs. Remote copies behind it start only if it keeps its hole; those
// ahead of it, which came before, and all local jobs take no notice.
//
// The reservation stands as long as local jobs leave it alone and nothing runs
// longer than its estimate. It is made anew in each pass: while only remote copies
// arrive it comes out the same, so refusals go on to only harden. Where local jobs
// move it back, or another copy gets it, the whole remote queue is looked at again.

// nextElder returns the place of the first elder at or after place from, -1 if
// there is none. The queue is in the order of arrival, so that those who have
// waited long enough are at its front.
func (s *Scheduler) nextElder(now job.Time, from int) int {
	q := &s.remote
	i := q.next(from)
	if i < 0 {
		return -1
	}
	if at := s.patient(i); at <= now {
		return i
	}
	return q.nextElder(i)
}

// patient returns when the copy at place i of the remote queue has waited for
// long enough.
func (s *Scheduler) patient(i int) job.Time {
	return s.table.rows[s.remote.slot[i]].copy.arrival.Add(s.cfg.Patience)
}

// passElders is the remote queue's turn while it has elders; false if it has none.
func (s *Scheduler) passElders(now job.Time) bool {
	q := &s.remote
	e := s.nextElder(now, 0)
	if e < 0 {
		s.elder = gap
		return false
	}
	if s.elder != gap && s.elder != q.slot[e] {
		q.seen = 0 // another one had the reservation
	}
	if s.elder = q.slot[e]; s.patient(e) > now {
		s.ages = s.patient(q.next(0)) // then that one gets the reservation
	}
	i, room := q.seen, min(s.guestRoom(), s.freeForGuests())
	if q.nextFit(i, room, room, 0) < 0 {
		return true
	}
	f, w, around := &s.scratch, &s.admission, s.protectsPlan()
	s.promised(now, f, around)
	f.window(now, w)
	for looking := true; w.free() > 0; {
		j := q.nextWithin(i, now, w, room)
		if looking && (j < 0 || j > e || e < i) {
			// The elder cannot start now. From here on its hole is taken.
			f.place(f.earliest(now, q.charge[e], q.wall[e], job.Never), q.charge[e], q.wall[e])
			f.window(now, w)
			i, looking = max(i, e+1), false
			continue
		}
		if j < 0 {
			break
		}
		charge, end := q.charge[j], now.Add(q.wall[j])
		s.startBeside(now, j, around)
		w.take(charge, end)
		room -= charge
		if i = j; !looking {
			continue
		}
		f.change(now, end, -charge)
		if j == e {
			s.elder = gap
			if e = s.nextElder(now, j); e >= 0 {
				s.elder = q.slot[e]
			}
			looking = e >= 0
		}
	}
	return true
}

// protectsPlan reports whether remote copies have to leave the plan of local
// jobs alone, and not the head only.
func (s *Scheduler) protectsPlan() bool {
	return s.cfg.Backfill.plans() || s.cfg.Scope == ScopeAll && s.blocked != gap
}

// promised makes f hold what runs, and what a remote start must leave alone: the
// plan of local jobs, or t* of the local head.
func (s *Scheduler) promised(now job.Time, f *profile, around bool) {
	if around {
		s.planLocal(now)
		f.copyFrom(&s.surface)
		s.addGuests(now, f)
		return
	}
	if s.cfg.Queues == DualPreempt {
		f.buildBoth(now, s.free-s.sums.guestCharge, &s.run, &s.guests.run)
	} else {
		f.build(now, s.free, &s.run)
	}
	if s.blocked != gap {
		head := &s.table.rows[s.blocked]
		f.place(s.shadow, head.charge, head.wall)
	}
}

// startBeside starts the remote copy at place j, which local jobs have room for.
func (s *Scheduler) startBeside(now job.Time, j int, around bool) {
	q := &s.remote
	charge, end := q.charge[j], now.Add(q.wall[j])
	s.start(now, q, j)
	if s.cfg.Queues == DualPreempt {
		return // what is promised to local jobs knows of no guest
	}
	if s.blocked != gap && end > s.shadow {
		s.extra -= charge
	}
	if around {
		s.surface.change(now, end, -charge)
	} else {
		s.surfaceValid = false
	}
}
