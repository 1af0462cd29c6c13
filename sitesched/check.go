package sitesched

import (
	"cmp"
	"fmt"

	"kith/internal/job"
)

// Check verifies the invariants of s from scratch and returns the first one
// that is broken, or nil. It is meant for tests and simulations: it costs far
// more than a pass.
func (s *Scheduler) Check() error {
	for _, check := range []func() error{s.checkTable, s.checkSums, s.checkQueues, s.checkRun, s.checkGuests, s.checkSurface} {
		if err := check(); err != nil {
			return err
		}
	}
	return nil
}

// checkTable compares the index with the rows.
func (s *Scheduler) checkTable() error {
	used, away := 0, 0
	for slot := range s.table.rows {
		r := &s.table.rows[slot]
		if r.state == vacant {
			continue
		}
		used++
		if r.state == aside {
			away++
		}
		if s.isAside(r) != (r.state == aside) && !r.state.holds() || r.state == aside && r.hidden {
			return fmt.Errorf("%v is in state %d, its origin set aside: %v", r.copy.id, r.state, s.aside[r.copy.id.Job.Origin])
		}
		if r.charge < 1 || r.charge > s.cfg.Processors {
			return fmt.Errorf("%v is charged %d processors of %d", r.copy.id, r.charge, s.cfg.Processors)
		}
	}
	holding := len(s.run.items()) + len(s.guests.run.items())
	if used != s.index.Len() || used != s.local.live+s.remote.live+holding+s.away || away != s.away ||
		used+len(s.table.vacant) != len(s.table.rows) {
		return fmt.Errorf("%d copies, but %d indexed, %d+%d queued, %d running, %d aside of %d, %d of %d rows vacant", used, s.index.Len(),
			s.local.live, s.remote.live, holding, s.away, away, len(s.table.vacant), len(s.table.rows))
	}
	return s.checkIndex()
}

// checkIndex compares the index, which has as many slots as are used, with the rows: each
// slot is there once. That it is found by its name is asked of one only, as that costs more than
// all the rest; package hashed is tested for it.
func (s *Scheduler) checkIndex() error {
	s.indexed = append(s.indexed[:0], make([]bool, len(s.table.rows))...)
	one := int32(gap)
	for slot := range s.index.All {
		if one = slot; s.table.rows[slot].state == vacant || s.indexed[slot] {
			return fmt.Errorf("the index has slot %d, which is vacant or there twice: %v", slot, s.indexed[slot])
		}
		s.indexed[slot] = true
	}
	if one == gap {
		return nil
	}
	if at, ok := s.lookup(&s.table.rows[one].copy.id); !ok || at != one {
		return fmt.Errorf("%v lies in slot %d, the index says %d, %v", s.table.rows[one].copy.id, one, at, ok)
	}
	return nil
}

// checkSums recomputes all totals, and with them that no processor is used twice (S6).
func (s *Scheduler) checkSums() error {
	var want sums
	adopted, hidden, outgrown := 0, 0, 0
	for i := range s.table.rows {
		switch r := &s.table.rows[i]; r.state {
		case queued:
			want.queue(r, 1)
			if r.hidden {
				hidden++
				if r.notBefore < s.eligible {
					return fmt.Errorf("%v is eligible at %d, before %d", r.copy.id, r.notBefore, s.eligible)
				}
			}
		case reserved, running:
			want.run(r, 1)
			adopted, outgrown = adopted+btoi(r.adopted), outgrown+btoi(r.outgrown)
		}
	}
	if want != s.sums {
		return fmt.Errorf("sums are %+v, should be %+v", s.sums, want)
	}
	if hidden != s.hidden {
		return fmt.Errorf("%d postponed copies, counted %d", hidden, s.hidden)
	}
	if outgrown != s.outgrown {
		return fmt.Errorf("%d copies take more than there is, counted %d", outgrown, s.outgrown)
	}
	seen := want.runCharge
	if s.cfg.Queues == DualPreempt {
		seen -= want.guestCharge
	}
	if s.free != int64(s.cfg.Processors)-seen {
		return fmt.Errorf("%d of %d processors free, but %d in use", s.free, s.cfg.Processors, seen)
	}
	if s.room() < 0 && adopted == 0 {
		return fmt.Errorf("over-committed: %d processors of %d in use, %d of them by copies that wait for room", want.runCharge, s.cfg.Processors, s.guests.waitCharge)
	}
	if s.free < 0 && adopted == 0 {
		return fmt.Errorf("over-committed: %d processors of %d in use", want.runCharge, s.cfg.Processors)
	}
	return nil
}

func (s *Scheduler) checkQueues() error {
	if err := s.local.check(&s.table); err != nil {
		return fmt.Errorf("local queue: %w", err)
	}
	if err := s.remote.check(&s.table); err != nil {
		return fmt.Errorf("remote queue: %w", err)
	}
	if s.blocked != gap && s.table.rows[s.blocked].state != queued {
		return fmt.Errorf("the blocked head in slot %d does not wait", s.blocked)
	}
	if s.elder != gap && (s.table.rows[s.elder].state != queued || !s.table.rows[s.elder].copy.remote) {
		return fmt.Errorf("the elder in slot %d does not wait", s.elder)
	}
	return nil
}

