package sitesched

import (
	"cmp"
	"maps"
	"time"

	"kith/internal/job"
)

// Scheduler is the local scheduler of one site. It is a state machine: see
// [Scheduler.Step]. It is not safe for concurrent use; the methods that only
// read use scratch space of the Scheduler, too.
type Scheduler struct {
	cfg   Config
	index map[job.AttemptID]int32 // slots of all known copies; nil in a simulation
	table table
	// recent is the slot that was looked for last.
	recent int32

	local  queue // all copies if there is one queue
	remote queue
	run    runSet
	free   int64 // P minus all charges; below zero only through Adopt
	sums   sums

	draining bool
	clock    job.Time // instant of the last Step
	// passed is the instant of the last pass that ran.
	passed job.Time
	// stale says that more happened since the last pass than arrivals at the
	// end of a queue, so that copies it refused must be looked at again.
	stale bool
	// eligible is no later than the end of the first postponement to end.
	eligible job.Time
	hidden   int // postponed copies

	// blocked is the slot of the head that waits for processors, gap if none
	// does; shadow and extra are its t* and what is left of x.
	blocked int32
	shadow  job.Time
	extra   int32

	// surface holds the running copies and the planned local ones: the
	// standing plan of the conservative disciplines, a cache for the others.
	surface profile
	// surfaceValid says that surface agrees with what runs and is planned.
	surfaceValid bool
	ended        bool     // something left the plan since the last pass
	compressed   bool     // no slot can improve before more leaves the plan
	due          job.Time // no later than the first slot in the plan
	floor        job.Time // start of the last copy planned in order

	lines lineups // plans for WhatIf where nothing overtakes

	admission window
	scratch   profile
	shade     *Scheduler // the copy that WhatIf plays with
	quiet     bool       // collects no effects
	passSteps int64      // what passes of a simulation cost
	effects   []Effect
}

// New returns the scheduler of an empty site. The error wraps [ErrConfig].
func New(c Config) (*Scheduler, error) {
	if err := c.Validate(); err != nil {
		return nil, err
	}
	return &Scheduler{
		cfg: c, index: make(map[job.AttemptID]int32), free: int64(c.Processors),
		blocked: gap, eligible: job.Never, due: job.Never,
	}, nil
}

// Config returns the configuration given to [New].
func (s *Scheduler) Config() Config { return s.cfg }

// Fits returns nil if c could run here, else an error that names the numbers
// and wraps [ErrTooWide].
func (s *Scheduler) Fits(c Copy) error { return s.cfg.Fits(c) }

// Has reports whether id is queued, reserved or running here.
func (s *Scheduler) Has(id job.AttemptID) bool {
	_, ok := s.find(&id)
	return ok
}

// find returns the slot of a known copy. Events about one copy tend to come
// together: the slot found last is tried first.
func (s *Scheduler) find(id *job.AttemptID) (int32, bool) {
	if r := s.table.rows; int(s.recent) < len(r) && r[s.recent].state != vacant && r[s.recent].copy.ID == *id {
		return s.recent, true
	}
	slot, ok := s.index[*id]
	if ok {
		s.recent = slot
	}
	return slot, ok
}

// Step applies ev at now. A [Pass] returns, in order, what the caller must do;
// all other events return nil. The slice is valid until the next Pass.
//
// Step reads no clock, starts no goroutine and does no I/O. Time must not run
// backwards. An event about a copy that is not in a fitting state is ignored,
// as messages may come twice or late.
func (s *Scheduler) Step(now job.Time, ev Event) []Effect {
	s.clock = now
	switch ev.Kind {
	case Pass:
		return s.pass(now)
	case Enqueue:
		s.enqueue(&ev.Copy)
		return nil
	case Adopt:
		s.adopt(now, &ev.Copy, ev.At)
		return nil
	case Drain:
		s.draining = true
		return nil
	case Resume:
		s.draining, s.stale = false, true
		return nil
	}
	slot, ok := s.find(&ev.ID)
	if !ok {
		return nil
	}
	switch state := s.table.rows[slot].state; ev.Kind {
	case Withdraw, Drop:
		switch state {
		case queued:
			s.dequeue(slot)
			s.forget(slot)
		case reserved:
			s.vacate(now, slot)
			s.forget(slot)
		}
	case Confirm:
		if state == reserved || state == running && s.table.rows[slot].unconfirmed {
			s.confirm(cmp.Or(ev.At, now), slot)
		}
	case Postpone:
		if state != running {
			s.postpone(now, slot, ev.At)
		}
	case Finish:
		if state != queued {
			s.vacate(now, slot)
			s.forget(slot)
		}
	}
	return nil
}

// queueOf returns the queue in which c waits.
func (s *Scheduler) queueOf(c *Copy) *queue {
	if c.Remote && s.cfg.Queues != Single {
		return &s.remote
	}
	return &s.local
}

func (s *Scheduler) enqueue(c *Copy) {
	if s.Has(c.ID) {
		return
	}
	charge := s.cfg.charge(c)
	if charge > s.cfg.Processors {
		return
	}
	slot := s.table.add(c, charge)
	s.index[c.ID], s.recent = slot, slot
	s.admit(slot)
}

// admit puts the copy at slot into its queue.
func (s *Scheduler) admit(slot int32) {
	r := &s.table.rows[slot]
	r.state, r.wall = queued, s.planned(&r.copy)
	s.sums.queue(r, 1)
	q := s.queueOf(&r.copy)
	q.add(&s.table, slot)
	if r.position >= 0 {
		s.joinLine(q, int(r.position))
	}
	// A strict remote queue may have to give way at once.
	if s.cfg.Queues == DualStrict && !r.copy.Remote {
		s.stale = true
	}
}

