package sitesched

import (
	"cmp"
	"slices"
	"time"

	"kith/internal/job"
)

// Under DualPreempt local jobs are scheduled as if there were no guests. So what holds
// processors is kept apart: run, free, t*, the surface and the local queue are of local copies
// only, and the local pass is the one of a site without guests, at the same instants. Guests are
// in a set of their own, and start where both leave room.
//
// A local copy that has its turn holds its processors in the schedule from that instant on. If
// guests are on them, it waits until they have left: as many are told to leave as are too many
// beside what local jobs hold. What is told stays told. So the processors of guests that stay and
// of local copies never exceed P, and each local copy that waits starts once those have left that
// were told by then. Where a guest runs that cannot leave, that holds once it has ended.

// guests is what the scheduler knows of guests that local jobs do not see.
type guests struct {
	run runSet // those that hold processors
	// stale says that the remote queue must be looked at again.
	stale bool
	// leaving is the charge of those that were told to leave.
	leaving int64
	// staying is the charge of those that could not be told, when they were last lined up.
	staying int64
	// waiting are the slots of local copies that wait for room, in the order of their turns, and
	// waitCharge is their charge.
	waiting    []int32
	waitCharge int64
	told       []job.AttemptID // by the last pass
	order      []leaver        // scratch
}

// leaver is a guest that might have to leave.
type leaver struct {
	slot   int32
	charge int32
	level  uint8
	work   wide // what would be lost
}

// Evicted returns the guests that the last Pass has told to leave, under [DualPreempt]: local
// jobs need their processors, and start in the first Pass after enough guests have left
// ([Scheduler.Finish], or Withdraw or Postpone of one whose claim is under way). Each is told once, also after
// it was confirmed; after a restart guests that run are told anew. The slice is valid until the next Pass.
//
// Guests of lower levels, whose rank is higher, leave first, of one level those that have done the
// least work, of equal ones the youngest. None is
// told without whom it would do as well. One that runs and whose job cannot go on elsewhere
// ([job.Copy].Stays) is told only if it ends within the grace ([Scheduler.SetGrace]); nobody is
// told for a local job that has to wait for such a one.
func (s *Scheduler) Evicted() []job.AttemptID { return s.guests.told }

// SetGrace says how long guests take to leave that are told to.
func (s *Scheduler) SetGrace(grace time.Duration) { s.grace = grace }

// Stays says that a guest that runs does not leave before its end, though its copy did not say so. If
// it was told to, the next Pass or MakeWay chooses others.
func (s *Scheduler) Stays(now job.Time, id job.AttemptID) {
	s.clock = now
	slot, ok := s.find(&id)
	if !ok || !s.table.rows[slot].state.holds() {
		return
	}
	r := &s.table.rows[slot]
	r.stays = true
	if !r.leaving {
		return
	}
	s.stayed(r)
	if wall := walltime(&r.copy); r.state == running && r.wall != wall { // it was planned to be gone, see MakeWay
		s.lift(slot)
		r.wall = wall
		s.occupy(r.since, slot, running)
		s.stale, s.surfaceValid = true, false
		s.breakLines()
	}
}

// stayed notes that a guest that was told to leave does not.
func (s *Scheduler) stayed(r *row) {
	r.leaving = false
	if s.invisible(r) {
		s.guests.leaving -= int64(r.charge)
		s.guests.stale = true
	}
}

// staysBeyond reports whether a guest that ends at a time cannot be gone by an instant.
func (s *Scheduler) staysBeyond(r *row, end, until job.Time) bool { return r.copy.stays && end > until }

// invisible reports whether r is a copy that local jobs do not see.
func (s *Scheduler) invisible(r *row) bool { return s.cfg.Queues == DualPreempt && r.copy.remote }

// goneGuest notes that a guest holds its processors no more.
func (s *Scheduler) goneGuest(r *row) {
	if r.leaving {
		s.guests.leaving -= int64(r.charge)
	}
	r.leaving, r.stays = false, false
	s.guests.stale = true
}

// wait notes that the local copy at slot has its turn.
func (s *Scheduler) wait(slot int32) {
	r := &s.table.rows[slot]
	r.waits = true
	s.guests.waiting = append(s.guests.waiting, slot)
	s.guests.waitCharge += int64(r.charge)
}

