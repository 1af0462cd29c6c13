package sitesched

import (
	"cmp"
	"maps"
	"math"
	"time"

	"kith/internal/hashed"
	"kith/internal/job"
)

// Scheduler is the local scheduler of one site, a state machine: its methods
// tell it what happened, and [Scheduler.Pass] says what should start. It is
// what package meta calls a Site.
//
// It reads no clock, starts no goroutine and does no I/O. Time must not run
// backwards. All events of one instant come first, completions before
// cancellations before arrivals, then one Pass (spec 001 section 2.1). An event
// about a copy that is not in a fitting state is ignored, as messages may come
// twice or late. It is not safe for concurrent use; the methods that only read
// use scratch space of the Scheduler, too.
type Scheduler struct {
	cfg   Config
	index hashed.Table[job.AttemptID, int32] // slots of all known copies; none in a simulation
	table table
	// recent is the slot that was looked for last.
	recent int32

	local  queue // all copies if there is one queue
	remote queue
	run    runSet
	free   int64 // P minus all charges in run; below zero only through Adopt
	guests guests
	grace  time.Duration // how long guests take to leave, see SetGrace
	// wanted counts the local copies that guests make way for, see MakeWay.
	wanted int
	sums   sums
	// outgrown counts adopted copies that alone take more than there is. They are charged P.
	outgrown int

	draining bool
	clock    job.Time // instant of the last event
	// passed is the instant of the last pass that ran.
	passed job.Time
	// stale says that more happened since the last pass than arrivals at the
	// end of a queue, so that copies it refused must be looked at again.
	stale bool
	// eligible is no later than the end of the first postponement to end.
	eligible job.Time
	hidden   int // postponed copies

	aside map[job.SiteID]bool // origins whose copies are set aside
	away  int                 // copies set aside

	// blocked is the slot of the head that waits for processors, gap if none
	// does; shadow and extra are its t* and what is left of x.
	blocked int32
	shadow  job.Time
	extra   int32
	// moved is the slot of the head whose promise the last pass has broken, gap if it kept it.
	moved int32

	// elder is the slot of the remote copy with the reservation, gap if none has
	// one; ages is when another one may get it by waiting.
	elder int32
	ages  job.Time

	// surface holds the running copies and the planned local ones: the
	// standing plan of the conservative disciplines, a cache for the others.
	surface profile
	// surfaceValid says that surface agrees with what runs and is planned.
	surfaceValid bool
	ended        bool     // something left the plan since the last pass
	compressed   bool     // no slot can improve before more leaves the plan
	due          job.Time // no later than the first slot in the plan
	floor        job.Time // start of the last copy planned in order

	behind behind  // what is planned behind the guarantee depth, a cache
	lines  lineups // plans for WhatIf where nothing overtakes

	admission window
	scratch   profile
	allotment profile    // what guests may have, where processors are kept free of them; scratch
	allotted  runSet     // what runs of them, scratch of allotment
	trial     *Scheduler // the copy that WhatIf plays with
	trials    int64      // passes that MakeWay has played, for tests
	home      runSet     // what runs of this site's own jobs, scratch of Blocked
	notes     notes      // what is noted of starts
	passSteps int64      // what passes of a simulation cost
	indexed   []bool     // scratch of Check
	starts    []job.AttemptID
	begun     []int32 // slots of what started, for scenarios
}

// New returns the scheduler of an empty site. The error wraps [ErrConfig].
func New(c Config) (*Scheduler, error) {
	if err := c.Validate(); err != nil {
		return nil, err
	}
	s := &Scheduler{
		cfg: c, index: hashed.New[job.AttemptID, int32](), free: int64(c.Processors),
		blocked: gap, moved: gap, elder: gap, ages: job.Never, eligible: job.Never, due: job.Never,
	}
	s.local.depth, s.remote.depth = c.depth(), math.MaxInt
	return s, nil
}

// Config returns the configuration given to [New].
func (s *Scheduler) Config() Config { return s.cfg }

// Refuse says why a request could never start here; [job.NoReason] if it could.
// [Config.Fits] says it with numbers.
func (s *Scheduler) Refuse(r *job.Request) job.Reason {
	switch {
	case r.Processors > s.cfg.Processors:
		return job.TooNarrow
	case s.cfg.Fits(r) != nil:
		return job.TooSmall
	}
	return job.NoReason
}

