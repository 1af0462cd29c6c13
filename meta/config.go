package meta

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"kith/cluster"
	"kith/internal/job"
	"kith/meta/bags"
	"kith/meta/place"
)

// Placement says how copies are placed; package place has what it is made of.
type Placement = place.Options

// Rank is what sites are ranked by, see [place.Rank].
type Rank = place.Rank

// The ranks.
const (
	RankWork       = place.RankWork
	RankProcs      = place.RankProcs
	RankStart      = place.RankStart
	RankCompletion = place.RankCompletion
	RankNone       = place.RankNone
	RankForecast   = place.RankForecast
	RankUnset      = place.RankUnset
)

// Scheme names a way of placing copies, see [place.Scheme].
type Scheme = place.Scheme

// The schemes.
const (
	Independent  = place.Independent
	Distributed  = place.Distributed
	KDistributed = place.KDistributed
	KDual        = place.KDual
	MCT          = place.MCT
	Hierarchical = place.Hierarchical
)

// Schemes lists them all.
func Schemes() []Scheme { return place.Schemes() }

// ParseRank returns the rank of a word.
func ParseRank(word string) (Rank, bool) { return place.ParseRank(word) }

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
	// Bags is how many bags submitted here may be under way. Zero means 10,000.
	Bags int
	// DecisionSites is how many sites a decision tells of, for people who ask why.
	// Those chosen are told in any case. Zero means [store.MaxDecisionSites], the most.
	DecisionSites int
}

// bags returns the bound on bags.
func (l *Limits) bags() int { return cmp.Or(l.Bags, 10_000) }

// Bags is how this site, as a host, runs tasks.
type Bags struct {
	// Turn is how long a pilot runs tasks before others have theirs; at least as long as the
	// walltime of one of its tasks. Zero means 10 min.
	Turn time.Duration
	// Yield is what pilots do while a job of this site's own users waits. Default YieldTask.
	Yield bags.Yield
	// Share is the part of the processors that pilots of one other origin may have while
	// others wait, above 0 and at most 1. Zero means 1.
	Share float64
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
	// Overdue is how much longer than its time limit another site may hold a job that it does
	// not end while it is in reach, see overdue.go. Default 24 h.
	Overdue time.Duration
	// ReplicaCycle is how often tasks are drawn, in the tail of a bag, that should be with one
	// more site. Zero means [bags.ReplicaCycle]. It is no setting of a daemon: what users mean by
	// a replica is said by the policy "replicate", and a minute is short beside what has one.
	ReplicaCycle time.Duration
}

// replicaCycle returns how often tasks are drawn that should be with one more site.
func (t *Timing) replicaCycle() time.Duration { return cmp.Or(t.ReplicaCycle, bags.ReplicaCycle) }

// Config configures an [Engine].
type Config struct {
	Placement Placement
	Limits    Limits
	Timing    Timing
	Bags      Bags
	NoHarm    NoHarm
	// MaxGrace is the most time that an attempt has to save what it has done when it is asked
	// to, see [AskCheckpoint]. Zero means 5 min; at most a day.
	MaxGrace time.Duration
	// Level is the level of a hierarchy that the site is, if any.
	Level LevelPolicy
	// BootID names this boot of the machine.
	BootID string
	// Self is what the site says of itself in its load digests: Site,
	// Processors, MemoryBytes, HomeJobs, Policy, Speed, Address, Version.
	Self Self
	// ReferenceTimes says that walltimes are meant for a processor of speed 1, so that
	// a site divides them by its speed, both to plan with and as the limit. That is the
	// papers' model (spec 004 section 4), for simulations. A daemon leaves it unset: a
	// user's limit is time on the clock, and where a site is faster the job ends before
	// it (ADR 0025).
	ReferenceTimes bool
	// Policies compiles the policies of bags; nil for a site that refuses them.
	Policies bags.Policies
	// Board is where the loads of other sites are read; nil for digests that
	// arrive as messages and events.
	Board cluster.Board
	// Starts answers start queries at once; nil for a message there and back.
	Starts Starts
	// Admitted says that only sites of the trust table count. Without it every site that
	// the driver has a stream to does, unless it was revoked: the driver then names its
	// peers itself (`--insecure-loopback`, simulations).
	Admitted bool
	// Forecasts is how starts are forecast. The zero value is not at all.
	Forecasts Forecasts
	// AllowDirectory says whether a job may run in an absolute directory
	// here. Nil allows none.
	AllowDirectory func(dir string) bool
}

const (
	defaultGrace = 5 * time.Minute
	mostGrace    = 24 * time.Hour
)

