package sitesched

import (
	"math"
	"slices"

	"kith/internal/job"
)

// reference is a slow scheduler that is meant to be obviously right: the
// surface is an array with one number for each second, every pass looks at
// everything, and nothing is remembered but what the rules say is recorded.
// All times are whole seconds. It was written from the specification, and
// shares no code with the product but the configuration.
type reference struct {
	cfg      Config
	jobs     []*refJob // in queue order
	draining bool
	// ended says that something that had a place in the plan has left it since
	// the last pass.
	ended bool
	aside map[job.SiteID]bool
}

type refJob struct {
	id        job.AttemptID
	p         int // the charge
	wall      int
	arrival   int
	remote    bool
	state     state
	end       int // estimated, once started
	notBefore int
	slot      int // planned start, noSlot if none
	within    bool
	probe     bool // tried although its origin is set aside
	elder     bool // its origin can never run it
}

const (
	noSlot  = -1
	horizon = 700 // the surface of some jobs is empty from here on
	ages    = 1 << 30
)

func (r *reference) find(id job.AttemptID) *refJob {
	for _, j := range r.jobs {
		if j.id == id {
			return j
		}
	}
	return nil
}

func (r *reference) drop(j *refJob) {
	i := slices.Index(r.jobs, j)
	r.jobs = slices.Delete(r.jobs, i, i+1)
}

func (r *reference) step(now int, ev Event) (started []job.AttemptID) {
	defer r.moveWindow()
	switch ev.Kind {
	case Enqueue:
		r.insert(&refJob{
			id: ev.Copy.id, p: int(r.cfg.charge(ev.Copy.processors, ev.Copy.memoryBytes)), wall: int(ev.Copy.walltime / 1e9), state: queued,
			arrival: int(ev.Copy.arrival / second), remote: ev.Copy.remote && r.cfg.Queues != Single, slot: noSlot, elder: ev.Copy.elder,
		})
		return nil
	case Adopt:
		if j := r.find(ev.Copy.id); j != nil {
			if j.state == running {
				return nil
			}
			r.leave(j)
			r.drop(j)
		}
		r.insert(&refJob{
			id: ev.Copy.id, p: min(int(r.cfg.charge(ev.Copy.processors, ev.Copy.memoryBytes)), int(r.cfg.Processors)), wall: int(ev.Copy.walltime / 1e9),
			arrival: int(ev.Copy.arrival / second), remote: ev.Copy.remote && r.cfg.Queues != Single, slot: noSlot,
			state: running, end: int(ev.At/second) + int(ev.Copy.walltime/1e9),
		})
		return nil
	case Drain, Resume:
		r.draining = ev.Kind == Drain
		return nil
	case Aside:
		for _, j := range r.jobs {
			if j.id.Job.Origin == ev.ID.Job.Origin && j.state == queued && !r.away(j) {
				r.leave(j)
				j.slot, j.within, j.probe = noSlot, false, false
			}
		}
		r.aside[ev.ID.Job.Origin] = true
		return nil
	case Back:
		delete(r.aside, ev.ID.Job.Origin)
		for _, j := range r.jobs {
			j.probe = j.probe && j.id.Job.Origin != ev.ID.Job.Origin
		}
		return nil
	case Pass:
		if !r.draining {
			started = r.pass(now)
			r.ended = false
		}
		return started
	}
	j := r.find(ev.ID)
	if j == nil {
		return nil
	}
	switch {
	case ev.Kind == Try && r.away(j):
		j.probe = true
	case ev.Kind == Withdraw && j.state != running, ev.Kind == Finish && j.state != queued:
		r.leave(j)
		r.drop(j)
	case ev.Kind == Confirm && j.state == reserved:
		j.state, j.end = running, now+j.wall
	case ev.Kind == Postpone && j.state != running:
		r.leave(j)
		j.probe = j.probe && j.state == queued
		j.state, j.slot, j.notBefore, j.within = queued, noSlot, int(ev.At/second), false
	}
	return nil
}

// away reports whether j is set aside with its origin.
func (r *reference) away(j *refJob) bool {
	return j.state == queued && !j.probe && r.aside[j.id.Job.Origin]
}

