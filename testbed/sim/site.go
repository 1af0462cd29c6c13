package sim

import (
	"fmt"
	"slices"
	"strconv"
	"time"

	"kith/cluster"
	"kith/internal/fifo"
	"kith/internal/job"
	"kith/meta"
	"kith/meta/commit"
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
	w     *World
	cfg   SiteConfig
	index int // among the names
	book  book
	bags  map[job.ID]*BagSubmission // by those that were submitted here

	disk       memstore.Disk
	generation uint32
	boots      int
	bootName   string
	procs      map[job.AttemptID]*process
	staged     map[job.AttemptID]*staging   // begun, not started yet
	bringing   map[job.AttemptID]job.Time   // when input is here that processors wait for no longer
	fetching   map[job.AttemptID]bool       // output on its way here
	bringTasks map[taskBatch]bool           // what tasks of a batch left, on its way here
	orphans    []map[job.AttemptID]*process // of data folders that are gone
	taken      taken                        // by what runs, for the watch

	// The daemon; nil engine while it is down.
	engine             *meta.Engine
	state              *store.State
	scheduler          *sitesched.Scheduler
	backend            store.Backend
	life               int      // counts the daemon's lives: what an earlier one was promised is void
	steps              int64    // counts what was fed to it
	touched, unchecked bool     // it wants a pass; its scheduler has changed since it was checked
	turn               uint64   // whose pass comes first, see turns
	wake               job.Time // when a tick is on the agenda
	wakes              wakes

	trouble

	barrier *commit.Barrier
	records Recorder // nil for none
	// incarnation is that of the latest daemon.
	incarnation uint64
	tokens      uint64
	waiters     map[uint64]func(meta.Reply)
	// submissions wait for their answers.
	submissions fifo.Queue[submitted]
}

// ID returns the site's name.
func (s *Site) ID() job.SiteID { return s.cfg.ID }

// Generation is that of its data folder, as streams tell it.
func (s *Site) Generation() uint32 { return s.generation }

// Up reports whether the daemon runs.
func (s *Site) Up() bool { return s.engine != nil }

// Engine returns the engine of the daemon that runs, nil if none does.
func (s *Site) Engine() *meta.Engine { return s.engine }

// State returns the facts of the daemon that runs.
func (s *Site) State() *store.State { return s.state }

// Scheduler returns the local scheduler of the daemon that runs.
func (s *Site) Scheduler() *sitesched.Scheduler { return s.scheduler }

// Load returns how loaded the site is now; nothing if its daemon is down.
func (s *Site) Load() job.Load {
	if s.scheduler == nil {
		return job.Load{}
	}
	return s.scheduler.Load(s.w.now)
}

// boot starts the daemon on whatever the disk holds.
func (s *Site) boot() error {
	if s.generation == 0 {
		s.generation = 1
	}
	if s.procs == nil {
		s.procs, s.bags = make(map[job.AttemptID]*process), make(map[job.ID]*BagSubmission)
	}
	s.fetching, s.bringTasks = make(map[job.AttemptID]bool), make(map[taskBatch]bool)
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
	var sealer commit.Sealer
	if s.w.cfg.Disk.Keep {
		sealer = s.backend
	}
	s.setClock()
	if err = commit.BeginLife(s.state, sealer, store.BeginLife{}); err != nil {
		return err
	}
	s.incarnation = s.state.Site().Incarnation
	if s.cfg.Scheduler.Queues == sitesched.DualPreempt {
		return sitesched.ErrNeedsDemotion
	}
	if s.scheduler, err = sitesched.New(s.cfg.Scheduler); err != nil {
		return err
	}
	cfg := s.cfg.Meta
	s.life++
	cfg.BootID = s.bootID()
	cfg.Self.Processors, cfg.Self.MemoryBytes = s.cfg.Scheduler.Processors, s.cfg.Scheduler.MemoryBytes
	cfg.Forecasts.Forecaster = s.scheduler
	cfg.Self.HomeJobs, cfg.Self.Policy = cluster.HomeJobsOf(s.cfg.Scheduler.HomeFirst()), s.cfg.Scheduler.Policy()
	if s.w.cfg.Loads.Shared {
		cfg.Board = &s.w.board
		if s.w.net.instant {
			cfg.Starts = &s.w.board
		}
	}
	if s.engine, err = meta.New(cfg, s.state, s.driven()); err != nil {
		return err
	}
	if cfg.Forecasts.Enabled && s.backend != nil {
		if err = s.engine.Recall(store.AllPast(s.backend)); err != nil {
			return err
		}
	}
	s.barrier = commit.New(s.state, sealer, s.launched)
	s.waiters, s.wake = make(map[uint64]func(meta.Reply)), job.Never
	s.w.watch.booted(s)
	var peers []job.SiteID
	for _, other := range s.w.sites {
		if !slices.Contains(s.cfg.Without, other.cfg.ID) && !s.w.net.apart(s, other) {
			peers = append(peers, other.cfg.ID)
		}
	}
	s.w.trace("%s: daemon %d starts", s.cfg.ID, s.life)
	s.w.log.site("up", s)
	if s.records = nil; s.w.cfg.Record != nil {
		s.records = s.w.cfg.Record(s, cfg)
	}
	if s.records != nil {
		s.records.Restore(s.now(), peers)
	}
	effects := s.engine.Restore(s.now(), peers)
	if s.records != nil {
		s.records.Effects(effects)
	}
	s.add(effects)
	s.touch()
	s.flush()
	return nil
}

