package sim

import (
	"fmt"
	"time"

	"kith/internal/job"
	"kith/meta"
	"kith/sitesched"
	"kith/store"
	"kith/store/memstore"
)

// DiskConfig says how facts become durable.
type DiskConfig struct {
	// Keep makes sites keep their facts on a disk, so that they can crash and
	// come back. Without it nothing is encoded, which is faster.
	Keep bool
	// Sync is how long a commit takes; the effects of the facts wait for it.
	// Zero means none.
	Sync time.Duration
	// SyncJitter adds up to as much again, at random.
	SyncJitter time.Duration
}

// Site is a site of a world: the engines, and all around them that a real
// machine would have. Its disk and its running jobs outlast its daemon.
type Site struct {
	w   *World
	cfg SiteConfig

	disk       memstore.Disk
	generation uint32
	boots      int
	procs      map[job.AttemptID]*process

	// The daemon; nil engine while it is down.
	engine    *meta.Engine
	state     *store.State
	scheduler *sitesched.Site
	backend   store.Backend
	life      int // counts the daemon's lives: what an earlier one was promised is void
	touched   bool
	wake      job.Time // when a tick is on the agenda

	effects    []meta.Effect
	committing bool
	tokens     uint64
	waiters    map[uint64]func(meta.Reply)
}

// ID returns the site's name.
func (s *Site) ID() job.SiteID { return s.cfg.ID }

// Up reports whether the daemon runs.
func (s *Site) Up() bool { return s.engine != nil }

// Engine returns the engine of the daemon that runs, nil if none does.
func (s *Site) Engine() *meta.Engine { return s.engine }

// State returns the facts of the daemon that runs.
func (s *Site) State() *store.State { return s.state }

// Scheduler returns the local scheduler of the daemon that runs.
func (s *Site) Scheduler() *sitesched.Scheduler { return s.scheduler.Scheduler() }

// boot starts the daemon on whatever the disk holds.
func (s *Site) boot() error {
	if s.generation == 0 {
		s.generation = 1
	}
	if s.procs == nil {
		s.procs = make(map[job.AttemptID]*process)
	}
	var err error
	if s.w.cfg.Disk.Keep {
		if s.backend, err = memstore.Open(&s.disk, s.cfg.ID, s.generation); err != nil {
			return err
		}
		if s.state, err = s.backend.Load(); err != nil {
			return err
		}
	} else {
		s.state = store.NewState(s.cfg.ID, s.generation)
	}
	if s.scheduler, err = sitesched.NewSite(s.cfg.Scheduler); err != nil {
		return err
	}
	cfg := s.cfg.Meta
	s.life++
	cfg.Incarnation, cfg.BootID = uint64(s.life), s.bootID()
	cfg.Self.Processors, cfg.Self.MemoryBytes = s.cfg.Scheduler.Processors, s.cfg.Scheduler.MemoryBytes
	cfg.Self.Policy = s.cfg.Scheduler.Policy()
	if s.engine, err = meta.New(cfg, s.state, s.scheduler); err != nil {
		return err
	}
	s.effects, s.committing, s.waiters, s.wake = nil, false, make(map[uint64]func(meta.Reply)), job.Never
	var peers []job.SiteID
	for _, other := range s.w.sites {
		peers = append(peers, other.cfg.ID)
	}
	s.w.trace("%s: daemon %d starts", s.cfg.ID, s.life)
	s.effects = append(s.effects, s.engine.Restore(s.w.now, peers)...)
	s.touch()
	s.flush()
	return nil
}

func (s *Site) bootID() string { return fmt.Sprintf("boot-%d", s.boots) }

// Crash kills the daemon: what was not committed is gone, what runs goes on.
func (s *Site) Crash() {
	if s.engine == nil {
		return
	}
	s.w.trace("%s: daemon %d is killed", s.cfg.ID, s.life)
	s.engine, s.state, s.scheduler = nil, nil, nil
	if s.touched {
		s.touched = false
		s.w.touched--
	}
	s.w.net.siteDown(s)
}

// PowerLoss kills the daemon and everything that runs at the site.
func (s *Site) PowerLoss() {
	s.Crash()
	s.boots++
	for _, p := range s.procs {
		p.lose()
	}
}

// WipeDisk makes the next daemon find an empty data folder.
func (s *Site) WipeDisk() {
	s.disk = memstore.Disk{}
	s.generation++
	clear(s.procs)
}

// Restart starts the daemon again.
func (s *Site) Restart() error {
	if s.engine != nil {
		return nil
	}
	if err := s.boot(); err != nil {
		return fmt.Errorf("site %s: %w", s.cfg.ID, err)
	}
	s.w.net.siteUp(s)
	return nil
}

// touch makes the site have a pass at the end of this instant.
func (s *Site) touch() {
	if !s.touched {
		s.touched = true
		s.w.touched++
	}
}