// planned returns how long a copy that waits here is planned for.
func (s *Scheduler) planned(c *Copy) time.Duration {
	wall := walltime(c)
	if c.Remote {
		wall = min(wall+s.cfg.StartMargin, job.MaxWalltime)
	}
	return wall
}

// dequeue takes the copy at slot out of its queue.
func (s *Scheduler) dequeue(slot int32) {
	r := &s.table.rows[slot]
	s.sums.queue(r, -1)
	if r.hidden {
		r.hidden = false
		s.hidden--
	}
	s.breakLines()
	q := s.queueOf(&r.copy)
	if r.position < 0 {
		q.removeLate(slot)
		return
	}
	s.unplan(q, int(r.position))
	q.remove(int(r.position))
	q.tidy(&s.table)
}

// unplan notes that the copy at place i of q no longer waits there for its turn.
func (s *Scheduler) unplan(q *queue, i int) {
	if q.slot[i] == s.blocked {
		s.blocked = gap
		s.stale = true
	}
	switch {
	case q == &s.remote:
		// A strict remote queue is planned in order, so that what waited behind may move up.
		s.stale = s.stale || s.cfg.Queues == DualStrict && s.cfg.Backfill.plans()
	case !s.cfg.Backfill.plans():
		// The plans of the others may move up, and make room for remote copies.
		s.surfaceValid = false
		s.stale = s.stale || s.cfg.Queues != Single
	case q.plan[i] != job.Never:
		s.restore(q.plan[i], q.plan[i].Add(q.wall[i]), s.table.rows[q.slot[i]].charge)
	}
}

// restore gives the charge of a copy that leaves the plan back to the surface.
func (s *Scheduler) restore(from, to job.Time, charge int32) {
	s.ended, s.stale = true, true
	if from < to {
		s.compressed = false
		if s.surfaceValid {
			s.surface.change(from, to, charge)
		}
	}
}

// vacate frees the processors of the copy at slot.
func (s *Scheduler) vacate(now job.Time, slot int32) {
	r := &s.table.rows[slot]
	s.run.remove(&s.table, r.end, slot)
	s.sums.run(r, -1)
	s.free += int64(r.charge)
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
	delete(s.index, s.table.rows[slot].copy.ID)
	s.table.release(slot)
}

// occupy makes the copy at slot hold its processors from since on.
func (s *Scheduler) occupy(since job.Time, slot int32, st state) {
	r := &s.table.rows[slot]
	r.state, r.since = st, since
	r.end = since.Add(r.wall)
	s.free -= int64(r.charge)
	s.sums.run(r, 1)
	s.run.insert(&s.table, runItem{r.end, r.charge, slot})
}

// confirm notes that the copy at slot runs since a time.
func (s *Scheduler) confirm(since job.Time, slot int32) {
	r := &s.table.rows[slot]
	r.state, r.unconfirmed = running, false
	planned, wall := r.end, walltime(&r.copy)
	if since.Add(wall) == planned {
		r.since, r.wall = since, wall
		return
	}
	// The walltime counts from the real start: the end moves back, or to the
	// front if less than the margin was used up.
	s.run.remove(&s.table, planned, slot)
	s.sums.run(r, -1)
	s.free += int64(r.charge)
	r.wall = wall
	s.occupy(since, slot, running)
	s.stale, s.surfaceValid = true, false
	if r.end < planned {
		s.ended, s.compressed = true, false
	}
	s.breakLines()
}

func (s *Scheduler) postpone(now job.Time, slot int32, at job.Time) {
	r := &s.table.rows[slot]
	if r.state == reserved {
		s.vacate(now, slot)
	} else {
		s.dequeue(slot)
	}
	r.notBefore = at
	if at > now {
		r.hidden = true
		s.hidden++
		s.eligible = min(s.eligible, at)
	}
	s.admit(slot)
}

func (s *Scheduler) adopt(now job.Time, c *Copy, since job.Time) {
	if slot, ok := s.index[c.ID]; ok {
		switch s.table.rows[slot].state {
		case running:
			return
		case queued:
			s.dequeue(slot)
		default:
			s.vacate(now, slot)
		}
		s.forget(slot)
	}
	charge := min(s.cfg.charge(c), s.cfg.Processors)
	slot := s.table.add(c, charge)
	r := &s.table.rows[slot]
	r.adopted, r.unconfirmed = true, true
	r.wall = s.planned(c) // it may have begun and not yet started
	s.index[c.ID] = slot
	s.occupy(since, slot, running)
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
	s.occupy(now, slot, reserved)
	if !s.quiet {
		s.effects = append(s.effects, Effect{Start: r.copy})
	}
}

// Clone returns an independent copy of s.
func (s *Scheduler) Clone() *Scheduler {
	c := &Scheduler{index: maps.Clone(s.index)}
	c.copyFrom(s)
	return c
}

// copyFrom makes s a copy of o in all but the index, reusing the memory of s.
func (s *Scheduler) copyFrom(o *Scheduler) {
	old := *s
	*s = *o
	s.index, s.shade, s.effects, s.scratch, s.admission = old.index, old.shade, old.effects[:0], old.scratch, old.admission
	s.table, s.local, s.remote, s.run, s.surface = old.table, old.local, old.remote, old.run, old.surface
	s.lines = old.lines
	s.breakLines()
	s.table.copyFrom(&o.table)
	s.local.copyFrom(&o.local)
	s.remote.copyFrom(&o.remote)
	s.run.copyFrom(&o.run)
	s.surface.copyFrom(&o.surface)
	s.admission.steps = append(s.admission.steps[:0], o.admission.steps...)
}
