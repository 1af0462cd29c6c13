package federation

import (
	"errors"
	"fmt"
	"io"
	"math"
	"time"

	"kith/internal/job"
	"kith/meta"
	"kith/sitesched"
	"kith/testbed/metrics"
	"kith/testbed/sim"
)

// Config is a federation and how it is run.
type Config struct {
	// Seed is that of all randomness; zero is a seed like any other. A run
	// without jitter, loss and transfers draws no random numbers.
	Seed uint64
	// Sites is at least one. Their order is that of the workloads.
	Sites []Site
	// Placement is the configuration of the production pipeline at every site.
	// A scheme that implies a rank gets it. No Copies means those of a daemon that
	// is not told otherwise, or all sites if they are fewer, no MaxLoadAge that
	// loads never become too old, no QueryTimeout the usual one.
	Placement meta.Placement
	// LoadPeriod is how often a site's load is taken down; zero makes loads fresh
	// at every decision. LoadDelay is how much later the others learn of it.
	LoadPeriod, LoadDelay time.Duration
	// Staggered spreads the instants at which loads are taken down over the
	// period; else all sites do it at once.
	Staggered bool
	// LoadMessages makes sites tell each other their load once a LoadPeriod, a
	// message from each to each, as daemons do. LoadDelay and Staggered mean
	// nothing then. It is for few sites.
	LoadMessages bool
	// Network says how messages travel; the zero value delivers within the instant.
	Network sim.NetworkConfig
	// AntiEntropy is how often hosts and origins compare what they hold. Zero
	// means never, which is right unless messages are lost.
	AntiEntropy time.Duration
	// Transfer is what moving a job's input to another site costs; nil if nothing.
	Transfer *Transfer
	// CopiesOf returns the K of one job, by site and place in its workload; zero
	// for that of Placement. Nil for all of them.
	CopiesOf func(site, index int) int32
	// Shape, if not nil, changes the request of one job, by site and place in its workload.
	Shape func(site, index int, r *job.Request)
	// Bags are submitted beside the workloads; Guests is how all sites run tasks.
	Bags   []Bag
	Guests meta.Bags
	// Invariants checks the invariants of the design after every event. It is slow.
	Invariants bool
	// Guard checks S4 alone.
	Guard bool
	// Harm has sites measure what their guests cost, see [metrics.Record.Blocked].
	Harm bool
	// Checkpoints has all jobs write checkpoints, which takes Saves when a site has a guest leave.
	// Zero is none. Sites give guests Grace for it, zero as long as a daemon does.
	Checkpoints  bool
	Saves, Grace time.Duration
	// EventLog receives the event log (package sim); nil for none. With Hash,
	// [Result.Hash] is filled in.
	EventLog io.Writer
	Hash     bool
	// Sample, if not nil, is shown every site at multiples of SampleEvery.
	SampleEvery time.Duration
	Sample      func(Sample)
	// Watch, if not nil, is shown the federation after all that happens at an instant.
	Watch func(*Instant)
	// Ended, if not nil, is told of each job that has ended, by site and place in its workload.
	Ended func(site, index int, r *metrics.Record)
	// Progress, if not nil, is told now and then how many jobs have ended.
	Progress func(done, total int)
}

// Site is a site of the federation.
type Site struct {
	ID job.SiteID
	// Processors is 1 to [job.MaxProcessors].
	Processors int32
	Backfill   sitesched.Backfill
	Queues     sitesched.Queues
	Scope      sitesched.Scope
	// GuaranteeDepth is that of [sitesched.Config]; zero means no bound.
	GuaranteeDepth int32
	// Speed is that of a processor; run times and estimates are divided by it.
	// Zero means 1.
	Speed float64
	// KeepFree is that of [sitesched.Config], GuestWalltime that of [meta.NoHarm].
	KeepFree      int32
	GuestWalltime time.Duration
	// Bound is for how long guests alone may keep a job of the site waiting before they have to leave;
	// zero for as long as they run, unless Queues are DualPreempt.
	Bound time.Duration
	// Level is that of a hierarchy; the zero value is none.
	Level meta.LevelPolicy
	// Zone is added to the instants at which jobs are submitted here. At least 0.
	Zone time.Duration
}

// Sample is a site at an instant.
type Sample struct {
	At   job.Time
	Site job.SiteID
	Load job.Load
}

