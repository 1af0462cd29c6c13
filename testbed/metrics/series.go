package metrics

import (
	"time"

	"kith/internal/job"
)

// Series is a quantity over time in steps of equal length.
type Series struct {
	// From is the start of the first step.
	From job.Time
	// Step is the length of a step.
	Step time.Duration
	// Values has the mean over each step.
	Values []float64
}

// MaxSteps is the most steps of a [Series]; a shorter Step is made longer.
const MaxSteps = 1 << 20

// BusyOver returns the mean number of busy processors in each step from the
// first submission to the last end. Divide by the processors for utilisation.
func BusyOver(records []Record, step time.Duration) Series {
	return over(records, step, func(r *Record) (from, to job.Time) { return r.Start, r.End })
}

// DemandOver returns the mean number of processors requested in each step: of
// jobs that wait and of jobs that run (spec 001 figure 5).
func DemandOver(records []Record, step time.Duration) Series {
	return over(records, step, func(r *Record) (from, to job.Time) { return r.Submit, r.End })
}

// over spreads the widths of records over the steps that their intervals touch.
func over(records []Record, step time.Duration, interval func(*Record) (from, to job.Time)) Series {
	if len(records) == 0 || step <= 0 {
		return Series{Step: step}
	}
	first, last := records[0].Submit, records[0].End
	for i := range records {
		first, last = min(first, records[i].Submit), max(last, records[i].End)
	}
	step = max(step, last.Sub(first)/MaxSteps+1)
	s := Series{From: first, Step: step, Values: make([]float64, last.Sub(first)/step+1)}
	// Whole steps are noted where they begin and end, and summed up at the end.
	whole := make([]float64, len(s.Values)+1)
	for i := range records {
		from, to := interval(&records[i])
		if to <= from {
			continue
		}
		p := float64(records[i].Procs)
		a, b := int(from.Sub(first)/step), int(to.Sub(first)/step)
		share := func(d time.Duration) float64 { return p * float64(d) / float64(step) }
		if a == b {
			s.Values[a] += share(to.Sub(from))
			continue
		}
		s.Values[a] += share(step - from.Sub(first)%step)
		s.Values[b] += share(to.Sub(first) % step)
		whole[a+1] += p
		whole[b] -= p
	}
	sum := 0.0
	for i := range s.Values {
		sum += whole[i]
		s.Values[i] += sum
	}
	return s
}
