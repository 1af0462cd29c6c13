package meta

import (
	"errors"
	"fmt"
	"time"

	"kith/cluster"
	"kith/internal/job"
	"kith/store"
)

// Rank is what placement ranks sites by; less is better.
type Rank uint8

// The ranks (spec 001 section 2.3, spec 004 section 2.2). The numbers are stored; they are frozen.
const (
	RankWork       Rank = 0 // load "work": seconds to drain the site
	RankProcs      Rank = 1 // load "procs": processors asked for over processors there
	RankStart      Rank = 2 // the job's earliest start in the site's surface, asked for at each submission
	RankCompletion Rank = 3 // predicted start plus run time, asked for at each submission (MCT)
	RankNone       Rank = 4 // no choice was to be made
)

var rankNames = map[Rank]string{
	RankWork: "work", RankProcs: "procs", RankStart: "start", RankCompletion: "completion", RankNone: "none",
}

// String returns the rank's word.
func (r Rank) String() string {
	if s, ok := rankNames[r]; ok {
		return s
	}
	return fmt.Sprintf("rank-%d", uint8(r))
}

// asks reports whether the rank needs an answer from each site.
func (r Rank) asks() bool { return r == RankStart || r == RankCompletion }

// Scheme names a way of placing copies (spec 001 section 2.4, spec 004 section 2.2).
type Scheme string

// The schemes.
const (
	// Independent keeps every job at its origin.
	Independent Scheme = "independent"
	// Distributed sends a job to the one least loaded site.
	Distributed Scheme = "distributed"
	// KDistributed sends copies to the K least loaded sites.
	KDistributed Scheme = "k-distributed"
	// KDual keeps a copy at the origin and sends K-1 to the least loaded others.
	KDual Scheme = "k-dual"
	// MCT sends a job to the one site that promises the earliest completion.
	MCT Scheme = "mct"
	// Hierarchical sends a job to the one site where it would start earliest.
	Hierarchical Scheme = "hierarchical"
)

// Schemes lists them all.
func Schemes() []Scheme {
	return []Scheme{Independent, Distributed, KDistributed, KDual, MCT, Hierarchical}
}

// ImpliedRank returns the rank that a scheme is defined with, and false if it
// leaves the choice.
func (s Scheme) ImpliedRank() (Rank, bool) {
	switch s {
	case MCT:
		return RankCompletion, true
	case Hierarchical:
		return RankStart, true
	}
	return 0, false
}

// Placement says how copies are placed. Schemes are presets of it.
type Placement struct {
	Scheme Scheme
	// Rank is what sites are ranked by; see [Scheme.ImpliedRank].
	Rank Rank
	// Weight multiplies the score of sites with another policy than the
	// origin's while the sites that put their own jobs first have more computing
	// power than the others (spec 004 section 2.3, there a = 1.3). 0.01 to 100;
	// 0 means 1, no weights.
	Weight float64
	// Adaptive multiplies the score of each site with how much later than
	// promised it completed jobs of this origin lately, whatever its policy
	// (spec 004 section 4). It needs the ranks start or completion.
	Adaptive bool
	// Copies is K where a job does not choose: 1 to job.MaxCopies. Default 3, for
	// which docs/adr/0013-default-placement.md has the reasons.
	Copies int32
	// MaxLoadAge is how old a load digest may be to rank by; what is older
	// ranks behind everything else. Default 60 s.
	MaxLoadAge time.Duration
	// QueryTimeout is how long placement waits for sites to say when a job
	// would start there. Default 500 ms.
	QueryTimeout time.Duration
}

// originAlways reports whether the origin holds a copy whatever its rank.
func (p *Placement) originAlways() bool { return p.Scheme == KDual || p.Scheme == Independent }

// copies returns how many copies a job gets.
func (p *Placement) copies(wanted int32) int {
	switch p.Scheme {
	case Independent, Distributed, MCT, Hierarchical:
		return 1
	}
	if wanted > 0 {
		return int(wanted)
	}
	return int(p.Copies)
}

// Limits bound what a site takes on.
type Limits struct {
	// Jobs is how many jobs submitted here may be under way. Default 200,000.
	Jobs int
	// CopiesPerOrigin is how many copies of one other origin wait or run here.
	// Default 10,000.
	CopiesPerOrigin int
	// Copies is how many copies of all other origins wait or run here. Default 100,000.
	Copies int
	// ClosedJobs is how many ended jobs are remembered, ClosedFor how long.
	// Default 100,000 and 7 days.
	ClosedJobs int
	ClosedFor  time.Duration
	// Verdicts is how many sites a decision tells of, for people who ask why.
	// Those chosen are told in any case. Zero means [store.MaxVerdicts], the most.
	Verdicts int
}

func (l *Limits) verdicts() int {
	if l.Verdicts <= 0 {
		return store.MaxVerdicts
	}
	return min(l.Verdicts, store.MaxVerdicts)
}

// Timing is when the protocol gives up waiting.
type Timing struct {
	// Claim is how long a host keeps processors for an unanswered claim, Backoff
	// how long it then leaves the copy alone. Default 5 s and 30 s.
	Claim, Backoff time.Duration
	// Resend is how long a request may stay unanswered while the stream is up. Default 5 s.
	Resend time.Duration
	// Vanish is how long a site may be out of reach before its copies of open
	// attempts are replaced. Default 60 s.
	Vanish time.Duration
	// AntiEntropy is how often host and origin compare what they hold. Default 1 min.
	AntiEntropy time.Duration
	// Load is how often the site says how loaded it is. Default 5 s.
	Load time.Duration
	// Retry is how often jobs without a place look for one. Default 5 s.
	Retry time.Duration
	// Lease is how long another site may run a job under [job.Rerun] without
	// hearing of this origin. Default 60 s; it is renewed three times as often.
	Lease time.Duration
	// LeaseMargin is how much longer than that this origin waits: time for a
	// busy host to end processes. Default 5 s.
	LeaseMargin time.Duration
	// ClockRate is by how much the rate of any site's clock may be off, as a
	// fraction. Default 0.001, a hundred times what quartz does.
	ClockRate float64
}

