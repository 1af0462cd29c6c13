package sim

import (
	"time"

	"kith/internal/job"
	"kith/meta"
)

// staging is an attempt at its host between begin and start: the daemon brings
// its input from the origin. It is the daemon's work and dies with it.
type staging struct {
	s      *Site
	life   int
	launch meta.Launch
	// rest is how long its input goes on coming after it has given its processors back.
	rest time.Duration
	// waited is how long it has waited for room on the disk.
	waited time.Duration
}

// stage brings the input of an attempt, for as long as it takes, and starts it then.
func (s *Site) stage(f meta.Launch) {
	if s.procs[f.Attempt] != nil || s.staged[f.Attempt] != nil {
		return
	}
	took := s.stagingLeft(f.Attempt, of(f.Attempt, f.Task))
	if took == 0 {
		delete(s.bringing, f.Attempt)
		s.launchWithRoom(f, 0)
		return
	}
	g := &staging{s: s, life: s.life, launch: f}
	if bound := s.w.cfg.StagingBound; bound > 0 && took > bound {
		took, g.rest = bound, took-bound
	}
	s.keep(g, took)
}

// keep holds the processors of an attempt until it is due.
func (s *Site) keep(g *staging, due time.Duration) {
	if s.staged == nil {
		s.staged = make(map[job.AttemptID]*staging)
	}
	s.staged[g.launch.Attempt] = g
	s.w.keeper.tally(s)
	s.w.agenda.add(s.w.now.Add(due), message, 0, g)
}

// stagingLeft returns how long the input of an attempt, of a job or bag, takes yet.
func (s *Site) stagingLeft(a job.AttemptID, of job.ID) time.Duration {
	if here, ok := s.bringing[a]; ok {
		return max(0, here.Sub(s.w.now))
	}
	if d := s.w.cfg.Staging; d != nil && a.Job.Origin != s.cfg.ID {
		return d(s.w.Tag(of))
	}
	return 0
}

// act implements action: all of the input is there, unless there is no stream; or
// processors may be held for it no longer.
func (g *staging) act() {
	s, a := g.s, g.launch.Attempt
	if s.life != g.life || s.staged[a] != g {
		return
	}
	if s.frozen {
		s.hold(g.act)
		return
	}
	if s.deposed { // what runs at the site takes no orders of it, see [Site.mayLeave]
		delete(s.staged, a)
		return
	}
	origin := s.w.byID[a.Job.Origin]
	delete(s.staged, a)
	if g.waited > 0 {
		s.launchWithRoom(g.launch, g.waited)
		return
	}
	if p, _ := s.w.net.pair(s, origin); !p.up || origin.frozen {
		delete(s.bringing, a)
		s.feed(meta.AttemptMissing{Attempt: a}) // it may have it again
		return
	}
	if g.rest > 0 {
		s.bringOn(g)
		return
	}
	delete(s.bringing, a)
	s.launchWithRoom(g.launch, 0)
}

// bringOn gives the processors of an attempt back, while its input goes on coming.
func (s *Site) bringOn(g *staging) {
	a, here := g.launch.Attempt, s.w.now.Add(g.rest)
	if s.bringing == nil {
		s.bringing = make(map[job.AttemptID]job.Time)
	}
	s.bringing[a] = here
	s.w.agenda.add(here, message, 0, call(func() {
		if s.life == g.life && s.bringing[a] == here {
			s.feed(meta.FilesHere{Attempt: a})
		}
	}))
	s.feed(meta.AttemptMissing{Attempt: a, Bringing: true})
}

// inputHere reports whether the input of an attempt has come that had given its
// processors back meanwhile: it waits in the queue again.
func (s *Site) inputHere(a job.AttemptID) bool {
	here, ok := s.bringing[a]
	return ok && here <= s.w.now
}

// report tells the daemon that a process has ended: at once, or that its processes are
// gone and, when what it left has been collected, how it ended. What nobody wants is not
// collected.
func (s *Site) report(p *process, tell func(meta.Event)) {
	ended := meta.AttemptEnded{Attempt: p.attempt, Outcome: *p.outcome}
	took := time.Duration(0)
	if d := s.w.cfg.Collecting; d != nil && p.started != 0 && !p.stale {
		took = d(s.w.Tag(p.work()))
	}
	if took == 0 {
		tell(ended)
		return
	}
	tell(meta.AttemptOver{Attempt: p.attempt})
	life := s.life
	s.w.agenda.add(s.w.now.Add(took), message, 0, call(func() {
		if s.life == life && s.procs[p.attempt] == p {
			s.feed(ended)
		}
	}))
}
