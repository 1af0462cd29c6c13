package meta

import (
	"kith/internal/job"
	"kith/store"
)

// While an attempt runs its host tells the origin what bound the estimator of the job has given so far:
// for people, who wonder where their job will go. Nothing is decided by it and nothing of it is a fact: the
// bound that counts comes with the end of the attempt, and takes the place of what was told.

// told is the least bound that the estimator of an attempt has given.
type told struct {
	attempt uint32
	bound   float64
}

// lower takes a bound in; false if it is none, or none that is lower.
func (t *told) lower(attempt uint32, bound float64) bool {
	if bound = job.SaneBound(bound); bound == 0 || t.attempt == attempt && bound >= t.bound {
		return false
	}
	*t = told{attempt, bound}
	return true
}

// estimateTold passes on what bound the estimator of an attempt has given that runs here.
func (h *host) estimateTold(now job.Time, ev EstimateTold) {
	c := h.copies.Get(ev.Attempt)
	if c == nil || c.rec.Phase != store.CopyBegun || c.over {
		return
	}
	t := h.told[ev.Attempt]
	if t.lower(ev.Attempt.Number, ev.Bound) {
		h.told[ev.Attempt] = t
		h.tellBound(now, c)
	}
}

// tellBound tells an origin, once more when it is back, what bound is known of an attempt that runs.
func (h *host) tellBound(now job.Time, c *hostCopy) {
	t, known := h.told[c.rec.ID]
	if !known || c.rec.Phase != store.CopyBegun {
		return
	}
	m := Started{Attempt: c.rec.ID, At: c.started, Bound: t.bound}
	if origin := m.Attempt.Job.Origin; origin != h.self {
		h.peers.send(origin, m)
	} else {
		h.origin.onStarted(now, h.self, m)
	}
}

// hearBound notes what the holder of a job says of the attempt that runs.
func (or *origin) hearBound(o *openJob, bound float64) {
	t := or.told[o.rec.ID]
	if o.rec.Outcome == nil && t.lower(o.rec.Attempt, bound) {
		or.told[o.rec.ID] = t
		or.changed(o.rec.ID)
	}
}

// BoundTold returns the least bound of a job's work that the estimator of the attempt that runs has
// given so far, as its host last said, in processor-seconds of the reference; 0 if there is none, or
// the attempt has ended.
func (v Views) BoundTold(j *store.Job) float64 {
	if t := v.origin.told[j.ID]; t.attempt == j.Attempt && j.Holder != "" && j.Outcome == nil {
		return t.bound
	}
	return 0
}