// feed gives the daemon an event.
func (s *Site) feed(ev meta.Event) {
	if s.engine == nil {
		return
	}
	s.step(ev)
	s.touch()
	s.flush()
}

// soon gives this life of the daemon an event behind what is being carried
// out: effects of one batch leave before what they bring about.
func (s *Site) soon(ev meta.Event) {
	life := s.life
	s.w.agenda.add(s.w.now, completion, func() {
		if s.life == life {
			s.feed(ev)
		}
	})
}

func (s *Site) pass() {
	if s.engine == nil {
		return
	}
	s.step(meta.Pass{})
	s.flush()
	s.setAlarm()
}

func (s *Site) step(ev meta.Event) {
	s.effects = append(s.effects, s.engine.Step(s.w.now, ev)...)
	if s.w.cfg.Check {
		s.w.watch.stepped(s)
	}
}

// setAlarm puts the next tick on the agenda.
func (s *Site) setAlarm() {
	if s.engine == nil {
		return
	}
	at := s.engine.NextWake(s.w.now)
	if at == job.Never || at >= s.wake {
		return
	}
	// A wake that is due again at once must not stop time.
	at = max(at, s.w.now+1)
	s.wake = at
	life := s.life
	s.w.agenda.add(at, housekeeping, func() {
		if s.engine == nil || s.life != life || s.wake != at {
			return
		}
		s.wake = job.Never
		s.feed(meta.Tick{})
	})
}

// flush seals what has gathered, and lets the effects go once it is durable.
func (s *Site) flush() {
	if s.committing || (len(s.effects) == 0 && !s.state.Dirty()) {
		return
	}
	effects := s.effects
	s.effects = nil
	d := &s.w.cfg.Disk
	if !d.Keep {
		s.state.DropChanges()
		s.carryAll(effects)
		return
	}
	batch := s.backend.Seal(s.state)
	if batch.Empty() || d.Sync+d.SyncJitter == 0 {
		s.commit(batch, effects)
		return
	}
	delay := d.Sync
	if d.SyncJitter > 0 {
		delay += time.Duration(s.w.rng.Int64N(int64(d.SyncJitter)))
	}
	s.committing = true
	life := s.life
	s.w.agenda.add(s.w.now.Add(delay), message, func() {
		if s.life != life || s.engine == nil {
			return // the disk never got it
		}
		s.committing = false
		s.commit(batch, effects)
		if s.engine != nil {
			s.flush()
		}
	})
}

func (s *Site) commit(batch store.Batch, effects []meta.Effect) {
	if err := batch.Commit(); err != nil {
		s.w.watch.violate("commit at %s: %v", s.cfg.ID, err)
		return
	}
	s.carryAll(effects)
}

func (s *Site) carryAll(effects []meta.Effect) {
	life := s.life
	for _, f := range effects {
		if s.engine == nil || s.life != life {
			return // killed between two effects
		}
		if c := s.w.cfg.CrashBefore; c != nil && c(s.w, s, f) {
			s.Crash()
			return
		}
		s.carry(f)
	}
}

// carry carries out one effect.
func (s *Site) carry(f meta.Effect) {
	switch f := f.(type) {
	case meta.Reply:
		if done := s.waiters[f.Token]; done != nil {
			delete(s.waiters, f.Token)
			done(f)
		}
	case meta.Send:
		s.w.watch.sent(s, f)
		s.w.net.send(s, f)
	case meta.Launch:
		s.launch(f.Attempt, f.Request)
	case meta.Kill:
		s.kill(f.Attempt)
	case meta.Adopt:
		s.adopt(f)
	case meta.Clear:
		delete(s.procs, f.Attempt)
	case meta.Fetch:
		s.soon(meta.FilesHome{Attempt: f.Attempt})
	case meta.Changed:
		s.w.watch.changed(s, f)
	}
}

func (s *Site) ask(make func(token uint64) meta.Event, done func(meta.Reply)) {
	if s.engine == nil {
		return
	}
	s.tokens++
	s.waiters[s.tokens] = done
	s.feed(make(s.tokens))
}

func (s *Site) submit(sub Submission) {
	if s.engine == nil {
		if sub.Done != nil {
			sub.Done(job.ID{}, errDown)
		}
		return
	}
	// The run time must be known before the engine can start the job, and
	// the engine starts it in this very step.
	next := s.state.NextID()
	s.w.runTimes[next] = sub.RunTime
	s.ask(func(token uint64) meta.Event {
		return meta.Submit{Token: token, Request: sub.Request, RequestID: sub.RequestID}
	}, func(r meta.Reply) {
		if r.Err == nil {
			s.w.watch.acknowledged(r.Job)
			s.w.runTimes[r.Job] = sub.RunTime
		}
		if sub.Done != nil {
			sub.Done(r.Job, r.Err)
		}
	})
}
