package runner

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"kith/internal/clock"
	"kith/internal/job"
	"kith/internal/loglines"
	"kith/meta"
	"kith/meta/api"
	"kith/meta/transfer"
	kithv1 "kith/proto/gen/kith/v1"
	"kith/sitesched/work"
	"kith/store"
	"kith/store/blobstore"
)

// Config is what a [Runner] is made of.
type Config struct {
	// Files are what this site keeps; they serve the output of what runs.
	Files *Files
	// System makes what runs attempts; it reports to the function it is given.
	System func(report func(work.Event)) (work.System, error)
	// Peers reads files of other sites. Away reports whether a site is out of reach.
	Peers Peers
	Away  func(job.SiteID) bool
	// Tell gives the engine an event and never waits: much of what is done here
	// is done while effects are carried out, for which the engine may wait. Post
	// may wait for the engine.
	Tell, Post func(meta.Event)
	// SinceBoot turns an instant of the engine into the clock of leases, see
	// package clock.
	SinceBoot func(job.Time) time.Duration
	// Grace is how long a job has between being asked to end and its end.
	Grace time.Duration
	// Staging is how long processors are held while inputs are brought from another
	// site; then others have them until the inputs are here. Zero means a minute.
	Staging time.Duration
	// Fetch says how patiently files are fetched.
	Fetch transfer.FetchConfig
	Log   *slog.Logger
}

// Peers reads files at other sites, over the streams to them.
type Peers interface {
	ReadFile(ctx context.Context, site job.SiteID, r *kithv1.FileRequest) (*kithv1.FileReply, error)
}

// How many attempts are collected at a time: those that left up to smallOutput bytes,
// and the others. Each kind has places of its own, so that a word does not wait behind
// eight disks.
const (
	smallAtOnce = 8
	largeAtOnce = 4
	smallOutput = 4 << 20
)

// Runner stages, starts and collects what runs at this site. Its methods that
// take an effect may be called by one goroutine after another, in the order of
// the effects; [Runner.Extend], [Runner.Kill] and [Runner.Launched] by any, at any time.
type Runner struct {
	cfg       Config
	site      job.SiteID
	files     *Files
	system    work.System
	batch     work.Batch // the system too, nil if it has no queue of its own
	fetcher   *transfer.Fetcher
	fetches   fetches
	batches   taskFetches
	gathering gathering
	unpacker  *transfer.Unpacker
	collector *transfer.Collector
	log       *slog.Logger
	small     *lane
	large     *lane
	saving    *lane
	saveLines loglines.Pacer[job.SiteID] // of lines about copies that failed, by origin
	scarcity  scarcity
	disk      *Room
	collect   func(context.Context, transfer.Leaving) (transfer.Collection, error)
	readMark  func(path string) ([]byte, error)

	ctx    context.Context
	cancel context.CancelFunc
	wg     sync.WaitGroup

	*runs
}

var _ api.Output = (*Runner)(nil)

// New makes a runner and its system.
func New(cfg Config) (*Runner, error) {
	f := cfg.Files
	r := &Runner{
		cfg: cfg, site: f.cfg.Site, files: f, log: cfg.Log, runs: f.runs,
		fetcher:   transfer.NewFetcher(f.blobs, cfg.Fetch),
		unpacker:  &transfer.Unpacker{Store: f.blobs, LowWaterBytes: f.cfg.KeepFreeBytes},
		collector: &transfer.Collector{Store: f.blobs, MaxFileBytes: f.cfg.MaxFileBytes},
		small:     newLane(smallAtOnce),
		large:     newLane(largeAtOnce),
		saving:    newLane(savesAtOnce),
		readMark:  readMark,
		disk:      NewRoom(f.cfg.Dir),
	}
	r.collect = r.collector.Collect
	r.cfg.Staging = cmp.Or(r.cfg.Staging, defaultStaging)
	r.ctx, r.cancel = context.WithCancel(context.Background())
	var err error
	if r.system, err = cfg.System(r.report); err != nil {
		r.cancel()
		return nil, err
	}
	r.batch, _ = r.system.(work.Batch)
	return r, nil
}