func (r *reference) insert(j *refJob) {
	r.jobs = append(r.jobs, j)
	slices.SortFunc(r.jobs, func(a, b *refJob) int {
		if a.arrival != b.arrival {
			return a.arrival - b.arrival
		}
		return a.id.Compare(b.id)
	})
}

// moveWindow says which local copies are within the guarantee depth: what is
// within stays, and so is all ahead of it, and more until there are enough. It
// reports whether any came in.
func (r *reference) moveWindow() (more bool) {
	var q []*refJob
	last, count := -1, 0
	for _, j := range r.jobs {
		if j.state != queued || j.remote || r.away(j) {
			continue
		}
		if q = append(q, j); j.within {
			last = len(q) - 1
		}
	}
	for i, j := range q {
		if i <= last || count < r.cfg.depth() {
			more = more || !j.within
			j.within = true
			count++
		}
	}
	return more
}

// protected returns the eligible local copies that are within.
func (r *reference) protected(now int) (js []*refJob) {
	for _, j := range r.waiting(now, false) {
		if j.within {
			js = append(js, j)
		}
	}
	return js
}

// leave notes that j gives up its place in the plan.
func (r *reference) leave(j *refJob) {
	if j.state != queued || j.slot != noSlot {
		r.ended = true
	}
}

// waiting returns the eligible copies of one queue.
func (r *reference) waiting(now int, remote bool) (js []*refJob) {
	for _, j := range r.jobs {
		if j.state == queued && j.remote == remote && j.notBefore <= now && !r.away(j) {
			js = append(js, j)
		}
	}
	return js
}

// room is how many processors more such a copy may have.
func (r *reference) room(j *refJob) int {
	if !j.remote || r.cfg.KeepFree == 0 {
		return math.MaxInt
	}
	room := int(r.cfg.Processors - r.cfg.KeepFree)
	for _, o := range r.jobs {
		if o.state != queued && o.remote {
			room -= o.p
		}
	}
	return room
}

func (r *reference) free() int {
	free := int(r.cfg.Processors)
	for _, j := range r.jobs {
		if j.state != queued {
			free -= j.p
		}
	}
	return free
}

// surface returns the processors that what runs leaves free, second by second from now.
func (r *reference) surface(now int) []int {
	f := make([]int, horizon+10*len(r.jobs))
	add(f, 0, len(f), int(r.cfg.Processors))
	for _, j := range r.jobs {
		if j.state != queued {
			add(f, 0, max(j.end-now, 1), -j.p)
		}
	}
	return f
}

func fitsAt(f []int, at, p, wall int) bool {
	for i := at; i < min(at+wall, len(f)); i++ {
		if f[i] < p {
			return false
		}
	}
	return true
}

func add(f []int, at, wall, p int) {
	for i := max(at, 0); i < min(at+wall, len(f)); i++ {
		f[i] += p
	}
}

// earliest returns the first second from i on at which p processors are free for wall seconds.
func earliest(f []int, i, p, wall int) int {
	for !fitsAt(f, i, p, wall) {
		i++
	}
	return i
}

func (r *reference) start(now int, j *refJob, started *[]job.AttemptID) {
	j.state, j.end, j.slot = reserved, now+j.wall, noSlot
	*started = append(*started, j.id)
}

func (r *reference) pass(now int) (started []job.AttemptID) {
	shadow, extra := r.passQueue(now, false, &started)
	switch r.cfg.Queues {
	case DualStrict:
		if len(r.waiting(now, false)) == 0 {
			r.passQueue(now, true, &started)
		}
	case DualBackfill:
		if r.cfg.Patience > 0 {
			r.besideElders(now, &started)
			break
		}
		if r.cfg.Backfill >= Conservative || r.cfg.Scope == ScopeAll {
			r.around(now, &started)
		} else {
			r.behind(now, r.waiting(now, true), shadow, extra, &started)
		}
	}
	return started
}

