package sitesched

import (
	"time"

	"kith/internal/job"
)

// Shadow is the schedule that a site's own jobs would have had without guests and without
// other sites: a second scheduler of the same discipline with one queue, told of home jobs
// only, wherever they really ran. It is told when each comes, leaves, and how long it ran, and
// says when it would have started.
//
// It cannot know how long a job runs that has not ended, and must not guess: it follows as far
// as run times are known and no further. A job that starts in it holds it up until its run
// time is known ([Shadow.Ran]), or until it has run there for longer than the shadow has got
// to ([Shadow.Runs]). How far it has got is what [Shadow.Advance] returns.
//
// Facts may come late and in any order, as long as the shadow has not passed their instants;
// what has happened there by then happens at once. Of one instant, ends come before leaves
// before arrivals, as everywhere. Of the run time of a job what exceeds its walltime counts for
// nothing, as that is its limit there, too. It is not safe for concurrent use.
type Shadow struct {
	s     *Scheduler
	clock job.Time
	jobs  []shadowJob
	spare []int32
	slots map[job.AttemptID]int32 // the latest of a name
	owner []int32                 // whose a row of the scheduler is
	open  []int32                 // that run there with an unknown run time
	coming
	seq uint64
}

// shadowJob is a home job in the shadow.
type shadowJob struct {
	copy    job.Copy
	began   job.Time      // in the shadow
	ran     time.Duration // how long it runs in all, or has run at least
	known   bool          // that it is all
	state   state         // vacant before it comes
	row     int32         // of the scheduler, once it has come
	over    bool          // it has left, or ended
	pending int           // moments that name it
}

// NewShadow returns the shadow of a site of which nothing has happened. The error wraps
// [ErrConfig].
func NewShadow(c Config) (*Shadow, error) {
	c.Queues, c.Scope, c.StartMargin, c.Patience = Single, ScopeHead, 0, 0
	s, err := New(c)
	if err != nil {
		return nil, err
	}
	s.notes = noteSlots
	return &Shadow{s: s, slots: make(map[job.AttemptID]int32)}, nil
}

// Arrive says that a home job comes at an instant: it may start from then on. One that can
// never run here is left out, and so is one that is there already. One that has left may come
// again, as after a hold.
func (w *Shadow) Arrive(c job.Copy, at job.Time) {
	if slot, known := w.slots[c.ID]; known && !w.jobs[slot].over && !w.departs(slot) || w.s.cfg.Fits(&c.Request) != nil {
		return
	}
	var slot int32
	if n := len(w.spare); n > 0 {
		slot, w.spare = w.spare[n-1], w.spare[:n-1]
	} else {
		slot = int32(len(w.jobs)) //nolint:gosec // 2^31 jobs need more memory than there is.
		w.jobs = append(w.jobs, shadowJob{})
	}
	c.Remote, c.Elder = false, false
	w.jobs[slot] = shadowJob{copy: c}
	w.slots[c.ID] = slot
	w.plan(at, arrives, slot)
}

// Leave says that a home job goes at an instant without having ended of itself: it is
// cancelled, or held. It leaves its queue in the shadow, or ends there if it runs; how long it
// would have run nobody knows, so that it runs until then, or until its limit.
func (w *Shadow) Leave(id job.AttemptID, at job.Time) {
	if slot, known := w.slots[id]; known && !w.jobs[slot].over {
		w.plan(at, leaves, slot)
		w.Ran(id, job.MaxWalltime)
	}
}

// Ran says how long a home job ran in all, on processors of this site's speed.
func (w *Shadow) Ran(id job.AttemptID, run time.Duration) {
	slot, known := w.slots[id]
	if !known || w.jobs[slot].over || w.jobs[slot].known {
		return
	}
	j := &w.jobs[slot]
	j.ran, j.known = run, true
	if j.state == running {
		w.plan(w.ends(j), ends, slot)
	}
}

// Runs says that a home job has run for so long and has not ended.
func (w *Shadow) Runs(id job.AttemptID, least time.Duration) {
	if slot, known := w.slots[id]; known && !w.jobs[slot].known {
		j := &w.jobs[slot]
		j.ran = max(j.ran, least)
	}
}

// Drain says that from an instant on nothing starts here, or that it does again: that is so with
// guests and without.
func (w *Shadow) Drain(on bool, at job.Time) {
	kind := resumes
	if on {
		kind = drains
	}
	w.seq++
	w.push(moment{max(at, w.clock), w.seq, gap, kind})
}

// Reached returns how far the shadow has got.
func (w *Shadow) Reached() job.Time { return w.clock }

