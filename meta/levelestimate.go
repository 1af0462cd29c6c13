package meta

import (
	"time"

	"kith/internal/job"
	"kith/sitesched/level"
	"kith/store"
)

// A job of a hierarchy may bring an estimator. The source estimates a task when it arrives; here its
// copy waits, and it is estimated when it begins, on what it has claimed: [Estimate] says how, and the
// rule is [level.ProcessNewTask]. Until then no bound that an earlier level found counts against it.

// estimate says how the estimator of an attempt that is launched here is run.
func (h *host) estimate(now job.Time, rec *store.Copy) Estimate {
	l := &h.level.limits
	r := h.limitedRequest(rec)
	task := h.levelTask(rec.Request, rec.Before, 0)
	last := h.lastLevel(now, rec.Request)
	if !h.toBeEstimated(rec.Request, task, last) {
		return Estimate{}
	}
	e := Estimate{Limit: min(l.EstimateLimit(), time.Duration(l.EstimateShare*float64(r.Walltime)))}
	if b := rec.Before; b != nil {
		e.Known, e.Done = b.Bound, b.Done
	}
	if most, limited := l.MostLeft(task.Bound, last); limited && !rec.Last() {
		e.Most = float64(most)
	}
	return e
}

// toBeEstimated reports whether a job is estimated here when it begins.
func (h *host) toBeEstimated(r *job.Request, t level.Task, last bool) bool {
	l := &h.level.limits
	return r.Estimate && l.Rank > 0 && l.Rank == r.Level &&
		level.ProcessNewTask(l, 0, level.Arrival{Task: t}, last).Step == level.Estimate
}

// judgeEstimate says what the end of an attempt by its estimate is for its job: it goes down, or, where
// no level is below, it is rejected. One that was asked to leave its level while its estimator ran has
// not ended by that, whatever it had printed: its command ran for no time.
func (h *host) judgeEstimate(now job.Time, rec *store.Copy, o *job.Outcome) {
	switch {
	case !o.ByEstimate():
	case !h.estimate(now, rec).Exceeds(o.Bound):
		o.Start = o.End
	case h.level.limits.Action(level.Mismatch, h.lastLevel(now, rec.Request)) == level.Reject:
		rejectByEstimate(o)
		o.Cause = job.OwnAccord
	}
}

// rejectByEstimate makes the end of an attempt by its estimate the end of its job: no level is below.
func rejectByEstimate(o *job.Outcome) {
	const noneBelow = "; no level is below"
	o.Kind, o.Reason = job.Cancel, job.ClipText(o.Reason, job.MaxReasonLength-len(noneBelow))+noneBelow
}
