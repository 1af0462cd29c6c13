package hierarchy

import (
	"math"
	"math/rand/v2"
	"time"
)

// estimator is the one of spec 000 section 2.8: its bound is never below the truth, and falls with
// the processor time that is spent on it, faster for small tasks.
type estimator struct {
	truth, spread float64
	// half is the processor time in which the exponent falls by 1/e, spent what was spent.
	half, spent float64
}

func newEstimator(truth float64, rng *rand.Rand) estimator {
	return estimator{
		truth: truth, spread: math.Abs(rng.NormFloat64()) * max(0, math.Log10(truth/1e10)) * 0.5,
		half: min(10*truth/1e11, 1e5),
	}
}

// work spends time on some processors and returns the bound.
func (e *estimator) work(t time.Duration, processors float64) float64 {
	e.spent += t.Seconds() * processors
	return max(e.truth, e.truth*math.Pow(10, e.spread*math.Exp(-e.spent/e.half)))
}