func (q *queue) check(t *table) error {
	live, last, flagged := len(q.late), int32(gap), 0
	for _, slot := range q.late {
		flagged += btoi(t.rows[slot].copy.elder)
	}
	for i, slot := range q.slot {
		if slot == gap {
			if q.charge[i] != unfit || q.plan[i] != job.Never {
				return fmt.Errorf("the gap at %d has charge %d, slot %d", i, q.charge[i], q.plan[i])
			}
			continue
		}
		live++
		r := &t.rows[slot]
		flagged += btoi(r.copy.elder)
		charge := r.charge
		if r.hidden {
			charge = unfit
		}
		if i < q.first || r.state != queued || int(r.position) != i || q.charge[i] != charge || q.wall[i] != r.wall {
			return fmt.Errorf("%v at place %d: %+v, charge %d, walltime %v", r.copy.id, i, r, q.charge[i], q.wall[i])
		}
		if group, block := &q.bounds[i>>groupBits], &q.blocks[i>>blockBits]; charge != unfit && !(group.holds(charge, r) && block.holds(charge, r)) {
			return fmt.Errorf("%v at place %d is below the bounds %+v and %+v", r.copy.id, i, group, block)
		}
		if last != gap && !t.before(last, slot) {
			return fmt.Errorf("%v waits behind %v", r.copy.id, t.rows[last].copy.id)
		}
		last = slot
	}
	if flagged != q.flagged {
		return fmt.Errorf("%d copies are elders at once, counted %d", flagged, q.flagged)
	}
	if live != q.live || q.gaps != len(q.slot)-live+len(q.late) || max(q.first, q.seen, q.planned, q.within) > len(q.slot) {
		return fmt.Errorf("%d copies in %d places, counted %d and %d gaps; first %d, seen %d, planned %d",
			live, len(q.slot), q.live, q.gaps, q.first, q.seen, q.planned)
	}
	inside := 0
	for _, slot := range q.slot[:q.within] {
		if slot != gap {
			inside++
		}
	}
	if inside != q.inside || inside < min(q.depth, live-len(q.late)) {
		return fmt.Errorf("%d copies in the first %d places are within a depth of %d, counted %d", inside, q.within, q.depth, q.inside)
	}
	return nil
}

// holds reports whether the bound covers a copy that may start.
func (b *bound) holds(charge int32, r *row) bool {
	return b.covers(charge, r.wall) && (b.elder || !r.copy.elder)
}

func (s *Scheduler) checkRun() error {
	return cmp.Or(s.checkSet(&s.run, false), s.checkSet(&s.guests.run, true))
}

// checkSet checks one of the sets of what holds processors.
func (s *Scheduler) checkSet(set *runSet, invisible bool) error {
	items := set.items()
	for i, it := range items {
		r := &s.table.rows[it.slot]
		if s.invisible(r) != invisible || r.state != running && r.state != reserved || it.end != r.end || it.charge != r.charge {
			return fmt.Errorf("%v runs as %+v, known as %+v", r.copy.id, it, r)
		}
		if i > 0 && set.search(&s.table, it.end, it.slot) != i {
			return fmt.Errorf("%v runs out of order", r.copy.id)
		}
	}
	return nil
}

// checkGuests compares what is known of guests with the rows.
func (s *Scheduler) checkGuests() error {
	var leaving, waiting int64
	waits, wanted := 0, 0
	for i := range s.table.rows {
		wanted += btoi(s.table.rows[i].wanted)
		switch r := &s.table.rows[i]; {
		case r.leaving && (!r.copy.remote || !r.state.holds()) || r.wanted && (r.copy.remote || r.state != queued) || r.waits && (s.cfg.Queues != DualPreempt || r.copy.remote || r.state != reserved):
			return fmt.Errorf("%v in state %d leaves: %v, waits for room: %v", r.copy.id, r.state, r.leaving, r.waits)
		case r.leaving && s.invisible(r):
			leaving += int64(r.charge)
		case r.waits:
			waits++
			waiting += int64(r.charge)
		}
	}
	if wanted != s.wanted {
		return fmt.Errorf("guests make way for %d copies, counted %d", wanted, s.wanted)
	}
	g := &s.guests
	if leaving != g.leaving || waiting != g.waitCharge || waits != len(g.waiting) {
		return fmt.Errorf("%d processors of guests that leave, counted %d; %d of %d copies that wait, counted %d of %d", leaving, g.leaving, waiting, waits, g.waitCharge, len(g.waiting))
	}
	return nil
}

// checkSurface compares the standing plan with one made from scratch.
func (s *Scheduler) checkSurface() error {
	if !s.cfg.Backfill.plans() || !s.surfaceValid || s.free < 0 {
		return nil
	}
	want := &s.scratch
	want.build(s.passed, s.free, &s.run)
	q := &s.local
	for i, at := range q.plan {
		switch {
		case at != job.Never && i >= q.within:
			return fmt.Errorf("place %d is planned for %d, behind the guarantee depth", i, at)
		case at != job.Never:
			want.place(at, q.charge[i], q.wall[i])
			if at < s.due {
				return fmt.Errorf("place %d is planned for %d, before %d", i, at, s.due)
			}
		case q.charge[i] == unfit || i >= q.seen || i >= q.within || s.stale:
		case s.surface.earliest(s.passed, q.charge[i], q.wall[i], job.Never) != job.Never:
			// It may have none if those ahead take longer than time lasts.
			return fmt.Errorf("place %d has no slot", i)
		}
	}
	at := max(s.clock, s.passed)
	for at != job.Never {
		got, next := s.surface.value(at)
		expected, other := want.value(at)
		if got != expected {
			return fmt.Errorf("%d processors free at %d, planned %d", expected, at, got)
		}
		if got < 0 {
			return fmt.Errorf("%d processors free at %d", got, at)
		}
		at = min(next, other)
	}
	return nil
}

// value returns the free processors at t, and until when.
func (f *profile) value(t job.Time) (free int32, until job.Time) {
	k := f.find(t)
	c := &f.chunks[f.spans[k].chunk]
	j := c.index(t)
	until = f.until(k)
	if j+1 < c.n {
		until = c.at[j+1]
	}
	return c.free[j] + f.spans[k].shift, until
}

func btoi(b bool) int {
	if b {
		return 1
	}
	return 0
}