// stopWaiting notes that a local copy that has its turn leaves before it has started.
func (s *Scheduler) stopWaiting(slot int32) {
	r := &s.table.rows[slot]
	r.waits = false
	s.guests.waiting = slices.DeleteFunc(s.guests.waiting, func(w int32) bool { return w == slot })
	s.guests.waitCharge -= int64(r.charge)
	s.guests.stale = true
}

// waiting appends the names of local copies that wait for guests to leave.
func (s *Scheduler) waiting(list []job.AttemptID) []job.AttemptID {
	for _, slot := range s.guests.waiting {
		list = append(list, s.table.name(slot))
	}
	return list
}

// room returns the processors on which nothing is: below zero only through Adopt.
func (s *Scheduler) room() int64 {
	free := s.free + s.guests.waitCharge
	if s.cfg.Queues == DualPreempt {
		free -= s.sums.guestCharge
	}
	return free
}

// passPreempting is pass where local jobs do not see guests.
func (s *Scheduler) passPreempting(now job.Time) {
	g := &s.guests
	// A pass that only guests are the reason of is none for local jobs.
	home := s.stale || s.local.seen < len(s.local.slot) || now >= s.due || now < s.passed ||
		s.cfg.Backfill.plans() && !s.surfaceValid // no local job has come yet
	if home {
		s.passHome(now)
	}
	s.evict(now)
	s.settleIn(now)
	if home || g.stale || s.remote.seen < len(s.remote.slot) || now >= s.ages {
		if home || g.stale || now >= s.ages {
			s.remote.seen = 0
		}
		if s.ages = job.Never; s.remote.live > 0 {
			s.passGuests(now)
		}
		s.remote.tidy(&s.table)
		s.remote.seen = len(s.remote.slot)
	}
	g.stale = false
}

// passHome is the pass of the local queue, as it is on a site without guests.
func (s *Scheduler) passHome(now job.Time) {
	if s.run.overdue(now) || now < s.passed {
		s.disturb()
	}
	if s.stale {
		s.blocked = gap
		s.local.seen = 0
	}
	s.passLocal(now)
	s.local.tidy(&s.table)
	s.local.seen = len(s.local.slot)
	s.passed = now
	s.stale, s.ended = false, false
}

// passGuests starts remote copies beside what runs and what the scope protects.
func (s *Scheduler) passGuests(now job.Time) {
	if s.cfg.Patience > 0 && s.passElders(now) {
		return
	}
	// What is really free bounds it, too: the plan of local jobs may be one of before some have outlived their estimates.
	q, f, w, room := &s.remote, &s.scratch, &s.admission, min(s.guestRoom(), s.freeForGuests())
	i := q.nextFit(q.seen, room, room, 0)
	if i < 0 {
		return
	}
	s.promised(now, f, s.protectsPlan())
	for f.window(now, w); w.free() > 0; {
		if i = q.nextWithin(i, now, w, room); i < 0 {
			return
		}
		charge, end := q.charge[i], now.Add(q.wall[i])
		s.start(now, q, i)
		room -= charge
		w.take(charge, end)
	}
}

// addGuests takes the processors of guests that local jobs do not see out of f.
func (s *Scheduler) addGuests(now job.Time, f *profile) {
	for _, it := range s.guests.run.items() {
		f.change(now, max(it.end, now.Add(overdueGrace)), -it.charge)
	}
}

// settleIn starts the local copies that wait, as far as there is room, in the order of their turns:
// one that overtook a wider one would take what guests have left for that, which would wait for
// those that leave for the other.
func (s *Scheduler) settleIn(now job.Time) {
	g := &s.guests
	room, kept := s.room(), g.waiting[:0]
	for i, slot := range g.waiting {
		r := &s.table.rows[slot]
		if int64(r.charge) > room {
			kept = append(kept, g.waiting[i:]...)
			break
		}
		room -= int64(r.charge)
		g.waitCharge -= int64(r.charge)
		r.waits = false
		if s.note(slot); s.notes == noteNothing {
			s.confirm(now, slot) // nobody else will
		}
	}
	g.waiting = kept
}