// bootID names the boot of the machine.
func (s *Site) bootID() string {
	if s.bootName == "" {
		s.bootName = "boot-" + strconv.Itoa(s.boots)
	}
	return s.bootName
}

// Crash kills the daemon: what was not committed is gone, what runs goes on.
func (s *Site) Crash() {
	if s.engine == nil {
		return
	}
	s.w.trace("%s: daemon %d is killed", s.cfg.ID, s.life)
	s.w.log.site("down", s)
	s.w.watch.durable(s.stalled) // committed before what is on its way
	s.tear()
	s.engine, s.state, s.scheduler, s.staged, s.bringing = nil, nil, nil, nil, nil
	s.wakeProcesses()
	s.frozen, s.held, s.stalled = false, nil, nil
	s.w.net.siteDown(s)
}

// PowerLoss kills the daemon and everything that runs at the site.
func (s *Site) PowerLoss() {
	s.Crash()
	s.boots++
	s.bootName = ""
	s.loseProcesses()
}

// WipeDisk makes the next daemon find an empty data folder.
func (s *Site) WipeDisk() {
	s.Crash()
	s.w.trace("%s: comes back with an empty disk", s.cfg.ID)
	s.disk = memstore.Disk{}
	s.w.watch.wiped(s)
	s.generation++
	s.loseProcesses()
	s.formatted()
	clear(s.procs)
}

// LoseFolder makes the next daemon find an empty data folder, while what runs
// at the site goes on without anybody to care for it.
func (s *Site) LoseFolder() {
	s.Crash()
	s.w.trace("%s: comes back without its data folder", s.cfg.ID)
	s.disk = memstore.Disk{}
	s.w.watch.wiped(s)
	s.generation++
	for _, p := range s.procs {
		s.w.watch.orphaned(p)
		p.orphan = true
	}
	s.orphans = append(s.orphans, s.procs)
	s.formatted()
	s.procs = make(map[job.AttemptID]*process)
}