// chargeOf returns how many processors e occupies here, see [Config.Charge].
func (s *Scheduler) chargeOf(e *entry) int32 { return s.cfg.charge(e.processors, e.memoryBytes) }

// Has reports whether id is queued, reserved or running here.
func (s *Scheduler) Has(id job.AttemptID) bool {
	_, ok := s.find(&id)
	return ok
}

// find returns the slot of a known copy. Events about one copy tend to come
// together: the slot found last is tried first.
func (s *Scheduler) find(id *job.AttemptID) (int32, bool) {
	if r := s.table.rows; int(s.recent) < len(r) && r[s.recent].state != vacant && r[s.recent].copy.id == *id {
		return s.recent, true
	}
	slot, ok := s.lookup(id)
	if ok {
		s.recent = slot
	}
	return slot, ok
}

// lookup is find without that.
func (s *Scheduler) lookup(id *job.AttemptID) (int32, bool) { return s.index.Get(*id, s.table.name) }

// Enqueue adds c to its queue. A known id is ignored, and so is a copy that
// can never run here: ask [Scheduler.Has] and [Scheduler.Refuse] first.
func (s *Scheduler) Enqueue(now job.Time, c job.Copy) {
	s.clock = now
	if s.Has(c.ID) {
		return
	}
	e := entryOf(&c)
	charge := s.chargeOf(&e)
	if charge > s.cfg.Processors {
		return
	}
	slot := s.table.add(&e, charge)
	s.index.Put(slot, s.table.name)
	s.recent = slot
	s.admit(slot)
}

// Withdraw removes a queued or reserved copy. A running one stays.
func (s *Scheduler) Withdraw(now job.Time, id job.AttemptID) {
	s.clock = now
	slot, ok := s.find(&id)
	if !ok {
		return
	}
	switch s.table.rows[slot].state {
	case queued:
		s.dequeue(slot)
		s.forget(slot)
	case reserved:
		s.vacate(now, slot)
		s.forget(slot)
	case aside:
		s.away--
		s.forget(slot)
	}
}

// Pass makes one scheduling pass and returns the copies that should start now,
// in order. Their processors are reserved from now on, until Confirm, Postpone,
// Withdraw or Finish. The slice is valid until the next Pass.
func (s *Scheduler) Pass(now job.Time) []job.AttemptID {
	s.clock = now
	s.pass(now)
	return s.starts
}

// Confirm says that a reserved or adopted copy has really started: its
// walltime counts from since, or from now if that is 0.
func (s *Scheduler) Confirm(now job.Time, id job.AttemptID, since job.Time) {
	s.clock = now
	slot, ok := s.find(&id)
	if !ok {
		return
	}
	if r := &s.table.rows[slot]; r.state == reserved && !r.waits || r.state == running && r.unconfirmed {
		s.confirm(cmp.Or(since, now), slot)
	}
}

// Postpone says that the claim of a copy was not answered: its processors are
// freed and the copy returns to its old place in its queue, but before until
// it is passed over as if it were not there. A queued copy can be postponed, too.
func (s *Scheduler) Postpone(now job.Time, id job.AttemptID, until job.Time) {
	s.clock = now
	if slot, ok := s.find(&id); ok && s.table.rows[slot].state != running {
		s.postpone(now, slot, until)
	}
}

// Finish says that an attempt, running or reserved, has ended.
func (s *Scheduler) Finish(now job.Time, id job.AttemptID) {
	s.clock = now
	if slot, ok := s.find(&id); ok && s.table.rows[slot].state.holds() {
		s.vacate(now, slot)
		s.forget(slot)
	}
}

// Adopt tells of a copy that it already runs since a time, as found after a
// restart. It holds its processors even if that over-commits the site.
func (s *Scheduler) Adopt(now job.Time, c job.Copy, since job.Time) {
	s.clock = now
	e := entryOf(&c)
	s.adopt(now, &e, since)
}

// Drain makes every Pass start nothing while it is on.
func (s *Scheduler) Drain(now job.Time, on bool) {
	s.clock, s.draining = now, on
	s.stale = s.stale || !on
}