// evict tells guests to leave, if more stay than local jobs leave room for. In a simulation they are gone at once.
func (s *Scheduler) evict(now job.Time) {
	g := &s.guests
	simulated := s.notes != noteNames
	if simulated && g.leaving > 0 {
		s.dismiss(now)
	}
	excess := s.sums.guestCharge - g.leaving - max(s.free, 0)
	if excess <= 0 {
		return
	}
	s.lineUpLeavers(now, now.Add(s.grace))
	if excess -= s.inVain(); excess <= 0 {
		return
	}
	n, spare := 0, -excess
	for ; spare < 0 && n < len(g.order); n++ {
		spare += int64(g.order[n].charge)
	}
	chosen := g.order[:n]
	for i := n - 1; i >= 0; i-- { // those with the most to lose first
		if c := int64(chosen[i].charge); c <= spare {
			spare -= c
			chosen = slices.Delete(chosen, i, i+1)
		}
	}
	for _, l := range chosen {
		r := &s.table.rows[l.slot]
		r.leaving = true
		g.leaving += int64(r.charge)
		if !simulated {
			g.told = append(g.told, r.copy.id)
		}
	}
	if simulated {
		s.dismiss(now)
	}
}

// inVain returns the charge of local copies that wait and would wait as long if all guests that can
// were gone: the first one for which those that stay leave no room, and those behind it.
func (s *Scheduler) inVain() int64 {
	g := &s.guests
	if g.staying == 0 {
		return 0
	}
	room, left := s.free+g.waitCharge-g.staying, g.waitCharge
	for _, slot := range g.waiting {
		c := int64(s.table.rows[slot].charge)
		if c > room {
			break
		}
		room, left = room-c, left-c
	}
	return left
}

// dismiss makes the guests that were told to leave gone.
func (s *Scheduler) dismiss(now job.Time) {
	g := &s.guests
	g.order = g.order[:0]
	for _, it := range g.run.items() {
		if s.table.rows[it.slot].leaving {
			g.order = append(g.order, leaver{slot: it.slot})
		}
	}
	for _, l := range g.order {
		s.vacate(now, l.slot)
		s.table.rows[l.slot].state = vacant // so that nothing looks at it
	}
}

// lineUpLeavers puts the guests that were not told to leave, and can be gone by an instant, into the
// order in which they would have to.
func (s *Scheduler) lineUpLeavers(now, until job.Time) {
	g, run := &s.guests, &s.run
	if s.cfg.Queues == DualPreempt {
		run = &g.run
	}
	g.order, g.staying = g.order[:0], 0
	for _, it := range run.items() {
		r := &s.table.rows[it.slot]
		switch {
		case r.leaving || !r.copy.remote:
			continue
		case r.stays || r.state == running && s.staysBeyond(r, r.end, until):
			g.staying += int64(r.charge)
			continue
		}
		l := leaver{slot: it.slot, charge: r.charge, level: r.copy.level}
		if r.state == running {
			l.work.addProduct(int64(r.charge), int64(max(now-r.since, 0)))
		}
		g.order = append(g.order, l)
	}
	slices.SortFunc(g.order, func(a, b leaver) int {
		return cmp.Or(
			-cmp.Compare(a.level, b.level), cmp.Compare(a.work.hi, b.work.hi), cmp.Compare(a.work.lo, b.work.lo),
			-cmp.Compare(s.table.rows[a.slot].since, s.table.rows[b.slot].since),
			s.table.rows[a.slot].copy.id.Compare(s.table.rows[b.slot].copy.id))
	})
}

// endsBefore is the order of what holds processors, also between two sets.
func (s *Scheduler) endsBefore(a, b *runItem) bool {
	return a.end < b.end || a.end == b.end && s.table.name(a.slot).Compare(s.table.name(b.slot)) < 0
}

func (g *guests) copyFrom(o *guests) {
	p := *g
	*g = *o
	g.run = p.run
	g.run.copyFrom(&o.run)
	g.waiting, g.told, g.order = append(p.waiting[:0], o.waiting...), p.told[:0], p.order[:0]
}
