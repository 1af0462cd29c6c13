package sitesched

import (
	"errors"
	"time"

	"kith/internal/forecast"
	"kith/internal/job"
)

// notes says what is noted of the copies that a pass starts.
type notes uint8

const (
	noteNames notes = iota
	noteNothing
	noteSlots
)

// Draws are what one scenario makes up, by the numbers of a [Player].
type Draws = forecast.Draws

// ErrNoStart is returned when a copy does not start as things are: the site drains, or the
// copy is set aside.
var ErrNoStart = errors.New("does not start as things are")

// DefaultScenarioSteps bounds what the scenarios of one forecast may take together; a step
// takes 10 to 20 ns. It is enough for 50 scenarios among some thousands of queued copies.
const DefaultScenarioSteps = 1 << 26

// Player is a copy of a scheduler that plays scenarios of when a copy starts: the very
// scheduler, with run times that are drawn instead of the limits, and with copies that come
// in meanwhile. It is a [forecast.Scene]. The zero value is usable, see [Scheduler.Prepare]. It shares nothing with
// the scheduler, so that another goroutine may play.
//
// Whatever the scope of the site is, scenarios play [ScopeHead]: it costs a hundredth of
// [ScopeAll] in a long queue and forecasts as well.
type Player struct {
	base, trial Scheduler
	now         job.Time
	target      int32
	ends        endHeap
	left, each  int64           // steps for all scenarios, and for one at most
	coming      []time.Duration // run times of arrivals, by slot less the first of them
	first       int32           // slot of the first arrival
}

// Prepare makes p a copy of s in which c waits: the one known here under its name, else c
// arrives now. If c names one that is queued here and asks for something else, the queued one
// is gone and c arrives now in its place; a c without processors asks for nothing. All
// scenarios together have that many steps, zero being [DefaultScenarioSteps]. The error wraps
// [ErrStarted], [ErrTooWide] or [ErrNoStart].
func (s *Scheduler) Prepare(now job.Time, c *job.Copy, steps int64, p *Player) error {
	slot, known := s.lookup(&c.ID)
	replaced := known && s.table.rows[slot].copy.differs(c)
	switch {
	case known && s.table.rows[slot].state.holds():
		return ErrStarted
	case s.draining || known && s.table.rows[slot].state == aside:
		return ErrNoStart
	case !known || replaced:
		if err := s.cfg.Fits(&c.Request); err != nil {
			return err
		}
	}
	if steps == 0 {
		steps = DefaultScenarioSteps
	}
	b := &p.base
	b.copyFrom(s)
	b.notes = noteSlots
	b.foresee(now)
	if replaced {
		b.dequeue(slot)
		b.table.release(slot)
	}
	if b.cfg.Scope == ScopeAll {
		b.narrow()
	}
	if !known || replaced {
		e := entryOf(c)
		e.arrival = now
		slot = b.table.add(&e, s.chargeOf(&e))
		b.table.rows[slot].probe = true // the question is not about its origin
		b.admit(slot)
	}
	p.now, p.target, p.left, p.each = now, slot, steps, steps
	return nil
}

// longScenario is the part of the steps of a forecast that one of its scenarios may take: of
// those that take more there could not be enough.
const longScenario = 8

// Foresee hands out a copy of s in which c waits, see [Scheduler.Prepare]. All scenarios
// together have that many steps, and one of them an eighth of it. used is a scene of this
// method that is played no more, or nil: its memory is used again.
func (s *Scheduler) Foresee(now job.Time, c *job.Copy, steps int64, used forecast.Scene) (forecast.Scene, error) {
	p, ok := used.(*Player)
	if !ok {
		p = &Player{}
	}
	if err := s.Prepare(now, c, steps, p); err != nil {
		return nil, err
	}
	p.each = p.left / longScenario
	return p, nil
}

// Left is how many steps are left for scenarios.
func (p *Player) Left() int64 { return p.left }

// narrow changes the scope to the head.
func (s *Scheduler) narrow() {
	s.cfg.Scope = ScopeHead
	s.settle()
	s.local.depth = s.cfg.depth()
	s.local.advance()
	s.disturb()
}

// Copies yields the copies that hold processors or wait, each with its number, which is below
// [Player.Numbers], and whether it is the one that is asked about. They lack the words of
// their requests.
func (p *Player) Copies(yield func(number int32, c job.Copy) bool) {
	for i := range p.base.table.rows {
		r := &p.base.table.rows[i]
		if (r.state.holds() || r.state == queued) && !yield(int32(i), r.copy.copy()) { //nolint:gosec // 2^31 copies need more memory than there is.
			return
		}
	}
}

// Numbers is what all numbers of copies are below.
func (p *Player) Numbers() int { return len(p.base.table.rows) }

// Play plays one scenario and returns when the copy starts; [job.Never] if nothing that
// happens makes it start. It is false if the steps are used up.
func (p *Player) Play(d Draws) (start job.Time, ok bool) { return p.PlayUntil(d, job.Never) }

// PlayUntil is Play of a scenario of which nothing more is asked than whether the copy starts
// before an instant: if it does not, that instant is returned. A guest may wait behind those
// that come in for as long as any come.
func (p *Player) PlayUntil(d Draws, until job.Time) (start job.Time, ok bool) {
	t := &p.trial
	t.copyFrom(&p.base)
	p.ends, p.coming, p.first = p.ends[:0], p.coming[:0], int32(len(t.table.rows)) //nolint:gosec // See Copies.
	now := p.now
	for _, set := range [...]*runSet{&t.run, &t.guests.run} {
		for _, it := range set.items() {
			r := &t.table.rows[it.slot]
			if r.waits {
				continue // it has its turn, and starts in the first pass
			}
			run := d.Run(it.slot, max(now.Sub(r.since), 0))
			p.ends = append(p.ends, realEnd{min(max(r.since.Add(run), now+1), r.end), it.slot})
		}
	}
	p.ends.order()
	next, more := d.Next()
	began := t.work() - int64(len(t.table.rows)) // to copy a row is a step, too
	for most := min(p.left, p.each); ; {
		t.begun = t.begun[:0]
		t.pass(now)
		if t.table.rows[p.target].state != queued {
			p.left -= t.work() - began
			return now, true
		}
		p.begin(now, d)
		at := min(t.NextWake(now), t.eligible, p.ends.first())
		if more {
			at = min(at, next.At)
		}
		at = max(at, now)
		if took := t.work() - began; at == job.Never || took > most {
			p.left -= took
			return min(at, until), at == job.Never && took <= most
		}
		if at >= until {
			p.left -= t.work() - began
			return until, true
		}
		for now = at; p.ends.first() <= now; {
			if slot := p.ends.pop().slot; t.table.rows[slot].state.holds() { // else it was evicted
				t.vacate(now, slot)
			}
		}
		for ; more && next.At <= now; next, more = d.Next() {
			p.arrive(&next)
		}
		// The pass itself, and its search for t*.
		t.passSteps += 5 + int64(len(t.run.items())>>groupBits)
	}
}

// begin draws when those end that the pass has started.
func (p *Player) begin(now job.Time, d Draws) {
	t := &p.trial
	for _, slot := range t.begun {
		t.confirm(now, slot)
		r := &t.table.rows[slot]
		var run time.Duration
		if slot < p.first {
			run = d.Run(slot, 0)
		} else {
			run = p.coming[slot-p.first]
		}
		p.ends.push(realEnd{min(now.Add(max(run, 1)), r.end), slot})
	}
}

// arrive lets a copy come in that is made up. One that can never run here does not.
func (p *Player) arrive(a *forecast.Arrival) {
	t := &p.trial
	t.clock = a.At
	e := entry{
		processors: max(a.Procs, 1), memoryBytes: a.MemoryBytes, walltime: a.Limit, arrival: a.At, remote: a.Remote,
		id: job.AttemptID{Job: job.ID{Seq: uint64(len(p.coming)) + 1}, Number: 1},
	}
	charge := t.chargeOf(&e)
	if charge > t.cfg.Processors {
		return
	}
	t.table.vacant = t.table.vacant[:0] // numbers of those that are made up go on behind the others
	t.admit(t.table.add(&e, charge))
	p.coming = append(p.coming, a.Run)
}

// realEnd is when a copy really ends.
type realEnd struct {
	at   job.Time
	slot int32
}

// endHeap is a heap of real ends, the first on top; of two at one instant that with the lower
// slot.
type endHeap []realEnd

func (e realEnd) before(o realEnd) bool { return e.at < o.at || e.at == o.at && e.slot < o.slot }

func (h endHeap) first() job.Time {
	if len(h) == 0 {
		return job.Never
	}
	return h[0].at
}

func (h endHeap) order() {
	for i := len(h)/2 - 1; i >= 0; i-- {
		h.sink(i, h[i])
	}
}

func (h *endHeap) push(e realEnd) {
	*h = append(*h, e)
	list, i := *h, len(*h)-1
	for i > 0 && e.before(list[(i-1)/2]) {
		list[i] = list[(i-1)/2]
		i = (i - 1) / 2
	}
	list[i] = e
}

func (h *endHeap) pop() realEnd {
	list := *h
	top, n := list[0], len(list)-1
	last := list[n]
	*h = list[:n]
	if n > 0 {
		h.sink(0, last)
	}
	return top
}

// sink puts e at place i, or below.
func (h endHeap) sink(i int, e realEnd) {
	for {
		c := 2*i + 1
		if c >= len(h) {
			break
		}
		if c+1 < len(h) && h[c+1].before(h[c]) {
			c++
		}
		if e.before(h[c]) {
			break
		}
		h[i] = h[c]
		i = c
	}
	h[i] = e
}
