package sim

import (
	"time"

	"kith/internal/job"
	"kith/meta"
)

// This file holds what can go wrong at a site beside a crash: it stops for a
// while, its disk is slow or full, its clock runs at a rate of its own, or
// what it says makes no sense.

// trouble is the state of all that. The zero value is none.
type trouble struct {
	// mixed says that guests may be here that were taken when others left, or none did, or that
	// an operator let run.
	mixed bool
	// upsets counts what has gone wrong: it may come and go between two looks.
	upsets int
	// machine says that what runs at the site is stopped as well, asleep are the jobs whose time
	// came meanwhile.
	machine bool
	asleep  []*process

	slow time.Duration
	full bool
	wide
}

// fullRetry is how long a daemon waits before it tries a commit again that
// failed. It is that of kithd.
const fullRetry = time.Second

// Freeze stops the daemon where it is, without killing it: nothing is taken
// up, and no effect is carried out, until [Site.Thaw]. Others notice after a
// while that it does not answer. With machine the jobs that run there stop as
// well.
func (s *Site) Freeze(machine bool) {
	if s.engine == nil || s.frozen {
		return
	}
	s.w.trace("%s: freezes", s.cfg.ID)
	if s.quorum != nil {
		machine = false // its processors are another machine's
		s.quorum.Pause(s.lead.Member())
	}
	s.frozen, s.machine = true, machine
	s.upsets++
	life := s.life
	s.w.net.each(func(p *pair) {
		if p.ends[0] != s && p.ends[1] != s {
			return
		}
		epoch := p.epoch
		s.w.agenda.add(s.w.now.Add(s.w.net.detect()), message, 0, call(func() {
			if s.frozen && s.life == life && p.epoch == epoch {
				s.w.net.breakStream(p, [2]time.Duration{})
			}
		}))
	})
}

// Thaw lets a frozen daemon go on.
func (s *Site) Thaw() {
	if s.quorum != nil && !s.deposed {
		defer s.thawMembers()
	}
	if !s.frozen {
		return
	}
	s.w.trace("%s: goes on", s.cfg.ID)
	s.wakeProcesses()
	s.frozen = false
	life := s.life
	for len(s.held) > 0 && !s.frozen && s.life == life {
		do := s.held[0]
		s.held = s.held[1:]
		do()
	}
	if s.engine != nil && !s.frozen {
		s.stalled = nil
		s.touch()
		if !s.deposed {
			s.w.net.siteUp(s)
		}
	}
}

// Frozen reports whether the daemon is stopped.
func (s *Site) Frozen() bool { return s.frozen }

// wakeProcesses lets the jobs of a machine that was stopped go on.
func (s *Site) wakeProcesses() {
	s.machine = false
	for _, p := range s.asleep {
		s.w.agenda.add(s.w.now, completion, s.w.order(p.attempt.Job), p)
	}
	s.asleep = nil
}

// hold keeps something for when a frozen daemon goes on.
func (s *Site) hold(do func()) { s.held = append(s.held, do) }

// stall keeps effects that a frozen daemon has not carried out; they come
// before everything else that it missed.
func (s *Site) stall(effects []meta.Effect, closing []closed) {
	rest := append([]meta.Effect(nil), effects...)
	s.held = append([]func(){func() { s.carryAll(rest, closing) }}, s.held...)
	s.stalled = append(s.stalled, closing...)
}

// SlowDisk makes every commit of the site take longer; zero ends that, for the
// commit on its way as well.
func (s *Site) SlowDisk(by time.Duration) {
	s.slow = by
	s.upsets++
	if by == 0 && s.pending != nil {
		s.w.agenda.add(s.w.now.Add(s.w.cfg.Disk.Sync), message, 0, call(s.synced))
	}
}

// FillDisk makes commits fail until it is called with false.
func (s *Site) FillDisk(full bool) {
	s.full = full
	s.upsets++
	s.fillMembers(full)
}

// tear decides what a crash leaves of a batch that was on its way to the
// disk. A transaction is whole or not there, whatever order its pages were
// written in; but that no client was told of it does not mean that it is not there.
func (s *Site) tear() {
	if s.pending != nil && !s.diskFull() && s.w.rng.IntN(2) == 0 {
		s.w.trace("%s: the batch on its way reached the disk", s.cfg.ID)
		if _, err := s.pending.Commit(); err != nil {
			s.w.watch.violate("commit at %s: %v", s.cfg.ID, err)
		}
		s.w.watch.depends.committed(s.closing)
		s.w.watch.durable(s.closing)
	}
	s.pending = nil
}

// millionth is the unit of [SiteConfig.Drift].
const millionth = 1_000_000

// now is the time by the site's own clock.
func (s *Site) now() job.Time {
	if s.cfg.Drift == 0 {
		return s.w.now + s.shift
	}
	return s.local(s.w.now) + s.shift
}

func (s *Site) local(at job.Time) job.Time {
	e := int64(at.Sub(Start))
	return at + job.Time(e/millionth*s.cfg.Drift+e%millionth*s.cfg.Drift/millionth)
}

// instant returns when the site's own clock shows at, or a little later.
func (s *Site) instant(at job.Time) job.Time {
	if at == job.Never {
		return at
	}
	at -= s.shift
	if s.cfg.Drift == 0 {
		return at
	}
	e := float64(at.Sub(Start)) * millionth / float64(millionth+s.cfg.Drift)
	world := Start.Add(time.Duration(e))
	for s.local(world) < at {
		world += max(1, (at-s.local(world))/2)
	}
	return world
}

// Clock returns what the site's own clock shows.
func (s *Site) Clock() job.Time { return s.now() }

// SetLink makes messages from one site to another travel in another way; nil
// makes it the configured one again.
func (w *World) SetLink(from, to job.SiteID, c *LinkConfig) {
	a, b := w.byID[from], w.byID[to]
	p, i := w.net.pair(a, b)
	if p == &w.net.none {
		return
	}
	if c == nil {
		c = w.net.way(a, b)
	}
	p.way[i] = c
}

// Break ends the stream between two sites; they connect again after a while.
func (w *World) Break(a, b job.SiteID) {
	p, _ := w.net.pair(w.byID[a], w.byID[b])
	if p == &w.net.none {
		return
	}
	w.trace("%s and %s: stream %d breaks", a, b, p.epoch)
	w.net.breakStream(p, [2]time.Duration{})
	w.net.reconnectLater(p)
}

// Inject gives a site a message as if it came from another one over the
// stream between them. It reports whether there is one. A site that was revoked may have
// said it before its stream was closed.
func (w *World) Inject(from, to job.SiteID, m meta.Message) bool {
	a, b := w.byID[from], w.byID[to]
	p, i := w.net.pair(a, b)
	if (!p.up || !p.known[1-i] || p.life[1-i] != b.life) && !b.bars(a) || p.cut[i] || b.engine == nil {
		return false
	}
	if w.cfg.Trace != nil {
		w.trace("%s -> %s: forged: %s", from, to, Describe(m))
	}
	if d, ok := m.(meta.LoadDigest); ok && d.Digest.Possible() != nil {
		return false // see wire.FromProto
	}
	b.feed(meta.Receive{From: from, Message: m})
	return true
}
