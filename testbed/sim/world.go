package sim

import (
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"slices"
	"time"

	"kith/internal/fifo"
	"kith/internal/forecast"
	"kith/internal/job"
	"kith/meta"
	"kith/sitesched"
)

// Config is a federation.
type Config struct {
	// Seed is that of all randomness; zero is a seed like any other.
	Seed  uint64
	Sites []SiteConfig
	// Network says how messages travel; the zero value delivers at once.
	Network NetworkConfig
	// Disk says how facts become durable; the zero value makes them so at once.
	Disk DiskConfig
	// Loads says how sites learn of each other's load; the zero value has the
	// daemons tell each other, as they really do.
	Loads LoadConfig
	// Transfers makes hosts plan with the transfer of a job's input, see [Submission].
	Transfers bool
	// Check watches the invariants of the design after every event. What runs on
	// after its site has lost its data folder is left out of S6: no site can keep
	// its processors free.
	Check bool
	// Guard watches S4 alone, of Check: it is faster by far where many tasks run.
	Guard bool
	// Staging says how long the input of a job takes to another site, by the tag
	// of the submission; nil, or zero, where it has none. Hosts do not plan with
	// it, as they do with transfers.
	Staging func(tag int) time.Duration
	// StagingBound is how long processors are held for input that is on its way; zero for
	// as long as it takes. Then others have them until it is here.
	StagingBound time.Duration
	// Collecting says how long a host takes to collect what a job leaves, after its
	// processes are gone, by the tag of the submission; nil, or zero, for no time. The
	// processors are free meanwhile.
	Collecting func(tag int) time.Duration
	// Output says how long the output of a job takes to its origin from another
	// site, by the tag of the submission; nil, or zero, where it leaves none.
	Output func(tag int) time.Duration
	// Saves is how long a job that writes checkpoints takes to save what it has done, when it is
	// asked to; the next attempt does the rest. Nil: it hangs on the job and the attempt, and the
	// next attempt runs for as long as the first.
	Saves *time.Duration
	// Conserve watches that no processor is idle that could run what waits (L4); nil
	// for not. It looks once a second, so that the world is never idle.
	Conserve *Conserve
	// Count counts what the sites' schedulers do, see [Site.Calls].
	Count bool
	// CrashBefore is asked before every effect of a site whether its daemon dies
	// right there; nil for never. Effects before that one have left, the facts
	// behind all of them are on disk.
	CrashBefore func(w *World, s *Site, f meta.Effect) bool
	// between puts something between an engine and its local scheduler, in tests; nil for nothing.
	between func(drivenSite) drivenSite
	// Tap sees every message that is sent, whatever becomes of it; nil for none.
	Tap func(from, to job.SiteID, m meta.Message)
	// Outside gets what is sent to sites that are not of the world, see [World.Hear]; nil for
	// no one. It may say something back. Check must be off.
	Outside func(from, to job.SiteID, m meta.Message)
	// Record is asked, when a daemon begins, for what its engine's inputs are told; nil for
	// nothing, also what it returns.
	Record func(s *Site, c meta.Config) Recorder
	// Trace receives a line for everything that happens; nil for none. It is for
	// people to read; the event log is for comparing and fast.
	Trace func(line string)
	// Log receives the event log, Hash computes its digest, see [World.Hash].
	Log  io.Writer
	Hash bool
	// Began and Ended learn of processes, Refused of submissions that were not
	// accepted, with the tag of the submission; nil if it does not matter.
	Began   func(host job.SiteID, a job.AttemptID, tag int)
	Ended   func(host job.SiteID, a job.AttemptID, tag int, outcome *job.Outcome)
	Refused func(origin job.SiteID, tag int, err error)
}

// Recorder is told all that an engine is fed, see package meta/flight.
type Recorder interface {
	Restore(now job.Time, sites []job.SiteID)
	Event(now job.Time, ev meta.Event)
	Effects(effects []meta.Effect)
	Wake(now, wake job.Time)
	Sealed()
	Turn()
}

// SiteConfig is a site of the federation.
type SiteConfig struct {
	ID        job.SiteID
	Scheduler sitesched.Config
	Meta      meta.Config
	// Drift is how much faster the site's own clock runs than the world's, in
	// millionths; negative for slower. -100,000 to 100,000.
	Drift int64
	// Members is how many machines keep its facts; 0 for one, with a disk of its own. Clocks is
	// how far the wall clock of each is ahead of the one before.
	Members int
	Clocks  time.Duration
	// Without are sites that its configuration does not name.
	Without []job.SiteID
	// ForecastSteps is what the scenarios of one forecast may take at most; zero for what
	// they may take in production. Beyond that a forecast comes from elsewhere.
	ForecastSteps int64
}

// Start is when every world begins. It is not 0 because an instant of 0 means
// none in the facts.
const Start = job.Time(time.Hour)

// worldStream keeps the random numbers of a world apart from those of the
// workloads that are made from the same seed.
const worldStream = 0x776f726c64 << 16

// World is a federation in virtual time. It belongs to one goroutine.
type World struct {
	cfg       Config
	now       job.Time
	agenda    agenda
	rng       *rand.Rand
	sites     []*Site // by name
	byID      map[job.SiteID]*Site
	net       network
	board     board
	watch     watch
	savedWork savedWork
	clocksSet bool // a wall clock was set
	keeper    keeper
	log       eventLog

	// backlog is what happens at once, touched are the sites that want a pass
	// at the end of this instant. guests counts sites that copies came to.
	backlog fifo.Queue[delivery]
	touched []*Site
	guests  uint64
	steps   int64

	before, with sitesched.Scheduler // that guarded sites use again, see [guardedSite]
	names        []job.AttemptID     // the same
	stage        forecast.Stage      // that forecasts are played on
}

