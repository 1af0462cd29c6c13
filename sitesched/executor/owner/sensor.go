package owner

import (
	"errors"
	"fmt"
	"os"
	"time"
)

// Config says what a [Sensor] looks at.
type Config struct {
	// Site is the process whose children, and theirs, are the site's and not the owner's: the
	// daemon with its shims and their jobs.
	Site int
	// Adopted returns the shims of an earlier daemon, which are nobody's children. Nil for none.
	Adopted func() []int
	// Now is the time; nil for that of the machine.
	Now func() time.Time
	// Proc is where the kernel tells of processes; empty for /proc.
	Proc string
}

// Sensor measures an owner. It belongs to one goroutine.
type Sensor struct {
	cfg     Config
	last    reading
	known   bool
	list    []process
	used    map[identity]use // of the site's processes, at the last reading
	spare   map[identity]use
	parents map[int]int
}

// identity names a process for good.
type identity struct {
	pid     int
	started uint64
}

// use is what a process has used, and that of its children.
type use struct {
	time ticks
	// orphan says that its parent is not the site's, and will not have its time.
	orphan bool
}

// reading is what counters said.
type reading struct {
	at      time.Time
	machine ticks
}

// Span is what was measured between two readings.
type Span struct {
	// Length is the time between them.
	Length time.Duration
	// Held is how many processors the owner held in the mean, from 0.
	Held float64
}

// ErrNoSpan is returned by the first reading, and by one that comes so soon, or by a clock that
// was set back, that nothing can be said.
var ErrNoSpan = errors.New("no span of time to say something of")

// leastSpan is what two readings must be apart: the counters are in hundredths of a second.
const leastSpan = 500 * time.Millisecond

// New returns a sensor that has read nothing yet.
func New(c Config) *Sensor {
	if c.Now == nil {
		c.Now = time.Now
	}
	if c.Proc == "" {
		c.Proc = "/proc"
	}
	return &Sensor{cfg: c, used: map[identity]use{}, spare: map[identity]use{}, parents: map[int]int{}}
}

// Read reads the counters and returns what the owner held since the last time. The error wraps
// [ErrNoSpan], or says what could not be read; the next span then begins anew.
func (s *Sensor) Read() (Span, error) {
	now := s.cfg.Now()
	site, err := s.siteUsed()
	if err != nil {
		s.known = false
		return Span{}, fmt.Errorf("processes of the machine: %w", err)
	}
	stat, err := os.ReadFile(s.cfg.Proc + "/stat")
	if err != nil {
		s.known = false
		return Span{}, fmt.Errorf("processor time of the machine: %w", err)
	}
	machine, err := machineTime(stat)
	if err != nil {
		s.known = false
		return Span{}, err
	}
	before, known := s.last, s.known
	s.last, s.known = reading{now, machine}, true
	length := now.Sub(before.at)
	if !known || length < leastSpan || machine < before.machine {
		return Span{}, ErrNoSpan
	}
	owners := max(0, machine-before.machine-site)
	return Span{Length: length, Held: owners.seconds() / length.Seconds()}, nil
}

// siteUsed returns the processor time that the site's processes used since the last time.
//
// A process that ended was waited for by its parent, and its time is then among the parent's; so
// what the tree used is the growth of the sum over it, of which what the ended ones had counted
// for before is taken away once.
func (s *Sensor) siteUsed() (ticks, error) {
	var err error
	if s.list, err = processes(s.cfg.Proc, s.list[:0]); err != nil {
		return 0, err
	}
	clear(s.parents)
	for _, p := range s.list {
		s.parents[p.pid] = p.parent
	}
	roots := map[int]bool{s.cfg.Site: true}
	if s.cfg.Adopted != nil {
		for _, pid := range s.cfg.Adopted() {
			roots[pid] = true
		}
	}
	now := s.spare
	clear(now)
	var grown ticks
	for _, p := range s.list {
		if !s.below(p.pid, roots) {
			continue
		}
		id := identity{p.pid, p.started}
		now[id] = use{p.used, roots[p.pid]}
		// One that is new has used all of it in this span. A root that is seen for the first
		// time may have used it before: its time counts from now on.
		if before, ok := s.used[id]; ok {
			grown += p.used - before.time
		} else if !roots[p.pid] {
			grown += p.used
		}
	}
	for id, before := range s.used {
		if _, lives := now[id]; !lives && !before.orphan {
			grown -= before.time // its parent has it now
		}
	}
	s.used, s.spare = now, s.used
	return max(0, grown), nil
}

// maxDepth bounds the way up from a process, should the numbers change while they are read.
const maxDepth = 1000

// below says whether a process is one of roots or below one.
func (s *Sensor) below(pid int, roots map[int]bool) bool {
	for range maxDepth {
		if roots[pid] {
			return true
		}
		parent, ok := s.parents[pid]
		if !ok || parent == 0 {
			return false
		}
		pid = parent
	}
	return false
}
