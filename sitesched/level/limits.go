package level

import (
	"errors"
	"fmt"
	"math"
	"time"

	"kith/internal/job"
)

// Complexity is work in processor-seconds of the reference processor.
type Complexity float64

// Limits describe one level, or the part of it that one site is.
type Limits struct {
	// Rank is the place in the hierarchy, 1 for the smallest to [MaxRank]. Several sites may
	// have one rank, also with different limits.
	Rank uint8
	// Queue is T_q, the longest stay from arrival to the end, and Run is T_e, the longest
	// execution: above 0, Run at most Queue, both at most [job.MaxWalltime].
	Queue, Run time.Duration
	// Processors is N, the most that one user may hold here, 1 to [job.MaxProcessors].
	Processors int32
	// Speed is P, that of one processor here divided by the reference: finite, above 0.
	Speed float64
	// Bound is β, the share of a run on one processor that is bound by it, above 0 to 1, for
	// tasks that do not bring their own.
	Bound float64
	// EstimateShare is α, the part of T_e that estimating a task may take, 0 to below 1.
	EstimateShare float64
	// CountArrival makes the test for overload count the work of the task that comes, if it is
	// known. The source's listing does not, though its prose may be read so.
	CountArrival bool
	// Actions are what each [Trigger] does; the zero value is as in the source.
	Actions [Triggers]Action
}

// MaxRank is the largest rank of a level.
const MaxRank = 16

// The values that spec 000 section 2.8 chooses for what the source leaves open.
const (
	DefaultBound         = 0.95
	DefaultEstimateShare = 0.06
	// EnforcePeriod is how often limits are enforced at the least.
	EnforcePeriod = 30 * time.Second
)

// ErrLimits is wrapped by every error of [Limits.Validate].
var ErrLimits = errors.New("invalid level")

// Validate returns all that is wrong with l, joined, each naming field, value and remedy, or nil.
func (l *Limits) Validate() error {
	var errs []error
	l.Check(func(field string, value any, want string) {
		errs = append(errs, fmt.Errorf("%s %v: must be %s: %w", field, value, want, ErrLimits))
	})
	return errors.Join(errs...)
}

// Check calls bad for everything that is wrong with l, with the field as a configuration names
// it, its value, and what it must be.
func (l *Limits) Check(bad func(field string, value any, want string)) {
	if l.Rank < 1 || l.Rank > MaxRank {
		bad("rank", l.Rank, "1 (the smallest level) to 16")
	}
	if l.Queue <= 0 || l.Queue > job.MaxWalltime {
		bad("queue_limit", l.Queue, "above 0s, at most 10 years")
	}
	if l.Run <= 0 || l.Run > job.MaxWalltime {
		bad("run_limit", l.Run, "above 0s, at most 10 years")
	} else if l.Run > l.Queue {
		bad("run_limit", l.Run, fmt.Sprintf("at most queue_limit, which is %v and counts the run, too", l.Queue))
	}
	if l.Processors < 1 || l.Processors > job.MaxProcessors {
		bad("processors", l.Processors, "1 to 16777216")
	}
	if !(l.Speed > 0) || math.IsInf(l.Speed, 0) {
		bad("speed", l.Speed, "above 0 and finite")
	}
	if !(l.Bound > 0 && l.Bound <= 1) {
		bad("beta", l.Bound, "above 0, at most 1")
	}
	if !(l.EstimateShare >= 0 && l.EstimateShare < 1) {
		bad("estimate_share", l.EstimateShare, "0 to below 1")
	}
	for t, a := range l.Actions {
		switch {
		case int(a) >= len(actionNames):
			bad(Trigger(t).String(), a, fmt.Sprint(actionNames)) //nolint:gosec // There are five triggers.
		case a == Terminate && Trigger(t) <= Mismatch: //nolint:gosec // See above.
			bad(Trigger(t).String(), a, "demote, reject or off: a task that arrives does not run yet") //nolint:gosec // See above.
		}
	}
}

// Phi is φ(T): what the level can do in time t for a task with the share bound, or with
// l.Bound if that is 0. It is 0 or less if t is.
func (l *Limits) Phi(t time.Duration, bound float64) Complexity {
	if bound == 0 {
		bound = l.Bound
	}
	return Complexity(t.Seconds() * float64(l.Processors) * l.Speed * bound)
}

// TaskLimit is C_e = φ(T_e), the most that one task may need here.
func (l *Limits) TaskLimit(bound float64) Complexity { return l.Phi(l.Run, bound) }

// QueueLimit is C_q = φ(T_q), the most that all tasks here together may need. It goes by l.Bound.
func (l *Limits) QueueLimit() Complexity { return l.Phi(l.Queue, 0) }

// EstimateLimit is α·T_e, the longest that estimating a task here may take.
func (l *Limits) EstimateLimit() time.Duration {
	return time.Duration(l.EstimateShare * float64(l.Run))
}

// Action is what t does here; last says that no level is below. [Default] is
// never returned. Below the last level nothing can be moved to: what says demote there does what
// is the default of a last level.
func (l *Limits) Action(t Trigger, last bool) Action {
	a := l.Actions[t]
	switch {
	case last && (a == Default || a == Demote):
		return onLast[t]
	case a == Default:
		return Demote
	}
	return a
}
