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
}

// stage brings the input of an attempt, for as long as it takes, and starts it then.
func (s *Site) stage(f meta.Launch) {
	took := time.Duration(0)
	if d := s.w.cfg.Staging; d != nil && f.Attempt.Job.Origin != s.cfg.ID {
		took = d(s.w.Tag(f.Attempt.Job))
	}
	if took == 0 {
		s.launch(f)
		return
	}
	if s.procs[f.Attempt] != nil || s.staged[f.Attempt] != nil {
		return
	}
	g := &staging{s: s, life: s.life, launch: f}
	if s.staged == nil {
		s.staged = make(map[job.AttemptID]*staging)
	}
	s.staged[f.Attempt] = g
	s.w.agenda.add(s.w.now.Add(took), message, 0, g)
}

// act implements action: all of the input is there, unless there is no stream.
func (g *staging) act() {
	s := g.s
	if s.life != g.life || s.staged[g.launch.Attempt] != g {
		return
	}
	if s.frozen {
		s.hold(g.act)
		return
	}
	origin := s.w.byID[g.launch.Attempt.Job.Origin]
	delete(s.staged, g.launch.Attempt)
	if p, _ := s.w.net.pair(s, origin); !p.up || origin.frozen {
		s.feed(meta.AttemptMissing{Attempt: g.launch.Attempt}) // it may have it again
		return
	}
	s.launch(g.launch)
}