// loseProcesses ends all that runs at the site.
func (s *Site) loseProcesses() {
	for _, procs := range append(s.orphans, s.procs) {
		for _, p := range procs {
			p.lose()
		}
	}
	s.orphans = nil
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

// feed gives the daemon an event.
func (s *Site) feed(ev meta.Event) {
	if s.engine == nil {
		return
	}
	if s.frozen {
		s.hold(func() { s.feed(ev) })
		return
	}
	s.step(ev)
	s.touch()
	s.flush()
}

// soon gives this life of the daemon an event behind what is being carried
// out: effects of one batch leave before what they bring about.
func (s *Site) soon(ev meta.Event) {
	s.w.backlog.Push(delivery{to: s, life: s.life, event: ev})
}

func (s *Site) pass() {
	if s.engine == nil || s.frozen {
		return
	}
	if s.engine.NeedsPass() {
		s.step(meta.Pass{})
		s.keepsPromises() // while there is an engine: what leaves now may be what it dies of
		s.flush()
	}
	s.setAlarm()
}

// keepsPromises looks whether guests have moved what this site had promised to its own jobs
// (S4), by what the engine counts. It costs next to nothing, so that it is looked at in every run.
func (s *Site) keepsPromises() {
	if n := s.engine.Views().PromisesMoved(); n > 0 {
		s.w.watch.violate("S4: guests moved a promise of site %s to one of its own jobs, as its engine counts", s.cfg.ID)
	}
}

func (s *Site) step(ev meta.Event) {
	if s.w.cfg.Loads.Shared {
		s.w.board.before(s)
	}
	s.steps++
	s.w.steps++
	if up, is := ev.(meta.PeerUp); is && s.w.cfg.Check {
		s.w.watch.tasks.meets(s, up)
	}
	if s.records != nil {
		s.records.Event(s.now(), ev)
	}
	effects := s.engine.Step(s.now(), ev)
	if s.records != nil {
		s.records.Effects(effects)
	}
	if s.w.cfg.Check {
		s.w.watch.tasks.decided(s, effects)
	}
	s.add(effects)
	if s.w.cfg.Check {
		s.w.watch.stepped(s)
	}
}

// add holds effects until their facts are durable, and carries out those that
// need not wait for it.
func (s *Site) add(effects []meta.Effect) {
	if s.w.cfg.Check {
		s.w.watch.depends.stepped(s, effects)
	}
	for _, f := range s.barrier.Add(effects) {
		s.carry(f)
	}
}

// launched reports whether an attempt was launched here and has not ended.
func (s *Site) launched(a job.AttemptID) bool {
	p := s.procs[a]
	return p != nil && p.outcome == nil || s.staged[a] != nil || s.runsTasksOf(a)
}

// setAlarm puts the next tick on the agenda.
func (s *Site) setAlarm() {
	if s.engine == nil {
		return
	}
	at := s.engine.NextWake(s.now())
	if s.records != nil {
		s.records.Wake(s.now(), at)
	}
	if at == job.Never || at >= s.wake {
		return
	}
	// A wake that is due again at once must not stop time.
	at = max(at, s.now()+1)
	s.wake = at
	s.w.agenda.add(max(s.instant(at), s.w.now+1), housekeeping, 0, &alarm{s: s, life: s.life, at: at})
}

// alarm feeds a tick, unless an earlier one was asked for since.
type alarm struct {
	s    *Site
	life int
	at   job.Time
}

func (a *alarm) act() {
	if s := a.s; s.engine != nil && s.life == a.life && s.wake == a.at {
		s.wake = job.Never
		s.w.watch.woken(s)
		s.feed(meta.Tick{})
	}
}

// flush seals what has gathered, and lets the effects go once it is durable.
func (s *Site) flush() {
	if s.barrier.UnderWay() {
		return
	}
	closing := s.w.watch.closing(s, s.barrier.Held())
	ready, ok := s.barrier.Next()
	if s.records != nil {
		if ok {
			s.records.Sealed()
		}
		s.records.Turn()
	}
	if !ok {
		return
	}
	d := &s.w.cfg.Disk
	if ready.Empty() || d.Sync+d.SyncJitter+s.slow == 0 && !s.diskFull() {
		s.commit(&ready, closing)
		return
	}
	delay := d.Sync + s.slow
	if d.SyncJitter > 0 {
		delay += time.Duration(s.w.rng.Int64N(int64(d.SyncJitter)))
	}
	pending := new(commit.Ready)
	*pending = ready
	s.pending, s.closing = pending, closing
	life := s.life
	var synced func()
	synced = func() {
		switch {
		case s.life != life || s.engine == nil || s.pending != pending:
			return // see tear, or done already
		case s.frozen:
			s.hold(synced)
			return
		case s.diskFull():
			s.w.trace("%s: commit fails, the disk is full", s.cfg.ID)
			s.w.agenda.add(s.w.now.Add(fullRetry), message, 0, call(synced))
			return
		}
		s.pending = nil
		s.commit(pending, closing)
		if s.engine != nil {
			s.flush()
		}
	}
	s.synced = synced
	s.w.agenda.add(s.w.now.Add(delay), message, 0, call(synced))
}

// commit makes a batch durable and carries out what waited for it.
func (s *Site) commit(ready *commit.Ready, closing []closed) {
	effects, err := ready.Commit()
	if err != nil {
		s.w.watch.violate("commit at %s: %v", s.cfg.ID, err)
		return
	}
	s.w.watch.depends.committed(closing)
	// Callbacks may feed the site again while its effects are carried out.
	barrier := s.barrier
	barrier.Done()
	s.carryAll(effects, closing) // which keeps none of them
	barrier.Recycle(effects)
}

// carryAll carries out the effects of a batch, which closes jobs: what is said in it may
// come from before their end.
func (s *Site) carryAll(effects []meta.Effect, closing []closed) {
	life := s.life
	for i, f := range effects {
		if s.engine == nil || s.life != life {
			break // killed between two effects
		}
		if c := s.w.cfg.CrashBefore; c != nil && !s.frozen && c(s.w, s, f) {
			s.Crash()
			break
		}
		if s.frozen {
			s.stall(effects[i:], closing)
			return
		}
		s.carry(f)
	}
	s.w.watch.durable(closing)
}

// carry carries out one effect.
func (s *Site) carry(f meta.Effect) {
	if s.w.cfg.Trace != nil {
		s.tell(f)
	}
	switch f := f.(type) {
	case meta.Reply:
		if done := s.waiters[f.Token]; done != nil {
			delete(s.waiters, f.Token)
			done(f)
		} else {
			s.answered(&f)
		}
	case meta.Send:
		s.w.net.send(s, f)
	case meta.Grant:
		s.w.watch.granted(s, f)
		s.w.net.send(s, meta.Send{To: f.To, Message: f.Message(resumePayload(f.Resume))}) // simulated jobs run nothing else
	case meta.Launch:
		s.stage(f)
	case meta.Extend:
		s.extend(f)
	case meta.Kill:
		s.kill(f)
	case meta.Unstage:
		if s.staged[f.Attempt] != nil {
			delete(s.staged, f.Attempt)
			s.soon(meta.AttemptMissing{Attempt: f.Attempt})
		}
	case meta.Adopt:
		s.adopt(f)
	case meta.Clear:
		s.cleared(f.Attempt)
	case meta.Fetch:
		s.fetch(f)
	case meta.Unfetch:
		delete(s.fetching, f.Attempt)
	case meta.GrantTasks:
		s.grantTasks(f)
	case meta.FetchTasks:
		s.fetchTasks(f)
	case meta.Foresee:
		s.soon(meta.Foreseen{Number: f.Number, Inquiry: f.Inquiry, Answer: s.w.stage.Play(f.Inquiry)})
	case meta.Changed:
		s.w.watch.changed(s, f)
	case meta.TrustChanged:
		s.trustChanged(f)
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
