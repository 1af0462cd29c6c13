package sim

import (
	"slices"
	"strconv"
	"strings"
	"time"

	"kith/internal/job"
	"kith/meta"
	"kith/store"
)

// estimateWatch checks jobs that bring an estimator: the command of an attempt starts at most once, and
// never where its estimate ended it (B1); the least bound of all attempts is that of the job, and each
// attempt is told of it (B2); what an estimate ends goes one level down, or is cancelled where none is
// below (B3); a job is not said to need too much by a bound that fits its level (B4), nor by none (B5). A guess
// of a forecast has a job without an estimator begin at a lower level, and nothing else (B6).
type estimateWatch struct {
	x *watch
	// commands counts how often the command of an attempt was started, by estimate are those that an
	// estimate ended.
	commands   map[job.AttemptID]int
	byEstimate map[job.AttemptID]bool
	// tooMuch are those whose estimator, while it ran, had printed more than their level does.
	tooMuch map[job.AttemptID]bool
	// bounds are those with which attempts ended, known what the facts of origins say of each job as far
	// as they are durable.
	bounds map[job.AttemptID]float64
	known  map[job.ID]knownBound
	// kept are the bounds that are on disk.
	kept map[job.ID]float64
	// begun are the jobs of which a command was started.
	begun map[job.ID]bool
	// bounded are the jobs of which an estimator has given a bound.
	bounded map[job.ID]bool
}

type knownBound struct {
	bound   float64
	attempt uint32 // the latest that was demoted
	lied    bool   // one of them ran at a site that lies
}

func (v *estimateWatch) init(x *watch) {
	v.x = x
	v.commands, v.byEstimate = make(map[job.AttemptID]int), make(map[job.AttemptID]bool)
	v.tooMuch, v.begun, v.kept = make(map[job.AttemptID]bool), make(map[job.ID]bool), make(map[job.ID]float64)
	v.bounds, v.known, v.bounded = make(map[job.AttemptID]float64), make(map[job.ID]knownBound), make(map[job.ID]bool)
}

// watches reports whether a process is held to what holds of estimates.
func (v *estimateWatch) watches(p *process) bool {
	x := v.x
	return x.w.cfg.Check && brings(p) && !x.liars[p.attempt.Job.Origin] && !x.liars[p.s.cfg.ID]
}

// brings reports whether the job of a process brings an estimator.
func brings(p *process) bool {
	return p.task == nil && len(p.s.w.entry(p.attempt.Job).estimators) > 0
}

// launched watches an attempt that a site is to start.
func (v *estimateWatch) launched(p *process, f *meta.Launch) {
	a := f.Attempt
	if f.Estimate.Limit <= 0 || !v.watches(p) {
		return
	}
	if at := v.known[a.Job]; !at.lied && f.Estimate.Known != at.bound && a.Number > at.attempt {
		v.x.violate("B2: attempt %v is told of the bound %g, and that of its job is %g since attempt %d", a, f.Estimate.Known, at.bound, at.attempt)
	}
}

// commanded watches a command that starts.
func (v *estimateWatch) commanded(p *process) {
	if !v.x.w.cfg.Check || !brings(p) {
		return
	}
	a := p.attempt
	before := v.begun[a.Job]
	if v.begun[a.Job] = true; !v.watches(p) {
		return
	}
	if v.commands[a]++; v.commands[a] > 1 {
		v.x.violate("B1: the command of attempt %v was started %d times", a, v.commands[a])
	}
	if v.byEstimate[a] {
		v.x.violate("B1: the command of attempt %v starts, and its estimate had ended it", a)
	}
	if most := p.levelDoes(); p.bound > most && !before && !p.ending.Last { // of what is left of one that had begun too little is known here
		v.x.violate("B4: the command of attempt %v, which needs up to %g, starts at %s, whose level does %g for such a job", a, p.bound, p.s.cfg.ID, most)
	}
}

// exceeded watches an attempt that its estimate ends. What its level does for one job is computed
// anew here, of what its site was configured with.
func (v *estimateWatch) exceeded(p *process) {
	if !v.watches(p) {
		return
	}
	v.byEstimate[p.attempt] = true
	if most := p.levelDoes(); p.bound <= most {
		v.x.violate("B4: attempt %v ended by its estimate of %g at %s, whose level does %g for such a job", p.attempt, p.bound, p.s.cfg.ID, most)
	}
}

// levelDoes is what the level of a process does for one such job.
func (p *process) levelDoes() float64 {
	l, width := &p.s.cfg.Meta.Level, min(p.processors, p.s.cfg.Scheduler.Processors)
	return l.Run.Seconds() * float64(width) * p.s.cfg.Meta.Self.Speed * l.Beta
}

func (v *estimateWatch) ended(p *process) {
	b := p.outcome.Bound
	if b <= 0 || !v.watches(p) {
		return
	}
	if b > p.least {
		v.x.violate("B2: attempt %v ended with the bound %g, and was told of, or printed, %g", p.attempt, b, p.least)
	}
	v.bounds[p.attempt], v.bounded[p.attempt.Job] = b, true
	if p.command == 0 && b > p.levelDoes() {
		v.tooMuch[p.attempt] = true
	}
}

// least is the least bound that is known now, as [estimating.said], computed anew; 0 if there is none.
func (e *estimating) least(now job.Time) float64 {
	least := e.how.Known
	for _, line := range e.printed(now) {
		b, err := strconv.ParseFloat(strings.TrimPrefix(line, "bound "), 64)
		if err == nil && b > 0 && b <= job.MostWork && (least == 0 || b < least) {
			least = b
		}
	}
	return least
}

// durable watches what is on disk of a job.
func (v *estimateWatch) durable(j *store.Job) {
	x := v.x
	if x.liars[j.ID.Origin] {
		return
	}
	if !j.Request.Estimate {
		v.guessed(j)
		return
	}
	least := 0.0
	for i := range j.Demotions {
		d := &j.Demotions[i]
		a := job.AttemptID{Job: j.ID, Number: d.Attempt}
		if x.liars[d.Site] {
			v.known[j.ID] = knownBound{lied: true}
			return
		}
		if b := v.bounds[a]; b > 0 && d.Cause != job.HostLost && (least == 0 || b < least) {
			least = b
		}
		if v.byEstimate[a] && v.commands[a] > 0 {
			x.violate("B1: attempt %v was ended by its estimate, and its command was started", a)
		}
		if said := v.saidToNeedTooMuch(j, d.Attempt); said && !v.byEstimate[a] && !v.tooMuch[a] {
			x.violate("B4: attempt %v is said to have ended by its estimate, which is %g, and was asked to leave meanwhile", a, v.bounds[a])
		}
	}
	if got := j.Bound(); got != least {
		x.violate("B2: job %v has the bound %g, and the least that its attempts were told is %g", j.ID, got, least)
	}
	if before := v.kept[j.ID]; before > 0 && least > before {
		x.violate("B2: the bound of job %v was %g and is %g", j.ID, before, least)
	}
	delete(v.known, j.ID) // a crash may have taken it back before it was on the disk
	if n := len(j.Demotions); n > 0 {
		v.known[j.ID] = knownBound{bound: least, attempt: j.Demotions[n-1].Attempt}
	}
	v.wentDown(j)
	v.endedWell(j)
	if !v.bounded[j.ID] && slices.ContainsFunc(j.Events, func(e store.ClaimEvent) bool { return e.Reason == job.LevelMismatch }) {
		x.violate("B5: job %v left a level as it needs too much, and no estimator of it has given a bound", j.ID)
	}
}

// guessed watches a job without an estimator: only a guess can have it leave a level for what it needs, and
// that only before an attempt, for a level that there is.
func (v *estimateWatch) guessed(j *store.Job) {
	lies := func(site job.SiteID) bool { return v.x.liars[site] }
	if lies(j.Holder) || slices.ContainsFunc(j.Demotions, func(d store.Demotion) bool { return lies(d.Site) }) {
		return
	}
	for i := range j.Events {
		e := &j.Events[i]
		switch {
		case e.Reason != job.LevelMismatch, lies(e.Site):
		case j.Guess <= 0 || e.Kind != store.ClaimLowered:
			v.x.violate("B6: job %v left a level as it needs too much, and nobody has said so", j.ID)
		case i == len(j.Events)-1 && !v.x.w.below(j.Level-1, j):
			v.x.violate("B6: job %v went to level %d by a guess, and there is none", j.ID, j.Level)
		}
	}
	if o := j.Outcome; o != nil && o.Bound > 0 {
		v.x.violate("B6: attempt %v has the bound %g, and its job brings no estimator", j.AttemptID(), o.Bound)
	}
}

func (v *estimateWatch) saidToNeedTooMuch(j *store.Job, attempt uint32) bool {
	return slices.ContainsFunc(j.Events, func(e store.ClaimEvent) bool {
		return e.Kind == store.ClaimDemoted && e.Attempt == attempt && e.Reason == job.LevelMismatch
	})
}

// noneBelow is in the reason with which a job ends that an estimate rejects.
const noneBelow = "no level is below"

// wentDown watches a job that goes on after its estimate has ended an attempt.
func (v *estimateWatch) wentDown(j *store.Job) {
	n := len(j.Demotions)
	if n == 0 {
		return
	}
	d := &j.Demotions[n-1]
	a := job.AttemptID{Job: j.ID, Number: d.Attempt}
	if j.Attempt != d.Attempt || !v.byEstimate[a] {
		return
	}
	if j.State == job.Pending && j.Level <= d.Level {
		v.x.violate("B3: job %v is at level %d after its estimate ended attempt %v at level %d", j.ID, j.Level, a, d.Level)
	}
	if !v.x.w.below(d.Level, j) && v.x.w.knownTo(v.x.w.byID[j.ID.Origin]) {
		v.x.violate("B3: job %v was to go on after its estimate ended attempt %v at level %d, and no level is below", j.ID, a, d.Level)
	}
}

// endedWell watches the end of a job whose last attempt an estimate may have ended.
func (v *estimateWatch) endedWell(j *store.Job) {
	o := j.Outcome
	if !j.State.Terminal() || o == nil || v.x.liars[j.Holder] {
		return
	}
	a := j.AttemptID()
	switch rejected := strings.Contains(o.Reason, noneBelow); {
	case rejected && j.Holder != "" && !v.byEstimate[a] && !v.tooMuch[a]:
		v.x.violate("B4: job %v is %v by its estimate (%s), which has not ended attempt %v", j.ID, j.State, o.Reason, a)
	case v.byEstimate[a] && (j.State == job.Completed || j.State == job.Failed || j.State == job.TimedOut):
		v.x.violate("B3: job %v is %v, and its estimate ended attempt %v", j.ID, j.State, a)
	}
}

// below reports whether a site of the world has a level below one that might take a job.
func (w *World) below(level uint8, j *store.Job) bool {
	return slices.ContainsFunc(w.sites, func(s *Site) bool {
		return s.cfg.Meta.Level.Rank > int(level) && s.cfg.Scheduler.Processors >= j.Request.Processors
	})
}

// longKnown is for how long a site must have had streams to all others to know which levels there are, and
// to have judged by that what is on its disk now: a site that is unheard of may be a level for ten minutes.
const longKnown = 12 * time.Minute

// knownTo reports whether a site must know which levels there are.
func (w *World) knownTo(s *Site) bool {
	return !slices.ContainsFunc(w.sites, func(other *Site) bool {
		p, _ := w.net.pair(s, other)
		return other != s && (!p.up || w.now.Sub(p.since) < longKnown)
	})
}
