package sim

import (
	"slices"

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
	// liars are sites that are not held to anything, nor are others for what
	// happens to their jobs.
	liars map[job.SiteID]bool
	// gone counts acknowledged jobs that were lost with the only disk that had them.
	gone int
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
		x.broken = x.w.violation(format, args...)
		x.w.trace("VIOLATION %v", x.broken)
	}
}

// sent watches the verdicts that leave a site.
func (x *watch) sent(_ *Site, f meta.Send) {
	if !x.w.cfg.Check {
		return
	}
	v, ok := f.Message.(meta.Verdict)
	if !ok || !v.Granted || x.liars[v.Attempt.Job.Origin] {
		return
	}
	if holder, again := x.grants[v.Attempt]; again && holder != f.To {
		x.violate("S1: attempt %v was granted to %s and to %s", v.Attempt, holder, f.To)
	}
	x.grants[v.Attempt] = f.To
}

// started watches the processes.
func (x *watch) started(p *process) {
	if !x.w.cfg.Check {
		return
	}
	a := p.attempt
	if x.liars[p.s.cfg.ID] || x.liars[a.Job.Origin] {
		return
	}
	if other := x.running[a.Job]; other != nil && !p.race {
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
	if end, ok := x.ends[a.Job]; ok && !p.race {
		x.violate("S3: job %v is %v and starts at %s", a.Job, end, p.s.cfg.ID)
	}
}

func (x *watch) ended(p *process) {
	if !x.w.cfg.Check {
		return
	}
	if x.running[p.attempt.Job] == p {
		delete(x.running, p.attempt.Job)
	}
}

// changed watches what a site shows of its jobs, which is durable.
func (x *watch) changed(s *Site, f meta.Changed) {
	if !x.w.cfg.Check {
		return
	}
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
	if x.w.cfg.Check && !x.acks[id] {
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

// booted checks that what was acknowledged is still there: S5.
func (x *watch) booted(s *Site) {
	if !x.w.cfg.Check {
		return
	}
	for _, id := range x.order {
		if id.Origin == s.cfg.ID && s.state.Job(id) == nil {
			x.violate("S5: acknowledged job %v is lost in a restart of site %s", id, s.cfg.ID)
		}
	}
}

// wiped forgets the jobs whose only record was on a disk that is gone.
func (x *watch) wiped(s *Site) {
	n := len(x.order)
	x.order = slices.DeleteFunc(x.order, func(id job.ID) bool { return id.Origin == s.cfg.ID })
	x.gone += n - len(x.order)
}

// Distrust exempts a site, and all that concerns its jobs, from the
// invariants: it may say anything.
func (w *World) Distrust(id job.SiteID) {
	if w.watch.liars == nil {
		w.watch.liars = make(map[job.SiteID]bool)
	}
	w.watch.liars[id] = true
}

// LostWithDisk returns how many acknowledged jobs were lost with the only disk
// that had them.
func (w *World) LostWithDisk() int { return w.watch.gone }

// Acknowledged returns the jobs that clients were told of, in that order. They
// are noted only if [Config.Check] is set.
func (w *World) Acknowledged() []job.ID { return w.watch.order }

// CheckEnded returns an error unless every acknowledged job has ended once, no
// process runs, and no site holds a copy any more: L1 and L2, once all faults
// are over.
func (w *World) CheckEnded() error {
	if w.watch.broken != nil {
		return w.watch.broken
	}
	for _, s := range w.sites {
		if !s.Up() || s.frozen {
			return w.violation("L1: site %s is down", s.cfg.ID)
		}
	}
	for _, id := range w.watch.order {
		if w.watch.liars[id.Origin] {
			continue
		}
		j := w.byID[id.Origin].state.Job(id)
		if j == nil {
			return w.violation("S5: acknowledged job %v is lost", id)
		}
		if !j.State.Terminal() {
			return w.violation("L1: job %v is %v at %q (sites %v, attempt %d)", id, j.State, j.Holder, j.Sites, j.Attempt)
		}
	}
	for id, p := range w.watch.running {
		return w.violation("L1: job %v still runs at %s", id, p.s.cfg.ID)
	}
	for _, s := range w.sites {
		if n := s.state.CopyCount(); n > 0 {
			return w.violation("L2: site %s still holds %d copies", s.cfg.ID, n)
		}
	}
	return nil
}
