package sitesched

import (
	"errors"
	"fmt"
	"math"
	"math/bits"
	"slices"
	"time"

	"kith/internal/job"
)

// Backfill says which copies may overtake the head of their queue.
type Backfill uint8

const (
	// NoBackfill is first come, first served: nothing overtakes.
	NoBackfill Backfill = iota
	// EASY lets a copy overtake if that does not delay the blocked head.
	EASY
	// Conservative gives every copy a guarantee on arrival. When something
	// ends, the plan is compressed in queue order; no guarantee moves back.
	Conservative
	// ConservativeReplan builds the whole plan anew from the running copies
	// whenever something ends. Its slots are plans: they may move back.
	ConservativeReplan
)

var backfillNames = []string{"none", "easy", "conservative", "conservative-replan"}

// String returns the word that [ParseBackfill] reads.
func (b Backfill) String() string { return word(backfillNames, b) }

// ParseBackfill reads none, easy, conservative or conservative-replan.
func ParseBackfill(s string) (Backfill, error) {
	return parseWord[Backfill]("backfill", backfillNames, s)
}

// plans reports whether every local copy has a slot in the profile.
func (b Backfill) plans() bool { return b >= Conservative }

// Queues says how local jobs and remote copies share the site.
type Queues uint8

const (
	// Single is one queue for all.
	Single Queues = iota
	// DualStrict starts remote copies only while no local job waits (spec 004 section 1).
	DualStrict
	// DualBackfill fits remote copies around the local jobs (spec 001 section 2.2).
	DualBackfill
	// DualPreempt is [DualBackfill] for remote copies, while local jobs are scheduled as if there
	// were no remote ones: where a local job needs processors that guests hold, these leave
	// ([Scheduler.Evicted]).
	DualPreempt
)

var queuesNames = []string{"single", "dual-strict", "dual-backfill", "dual-preempt"}

// String returns the word that [ParseQueues] reads.
func (q Queues) String() string { return word(queuesNames, q) }

// ParseQueues reads single, dual-strict, dual-backfill or dual-preempt.
func ParseQueues(s string) (Queues, error) { return parseWord[Queues]("queues", queuesNames, s) }

// Scope says which local jobs a remote start must not delay. It means
// something only for [DualBackfill] and [DualPreempt] without conservative guarantees. Under
// DualPreempt it saves guests from being evicted soon after they start.
type Scope uint8

const (
	// ScopeHead protects the blocked head of the local queue.
	ScopeHead Scope = iota
	// ScopeAll protects the current plan of every queued local job.
	ScopeAll
)

var scopeNames = []string{"head", "all"}

// String returns the word that [ParseScope] reads.
func (c Scope) String() string { return word(scopeNames, c) }

// ParseScope reads head or all.
func ParseScope(s string) (Scope, error) { return parseWord[Scope]("scope", scopeNames, s) }

func word[T ~uint8](names []string, v T) string {
	if int(v) < len(names) {
		return names[v]
	}
	return fmt.Sprintf("unknown(%d)", uint8(v))
}

// ErrUnknownWord is returned when a text is none of the words a setting knows.
var ErrUnknownWord = errors.New("not one of the known words")

func parseWord[T ~uint8](setting string, names []string, s string) (T, error) {
	if i := slices.Index(names, s); i >= 0 {
		return T(i), nil // the tables have a handful of words
	}
	return 0, fmt.Errorf("%s %.40q: %w %v", setting, s, ErrUnknownWord, names)
}

// Config describes one site to its scheduler.
type Config struct {
	// Processors is P, the number of identical processors, 1 to [job.MaxProcessors].
	Processors int32
	// MemoryBytes is the memory of the whole site, shared by all copies. Zero
	// means that memory is no limit here.
	MemoryBytes int64
	// Backfill, Queues and Scope choose the discipline. The zero values are
	// plain first come, first served with one queue.
	Backfill Backfill
	Queues   Queues
	Scope    Scope
	// GuaranteeDepth is how many local copies at the head of the local queue the
	// site plans and protects where it plans all of it: under [ScopeAll] and
	// under conservative guarantees. What waits behind them has no guarantee
	// until it moves up. It bounds what a pass costs. Zero means no bound.
	GuaranteeDepth int32
	// StartMargin is how much longer than its walltime a remote copy is planned
	// for until it is confirmed. A copy starts when its claim is granted and its
	// files are there, which is later than the pass that chose it; if that takes
	// no longer than the margin, the copy moves no guarantee. Zero is right where
	// claims take no time, at most [job.MaxWalltime].
	StartMargin time.Duration
	// Patience is how long a remote copy waits under [DualBackfill] or [DualPreempt] before younger
	// remote copies may no longer delay it. Zero is for ever, as in the papers; at
	// most [job.MaxWalltime].
	Patience time.Duration
	// KeepFree is how many processors remote copies together never have, 0 to Processors;
	// above 0 only under [DualBackfill] or [DualPreempt]. [Scheduler.EarliestStart] takes no notice of it.
	KeepFree int32
	// WhatIfSteps bounds the work of one [Scheduler.WhatIf]; a step takes 10
	// to 20 ns. Zero means [DefaultWhatIfSteps].
	WhatIfSteps int64
}

