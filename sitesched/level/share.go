package level

import (
	"fmt"
	"math"
	"slices"
	"time"
)

// Share says how the sites of one level share what waits there.
type Share uint8

const (
	// ShareCopies has each job wait at several sites at once: the first that can start it does.
	ShareCopies Share = iota
	// SharePush has each job wait at one site, from which it is moved to one that would be
	// done with it clearly sooner (spec 000 section 2.5).
	SharePush
)

var shareNames = []string{"copies", "push"}

// String returns the word that [ParseShare] reads.
func (s Share) String() string { return word(shareNames, s) }

// ParseShare reads copies or push.
func ParseShare(s string) (Share, error) {
	if i := slices.Index(shareNames, s); i >= 0 {
		return Share(i), nil // the table has two words
	}
	return 0, fmt.Errorf("share %.40q: %w %v", s, ErrUnknownWord, shareNames)
}

// The numbers of spec 000 section 2.5.
const (
	// SharePeriod is how often queues are compared.
	SharePeriod = time.Minute
	// RestPeriods is for how many of these a task stays where it was moved to.
	RestPeriods = 5
	// memory is the part of an average that stays when something new is seen.
	memory = 0.7
	// clearly is how much sooner another queue must be done with a task, as a part of the
	// time that its own takes.
	clearly = 0.8
)

// Smooth returns the average a after a number of samples that all saw the value now, 0 or more:
// A ← 0.7·A + 0.3·now for each.
func Smooth(a, now float64, samples int) float64 {
	return now + (a-now)*math.Pow(memory, float64(max(samples, 0)))
}

// Queue is what a queue of a level tells others of the same level.
type Queue struct {
	// Work is Q, that of all tasks that wait and run there.
	Work Complexity
	// Available is A, the smoothed number of processors that tasks of the level have or could
	// have, and Processors is N, the most that they may have. What others use is not in A.
	Available  float64
	Processors int32
	// Rate is P·β, what one of the processors does in a second; finite, above 0.
	Rate float64
	// Latency is l, from when a task has its processors to when it runs, in the mean.
	Latency time.Duration
}

// Never is the ETA of a queue that has no processors.
const Never = time.Duration(math.MaxInt64)

// ETA is when q would be done with a task of which left is left and before which the work ahead is
// there: l + (ahead + left) / (min(A, N)·P·β), from now. It is as optimistic as [Limits.Phi].
func (q *Queue) ETA(ahead, left Complexity) time.Duration {
	rate := min(q.Available, float64(q.Processors)) * q.Rate
	if !(rate > 0) {
		return Never
	}
	d := (float64(max(ahead, 0)+left)/rate)*float64(time.Second) + float64(q.Latency)
	if !(d < float64(Never)) {
		return Never
	}
	return time.Duration(d)
}

// Sooner reports whether a task with the one ETA is to move from a queue that has the other one of it:
// if it is below 0.8 of that. A task that has moved is so never to move back while both queues stay as they were.
func Sooner(other, own time.Duration) bool { return float64(other) < clearly*float64(own) }

// Rested reports whether a task that was moved so long ago may be moved again.
func Rested(ago, period time.Duration) bool { return ago >= RestPeriods*period }
