package sim

import (
	"maps"
	"slices"
	"time"

	"kith/internal/job"
	"kith/meta"
)

// This file holds what goes wrong at a site for longer than a moment: it has
// another configuration, its wall clock was set, it cannot start processes,
// its shims die, its jobs fill its disk.

// wide is the state of all that. The zero value is none.
type wide struct {
	// ahead is how far the wall clock was set.
	ahead job.Time
	// unstartable says that no process can be started, shimless that what is
	// started loses its shim.
	unstartable, shimless bool
	// failing is since when it was unstartable, pausing until when the daemon may
	// not have noticed that it is so no more.
	failing, pausing job.Time
	// fillers are the attempts whose files fill the disk.
	fillers int
	lowDisk
	// gone says that the site never comes back.
	gone bool
	// calls counts what its scheduler did, passes its passes at passAt.
	calls  int64
	passes int
	passAt job.Time
}

// shimLife is how long shims live that die.
const shimLife = 300 * time.Millisecond

// noShim is why a site cannot start processes. It is no outcome of a job.
const noShim = "no shim"

// longestPause is how long a daemon starts nothing, at most, that could not start
// anything; in general no longer than the trouble itself lasted.
const longestPause = 5*time.Minute + 2*time.Second

// Reconfigure changes the configuration of a site for its next daemon.
func (s *Site) Reconfigure(change func(*SiteConfig)) {
	was, _ := s.longestWait()
	change(&s.cfg)
	if now, _ := s.longestWait(); now != was {
		s.mixed = true
	}
	s.w.trace("%s: has another configuration", s.cfg.ID)
}

// Reload has the site's daemon take up another configuration at once, as far as that needs no
// restart; a frozen one does once it goes on.
func (s *Site) Reload(change func(*SiteConfig)) {
	if s.deposed {
		return // another machine leads, which was not told
	}
	if s.frozen {
		s.hold(func() { s.Reload(change) })
		return
	}
	s.Reconfigure(change)
	s.reloads++
	m := &s.cfg.Meta
	s.feed(meta.Reconfigure{Placement: m.Placement, Limits: m.Limits, Timing: m.Timing, Bags: m.Bags, NoHarm: m.NoHarm, Level: m.Level, Peers: s.listed()})
}

// StepClock sets the site's wall clock forward, or back if by is negative. A
// daemon looks at it when it starts.
func (s *Site) StepClock(by time.Duration) {
	s.w.trace("%s: the wall clock is set by %v", s.cfg.ID, by)
	s.ahead += job.Time(by)
	s.w.clocksSet = true
	s.stepMember(job.Time(by))
}

// setClock has the daemon that starts take the time from the wall, but no
// earlier one than an earlier daemon did, as that of kithd does.
func (s *Site) setClock() {
	s.shift = 0
	steady := s.now()
	s.shift = max(s.ahead, s.state.Site().Latest-steady, Start-steady)
}

// Unstartable makes all that the site launches fail for reasons of its own,
// until it is called with false.
func (s *Site) Unstartable(on bool) {
	switch {
	case on == s.unstartable:
	case on:
		s.failing = s.w.now
	default:
		s.pausing = s.w.now.Add(min(s.w.now.Sub(s.failing)+2*time.Second, longestPause))
	}
	s.unstartable = on
	s.upsets++
}

// failToStart answers a launch that could not be carried out.
func (s *Site) failToStart(f meta.Launch, why string) {
	s.w.trace("%s: cannot start %v: %s", s.cfg.ID, f.Attempt, why)
	s.soon(meta.StartFailed{Attempt: f.Attempt, Reason: why})
}

// KillShims makes all that runs at the site end without a result, and what is
// started, until it is called with false.
func (s *Site) KillShims(on bool) {
	s.shimless = on
	s.upsets++
	if !on {
		return
	}
	for _, a := range slices.SortedFunc(maps.Keys(s.procs), job.AttemptID.Compare) {
		p := s.procs[a]
		if p.outcome != nil {
			continue
		}
		s.w.agenda.add(s.w.now, completion, s.w.order(p.attempt.Job), call(func() { p.end(job.Loss, "its shim died") }))
	}
}

// Leave makes the site go away for good.
func (s *Site) Leave() {
	s.Crash()
	s.leaveMembers()
	s.loseProcesses()
	s.gone = true
	s.w.watch.wiped(s)
}

// Gone reports whether the site has left.
func (s *Site) Gone() bool { return s.gone }

// Filling reports whether a job that runs at the site fills its disk.
func (s *Site) Filling() bool {
	for _, p := range s.procs {
		if p.fills && p.outcome == nil {
			return true
		}
	}
	return false
}

// diskFull reports whether a commit would fail.
func (s *Site) diskFull() bool { return s.quorum == nil && (s.full || s.fillers > 0) }

// cleared forgets an attempt and removes its files.
func (s *Site) cleared(a job.AttemptID) {
	delete(s.bringing, a)
	if p := s.procs[a]; p != nil {
		p.empty()
		delete(s.procs, a)
	}
}

// formatted notes that what filled the disk is gone with the disk.
func (s *Site) formatted() {
	for _, p := range s.procs {
		p.fills = false
	}
	s.fillers = 0
}

// empty removes the files with which a process fills the disk.
func (p *process) empty() {
	if p.fills {
		p.fills = false
		p.s.fillers--
	}
}
