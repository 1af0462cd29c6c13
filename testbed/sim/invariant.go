package sim

import (
	"fmt"

	"kith/internal/job"
	"kith/meta"
)

// watch checks the invariants of the design (docs/architecture.md) from the
// outside: by what leaves the sites and what runs on their machines, not by
// what the engines believe.
type watch struct {
	w      *World
	broken error

	// grants are the verdicts that left: S1.
	grants map[job.AttemptID]job.SiteID
	// running is the process of each job that runs now: S2. starts counts all.
	running map[job.ID]*process
	starts  map[job.AttemptID]int
	// ends are the states in which jobs were seen closed: S3.
	ends map[job.ID]job.State
	// acks are the jobs that clients were told of: S5.
	acks  map[job.ID]bool
	order []job.ID
}

func (x *watch) init(w *World) {
	x.w = w
	x.grants = make(map[job.AttemptID]job.SiteID)
	x.running = make(map[job.ID]*process)
	x.starts = make(map[job.AttemptID]int)
	x.ends = make(map[job.ID]job.State)
	x.acks = make(map[job.ID]bool)
}

func (x *watch) violate(format string, args ...any) {
	if x.broken == nil {
		x.broken = fmt.Errorf("at %v, seed %d: "+format, append([]any{x.w.now.Sub(Start), x.w.cfg.Seed}, args...)...)
		x.w.trace("VIOLATION %v", x.broken)
	}
}

// sent watches the verdicts that leave a site.
func (x *watch) sent(_ *Site, f meta.Send) {
	v, ok := f.Message.(meta.Verdict)
	if !ok || !v.Granted {
		return
	}
	if holder, again := x.grants[v.Attempt]; again && holder != f.To {
		x.violate("S1: attempt %v was granted to %s and to %s", v.Attempt, holder, f.To)
	}
	x.grants[v.Attempt] = f.To
}

// started watches the processes.
func (x *watch) started(p *process) {
	a := p.attempt
	if other := x.running[a.Job]; other != nil {
		x.violate("S2: %v starts at %s while %v runs at %s", a, p.s.cfg.ID, other.attempt, other.s.cfg.ID)
	}
	x.running[a.Job] = p
	if x.starts[a]++; x.starts[a] > 1 {
		x.violate("S2: attempt %v was started %d times", a, x.starts[a])
	}
	if holder, ok := x.grants[a]; ok && holder != p.s.cfg.ID {
		x.violate("S1: attempt %v was granted to %s and starts at %s", a, holder, p.s.cfg.ID)
	}
	x.grants[a] = p.s.cfg.ID
	if end, ok := x.ends[a.Job]; ok {
		x.violate("S3: job %v is %v and starts at %s", a.Job, end, p.s.cfg.ID)
	}
}

func (x *watch) ended(p *process) {
	if x.running[p.attempt.Job] == p {
		delete(x.running, p.attempt.Job)
	}
}

// changed watches what a site shows of its jobs, which is durable.
func (x *watch) changed(s *Site, f meta.Changed) {
	j := s.state.Job(f.Job)
	if f.Purged || j == nil {
		return
	}
	was, ended := x.ends[f.Job]
	if ended && was != j.State {
		x.violate("S3: job %v was %v and is %v", f.Job, was, j.State)
	}
	// The record in memory may run ahead of the disk; what it shows now is
	// durable at the latest with the next batch, and only then seen here again.
	if j.State.Terminal() && !s.state.Dirty() {
		x.ends[f.Job] = j.State
	}
}

func (x *watch) acknowledged(id job.ID) {
	if !x.acks[id] {
		x.acks[id] = true
		x.order = append(x.order, id)
	}
}

// stepped checks a site from the inside: S6, and S5 as far as it shows.
func (x *watch) stepped(s *Site) {
	if err := s.Scheduler().Check(); err != nil {
		x.violate("S6: site %s: %v", s.cfg.ID, err)
	}
}

// Acknowledged returns the jobs that clients were told of, in that order.
func (w *World) Acknowledged() []job.ID { return w.watch.order }

// CheckEnded returns an error unless every acknowledged job has ended once, no
// process runs, and no site holds a copy any more: L1 and L2, once all faults
// are over.
func (w *World) CheckEnded() error {
	if w.watch.broken != nil {
		return w.watch.broken
	}
	for _, id := range w.watch.order {
		s := w.byID[id.Origin]
		if !s.Up() {
			return fmt.Errorf("seed %d: L1: site %s is down", w.cfg.Seed, id.Origin)
		}
		j := s.state.Job(id)
		if j == nil {
			return fmt.Errorf("seed %d: S5: acknowledged job %v is lost", w.cfg.Seed, id)
		}
		if !j.State.Terminal() {
			return fmt.Errorf("seed %d: L1: job %v is %v at %q (sites %v, attempt %d)", w.cfg.Seed, id, j.State, j.Holder, j.Sites, j.Attempt)
		}
	}
	for id, p := range w.watch.running {
		return fmt.Errorf("seed %d: L1: job %v still runs at %s", w.cfg.Seed, id, p.s.cfg.ID)
	}
	for _, s := range w.sites {
		if n := s.state.CopyCount(); n > 0 {
			return fmt.Errorf("seed %d: L2: site %s still holds %d copies", w.cfg.Seed, s.cfg.ID, n)
		}
	}
	return nil
}
