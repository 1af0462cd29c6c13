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
	"kith/testbed/quorum"
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
	orphans    []map[job.AttemptID]*process // of data folders that are gone
	taken      taken                        // by what runs, for the watch

	touched bool   // it wants a pass
	turn    uint64 // whose pass comes first, see turns
	steps   int64  // counts what was fed to its daemons
	lives   int    // counts them
	reloads int    // counts the configurations that they took up
	tokens  uint64

	daemon
	trouble
	several
}

// daemon is a life of a site's daemon; nil engine while it is down.
type daemon struct {
	engine    *meta.Engine
	state     *store.State
	scheduler *sitesched.Scheduler
	backend   store.Backend
	life      int      // what an earlier one was promised is void
	unchecked bool     // its scheduler has changed since it was checked
	wake      job.Time // when a tick is on the agenda
	wakes     wakes
	barrier   *commit.Barrier
	records   Recorder // nil for none
	// incarnation is that of the latest daemon.
	incarnation uint64
	waiters     map[uint64]func(meta.Reply)
	// submissions wait for their answers.
	submissions fifo.Queue[submitted]

	staged        map[job.AttemptID]*staging // begun, not started yet
	bringing      map[job.AttemptID]job.Time // when input is here that processors wait for no longer
	fetching      map[job.AttemptID]bool     // output on its way here
	fetchingSaved map[job.AttemptID]uint64   // what attempts have saved, on its way here
	bringTasks    map[taskBatch]bool         // what tasks of a batch left, on its way here

	frozen bool
	// held is what happens to the daemon once it goes on, in order.
	held []func()
	// shift is how far what it takes for the time is from a clock that was never set.
	shift job.Time
	// pending is the batch that is on its way to the disk, synced what happens
	// once it is there.
	pending *commit.Ready
	closing []closed // by pending
	stalled []closed // by batches whose effects a freeze has held up
	synced  func()

	// Where several members keep the facts: see several.
	lead  *quorum.Lead
	wants bool // a pass, after its lead
	stood []closed
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
	if s.cfg.Members > 0 {
		return s.found()
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
	var sealer commit.Sealer
	if s.w.cfg.Disk.Keep {
		sealer = s.backend
	}
	s.setClock()
	if err = commit.BeginLife(s.state, sealer, store.BeginLife{}); err != nil {
		return err
	}
	return s.begin(sealer)
}

// begin begins a daemon's life on facts that are loaded.
func (s *Site) begin(sealer commit.Sealer) (err error) {
	s.fetching, s.bringTasks = make(map[job.AttemptID]bool), make(map[taskBatch]bool)
	s.fetchingSaved = make(map[job.AttemptID]uint64)
	s.incarnation = s.state.Site().Incarnation
	if s.scheduler, err = sitesched.New(s.cfg.Scheduler); err != nil {
		return err
	}
	cfg := s.cfg.Meta
	cfg.NoHarm.Mode = s.harmMode()
	s.lives++
	s.life = s.lives
	cfg.BootID = s.bootID()
	cfg.Self.KeptFree = s.cfg.Scheduler.KeepFree
	cfg.Self.Processors, cfg.Self.MemoryBytes = s.cfg.Scheduler.Processors, s.cfg.Scheduler.MemoryBytes
	cfg.Forecasts.Forecaster = s.forecaster()
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
	peers := s.listed()
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

// listed are the sites that the configuration names.
func (s *Site) listed() (peers []job.SiteID) {
	for _, other := range s.w.sites {
		if !slices.Contains(s.cfg.Without, other.cfg.ID) && !s.w.net.apart(s, other) {
			peers = append(peers, other.cfg.ID)
		}
	}
	return peers
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
	if s.quorum != nil {
		s.KillMember(s.lead.Member())
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
	if s.quorum != nil {
		s.WipeMember(s.leader())
		return
	}
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
	if s.quorum != nil {
		s.WipeMember(s.leader())
		return
	}
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
	if s.quorum != nil {
		s.startMembers()
		return nil
	}
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
		if s.w.cfg.Check {
			s.w.watch.bounds.withinBounds(s)
		}
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
	if s.w.cfg.Check && !s.deposed {
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
	if s.w.cfg.Check && !s.deposed {
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
	a.s.in(a.life, func(s *Site) {
		if s.engine != nil && s.wake == a.at {
			s.wake = job.Never
			s.w.watch.woken(s)
			s.feed(meta.Tick{})
		}
	})
}

func (s *Site) ask(make func(token uint64) meta.Event, done func(meta.Reply)) {
	if s.misled(func() { s.ask(make, done) }) {
		return
	}
	if s.engine == nil {
		return
	}
	s.tokens++
	s.waiters[s.tokens] = done
	s.feed(make(s.tokens))
}
