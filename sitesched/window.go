package sitesched

import "kith/internal/job"

// window says what may start now: how many processors are left until when.
// A copy that would run until end is admitted if its processors are left on
// all of [now, end). As every candidate starts now, the minimum of the free
// processors up to each instant is all there is to know, a descending
// staircase of a few steps.
type window struct {
	steps []step
}

// step says that procs processors are left for a copy that ends after the
// step before and at or before until.
type step struct {
	until job.Time
	procs int32
}

// free returns what is left for a copy of no length.
func (w *window) free() int32 {
	if len(w.steps) == 0 {
		return 0
	}
	return w.steps[0].procs
}

// admits reports whether a copy of procs processors may run from now until end.
func (w *window) admits(procs int32, end job.Time) bool {
	for _, s := range w.steps {
		if s.procs < procs {
			return false
		}
		if end <= s.until {
			return true
		}
	}
	return false
}

// take uses up procs processors from now until end, which it has admitted.
func (w *window) take(procs int32, end job.Time) {
	i := 0
	for ; w.steps[i].until < end; i++ {
		w.steps[i].procs -= procs
	}
	if end < w.steps[i].until {
		w.split(i, end)
	}
	w.steps[i].procs -= procs
	// Later steps keep what they have, but the way there is narrower now.
	for left := w.steps[i].procs; i < len(w.steps); i++ {
		w.steps[i].procs = min(w.steps[i].procs, left)
	}
}

// split divides step i at the instant at.
func (w *window) split(i int, at job.Time) {
	w.steps = append(w.steps, step{})
	copy(w.steps[i+1:], w.steps[i:])
	w.steps[i].until = at
}
