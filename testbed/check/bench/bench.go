// Package bench measures whole paths through real sites on this machine: from
// a client's call to a running process, what a process of kith costs, jobs per second through a federation,
// claims per second at one origin, and what a long queue costs; and the same
// engines in virtual time. Every figure
// comes with the machine's own limits, measured in the same run.
package bench

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"time"

	"kith/testbed/local"
)

// Options say what to measure and how much of it.
type Options struct {
	// Dir holds the sites' data while they run. Its disk is the one that is
	// measured. It must exist and be empty.
	Dir string
	// Insecure leaves the sites without keys, on plaintext; else they speak mutual TLS.
	Insecure bool
	// Starts is how many jobs are started one after another on an idle site.
	Starts int
	// Jobs, Sites and Copies are of the run for throughput.
	Jobs, Sites, Copies int
	// Claims is how many claims are granted, InFlight how many at a time.
	Claims, InFlight int
	// Queued is how many jobs wait at a site whose memory is looked at, and the
	// longest queue in the simulator.
	Queued int
	// Tasks is how many tasks of a bag run at real sites, BagTasks how many the large bag has
	// that an origin grants to hosts which run nothing; the largest has ten times as many.
	Tasks, BagTasks int
	// GuestJobs is how many jobs of the log are at home beside guests, 0 for all; GuestChecks
	// watches the guarantees of the jobs meanwhile, which is slow.
	GuestJobs   int
	GuestChecks bool
	// Moves is how often a job with a checkpoint of 1 MiB is moved; another one has LargeMiB.
	Moves, LargeMiB int
	// Clients is how often a client's process is measured. Kith is the program
	// that is measured, Earlier another one for comparison. Without Kith it is the
	// one beside the running program, or built from source, see package programs;
	// without Earlier nothing is compared.
	Clients       int
	Kith, Earlier string
	// Floods are the kinds of floods, see [FloodKinds]; empty for all. FloodTime is how
	// long each turn with one and without lasts.
	Floods    []string
	FloodTime time.Duration
	// Trace is a log for the simulator; without it jobs are generated. Large
	// adds a federation of 200 sites and the experiments of the papers, which
	// takes minutes, for which this program must be kith-lab.
	Trace string
	Large bool
	// Observe learns what is being measured; nil for none.
	Observe func(what string)
}

// DefaultOptions are those of the figures in docs/performance.md.
func DefaultOptions() Options {
	return Options{Starts: 101, Jobs: 2000, Sites: 3, Copies: 2, Claims: 50_000, InFlight: 64, Queued: 100_000, Tasks: 6000, BagTasks: 1_000_000, Moves: 21, LargeMiB: 100, Clients: 200, FloodTime: time.Second}
}

// Report is what was measured.
type Report struct {
	Machine Machine  `json:"machine"`
	Figures []Figure `json:"figures"`
}

// Figure is one measured value.
type Figure struct {
	// Measure is the run it comes from, Name what it is.
	Measure string  `json:"measure"`
	Name    string  `json:"name"`
	Value   float64 `json:"value"`
	Unit    string  `json:"unit"`
	// Target is what it should reach, nil if it is only for information.
	// AtMost says that less is better.
	Target *float64 `json:"target,omitempty"`
	AtMost bool     `json:"at_most,omitempty"`
}

// Reached reports whether the figure meets its target; true without one.
func (f *Figure) Reached() bool {
	switch {
	case f.Target == nil:
		return true
	case f.AtMost:
		return f.Value <= *f.Target
	}
	return f.Value >= *f.Target
}

// Machine is what the machine can do at most.
type Machine struct {
	Processors int    `json:"processors"`
	System     string `json:"system"`
	// ForkExecSerial and ForkExecParallel are runs of /bin/true per second, one
	// after another and on all processors.
	ForkExecSerial   float64 `json:"fork_exec_serial_per_s"`
	ForkExecParallel float64 `json:"fork_exec_parallel_per_s"`
	// SyncMedian is how long a write of 4 KiB takes to become durable.
	SyncMedian time.Duration `json:"sync_median_ns"`
}

// Measure is a run that yields figures.
type Measure struct {
	Name, Summary string
	run           func(b *bench, ctx context.Context) error
}

