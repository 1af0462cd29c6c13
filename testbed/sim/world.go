package sim

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

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
	// Check watches the invariants of the design after every event.
	Check bool
	// CrashBefore is asked before every effect of a site whether its daemon dies
	// right there; nil for never. Effects before that one have left, the facts
	// behind all of them are on disk.
	CrashBefore func(w *World, s *Site, f meta.Effect) bool
	// Trace receives a line for everything that happens; nil for none.
	Trace func(line string)
}

// SiteConfig is a site of the federation.
type SiteConfig struct {
	ID        job.SiteID
	Scheduler sitesched.Config
	Meta      meta.Config
}

// Start is when every world begins. It is not 0 because an instant of 0 means
// none in the facts.
const Start = job.Time(time.Hour)

// World is a federation in virtual time. It belongs to one goroutine.
type World struct {
	cfg    Config
	now    job.Time
	agenda agenda
	rng    *rand.Rand
	sites  []*Site // by name
	byID   map[job.SiteID]*Site
	net    network
	watch  watch

	// run times of jobs to come and of jobs that are there.
	runTimes map[job.ID]time.Duration
	touched  int // sites that want a pass
}

// New returns a federation at [Start] with all sites up and connected.
func New(cfg Config) (*World, error) {
	w := &World{
		cfg: cfg, now: Start, rng: rand.New(rand.NewPCG(cfg.Seed, 0x6b697468)),
		byID: make(map[job.SiteID]*Site), runTimes: make(map[job.ID]time.Duration),
	}
	w.watch.init(w)
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
	w.net.init(w)
	for _, s := range w.sites {
		if err := s.boot(); err != nil {
			return nil, fmt.Errorf("site %s: %w", s.cfg.ID, err)
		}
	}
	w.net.connectAll()
	return w, nil
}

// Now returns the virtual time.
func (w *World) Now() job.Time { return w.now }

// Site returns a site by name.
func (w *World) Site(id job.SiteID) *Site { return w.byID[id] }

// Rand returns the source of all randomness of the run.
func (w *World) Rand() *rand.Rand { return w.rng }

// At does something at a time to come, before anything else of that instant
// but completions.
func (w *World) At(at job.Time, do func()) { w.agenda.add(max(at, w.now), cancellation, do) }

// Submission is a job to come.
type Submission struct {
	Request job.Request
	// RunTime is how long the job runs if nobody stops it.
	RunTime time.Duration
	// RequestID is the submitter's name of the submission.
	RequestID string
	// Done learns of the job's id, or why it was refused; nil if nobody cares.
	Done func(id job.ID, err error)
}

// Submit submits a job at a site at a time to come.
func (w *World) Submit(at job.Time, origin job.SiteID, sub Submission) {
	s := w.byID[origin]
	w.agenda.add(max(at, w.now), arrival, func() { s.submit(sub) })
}

// Wish gives a site a client's wish now: make returns the event for a token.
func (w *World) Wish(origin job.SiteID, make func(token uint64) meta.Event, done func(meta.Reply)) {
	w.byID[origin].ask(make, done)
}

// Run lets time pass until nothing more can happen or until comes. It returns
// the first broken invariant.
func (w *World) Run(until job.Time) error {
	for w.watch.broken == nil {
		at, ok := w.agenda.next()
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
		at, ok := w.agenda.next()
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
			at, ok := w.agenda.next()
			if !ok || at > w.now {
				break
			}
			w.agenda.take().do()
		}
		if w.touched == 0 {
			return
		}
		for _, s := range w.sites {
			if s.touched {
				s.touched = false
				w.touched--
				s.pass()
				break
			}
		}
	}
}

func (w *World) trace(format string, args ...any) {
	if w.cfg.Trace != nil {
		w.cfg.Trace(fmt.Sprintf("%12.6f ", w.now.Sub(Start).Seconds()) + fmt.Sprintf(format, args...))
	}
}