// maxGrace is [Config].MaxGrace or its default.
func (c *Config) maxGrace() time.Duration { return cmp.Or(c.MaxGrace, defaultGrace) }

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
	// KeptFree is how many processors jobs of other sites never have.
	KeptFree int32
	// HomeJobs says whether jobs submitted here go first, Policy in words how
	// jobs are ordered.
	HomeJobs cluster.HomeJobs
	Policy   string
	Speed    float64
	Version  string
}

// Default returns the configuration of a site that its operator did not tune.
func Default() Config {
	return Config{
		Placement: place.Default(),
		Bags:      Bags{Turn: 10 * time.Minute, Yield: bags.YieldTask, Share: 1},
		NoHarm:    NoHarm{Measure: true, Bound: 10 * time.Minute},
		Limits: Limits{
			Jobs: 200_000, CopiesPerOrigin: 10_000, Copies: 100_000,
			ClosedJobs: 100_000, ClosedFor: 7 * 24 * time.Hour, Bags: 10_000,
		},
		Timing: Timing{
			Claim: 5 * time.Second, Backoff: 30 * time.Second, Resend: 5 * time.Second, Vanish: time.Minute,
			AntiEntropy: time.Minute, Load: 5 * time.Second, Retry: 5 * time.Second,
			Lease: time.Minute, LeaseMargin: 5 * time.Second, ClockRate: 0.001,
			Overdue: 24 * time.Hour,
		},
	}
}

// Validate returns all that is wrong, joined; see [Config.Check].
func (c *Config) Validate() error {
	var errs []error
	c.Check(func(key string, value any, remedy string) {
		errs = append(errs, fmt.Errorf("%s %v: %s", key, value, remedy))
	})
	return errors.Join(errs...)
}

// Check calls bad for everything that is wrong. key is named as a site's
// configuration file does, for example timing.claim; remedy says what to give
// instead of value.
func (c *Config) Check(bad func(key string, value any, remedy string)) {
	c.Placement.Check(bad)
	c.Forecasts.check(bad)
	if c.Placement.Rank == RankForecast && !c.Forecasts.Enabled {
		bad("placement.rank", c.Placement.Rank, "set forecast.enabled, or choose completion")
	}
	positive(bad, "timing", map[string]time.Duration{
		"claim": c.Timing.Claim, "backoff": c.Timing.Backoff, "resend": c.Timing.Resend, "vanish": c.Timing.Vanish,
		"anti_entropy": c.Timing.AntiEntropy, "load": c.Timing.Load, "retry": c.Timing.Retry,
		"lease": c.Timing.Lease, "lease_margin": c.Timing.LeaseMargin,
		"overdue": c.Timing.Overdue,
	})
	if c.Timing.Lease > maxLease {
		bad("timing.lease", c.Timing.Lease, fmt.Sprintf("give at most %v", maxLease))
	}
	if c.Timing.ReplicaCycle < 0 {
		bad("timing.replica_cycle", c.Timing.ReplicaCycle, "give a positive time, 1m if in doubt")
	}
	if r := c.Timing.ClockRate; !(r >= 0 && r <= 0.5) {
		bad("timing.clock_rate", r, "give a fraction from 0 to 0.5, 0.001 if in doubt")
	}
	positive(bad, "limits", map[string]int{"jobs": c.Limits.Jobs, "copies_per_origin": c.Limits.CopiesPerOrigin, "copies": c.Limits.Copies})
	positive(bad, "limits", map[string]time.Duration{"closed_for": c.Limits.ClosedFor})
	if c.Limits.Bags < 0 {
		bad("limits.bags", c.Limits.Bags, "give a positive value")
	}
	c.NoHarm.check(c.maxGrace(), bad)
	if c.MaxGrace < 0 || c.MaxGrace > mostGrace {
		bad("checkpoint.max_grace", c.MaxGrace, fmt.Sprintf("give a positive time of at most %v, %v if in doubt", mostGrace, defaultGrace))
	}
	c.Level.check(&c.Self, bad)
	if c.Bags.Turn < 0 || c.Bags.Turn > job.MaxWalltime {
		bad("bags.turn", c.Bags.Turn, "give a positive time, 10m if in doubt")
	}
	if s := c.Bags.Share; !(s >= 0 && s <= 1) {
		bad("bags.share", s, "give a part above 0 and at most 1")
	}
	if c.Limits.ClosedJobs < 0 {
		bad("limits.closed_jobs", c.Limits.ClosedJobs, "give at least 0")
	}
}

// positive checks values that must be above zero, by their keys.
func positive[T int | time.Duration](bad func(key string, value any, remedy string), table string, values map[string]T) {
	for _, key := range slices.Sorted(maps.Keys(values)) {
		if v := values[key]; v <= 0 {
			bad(table+"."+key, v, "give a positive value")
		}
	}
}