// Advance follows what is known up to an instant at most, calls started for each job that
// starts on the way, in order, and returns how far it has got.
func (w *Shadow) Advance(until job.Time, started func(id job.AttemptID, at job.Time)) job.Time {
	held := job.Never
	kept := w.open[:0]
	for _, slot := range w.open {
		if j := &w.jobs[slot]; !j.over && !j.known {
			kept = append(kept, slot)
			held = min(held, w.holds(slot))
		}
	}
	w.open = kept
	for {
		now := min(w.first(), w.s.NextWake(w.clock))
		now = max(now, w.clock)
		if now > min(until, held) {
			w.clock = max(w.clock, min(until, held))
			return w.clock
		}
		w.clock = now
		for w.first() <= now {
			w.happen(now, w.pop())
		}
		w.s.begun = w.s.begun[:0]
		w.s.Pass(now)
		for _, row := range w.s.begun {
			w.s.confirm(now, row)
			slot := w.owner[row]
			j := &w.jobs[slot]
			j.state, j.began = running, now
			started(j.copy.ID, now)
			if j.known {
				w.plan(w.ends(j), ends, slot)
				continue
			}
			w.open = append(w.open, slot)
			held = min(held, w.holds(slot))
		}
	}
}

// holds returns up to when a job whose run time is not known may be followed. One that has
// run for its walltime ends there.
func (w *Shadow) holds(slot int32) job.Time {
	j := &w.jobs[slot]
	if limit := w.limit(j); j.ran >= limit {
		j.ran, j.known = limit, true
		w.plan(w.ends(j), ends, slot)
		return job.Never
	}
	return j.began.Add(j.ran)
}

func (w *Shadow) limit(j *shadowJob) time.Duration {
	e := entryOf(&j.copy)
	return walltime(&e)
}

// ends returns when a job that runs in the shadow ends there.
func (w *Shadow) ends(j *shadowJob) job.Time { return j.began.Add(max(min(j.ran, w.limit(j)), 1)) }

// happen lets one moment happen.
func (w *Shadow) happen(now job.Time, m moment) {
	if m.slot == gap {
		w.s.Drain(now, m.kind == drains)
		return
	}
	j := &w.jobs[m.slot]
	j.pending--
	switch {
	case j.over:
	case m.kind == arrives:
		w.arrive(now, m.slot)
	case j.state == running:
		w.s.clock = now
		w.s.vacate(now, j.row)
		w.s.forget(j.row)
		j.over = true
	case m.kind == leaves:
		if j.state == queued {
			w.s.Withdraw(now, j.copy.ID)
		}
		j.over = true
	}
	if j.over && j.pending == 0 {
		if w.slots[j.copy.ID] == m.slot {
			delete(w.slots, j.copy.ID)
		}
		w.spare = append(w.spare, m.slot)
	}
}

// arrive lets a job come.
func (w *Shadow) arrive(now job.Time, slot int32) {
	j := &w.jobs[slot]
	w.s.Enqueue(now, j.copy)
	j.state, j.row = queued, w.s.recent
	if n := int(j.row) + 1 - len(w.owner); n > 0 {
		w.owner = append(w.owner, make([]int32, n)...)
	}
	w.owner[j.row] = slot
}

// plan has something happen to a job at an instant, or at once if that is over.
func (w *Shadow) plan(at job.Time, kind momentKind, slot int32) {
	w.jobs[slot].pending++
	w.seq++
	w.push(moment{max(at, w.clock), w.seq, slot, kind})
}

// momentKind is what happens to a job or, of the last two, to the site, in the order within an
// instant.
type momentKind uint8

const (
	ends momentKind = iota
	leaves
	arrives
	resumes
	drains
)

// moment is something that happens to one job, or to the site if slot is gap.
type moment struct {
	at   job.Time
	seq  uint64
	slot int32
	kind momentKind
}

func (m *moment) before(o *moment) bool {
	switch {
	case m.at != o.at:
		return m.at < o.at
	case m.kind != o.kind:
		return m.kind < o.kind
	}
	return m.seq < o.seq
}

// coming is a heap of what is to happen, the first on top.
type coming struct{ list []moment }

func (h *coming) first() job.Time {
	if len(h.list) == 0 {
		return job.Never
	}
	return h.list[0].at
}

// departs reports whether a job is about to leave.
func (h *coming) departs(slot int32) bool {
	for i := range h.list {
		if h.list[i].slot == slot && h.list[i].kind == leaves {
			return true
		}
	}
	return false
}

func (h *coming) push(m moment) {
	h.list = append(h.list, m)
	i := len(h.list) - 1
	for up := (i - 1) / 2; i > 0 && m.before(&h.list[up]); i, up = up, (up-1)/2 {
		h.list[i] = h.list[up]
	}
	h.list[i] = m
}

func (h *coming) pop() moment {
	top, n := h.list[0], len(h.list)-1
	m := h.list[n]
	h.list = h.list[:n]
	i := 0
	for {
		c := 2*i + 1
		if c >= n {
			break
		}
		if c+1 < n && h.list[c+1].before(&h.list[c]) {
			c++
		}
		if m.before(&h.list[c]) {
			break
		}
		h.list[i] = h.list[c]
		i = c
	}
	if n > 0 {
		h.list[i] = m
	}
	return top
}