func (r *reference) passQueue(now int, remote bool, started *[]job.AttemptID) (shadow, extra int) {
	if r.cfg.Backfill >= Conservative {
		if r.cfg.Backfill == Conservative && !remote {
			r.conservative(now, started)
		} else {
			r.replan(now, remote, started)
		}
		if !remote {
			r.moveUp(now, started)
		}
		return 0, 0
	}
	q := r.waiting(now, remote)
	for len(q) > 0 && q[0].p <= r.free() {
		r.start(now, q[0], started)
		q = q[1:]
	}
	if len(q) == 0 {
		return ages, ages
	}
	f := r.surface(now)
	for i := range f {
		if f[i] >= q[0].p {
			shadow, extra = now+i, f[i]-q[0].p
			break
		}
	}
	if r.cfg.Backfill == EASY {
		extra = r.behind(now, q[1:], shadow, extra, started)
	}
	return shadow, extra
}

// behind is step 4 of the cycle.
func (r *reference) behind(now int, q []*refJob, shadow, extra int, started *[]job.AttemptID) int {
	for _, j := range q {
		switch {
		case j.p > r.free() || j.p > r.room(j):
		case now+j.wall <= shadow:
			r.start(now, j, started)
		case j.p <= extra:
			extra -= j.p
			r.start(now, j, started)
		}
	}
	return extra
}

// plan places the local queue in order and returns the slots and what is left.
func (r *reference) plan(now int, q []*refJob, f []int, floor int, inOrder bool) (slots []int, last int) {
	for _, j := range q {
		from := 0
		if inOrder {
			from = floor
		}
		floor = earliest(f, from, j.p, j.wall)
		add(f, floor, j.wall, -j.p)
		slots = append(slots, now+floor)
	}
	return slots, floor
}

// localPlan returns the slots of the local queue as the admission of remote
// copies protects them, and the surface that they leave.
func (r *reference) localPlan(now int) (slots, f []int) {
	f = r.surface(now)
	q := r.protected(now)
	if r.cfg.Backfill < Conservative {
		slots, _ = r.plan(now, q, f, 0, r.cfg.Backfill == NoBackfill)
		return slots, f
	}
	for _, j := range q {
		if j.slot != noSlot {
			slots = append(slots, j.slot)
			add(f, j.slot-now, j.wall, -j.p)
		}
	}
	return slots, f
}

// around is the remote queue's turn under scope all.
func (r *reference) around(now int, started *[]job.AttemptID) {
	r.moveWindow()
	r.fitAround(now, r.waiting(now, true), started)
}

func (r *reference) fitAround(now int, q []*refJob, started *[]job.AttemptID) {
	for _, j := range q {
		if _, f := r.localPlan(now); j.p <= min(r.free(), r.room(j)) && fitsAt(f, 0, j.p, j.wall) {
			r.start(now, j, started)
		}
	}
}

// moveUp gives slots to those that come within because others started, and
// lets those that stay behind fit around.
func (r *reference) moveUp(now int, started *[]job.AttemptID) {
	for r.moveWindow() {
		_, f := r.localPlan(now)
		for _, j := range r.protected(now) {
			if j.slot == noSlot {
				j.slot = now + earliest(f, 0, j.p, j.wall)
				add(f, j.slot-now, j.wall, -j.p)
			}
			if j.slot == now {
				r.start(now, j, started)
			}
		}
	}
	var behind []*refJob
	for _, j := range r.waiting(now, false) {
		if !j.within {
			behind = append(behind, j)
		}
	}
	r.fitAround(now, behind, started)
}

func (r *reference) replan(now int, remote bool, started *[]job.AttemptID) {
	q := r.waiting(now, remote)
	if !remote {
		q = r.protected(now)
	}
	slots, _ := r.plan(now, q, r.surface(now), 0, false)
	for i, j := range q {
		if !remote {
			j.slot = slots[i]
		}
		if slots[i] == now {
			r.start(now, j, started)
		}
	}
}