// Config configures an [Engine].
type Config struct {
	Placement Placement
	Limits    Limits
	Timing    Timing
	// Incarnation is the start of this daemon in nanoseconds since 1970.
	Incarnation uint64
	// BootID names this boot of the machine.
	BootID string
	// Self is what the site says of itself in its load digests: Site,
	// Processors, MemoryBytes, Policy, Speed, Address, Version.
	Self Self
	// Board is where the loads of other sites are read; nil for digests that
	// arrive as messages and events.
	Board cluster.Board
	// Starts answers start queries at once; nil for a message there and back.
	Starts Starts
	// AllowDirectory says whether a job may run in an absolute directory
	// here. Nil allows none.
	AllowDirectory func(dir string) bool
}

// Starts asks other sites when a job would start there. Simulations in which
// messages take no time use it; a daemon has none.
type Starts interface {
	// StartAt returns what site answers to a query of another one now, and false
	// if it must be asked by message.
	StartAt(now job.Time, site, from job.SiteID, q *StartQuery) (StartAnswer, bool)
}

// Self is what does not change about a site while its daemon runs.
type Self struct {
	Address     string
	Processors  int32
	MemoryBytes int64
	Policy      string
	Speed       float64
	Version     string
}

// Default returns the configuration of a site that its operator did not tune.
func Default() Config {
	return Config{
		Placement: Placement{
			Scheme: KDual, Rank: RankWork, Copies: 3,
			MaxLoadAge: time.Minute, QueryTimeout: 500 * time.Millisecond,
		},
		Limits: Limits{
			Jobs: 200_000, CopiesPerOrigin: 10_000, Copies: 100_000,
			ClosedJobs: 100_000, ClosedFor: 7 * 24 * time.Hour,
		},
		Timing: Timing{
			Claim: 5 * time.Second, Backoff: 30 * time.Second, Resend: 5 * time.Second, Vanish: time.Minute,
			AntiEntropy: time.Minute, Load: 5 * time.Second, Retry: 5 * time.Second,
			Lease: time.Minute, LeaseMargin: 5 * time.Second, ClockRate: 0.001,
		},
	}
}

// Validate returns all that is wrong, joined, each naming field, value and remedy.
func (c *Config) Validate() error {
	var errs []error
	bad := func(format string, args ...any) { errs = append(errs, fmt.Errorf(format, args...)) }
	known := false
	for _, s := range Schemes() {
		known = known || s == c.Placement.Scheme
	}
	if !known {
		bad("placement scheme %q: choose one of %v", c.Placement.Scheme, Schemes())
	}
	if c.Placement.Rank > RankCompletion {
		bad("placement rank %v: choose work, procs, start or completion", c.Placement.Rank)
	}
	if rank, ok := c.Placement.Scheme.ImpliedRank(); ok && c.Placement.Rank != rank {
		bad("placement rank %v: scheme %s ranks by %v", c.Placement.Rank, c.Placement.Scheme, rank)
	}
	if w := c.Placement.Weight; w != 0 && !(w >= minWeight && w <= maxWeight) {
		bad("placement weight %v: choose %v to %v, or 0 for none", w, minWeight, maxWeight)
	}
	if c.Placement.Adaptive && !c.Placement.Rank.asks() {
		bad("placement adaptive with rank %v: only start and completion promise a time to compare with", c.Placement.Rank)
	}
	if c.Placement.Copies < 1 || c.Placement.Copies > job.MaxCopies {
		bad("placement copies %d: choose 1 to %d", c.Placement.Copies, job.MaxCopies)
	}
	for name, d := range map[string]time.Duration{
		"placement max_load_age": c.Placement.MaxLoadAge, "placement query_timeout": c.Placement.QueryTimeout,
		"timing claim": c.Timing.Claim, "timing backoff": c.Timing.Backoff, "timing resend": c.Timing.Resend,
		"timing vanish": c.Timing.Vanish, "timing anti_entropy": c.Timing.AntiEntropy, "timing load": c.Timing.Load,
		"timing retry": c.Timing.Retry, "timing lease": c.Timing.Lease, "timing lease_margin": c.Timing.LeaseMargin,
		"limits closed_for": c.Limits.ClosedFor,
	} {
		if d <= 0 {
			bad("%s %v: choose a positive duration", name, d)
		}
	}
	for name, n := range map[string]int{
		"limits jobs": c.Limits.Jobs, "limits copies_per_origin": c.Limits.CopiesPerOrigin, "limits copies": c.Limits.Copies,
	} {
		if n < 1 {
			bad("%s %d: choose at least 1", name, n)
		}
	}
	if c.Timing.Lease > maxLease {
		bad("timing lease %v: choose at most %v", c.Timing.Lease, maxLease)
	}
	if r := c.Timing.ClockRate; !(r >= 0 && r <= 0.5) {
		bad("timing clock_rate %v: choose a fraction from 0 to 0.5, 0.001 if in doubt", r)
	}
	if c.Limits.ClosedJobs < 0 {
		bad("limits closed_jobs %d: choose at least 0", c.Limits.ClosedJobs)
	}
	return errors.Join(errs...)
}

// ParseRank returns the rank of a word.
func ParseRank(word string) (Rank, bool) {
	for _, r := range []Rank{RankWork, RankProcs, RankStart, RankCompletion} {
		if r.String() == word {
			return r, true
		}
	}
	return 0, false
}
