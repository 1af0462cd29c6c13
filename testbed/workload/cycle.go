package workload

import (
	"fmt"
	"math"
	"time"

	"kith/internal/job"
)

// cycle is a rate of submissions that repeats itself, such as a day's or a
// week's, in buckets of equal length. The mean rate is 1.
//
// A process is made in the time of the cycle, in which submissions come at one
// rate, and then bent: where the rate is high, that time passes fast.
type cycle struct {
	bucket float64 // seconds
	rates  []float64
}

// newCycle scales rates, all above 0, to the mean 1.
func newCycle(bucket time.Duration, rates []float64) *cycle {
	sum := 0.0
	for _, r := range rates {
		sum += r
	}
	c := &cycle{bucket: bucket.Seconds(), rates: make([]float64, len(rates))}
	for i, r := range rates {
		c.rates[i] = r * float64(len(rates)) / sum
	}
	return c
}

// passed returns how much of the time of the cycle passes in t seconds from its
// beginning.
func (c *cycle) passed(t float64) float64 {
	length := c.bucket * float64(len(c.rates))
	whole := math.Floor(t / length)
	sum := whole * length // the mean rate is 1
	t -= whole * length
	for _, r := range c.rates {
		if t <= 0 {
			break
		}
		sum += r * min(t, c.bucket)
		t -= c.bucket
	}
	return sum
}

// monday is where the calendars of made-up workloads begin: cycles do.
var monday = time.Date(2024, time.January, 1, 0, 0, 0, 0, time.UTC)

// submit sets the submissions of w to the instants at, which are ascending and
// in seconds of the time of the cycle. Those beyond MaxSpan are an error.
func (c *cycle) submit(w *Workload, at []float64) error {
	w.Start = monday
	n := len(c.rates)
	i, before := 0, 0.0 // buckets that are over, and how much passed in them
	for k, x := range at {
		// Whole cycles first, or a long gap takes as many rounds as it has buckets.
		if length := c.bucket * float64(n); x-before > 2*length {
			skip := math.Floor((x-before)/length) - 1
			before += skip * length
			i += int(min(skip, 1<<40)) * n
		}
		for before+c.rates[i%n]*c.bucket < x {
			before += c.rates[i%n] * c.bucket
			i++
		}
		t := c.bucket*float64(i) + (x-before)/c.rates[i%n]
		if !(t <= MaxSpan.Seconds()) { // also NaN
			return fmt.Errorf("%d jobs at this load take longer than %v: %w", len(at), MaxSpan, ErrArgument)
		}
		w.Jobs[k].Submit = job.Time(math.Round(t)) * job.Time(time.Second)
	}
	w.rebase()
	return nil
}

// submitWithin is submit with at scaled so that the last submission is span
// seconds after the first, which is at 0 if at[0] is.
func (c *cycle) submitWithin(w *Workload, at []float64, span float64) error {
	if last := at[len(at)-1]; last > 0 {
		scale := c.passed(span) / last
		for i := range at {
			at[i] *= scale
		}
	}
	return c.submit(w, at)
}

// validSize checks what the models of logs have in common.
func validSize(jobs int, processors int32) error {
	switch {
	case jobs < 1 || jobs > MaxJobs:
		return fmt.Errorf("jobs %d: must be 1 to %d: %w", jobs, MaxJobs, ErrArgument)
	case processors < 1 || processors > job.MaxProcessors:
		return fmt.Errorf("processors %d: must be 1 to %d: %w", processors, job.MaxProcessors, ErrArgument)
	}
	return nil
}

// validLoad checks an offered load.
func validLoad(load float64) error {
	if !(load > 0) || load > 100 { // also NaN
		return fmt.Errorf("load %v: must be above 0 and at most 100: %w", load, ErrArgument)
	}
	return nil
}