func (r *reference) conservative(now int, started *[]job.AttemptID) {
	for _, j := range r.waiting(now, false) {
		if j.slot != noSlot && j.slot <= now && j.p <= r.free() {
			r.start(now, j, started)
		}
	}
	r.moveWindow()
	q := r.protected(now)
	// A copy that can keep its slot beside what runs and those ahead keeps it.
	f := r.surface(now)
	for _, j := range q {
		if j.slot == noSlot {
			continue
		}
		if j.slot <= now || !fitsAt(f, j.slot-now, j.p, j.wall) {
			j.slot = now + earliest(f, 0, j.p, j.wall)
		}
		add(f, j.slot-now, j.wall, -j.p)
	}
	for _, j := range q {
		if r.ended && j.slot != noSlot {
			add(f, j.slot-now, j.wall, j.p)
			j.slot = now + earliest(f, 0, j.p, j.wall)
			add(f, j.slot-now, j.wall, -j.p)
		}
	}
	for _, j := range q {
		if j.slot == noSlot {
			j.slot = now + earliest(f, 0, j.p, j.wall)
			add(f, j.slot-now, j.wall, -j.p)
		}
	}
	for _, j := range q {
		if j.slot == now {
			r.start(now, j, started)
		}
	}
}

// earliestStart is the metric start: all that goes before is placed in order.
// A standing plan counts as long as it can be kept.
func (r *reference) earliestStart(now int, c entry) int {
	f := r.surface(now)
	remote := c.remote && r.cfg.Queues != Single
	inOrder, floor := r.cfg.Backfill == NoBackfill, 0
	if slots, left := r.standingPlan(now); slots {
		f = left
		for _, j := range r.waiting(now, false) {
			if !j.within {
				add(f, earliest(f, 0, j.p, j.wall), j.wall, -j.p)
			}
		}
	} else {
		_, floor = r.plan(now, r.waiting(now, false), f, 0, inOrder)
	}
	if remote && r.cfg.KeepFree > 0 {
		return r.startOfGuest(now, f, int(r.cfg.charge(c.processors, c.memoryBytes)), int(c.walltime/1e9))
	}
	if remote {
		inOrder = inOrder && r.cfg.Queues == DualStrict
		_, floor = r.plan(now, r.waiting(now, true), f, floor, inOrder)
	}
	if !inOrder {
		floor = 0
	}
	return now + earliest(f, floor, int(r.cfg.charge(c.processors, c.memoryBytes)), int(c.walltime/1e9))
}

// startOfGuest is when a guest starts that comes now to where processors are kept free of guests,
// given what the local jobs leave: it has room among guests, too. It is noSlot if it never has.
func (r *reference) startOfGuest(now int, f []int, p, wall int) int {
	most := int(r.cfg.Processors - r.cfg.KeepFree)
	room := make([]int, len(f))
	add(room, 0, len(room), most)
	for _, j := range r.jobs {
		if j.state != queued && j.remote {
			add(room, 0, max(j.end-now, 1), -j.p)
		}
	}
	both := func(p, wall int) int {
		i := 0
		for !fitsAt(f, i, p, wall) || !fitsAt(room, i, p, wall) {
			i++
		}
		return i
	}
	for _, j := range r.waiting(now, true) {
		if j.p > most {
			continue
		}
		at := both(j.p, j.wall)
		add(f, at, j.wall, -j.p)
		add(room, at, j.wall, -j.p)
	}
	if p > most {
		return noSlot
	}
	return now + both(p, wall)
}

// standingPlan returns what the recorded slots leave free, if they can all be kept.
func (r *reference) standingPlan(now int) (ok bool, f []int) {
	if r.cfg.Backfill != Conservative || r.draining || r.ended || r.free() < 0 {
		return false, nil
	}
	for _, j := range r.jobs {
		if j.state != queued && j.end <= now {
			return false, nil
		}
	}
	for _, j := range r.protected(now) {
		if j.slot == noSlot || j.slot <= now {
			return false, nil
		}
	}
	_, f = r.localPlan(now)
	return true, f
}

// load is the metrics work (in processor-seconds) and procs (in processors).
func (r *reference) load(now int) (work, procs int) {
	for _, j := range r.jobs {
		if r.away(j) {
			continue
		}
		procs += j.p
		if j.state == queued {
			work += j.p * j.wall
		} else {
			work += j.p * max(0, j.end-now)
		}
	}
	return work, procs
}