// delivery is an event on its way to a site. It is void if the daemon has died
// since, or if it is a message of a stream that is gone.
type delivery struct {
	to    *Site
	life  int
	event meta.Event

	pair    *pair // nil for what does not come over the network
	from    int   // end of pair
	epoch   int
	message meta.Message
}

// New returns a federation at [Start] with all sites up and connected.
func New(cfg Config) (*World, error) {
	if cfg.Outside != nil && cfg.Check {
		return nil, errors.New("config: Outside is set and Check is on, but the invariants are watched at both ends of a message: leave one out")
	}
	w := &World{
		cfg: cfg, now: Start, rng: rand.New(rand.NewPCG(cfg.Seed, worldStream)),
		byID: make(map[job.SiteID]*Site),
	}
	w.watch.init(w)
	w.log.init(w)
	for _, sc := range cfg.Sites {
		s := &Site{w: w, cfg: sc}
		if w.byID[sc.ID] != nil {
			return nil, fmt.Errorf("site %s: named twice", sc.ID)
		}
		w.sites = append(w.sites, s)
		w.byID[sc.ID] = s
	}
	slices.SortFunc(w.sites, func(a, b *Site) int {
		if a.cfg.ID < b.cfg.ID {
			return -1
		}
		return 1
	})
	for i, s := range w.sites {
		s.index, s.turn = i, otherTurn
	}
	w.net.init(w)
	w.board.init(w)
	for _, s := range w.sites {
		if err := s.boot(); err != nil {
			return nil, fmt.Errorf("site %s: %w", s.cfg.ID, err)
		}
	}
	w.net.connectAll()
	w.drain()
	w.keeper.init(w)
	return w, nil
}

// Now returns the virtual time.
func (w *World) Now() job.Time { return w.now }

// Site returns a site by name.
func (w *World) Site(id job.SiteID) *Site { return w.byID[id] }

// few is how many names are compared faster one by one than they are hashed.
const few = 8

// site returns a site by name, nil if there is none, for what is asked often.
func (w *World) site(id job.SiteID) *Site {
	if len(w.sites) > few {
		return w.byID[id]
	}
	for _, s := range w.sites {
		if s.cfg.ID == id {
			return s
		}
	}
	return nil
}

// Rand returns the source of all randomness of the run.
func (w *World) Rand() *rand.Rand { return w.rng }

// Idle reports whether nothing more can happen, but for what is happening now.
func (w *World) Idle() bool {
	_, waiting := w.backlog.First()
	return len(w.agenda.heap) == 0 && len(w.touched) == 0 && !waiting
}

// At does something at a time to come, before anything else of that instant
// but completions.
func (w *World) At(at job.Time, do func()) { w.agenda.add(max(at, w.now), cancellation, 0, call(do)) }

// Ask gives a site a client's request now: make returns the event for a token.
func (w *World) Ask(origin job.SiteID, make func(token uint64) meta.Event, done func(meta.Reply)) {
	w.byID[origin].ask(make, done)
}

// Run lets time pass until nothing more can happen or until comes. It returns
// the first broken invariant.
func (w *World) Run(until job.Time) error {
	for w.watch.broken == nil {
		at, _, ok := w.agenda.next()
		if !ok || at > until {
			if until != job.Never {
				w.now = max(w.now, until)
			}
			break
		}
		w.now = at
		w.instant()
	}
	return w.watch.broken
}

// RunWhile runs until more says no, looking after every instant.
func (w *World) RunWhile(until job.Time, more func() bool) error {
	for w.watch.broken == nil && more() {
		at, _, ok := w.agenda.next()
		if !ok || at > until {
			break
		}
		w.now = at
		w.instant()
	}
	return w.watch.broken
}

// instant lets everything of this instant happen.
func (w *World) instant() {
	for {
		for {
			at, _, ok := w.agenda.next()
			if !ok || at > w.now {
				break
			}
			w.agenda.take().act()
			w.drain()
		}
		s := w.nextTouched()
		if s == nil {
			w.guests = 0
			w.keeper.lookIfDue()
			return
		}
		s.pass()
		w.drain()
	}
}

// drain lets happen what was brought about at once.
func (w *World) drain() {
	for {
		d, ok := w.backlog.Pop()
		if !ok {
			return
		}
		switch {
		case d.pair != nil:
			w.net.arrive(&d)
		default:
			d.to.in(d.life, func(s *Site) { s.feed(d.event) })
		}
	}
}

// nextTouched takes the site whose turn it is from those that want a pass.
func (w *World) nextTouched() *Site {
	if len(w.touched) == 0 {
		return nil
	}
	first := 0
	for i, s := range w.touched {
		if f := w.touched[first]; s.turn < f.turn || s.turn == f.turn && s.index < f.index {
			first = i
		}
	}
	s := w.touched[first]
	last := len(w.touched) - 1
	w.touched[first] = w.touched[last]
	w.touched = w.touched[:last]
	s.touched, s.turn = false, otherTurn
	return s
}

// Steps returns how many events were fed to the engines.
func (w *World) Steps() int64 { return w.steps }

func (w *World) trace(format string, args ...any) {
	if w.cfg.Trace != nil {
		w.cfg.Trace(fmt.Sprintf("%12.6f ", w.now.Sub(Start).Seconds()) + fmt.Sprintf(format, args...))
	}
}