// Measures returns all there are, in the order in which they run.
func Measures() []Measure {
	return []Measure{
		{"start", "time from a submission to its running process, on an idle site", (*bench).start},
		{"client", "a kith process, from fork to exit", (*bench).client},
		{"throughput", "jobs per second through a federation", (*bench).throughput},
		{"tls", "the same two between sites with keys and without, in turns", (*bench).tls},
		{"flood", "what others get of a site while a peer floods it, for each kind of flood", (*bench).flood},
		{"claims", "claims granted durably per second by one origin", (*bench).claims},
		{"members", "a site that three machines keep: a new leader, submissions, claims, snapshots, a machine that comes back", (*bench).members},
		{"queue", "memory and restart of a site with a long queue", (*bench).queue},
		{"bags", "what bags of tasks cost: submission, the first task, tasks per second, memory, disk", (*bench).bags},
		{"guests", "what jobs of a log wait beside guests that run an endless bag, in virtual time", (*bench).guests},
		{"checkpoint", "how long a job that is asked to save and go on elsewhere stands still, and what of it travels", (*bench).checkpoint},
		{"lists", "submissions beside those who ask for the queue of a site where many jobs have ended", (*bench).lists},
		{"sim", "jobs per second through the engines in virtual time", (*bench).sim},
	}
}

type bench struct {
	opt      Options
	report   *Report
	now      string
	insecure bool // the sites of the next federation have no keys
}

// Run runs the named measures, all without names.
func Run(ctx context.Context, opt Options, names []string) (*Report, error) {
	for _, name := range names {
		if !slices.ContainsFunc(Measures(), func(m Measure) bool { return m.Name == name }) {
			return nil, fmt.Errorf("measure %q: there is none of that name; choose from %s", name, strings.Join(Names(), ", "))
		}
	}
	b := &bench{opt: opt, report: &Report{}, insecure: opt.Insecure}
	b.observe("the machine")
	machine, err := measureMachine(opt.Dir)
	if err != nil {
		return nil, err
	}
	b.report.Machine = machine
	for _, m := range Measures() {
		if len(names) > 0 && !slices.Contains(names, m.Name) {
			continue
		}
		b.observe(m.Name + ": " + m.Summary)
		b.now = m.Name
		if err := m.run(b, ctx); err != nil {
			return nil, fmt.Errorf("measure %s: %w", m.Name, err)
		}
	}
	return b.report, nil
}

// Names returns the names of all measures.
func Names() []string {
	var names []string
	for _, m := range Measures() {
		names = append(names, m.Name)
	}
	return names
}

func (b *bench) observe(what string) {
	if b.opt.Observe != nil {
		b.opt.Observe(what)
	}
}

func (b *bench) add(name string, value float64, unit string) {
	b.take(&Figure{Measure: b.now, Name: name, Value: value, Unit: unit})
}

// take keeps a figure, and tells it at once: what a measure that fails has found by then is not lost.
func (b *bench) take(f *Figure) {
	b.report.Figures = append(b.report.Figures, *f)
	b.observe(fmt.Sprintf("%s: %s: %.4g %s", f.Measure, f.Name, f.Value, f.Unit))
}

func (b *bench) addTarget(name string, value float64, unit string, target float64, atMost bool) {
	b.take(&Figure{Measure: b.now, Name: name, Value: value, Unit: unit, Target: &target, AtMost: atMost})
}

// federation starts sites of this measure, which end with the returned function.
func (b *bench) federation(ctx context.Context, sites []local.Site) (*local.Federation, func() error, error) {
	dir := filepath.Join(b.opt.Dir, b.now)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, nil, err
	}
	f, err := local.Start(ctx, local.Config{Dir: dir, Sites: sites, Insecure: b.insecure})
	if err != nil {
		return nil, nil, err
	}
	return f, func() error {
		err := f.Close()
		// The next measure shall not find this one's data in the disk's cache.
		os.RemoveAll(dir) //nolint:errcheck // the caller removes all of it anyway
		return err
	}, nil
}

func system() string { return runtime.GOOS + "/" + runtime.GOARCH + " " + runtime.Version() }

// median of values, which are sorted.
func median(values []time.Duration) time.Duration { return quantile(values, 0.5) }

// quantile of sorted values.
func quantile(values []time.Duration, q float64) time.Duration {
	return values[min(len(values)-1, int(q*float64(len(values))))]
}

func milliseconds(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }
