package sim

import (
	"time"

	"kith/internal/estimate"
	"kith/internal/job"
	"kith/meta"
)

// Estimator is what the estimator of a job does in one of its attempts, see [meta.Estimate].
type Estimator struct {
	// Takes is how long it runs if it is not stopped.
	Takes time.Duration
	// Lines are what it prints: evenly over that time, the last one at its end.
	Lines []string
}

// estimating is an estimator that runs in place of the command of a process.
type estimating struct {
	Estimator
	how   meta.Estimate
	began job.Time // by the world's clock
	limit time.Duration
}

// estimate runs the estimator of an attempt in place of its command, and reports whether there is one to
// run. list are those of its job.
func (p *process) estimate(f meta.Launch, list []Estimator) bool {
	if f.Estimate.Limit <= 0 || len(list) == 0 || p.s.shimless {
		return false
	}
	w := p.s.w
	p.command = 0
	p.estimating = &estimating{
		Estimator: list[min(int(f.Attempt.Number), len(list))-1], how: f.Estimate, began: w.now, limit: f.Request.Walltime,
	}
	takes := min(p.estimating.Takes, f.Estimate.Limit)
	w.agenda.add(w.now.Add(max(takes, time.Nanosecond)), completion, w.order(f.Attempt.Job), p)
	return true
}

// printed are the lines that it has printed by now.
func (e *estimating) printed(now job.Time) []string {
	for i := range e.Lines {
		if e.Takes*time.Duration(i+1)/time.Duration(len(e.Lines)) > now.Sub(e.began) {
			return e.Lines[:i]
		}
	}
	return e.Lines
}

// said is the least bound that is known now: of earlier attempts, or printed.
func (e *estimating) said(now job.Time) float64 {
	var r estimate.Reader
	if e.how.Known > 0 {
		r.Add(e.how.Known)
	}
	for _, line := range e.printed(now) {
		r.Write([]byte(line + "\n"))
	}
	bound, _ := r.Least()
	return bound
}

// hear takes up what the estimator has printed of an attempt that ends before its command, or goes on with it.
func (p *process) hear() {
	if e := p.estimating; e != nil {
		now := p.s.w.now
		p.bound, p.least = e.said(now), e.least(now)
	}
}

// estimated goes on when nothing of the estimator lives any more: with the command of the attempt, or
// with its end.
func (p *process) estimated() {
	if p.outcome != nil || p.s.procs[p.attempt] != p && !p.orphan {
		return
	}
	e, w := p.estimating, p.s.w
	p.hear()
	if e.how.Exceeds(p.bound) {
		w.watch.estimates.exceeded(p)
		p.saves, p.cause = 0, job.OutOfLevel
		p.end(job.Demoted, "by its estimate its job needs too much")
		return
	}
	p.estimating = nil
	p.command, p.began = p.s.now(), w.now
	w.trace("%s: the command of %v starts", p.s.cfg.ID, p.attempt)
	w.watch.estimates.commanded(p)
	of := w.entry(p.attempt.Job)
	p.runCommand(&of, e.limit-w.now.Sub(e.began))
}