// queueOf returns the queue in which c waits.
func (s *Scheduler) queueOf(c *entry) *queue {
	if c.remote && s.cfg.Queues != Single {
		return &s.remote
	}
	return &s.local
}

// admit puts the copy at slot into its queue, or aside with its origin.
func (s *Scheduler) admit(slot int32) {
	r := &s.table.rows[slot]
	if s.isAside(r) {
		s.putAside(r)
		return
	}
	q := s.enter(slot)
	q.add(&s.table, slot)
	if r.position >= 0 {
		s.joinLine(q, int(r.position))
	} else if q.limited() {
		s.settle() // what is within must not depend on when it is looked at
	}
}

// enter notes that the copy at slot comes into a queue, which it returns.
func (s *Scheduler) enter(slot int32) *queue {
	r := &s.table.rows[slot]
	r.state, r.wall = queued, s.planned(&r.copy)
	s.sums.queue(r, 1)
	// A strict remote queue may have to give way at once.
	if s.cfg.Queues == DualStrict && !r.copy.remote {
		s.stale = true
	}
	q := s.queueOf(&r.copy)
	if r.copy.elder {
		q.flagged++
	}
	return q
}

// planned returns how long a copy that waits here is planned for.
func (s *Scheduler) planned(c *entry) time.Duration {
	wall := walltime(c)
	if c.remote {
		wall = min(wall+s.cfg.StartMargin, job.MaxWalltime)
	}
	return wall
}

// dequeue takes the copy at slot out of its queue.
func (s *Scheduler) dequeue(slot int32) {
	r := &s.table.rows[slot]
	s.sums.queue(r, -1)
	s.madeWay(r)
	if r.hidden {
		r.hidden = false
		s.hidden--
	}
	s.breakLines()
	q := s.queueOf(&r.copy)
	if r.copy.elder {
		q.flagged--
	}
	if r.position < 0 {
		q.removeLate(slot)
		return
	}
	s.unplan(q, int(r.position))
	q.remove(int(r.position))
	// One that moves up within the guarantee depth wants its slot.
	s.stale = s.stale || q.limited() && s.cfg.Backfill.plans() && q.planned < q.within
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
		if q.slot[i] == s.elder {
			s.elder = gap
			s.staleGuests()
		}
		// A strict remote queue is planned in order, so that what waited behind may move up.
		s.stale = s.stale || s.cfg.Queues == DualStrict && s.cfg.Backfill.plans()
	case !s.cfg.Backfill.plans():
		// The plans of the others may move up, and make room for remote copies.
		s.surfaceValid = false
		if s.cfg.Queues != Single {
			s.staleGuests()
		}
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

// Clone returns an independent copy of s.
func (s *Scheduler) Clone() *Scheduler {
	c := new(Scheduler)
	s.CloneInto(c)
	return c
}

// CloneInto makes c, which may be the zero Scheduler, an independent copy of s. It uses
// the memory of c again.
func (s *Scheduler) CloneInto(c *Scheduler) {
	c.copyFrom(s)
	c.index.CopyFrom(&s.index)
	c.aside = maps.Clone(s.aside)
}

// copyFrom makes s a copy of o in all but the index, reusing the memory of s.
func (s *Scheduler) copyFrom(o *Scheduler) {
	old := *s
	*s = *o
	s.index, s.trial, s.starts, s.begun = old.index, old.trial, old.starts[:0], old.begun[:0]
	s.scratch, s.admission, s.indexed, s.home = old.scratch, old.admission, old.indexed, old.home
	s.allotment, s.allotted = old.allotment, old.allotted
	s.table, s.local, s.remote, s.run, s.surface = old.table, old.local, old.remote, old.run, old.surface
	s.lines, s.guests, s.behind = old.lines, old.guests, old.behind
	s.behind.kept = false
	s.breakLines()
	s.table.copyFrom(&o.table)
	s.local.copyFrom(&o.local)
	s.remote.copyFrom(&o.remote)
	s.run.copyFrom(&o.run)
	s.guests.copyFrom(&o.guests)
	s.surface.copyFrom(&o.surface)
	s.admission.steps = append(s.admission.steps[:0], o.admission.steps...)
}
