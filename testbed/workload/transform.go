package workload

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"slices"
	"time"

	"kith/internal/job"
)

// Overrun says what becomes of a job that ran longer than its estimate.
type Overrun uint8

const (
	// Kill cuts the run time down to the estimate, as a site does.
	Kill Overrun = iota
	// Raise sets the estimate to the run time, which keeps the work comparable
	// (spec 001 section 2.7).
	Raise
	// Keep leaves both.
	Keep
)

var overrunNames = [...]string{"kill", "raise", "keep"}

// String returns the word that [ParseOverrun] reads.
func (o Overrun) String() string {
	if int(o) < len(overrunNames) {
		return overrunNames[o]
	}
	return fmt.Sprintf("unknown(%d)", uint8(o))
}

// ErrOverrun is returned for a word that names no [Overrun].
var ErrOverrun = errors.New("not one of kill, raise, keep")

// ParseOverrun reads kill, raise or keep.
func ParseOverrun(s string) (Overrun, error) {
	for i, name := range overrunNames {
		if s == name {
			return Overrun(i), nil // three words
		}
	}
	return 0, fmt.Errorf("overrun %.40q: %w", s, ErrOverrun)
}

// ErrArgument is wrapped by the error of a transformation or model whose
// argument makes no sense; the text names it and its value.
var ErrArgument = errors.New("not a usable value")

// change returns a copy of w that has room for n jobs and none yet.
func (w *Workload) change(n int) *Workload {
	c := *w
	c.Jobs = make([]Job, 0, n)
	return &c
}

// rebase moves the submissions so that the first is 0, and Start with them.
func (w *Workload) rebase() {
	if len(w.Jobs) == 0 || w.Jobs[0].Submit == 0 {
		return
	}
	shift := w.Jobs[0].Submit
	for i := range w.Jobs {
		w.Jobs[i].Submit -= shift
	}
	if !w.Start.IsZero() {
		w.Start = w.Start.Add(time.Duration(shift))
	}
}

// order sorts the jobs by submission; equal ones keep their order.
func (w *Workload) order() {
	slices.SortStableFunc(w.Jobs, func(a, b Job) int { return cmp.Compare(a.Submit, b.Submit) })
}

// Fit returns the jobs that a machine of the given size can run, with overruns
// settled, from submission 0 on. Wider jobs are skipped and counted.
func (w *Workload) Fit(processors int32, overrun Overrun) (*Workload, error) {
	if processors < 1 || processors > job.MaxProcessors {
		return nil, fmt.Errorf("processors %d: must be 1 to %d: %w", processors, job.MaxProcessors, ErrArgument)
	}
	if overrun > Keep {
		return nil, fmt.Errorf("%v: %w", overrun, ErrOverrun)
	}
	c := w.change(len(w.Jobs))
	c.Processors = processors
	for i := range w.Jobs {
		j := w.Jobs[i]
		if j.Procs > processors {
			c.Report.add(TooWide, func() string { return fmt.Sprintf("job %d needs %d processors of %d", j.ID, j.Procs, processors) })
			continue
		}
		if j.Run > j.Estimate {
			c.Report.add(Overran, func() string { return fmt.Sprintf("job %d ran %v, its estimate is %v", j.ID, j.Run, j.Estimate) })
			switch overrun {
			case Kill:
				j.Run = j.Estimate
			case Raise:
				j.Estimate = j.Run
			case Keep:
			}
		}
		c.Jobs = append(c.Jobs, j)
	}
	c.rebase()
	return c, nil
}

// Window returns n jobs after the first skip ones; n = 0 means all that follow.
// Submissions count from the first of them.
func (w *Workload) Window(skip, n int) (*Workload, error) {
	switch {
	case skip < 0:
		return nil, fmt.Errorf("skip %d: must be 0 or more: %w", skip, ErrArgument)
	case n < 0:
		return nil, fmt.Errorf("jobs %d: must be 0 (all) or more: %w", n, ErrArgument)
	}
	from := min(skip, len(w.Jobs))
	to := len(w.Jobs)
	if n > 0 && n < to-from {
		to = from + n
	}
	c := *w
	c.Jobs = w.Jobs[from:to:to]
	if to > from && c.Jobs[0].Submit != 0 {
		c.Jobs = slices.Clone(c.Jobs)
		c.rebase()
	}
	return &c, nil
}

