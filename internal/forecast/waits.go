package forecast

import (
	"errors"
	"fmt"
	"time"

	"kith/internal/job"
)

// Waits are the quantiles of a wait at [Levels].
type Waits [len(Levels)]time.Duration

// StartBasis says what a forecast of a start rests on.
type StartBasis uint8

// The bases of starts, the best first. The numbers are stored and sent; they are frozen.
const (
	NoStart StartBasis = iota
	// ByScenarios: the scheduler was played forward with drawn run times.
	ByScenarios
	// ByLimits: what the scheduler promises by the limits, times what the truth was of
	// such promises before.
	ByLimits
	// ByPastWaits: how long jobs of about the same width waited before.
	ByPastWaits
)

var startBases = [...]string{"unknown", "scenarios", "limits", "past waits"}

// String returns the word of the basis.
func (b StartBasis) String() string {
	if int(b) < len(startBases) {
		return startBases[b]
	}
	return fmt.Sprintf("basis-%d", uint8(b))
}

// ErrWaits is wrapped by every error of [ParseWaits].
var ErrWaits = errors.New("not the quantiles of a wait")

// ParseWaits checks what a peer sent: nine waits that do not fall, none negative and none
// beyond [job.MaxWalltime] times two. The error wraps [ErrWaits] and names the number.
func ParseWaits(sent []int64) (w Waits, err error) {
	if len(sent) != len(w) {
		return w, fmt.Errorf("%d numbers, not %d: %w", len(sent), len(w), ErrWaits)
	}
	for i, x := range sent {
		switch {
		case x < 0:
			return Waits{}, fmt.Errorf("number %d is %d, in the past: %w", i+1, x, ErrWaits)
		case x > int64(2*job.MaxWalltime):
			return Waits{}, fmt.Errorf("number %d is %d, more than %d: %w", i+1, x, int64(2*job.MaxWalltime), ErrWaits)
		case i > 0 && x < sent[i-1]:
			return Waits{}, fmt.Errorf("number %d is %d, less than the one before (%d): %w", i+1, x, sent[i-1], ErrWaits)
		}
		w[i] = time.Duration(x)
	}
	return w, nil
}

// WaitsOf reads them off a distribution.
func WaitsOf(d Distribution) (w Waits) {
	for i, p := range Levels {
		w[i] = d.Quantile(p)
	}
	return w
}

// Median returns the wait that is as likely to be longer as to be shorter.
func (w *Waits) Median() time.Duration { return w[len(w)/2] }

// LeastWaits returns the quantiles of the least of several waits that do not depend on each
// other: a job starts at the first of its sites that can start it. Without any it is zero.
func LeastWaits(all []Waits) (w Waits) {
	switch len(all) {
	case 0:
		return w
	case 1:
		return all[0]
	}
	curves := make([]Curve, len(all))
	most := 0.0
	for i := range all {
		curves[i] = CurveOf(&all[i])
		most = max(most, curves[i].at[curves[i].n-1])
	}
	low := 0.0
	for i, p := range Levels {
		high := most
		for range 60 {
			middle := (low + high) / 2
			none := 1.0
			for k := range curves {
				none *= 1 - curves[k].upto(middle)
			}
			if 1-none >= p {
				high = middle
			} else {
				low = middle
			}
		}
		low = high
		w[i] = time.Duration(high)
	}
	return w
}

// Range returns what people are told of it.
func (w *Waits) Range() Range { return Range{w[1], w[4], w[7]} }

// SD returns about how far a wait is from its median: half of what lies between the levels
// .2 and .8, as a normal distribution would have it.
func (w *Waits) SD() time.Duration {
	const between = 1.683 // standard deviations between these levels
	return time.Duration(float64(w[6]-w[2]) / between)
}