// Close stops staging, collecting and fetching; jobs run on.
func (s *Runner) Close() {
	s.cancel()
	s.wg.Wait()
	s.system.Close()
}

// BootID is [work.System.BootID].
func (s *Runner) BootID() string { return s.system.BootID() }

// Capabilities says what can be done to jobs here.
func (s *Runner) Capabilities() []work.Capability { return s.system.Capabilities() }

// AdoptedShims returns the processes that an earlier daemon started for attempts that still run;
// none where that is not known.
func (s *Runner) AdoptedShims() []int {
	if x, ok := s.system.(interface{ AdoptedShims() []int }); ok {
		return x.AdoptedShims()
	}
	return nil
}

// runs are the attempts that are known here.
type runs struct {
	mu     sync.Mutex
	byID   map[job.AttemptID]*run
	brings map[job.AttemptID]*bring
	away   map[job.AttemptID]job.SiteID // whose output does not come home for want of room
}

// run is an attempt from its launch until its folder is cleared.
type run struct {
	attempt job.AttemptID
	request job.Request
	files   work.Files
	task    *meta.TaskRun // nil of an attempt of a job
	payload *payload
	resume  store.Resume // of a job of this site
	spec    *work.Spec   // from staging until it starts
	asked   *work.Asked  // once it has ended, if it was asked to
	ending  meta.Ending  // set before it is staged, as is
	// estimate, which says how its estimator is run.
	estimate meta.Estimate
	// ended is closed when nothing is written to its output any more.
	ended chan struct{}

	// Guarded by runs.mu.
	stopStaging context.CancelFunc // while it is being staged
	unstaged    bool               // a drain took it back while it was
	killed      *meta.Kill
	stale       bool               // nobody wants what it leaves
	stopCollect context.CancelFunc // while that is being collected
	folder      func()             // gives the room of its folder back; nil if it has none
	output      transfer.Set       // what was collected
	kept        *blobstore.Hold    // of that; nil if there is none
	copied      copied             // while it ran
	stopSaving  context.CancelFunc // of the copy that is being made
	cleared     bool
	lease       job.Time // what runs under a lease may run until then
	begun       bool     // handed to the system
	over        bool
	// finished says that the system is done with it, uncollected what of its folder
	// is still wanted then, emptied that nothing is left there, see MakeRoom.
	finished, emptied bool
	uncollected       []string
}

func newRuns() *runs {
	return &runs{byID: make(map[job.AttemptID]*run), brings: make(map[job.AttemptID]*bring), away: make(map[job.AttemptID]job.SiteID)}
}

func (s *runs) get(a job.AttemptID) *run {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.byID[a]
}

// live returns the output file of an attempt that runs here.
func (s *runs) live(a job.AttemptID, name string) (transfer.Output, error) {
	r := s.get(a)
	if r == nil {
		return transfer.Output{}, fmt.Errorf("attempt %v: %w", a, transfer.ErrNotFound)
	}
	switch name {
	case transfer.Stdout:
		return transfer.Output{Path: r.files.Stdout, Ended: r.ended}, nil
	case transfer.Stderr:
		return transfer.Output{Path: r.files.Stderr, Ended: r.ended}, nil
	}
	return transfer.Output{}, fmt.Errorf("output %q of attempt %v, while it runs: %w", name, a, transfer.ErrNotFound)
}

// lease turns the end of a lease into what a system knows it by. The job gets
// the grace time before that end, or a sixth of what is left if that is less.
func (s *Runner) lease(gone job.Time) work.Lease {
	l := work.Lease{Gone: max(0, s.cfg.SinceBoot(gone))}
	left := max(0, l.Gone-clock.SinceBoot())
	l.Stop = l.Gone - min(s.cfg.Grace, left/6)
	return l
}
