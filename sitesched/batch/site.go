package batch

import (
	"iter"
	"slices"
	"time"

	"kith/internal/job"
)

// Site is a plan of what a batch system holds. It belongs to one goroutine.
type Site struct {
	processors int32
	copies     map[job.AttemptID]*entry
	// turns are the copies that the batch system has started, in that order,
	// and that were not proposed yet.
	turns    []job.AttemptID
	proposed []job.AttemptID // scratch
	draining bool
	aside    map[job.SiteID]bool // origins whose copies are set aside

	// What is queued, and queued or running, for [Site.Load].
	waiting  int64 // processor-seconds
	charge   int64 // processors
	queued   int32 // copies set aside are not among them
	reserved int32 // processors of copies that are reserved or run
}

// entry is a copy of which the batch system was told.
type entry struct {
	copy  job.Copy
	phase phase
	// until is the time before which it is not proposed.
	until job.Time
	since job.Time // it runs, or was begun, at
}

type phase uint8

const (
	queued phase = iota
	reserved
	running
	aside // with its origin
)

// holds reports whether a copy has processors.
func (p phase) holds() bool { return p == reserved || p == running }

// New returns a site without copies. The batch system has that many processors, or none.
func New(processors int32) *Site {
	return &Site{processors: processors, copies: make(map[job.AttemptID]*entry), aside: make(map[job.SiteID]bool)}
}

// work is what a copy keeps busy, in processor-seconds.
func (e *entry) work() int64 {
	return int64(e.copy.Request.Processors) * int64((e.copy.Request.Walltime+time.Second-1)/time.Second)
}

// move changes the phase of an entry and the sums with it.
func (s *Site) move(e *entry, to phase) {
	s.count(e, -1)
	e.phase = to
	s.count(e, 1)
}

func (s *Site) count(e *entry, sign int32) {
	if e.phase == aside {
		return
	}
	s.charge += int64(sign) * int64(e.copy.Request.Processors)
	if e.phase == queued {
		s.queued += sign
		s.waiting += int64(sign) * e.work()
		return
	}
	s.reserved += sign * e.copy.Request.Processors
}

func (s *Site) add(c job.Copy, p phase, since job.Time) {
	if s.copies[c.ID] != nil {
		return
	}
	if p == queued && s.aside[c.ID.Job.Origin] {
		p = aside
	}
	e := &entry{copy: c, phase: p, since: since}
	s.copies[c.ID] = e
	s.count(e, 1)
}

func (s *Site) remove(id job.AttemptID) {
	e := s.copies[id]
	if e == nil {
		return
	}
	s.count(e, -1)
	delete(s.copies, id)
	s.void(id)
}

// void forgets that the turn of a copy has come.
func (s *Site) void(id job.AttemptID) {
	if i := slices.Index(s.turns, id); i >= 0 {
		s.turns = slices.Delete(s.turns, i, i+1)
	}
}

// Refuse says why a request could never start here.
func (s *Site) Refuse(r *job.Request) job.Reason {
	if r.Processors > s.processors {
		return job.TooNarrow
	}
	return job.NoReason
}

// Enqueue queues a copy.
func (s *Site) Enqueue(_ job.Time, c job.Copy) { s.add(c, queued, 0) }

// Withdraw forgets a queued or reserved copy.
func (s *Site) Withdraw(_ job.Time, id job.AttemptID) {
	if e := s.copies[id]; e != nil && e.phase != running {
		s.remove(id)
	}
}

// Turn takes up that the batch system has started what waits there for a copy.
func (s *Site) Turn(_ job.Time, id job.AttemptID) {
	if e := s.copies[id]; e != nil && e.phase == queued && !s.draining && !slices.Contains(s.turns, id) {
		s.turns = append(s.turns, id)
	}
}

// Pass proposes the copies whose turn has come.
func (s *Site) Pass(now job.Time) []job.AttemptID {
	s.proposed = s.proposed[:0]
	s.turns = slices.DeleteFunc(s.turns, func(id job.AttemptID) bool {
		e := s.copies[id]
		if e.until > now {
			return false
		}
		s.move(e, reserved)
		e.since = now
		s.proposed = append(s.proposed, id)
		return true
	})
	return s.proposed
}

// Confirm says that a reserved or adopted copy runs since a time.
func (s *Site) Confirm(_ job.Time, id job.AttemptID, since job.Time) {
	if e := s.copies[id]; e != nil && e.phase.holds() {
		s.move(e, running)
		e.since = since
	}
}

// Postpone puts a reserved copy back into the queue, where its turn must come
// anew, not to be proposed before until. For a queued copy it sets until anew.
func (s *Site) Postpone(_ job.Time, id job.AttemptID, until job.Time) {
	e := s.copies[id]
	if e == nil || e.phase == running {
		return
	}
	e.until = until
	if e.phase != reserved {
		return
	}
	if s.move(e, queued); s.aside[id.Job.Origin] {
		s.move(e, aside)
	}
}

// SetAside takes all queued copies of an origin, and those that will come, out
// of what waits for its turn, until BringBack. A second call sets the copy aside
// again that Probe put back.
func (s *Site) SetAside(_ job.Time, origin job.SiteID) {
	s.aside[origin] = true
	for _, e := range s.copies {
		if e.phase == queued && e.copy.ID.Job.Origin == origin {
			s.move(e, aside)
		}
	}
	s.turns = slices.DeleteFunc(s.turns, func(id job.AttemptID) bool { return id.Job.Origin == origin })
}

// BringBack has the copies of an origin that were set aside wait for their turn.
func (s *Site) BringBack(_ job.Time, origin job.SiteID) {
	if !s.aside[origin] {
		return
	}
	delete(s.aside, origin)
	for _, e := range s.copies {
		if e.phase == aside && e.copy.ID.Job.Origin == origin {
			s.move(e, queued)
		}
	}
}

// Probe has one copy that was set aside wait for its turn all the same.
func (s *Site) Probe(_ job.Time, id job.AttemptID) {
	if e := s.copies[id]; e != nil && e.phase == aside {
		s.move(e, queued)
	}
}

// Finish forgets a reserved or running copy that ended.
func (s *Site) Finish(_ job.Time, id job.AttemptID) {
	if e := s.copies[id]; e != nil && e.phase.holds() {
		s.remove(id)
	}
}

// Adopt takes up a copy that was begun before a restart.
func (s *Site) Adopt(_ job.Time, c job.Copy, begun job.Time) { s.add(c, running, begun) }

// Drain stops or resumes starting. What the batch system has started leaves.
func (s *Site) Drain(_ job.Time, on bool) {
	s.draining = on
	if on {
		s.turns = nil
	}
}

// Predict says when c would start. All that can be said of a batch system is how
// long what it was given would keep it busy.
func (s *Site) Predict(now job.Time, c job.Copy) (job.Time, bool) { return s.EarliestStart(now, c) }

// EarliestStart is now if c fits beside all that is there, and else when all
// that is there has run.
func (s *Site) EarliestStart(now job.Time, c job.Copy) (job.Time, bool) {
	if c.Request.Processors > s.processors {
		return 0, false
	}
	if s.charge+int64(c.Request.Processors) <= int64(s.processors) {
		return now, true
	}
	return now.Add(time.Duration(s.Load(now).Work * float64(time.Second))), true
}

// StartsAtOnce reports whether c fits beside all that is there.
func (s *Site) StartsAtOnce(_ job.Time, c job.Copy) bool {
	return s.charge+int64(c.Request.Processors) <= int64(s.processors)
}

// Behind reports nothing: no depth bounds guarantees of which there are none.
func (s *Site) Behind(job.AttemptID) bool { return false }

// Starts yields nothing: when the batch system starts what is a matter of its own.
func (s *Site) Starts(job.Time, int) iter.Seq2[job.AttemptID, job.Time] {
	return func(func(job.AttemptID, job.Time) bool) {}
}

// Overfull implements meta.Site: what starts is the batch system's to say.
func (s *Site) Overfull(job.Time) bool { return false }

// HomeWaits implements meta.Site: a batch system runs no pilots that could make room.
func (s *Site) HomeWaits(job.Time) int { return 0 }

// HomeStarts implements meta.Site, as HomeWaits does.
func (s *Site) HomeStarts(job.Time, []job.AttemptID) bool { return false }

// Load is how loaded the site is with what it was given. What others have given
// to the same batch system is not in it.
func (s *Site) Load(now job.Time) job.Load {
	l := job.Load{Queued: s.queued, Free: max(0, s.processors-s.reserved)}
	work := s.waiting
	for _, e := range s.copies {
		if e.phase.holds() {
			l.Running++
			work += max(0, e.work()-int64(e.copy.Request.Processors)*int64(now.Sub(e.since)/time.Second))
		}
	}
	of := float64(max(1, s.processors)) // nothing is queued where there are none
	l.Work, l.Procs = float64(work)/of, float64(s.charge)/of
	return l
}

// NextWake is when a copy whose turn has come need not wait any longer.
func (s *Site) NextWake(job.Time) job.Time {
	wake := job.Never
	for _, id := range s.turns {
		wake = min(wake, s.copies[id].until)
	}
	return wake
}