// Stretch multiplies run times and estimates by x, rounded to the tick and at
// least one (spec 001 section 3.0: x = 1.7 makes a site heavy). A job that
// would be longer than [job.MaxWalltime] is skipped and counted.
func (w *Workload) Stretch(x float64) (*Workload, error) {
	if !(x > 0) || math.IsInf(x, 0) { // also NaN
		return nil, fmt.Errorf("stretch by %v: must be a number above 0: %w", x, ErrArgument)
	}
	if x == 1 {
		c := *w
		return &c, nil
	}
	c := w.change(len(w.Jobs))
	for i := range w.Jobs {
		j := w.Jobs[i]
		run, fits := c.scaled(j.Run, x)
		estimate, also := c.scaled(j.Estimate, x)
		if !fits || !also {
			c.Report.add(TooLong, func() string { return fmt.Sprintf("job %d runs %v, stretched by %v", j.ID, j.Run, x) })
			continue
		}
		j.Run, j.Estimate = run, estimate
		c.Jobs = append(c.Jobs, j)
	}
	c.rebase() // the first job may be one that is too long
	return c, nil
}

// scaled returns d × x in whole ticks, at least one; false if that is too long.
func (w *Workload) scaled(d time.Duration, x float64) (time.Duration, bool) {
	tick := max(w.Tick, 1)
	v := float64(d/tick) * x // exact for whole ticks of any plausible job
	if rest := d % tick; rest != 0 {
		v = float64(d) / float64(tick) * x
	}
	v = math.Round(v)
	if v*float64(tick) > float64(job.MaxWalltime) {
		return 0, false
	}
	return max(time.Duration(v), 1) * tick, true
}

// Shift delays all submissions by d, which may be negative as long as none
// falls below 0: a site in another zone has the same day at another time.
func (w *Workload) Shift(d time.Duration) (*Workload, error) {
	if len(w.Jobs) > 0 && w.Jobs[0].Submit.Add(d) < 0 || d > MaxSpan {
		return nil, fmt.Errorf("shift by %v: the first submission would be out of range: %w", d, ErrArgument)
	}
	c := *w
	c.Jobs = slices.Clone(w.Jobs)
	for i := range c.Jobs {
		c.Jobs[i].Submit = c.Jobs[i].Submit.Add(d)
	}
	return &c, nil
}

// ScaleLoad multiplies the offered load by x: every gap between submissions
// becomes x times shorter. Days are compressed with it.
func (w *Workload) ScaleLoad(x float64) (*Workload, error) {
	if !(x > 0) || math.IsInf(x, 0) {
		return nil, fmt.Errorf("load times %v: must be a number above 0: %w", x, ErrArgument)
	}
	tick := float64(max(w.Tick, 1))
	c := w.change(len(w.Jobs))
	for i := range w.Jobs {
		j := w.Jobs[i]
		at := math.Round(float64(j.Submit)/tick/x) * tick
		if at > float64(MaxSpan) {
			c.Report.add(TooLate, func() string {
				return fmt.Sprintf("job %d, its submission at %v divided by %v", j.ID, time.Duration(j.Submit), x)
			})
			continue
		}
		j.Submit = job.Time(at)
		c.Jobs = append(c.Jobs, j)
	}
	return c, nil
}

// PerfectEstimates sets each estimate to the run time (spec 001 section 3.2).
func (w *Workload) PerfectEstimates() *Workload {
	c := *w
	c.Jobs = slices.Clone(w.Jobs)
	for i := range c.Jobs {
		c.Jobs[i].Estimate = c.Jobs[i].Run
	}
	return &c
}

// EqualWidth gives every job the same width (spec 001 section 3.2). For the
// width that keeps the work, see [MeanWidth].
func (w *Workload) EqualWidth(procs int32) (*Workload, error) {
	if procs < 1 || procs > job.MaxProcessors {
		return nil, fmt.Errorf("width %d: must be 1 to %d: %w", procs, job.MaxProcessors, ErrArgument)
	}
	c := *w
	c.Jobs = slices.Clone(w.Jobs)
	for i := range c.Jobs {
		c.Jobs[i].Procs = procs
	}
	return &c, nil
}

// MeanWidth returns round(Σ p·r / Σ r) over the jobs of all ws, at least 1: the
// width of all jobs under which the work stays about the same (spec 001
// section 3.2).
func MeanWidth(ws ...*Workload) int32 {
	work, run := 0.0, 0.0
	for _, w := range ws {
		for i := range w.Jobs {
			work += w.Jobs[i].Work()
			run += w.Jobs[i].Run.Seconds()
		}
	}
	if run <= 0 {
		return 1
	}
	return int32(max(1, math.Round(work/run))) // at most the widest job
}