// Transfer is the cost of data (spec 001 section 2.6): each job has an input of
// a size drawn evenly from a range. It is moved once, after the grant, if the
// job does not run at its origin, and holds the job's processors meanwhile.
type Transfer struct {
	// MinBytes and MaxBytes are the range of sizes.
	MinBytes, MaxBytes int64
	// BitsPerSecond is the speed between any two sites.
	BitsPerSecond float64
}

// PaperTransfer returns the numbers of spec 001 section 2.6: 100 MB to 1 GB at 10 Mbit/s.
func PaperTransfer() *Transfer { return &Transfer{100_000_000, 1_000_000_000, 10_000_000} }

// ErrConfig is wrapped by every error about a [Config] and its workloads.
var ErrConfig = errors.New("invalid federation")

// normalise checks cfg and fills in what zero values stand for.
func (cfg *Config) normalise(workloads int) error {
	var errs []error
	bad := func(format string, args ...any) {
		errs = append(errs, fmt.Errorf(format+": %w", append(args, ErrConfig)...))
	}
	if len(cfg.Sites) == 0 {
		bad("no sites: name at least one")
	}
	if workloads != len(cfg.Sites) {
		bad("%d workloads for %d sites: give one for each, empty if need be", workloads, len(cfg.Sites))
	}
	seen := make(map[job.SiteID]bool)
	for i, s := range cfg.Sites {
		if _, err := job.ParseSiteID(string(s.ID)); err != nil {
			bad("site %d: %v", i+1, err)
		}
		if seen[s.ID] {
			bad("site %s: named twice", s.ID)
		}
		seen[s.ID] = true
		if err := s.Scheduler().Validate(); err != nil {
			bad("site %s: %v", s.ID, err)
		}
		if s.Speed != 0 && !(s.Speed >= minSpeed && s.Speed <= maxSpeed) {
			bad("site %s, speed %v: choose %v to %v, 1 for the reference", s.ID, s.Speed, minSpeed, maxSpeed)
		}
		if s.Zone < 0 || s.Zone > maxZone {
			bad("site %s, zone %v: choose 0 to %v", s.ID, s.Zone, maxZone)
		}
	}
	for i := range cfg.Bags {
		if err := cfg.Bags[i].check(len(cfg.Sites)); err != nil {
			bad("bag %d: %v", i+1, err)
		}
	}
	p := &cfg.Placement
	if rank, ok := p.Scheme.ImpliedRank(); ok {
		p.Rank = rank
	}
	if p.Copies == 0 {
		p.Copies = min(meta.Default().Placement.Copies, int32(max(len(cfg.Sites), 1))) //nolint:gosec // sites are few
	}
	if p.MaxLoadAge == 0 {
		p.MaxLoadAge = math.MaxInt64
	}
	if p.QueryTimeout == 0 {
		p.QueryTimeout = meta.Default().Placement.QueryTimeout
	}
	if p.Scheme == meta.KDistributed || p.Scheme == meta.KDual {
		if int(p.Copies) > len(cfg.Sites) {
			bad("%d copies among %d sites: choose at most as many", p.Copies, len(cfg.Sites))
		}
	}
	for _, x := range []struct {
		name string
		d    time.Duration
	}{{"load period", cfg.LoadPeriod}, {"load delay", cfg.LoadDelay}, {"anti-entropy", cfg.AntiEntropy}, {"sample every", cfg.SampleEvery}} {
		if x.d < 0 {
			bad("%s %v: choose 0 or more", x.name, x.d)
		}
	}
	if cfg.LoadMessages && cfg.LoadPeriod == 0 {
		bad("load messages without a load period: choose one")
	}
	if cfg.Sample != nil && cfg.SampleEvery == 0 {
		bad("sample every 0s: choose a positive duration")
	}
	if t := cfg.Transfer; t != nil && (t.MinBytes < 0 || t.MaxBytes < t.MinBytes || !(t.BitsPerSecond > 0)) {
		bad("transfer %+v: choose 0 <= min <= max bytes and a positive speed", *t)
	}
	return errors.Join(errs...)
}

const (
	minSpeed, maxSpeed = 1e-3, 1e6
	maxZone            = 366 * 24 * time.Hour
)

// Scheduler returns how the site schedules.
func (s *Site) Scheduler() sitesched.Config {
	return sitesched.Config{Processors: s.Processors, Backfill: s.Backfill, Queues: s.Queues, Scope: s.Scope, GuaranteeDepth: s.GuaranteeDepth, KeepFree: s.KeepFree}
}
