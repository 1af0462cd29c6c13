package meta

import (
	"time"

	"kith/internal/job"
	"kith/store"
)

// What guests cost the jobs of this site is measured here, at their origin, while they wait in
// its queue. Two of the three numbers are exact and counted: how long guests alone kept a job
// waiting, and how often they moved a promise. The third, the delay against a schedule without
// guests, is a report about what is past (package sitesched/harm).
//
// Between two passes of the local scheduler nothing changes, so that a job that is blocked
// after one is so until the next: the clocks run from pass to pass. They are volatile while a
// job waits, and become a fact of the job when it leaves the queue; a restart forgets what was
// measured of jobs that still wait.

// Harmed is a [Site] that knows what its guests cost. A site that does not, as a batch system,
// measures nothing.
type Harmed interface {
	// Blocked appends to list the copies of this site's own jobs that a pass would start now
	// if no copy of another site were here. It is asked after a pass.
	Blocked(now job.Time, list []job.AttemptID) []job.AttemptID
	// Moved names a copy that the latest pass had promised a start, before it let a guest
	// start that moves it back; false, as always, if the scheduler is right.
	Moved() (job.AttemptID, bool)
	// RefuseGuest says why a request of another site could never start here that one of this
	// site could; NoReason if it could.
	RefuseGuest(r *job.Request) job.Reason
}

// HarmBounds are the upper bounds of the classes of [HarmCounters.Blocked]; those beyond are in
// the last one.
var HarmBounds = [...]time.Duration{0, time.Minute, 10 * time.Minute, time.Hour, 6 * time.Hour}

// HarmCounters count what guests cost the jobs of this site since its engine began, in its own
// queue: of each copy of a job when it leaves the queue, to start here or because the job
// starts elsewhere or is cancelled.
type HarmCounters struct {
	// Left are copies that have left, by how long guests alone kept them waiting, see
	// [HarmBounds]. Seconds is the sum of that.
	Left    [len(HarmBounds) + 1]int64
	Seconds float64
	// Violations are jobs that were blocked for longer than the site's bound
	// ([NoHarm.Bound]), Moved are promises that guests have moved. Of Moved there are none,
	// unless the scheduler has a fault.
	Violations, Moved int64
	// Blocked are copies that wait and are blocked now.
	Blocked int
}

// harmClocks measure, where they are asked to.
type harmClocks struct {
	site     Harmed // nil if the local scheduler cannot say
	measures bool   // whom guests block; broken promises are always counted
	// blocked are those of the latest pass, by their names; other is scratch.
	blocked, other []job.AttemptID
	pass           uint64
	count          HarmCounters
	due            job.Time // when a guest has to leave for one of them, job.Never for none
	// told counts what may have made those too few that were told to leave: starts of home jobs,
	// and guests that stay.
	told uint64
	// ways is for how many jobs it was looked at in the instant wayed who has to leave.
	ways  int
	wayed job.Time
}

// harmClock is that of a copy.
type harmClock struct {
	since job.Time
	total time.Duration
	pass  uint64 // the latest after which it was blocked; 0 while it stands still
	moved uint32
	// looked is when it was last looked at who has to leave for it, 0 for not yet, and told what
	// [harmClocks.told] was then.
	looked job.Time
	told   uint64
}

func (c *harmClock) runs() bool { return c != nil && c.pass != 0 }

// stop ends an interval.
func (c *harmClock) stop(now job.Time) {
	if c.runs() {
		c.total += max(now.Sub(c.since), 0)
		c.pass = 0
	}
}

// read returns what it shows.
func (c *harmClock) read(now job.Time) store.Harm {
	switch {
	case c == nil:
		return store.Harm{}
	case c.runs():
		return store.Harm{Blocked: c.total + max(now.Sub(c.since), 0), Moved: c.moved}
	}
	return store.Harm{Blocked: c.total, Moved: c.moved}
}

// clock returns the clock of a copy that guests harm. Most copies have none.
func (c *hostCopy) clock() *harmClock {
	if c.harm == nil {
		c.harm = &harmClock{}
	}
	return c.harm
}

// harmful says why a request of another site is not taken, for the sake of home jobs.
func (h *host) harmful(r *job.Request) job.Reason {
	if most := h.cfg.NoHarm.GuestWalltime; most > 0 && r.Walltime > most {
		return job.GuestWalltime
	}
	if h.harm.site == nil {
		return job.NoReason
	}
	return h.harm.site.RefuseGuest(r)
}

// passed notes a broken promise of the pass that was just made.
func (h *host) passed() {
	if h.harm.site == nil {
		return
	}
	if id, broken := h.harm.site.Moved(); broken {
		if c := h.copies.Get(id); c != nil {
			c.clock().moved++
			h.harm.count.Moved++
		}
	}
}

// lookHarm runs and stops the clocks after the passes of an instant.
func (h *host) lookHarm(now job.Time) {
	m := &h.harm
	if !m.measures {
		return
	}
	was := m.blocked
	m.blocked = m.site.Blocked(now, m.other[:0])
	m.other, m.due = was, job.Never
	if len(m.blocked)+len(was) == 0 {
		return
	}
	m.pass++
	for i := range m.blocked {
		c := h.copies.Get(m.blocked[i])
		if c == nil {
			continue // a pilot: tasks of bags are not measured
		}
		clock := c.clock()
		if !clock.runs() {
			clock.since = now
		}
		clock.pass = m.pass
	}
	for i := range was {
		if c := h.copies.Get(was[i]); c != nil && c.harm.runs() && c.harm.pass != m.pass {
			c.harm.stop(now)
		}
	}
	h.keepBound(now)
}

// leavesQueue records what guests have cost a copy of this site's own that has waited.
func (h *host) leavesQueue(now job.Time, c *hostCopy) {
	if !h.harm.measures || c.rec.ID.Job.Origin != h.self {
		return
	}
	c.harm.stop(now)
	got, n, i := c.harm.read(now), &h.harm.count, 0
	c.harm = nil
	for i < len(HarmBounds) && got.Blocked > HarmBounds[i] {
		i++
	}
	n.Left[i]++
	n.Seconds += got.Blocked.Seconds()
	j := h.st.Job(c.rec.ID.Job)
	if j == nil || got == (store.Harm{}) {
		return
	}
	before, bound := h.st.Harm(j.ID).Blocked, h.cfg.NoHarm.Bound
	if before <= bound && before+got.Blocked > bound {
		n.Violations++
	}
	record(h.st, store.NoteHarm{Job: j.ID, Harm: got})
}

// Harm returns what guests have cost a job of this site that has not ended: for how long they
// alone kept it waiting up to now, and how many promises to it they moved.
func (v Views) Harm(now job.Time, id job.ID) store.Harm {
	j := v.origin.st.Job(id)
	if j == nil {
		return store.Harm{}
	}
	h := v.origin.st.Harm(id)
	if c := v.host.copies.Get(j.AttemptID()); c != nil {
		n := c.harm.read(now)
		h.Blocked, h.Moved = h.Blocked+n.Blocked, h.Moved+n.Moved
	}
	return h
}

// PromisesMoved is [HarmCounters.Moved], which is counted whether or not anything else is.
func (v Views) PromisesMoved() int64 { return v.host.harm.count.Moved }

// HarmCounters returns the counts so far, and whether anything is measured.
func (v Views) HarmCounters() (HarmCounters, bool) {
	n := v.host.harm.count
	for _, id := range v.host.harm.blocked {
		if c := v.host.copies.Get(id); c != nil && c.harm.runs() {
			n.Blocked++
		}
	}
	return n, v.host.harm.measures
}