// DefaultWhatIfSteps stops a prediction after some 30 ms. Under EASY that is
// enough to be exact among tens of thousands of queued copies, under scope all
// among some hundreds.
const DefaultWhatIfSteps = 1 << 21

// MaxMemoryBytes is the largest memory of a site.
const MaxMemoryBytes = 1 << 60

// ErrConfig is wrapped by every error of [Config.Validate].
var ErrConfig = errors.New("invalid site configuration")

// Validate returns all that is wrong with c, joined, each naming field and value, or nil.
func (c Config) Validate() error {
	var errs []error
	bad := func(field string, value any, want string) {
		errs = append(errs, fmt.Errorf("%s %v: must be %s: %w", field, value, want, ErrConfig))
	}
	if c.Processors < 1 || c.Processors > job.MaxProcessors {
		bad("processors", c.Processors, "1 to 16777216")
	}
	if c.MemoryBytes < 0 || c.MemoryBytes > MaxMemoryBytes {
		bad("memory_bytes", c.MemoryBytes, "0 (no limit) to 2^60")
	}
	if int(c.Backfill) >= len(backfillNames) {
		bad("backfill", c.Backfill, fmt.Sprint(backfillNames))
	}
	if int(c.Queues) >= len(queuesNames) {
		bad("queues", c.Queues, fmt.Sprint(queuesNames))
	}
	if int(c.Scope) >= len(scopeNames) {
		bad("scope", c.Scope, fmt.Sprint(scopeNames))
	}
	if c.GuaranteeDepth < 0 {
		bad("guarantee_depth", c.GuaranteeDepth, "0 (no bound) or more")
	}
	if c.StartMargin < 0 || c.StartMargin > job.MaxWalltime {
		bad("start_margin", c.StartMargin, "0s to 10 years")
	}
	if c.Patience < 0 || c.Patience > job.MaxWalltime {
		bad("patience", c.Patience, "0s (for ever) to 10 years")
	}
	if c.KeepFree < 0 || c.KeepFree > max(c.Processors, 0) {
		bad("keep_free", c.KeepFree, "0 (none) to processors")
	} else if c.KeepFree > 0 && !c.backfillsGuests() {
		bad("keep_free", c.KeepFree, "0 unless queues are dual-backfill or dual-preempt")
	}
	if c.WhatIfSteps < 0 {
		bad("what_if_steps", c.WhatIfSteps, "0 (the default) or more")
	}
	return errors.Join(errs...)
}

// HomeFirst reports whether local jobs start before remote ones.
func (c Config) HomeFirst() bool { return c.Queues != Single }

// backfillsGuests reports whether remote copies fill what local jobs leave.
func (c *Config) backfillsGuests() bool { return c.Queues == DualBackfill || c.Queues == DualPreempt }

// depth returns how many local copies are planned at most.
func (c *Config) depth() int {
	protects := c.Backfill.plans() || c.backfillsGuests() && c.Scope == ScopeAll
	if c.GuaranteeDepth == 0 || !protects {
		return math.MaxInt
	}
	return int(c.GuaranteeDepth)
}

// Policy names the discipline in words, for people: for example "easy,
// dual-backfill, scope all". The scope is named only where it matters.
func (c Config) Policy() string {
	s := c.Backfill.String() + ", " + c.Queues.String()
	if c.backfillsGuests() && !c.Backfill.plans() {
		s += ", scope " + c.Scope.String()
	}
	return s
}

// Charge returns how many of the site's P processors r occupies: its own
// processors, or its share of the memory counted in processors if that is
// more. As all charges together never exceed P, the memory of all running
// copies never exceeds the site's. All rules of the scheduler work on the
// charge. The result is above P exactly if r can never run here.
func (c *Config) Charge(r *job.Request) int32 { return c.charge(r.Processors, r.MemoryBytes) }

func (c *Config) charge(processors int32, memoryBytes int64) int32 {
	p := max(processors, 1)
	if c.MemoryBytes <= 0 || memoryBytes <= 0 {
		return p
	}
	if memoryBytes > c.MemoryBytes {
		return math.MaxInt32
	}
	// Rounded up, and at most P because the copy's memory is at most the site's.
	hi, lo := bits.Mul64(uint64(memoryBytes), uint64(c.Processors))
	share, rest := bits.Div64(hi, lo, uint64(c.MemoryBytes))
	if rest > 0 {
		share++
	}
	return max(p, int32(share)) // at most P
}

// ErrTooWide is returned when a copy asks for more than the whole site has.
var ErrTooWide = errors.New("too wide for this site")

// Fits returns nil if r could run on an empty site, else an error that names
// the numbers and wraps [ErrTooWide].
func (c *Config) Fits(r *job.Request) error {
	if r.Processors > c.Processors {
		return fmt.Errorf("%d processors of %d: %w", r.Processors, c.Processors, ErrTooWide)
	}
	if c.MemoryBytes > 0 && r.MemoryBytes > c.MemoryBytes {
		return fmt.Errorf("%d bytes of memory of %d: %w", r.MemoryBytes, c.MemoryBytes, ErrTooWide)
	}
	return nil
}
