package sim

import (
	"errors"
	"fmt"
	"time"

	"kith/internal/job"
	"kith/meta"
)

var errDown = errors.New("the site is down")

// process is a job or task that runs at a site, or has run there; it knows nothing of
// the daemon's lives.
type process struct {
	s       *Site
	attempt job.AttemptID
	// task is what it runs if it is the run of a task: attempt only names it at its host.
	task    *meta.TaskRun
	boot    string
	started job.Time
	began   job.Time // by the world's clock
	// command is when its command started, by the site's clock; 0 before.
	command job.Time
	// estimating is its estimator while that runs in place of the command. Once it has ended, bound is what
	// is known by it, and least what the watch makes of the same lines.
	estimating   *estimating
	bound, least float64
	// processors and memory are what it holds of its site while it runs.
	processors int32
	memory     int64
	// kind and reason are what it ends with if it is not stopped.
	kind   job.OutcomeKind
	reason string
	// from is the number of the checkpoint that it goes on from, saves the one that it leaves
	// if it ends as demoted.
	from, saves uint64
	// mark is the number of what it saved last while it runs, copies how often that was copied.
	mark   uint64
	copies int
	// saving says that its job writes checkpoints, asked that it was asked to save and end, for cause.
	saving, asked bool
	movable       bool // it may go on in another attempt
	ending        meta.Ending
	cause         job.DemotionCause
	// outcome is nil while it runs.
	outcome *job.Outcome
	final   job.Outcome // where outcome points to, mostly
	// orphan says that no daemon knows of it any more.
	orphan bool
	// stale says that nobody wants what it leaves.
	stale bool
	// race says that it may run beside another attempt of its job.
	race bool
	// fills says that it holds the disk of its site full.
	fills bool
	// lease is when its shim ends it, by the site's clock as it would be without
	// steps; 0 for never.
	lease job.Time
}

// of returns the job or bag that an attempt belongs to.
func of(a job.AttemptID, task *meta.TaskRun) job.ID {
	if task != nil {
		return task.Bundle.Job
	}
	return a.Job
}

// work returns the job or bag that it is of.
func (p *process) work() job.ID { return of(p.attempt, p.task) }

// launch starts an attempt, once.
func (s *Site) launch(f meta.Launch) {
	a, r := f.Attempt, &f.Request
	if s.procs[a] != nil {
		return
	}
	if f.Lease != 0 && f.Lease <= s.now() {
		s.unstarted(meta.Kill{Attempt: a, Lease: true})
		return
	}
	if s.unstartable {
		s.failToStart(f, noShim)
		return
	}
	p := &process{
		s: s, attempt: a, boot: s.bootID(), started: s.now(), command: s.now(), began: s.w.now, processors: r.Processors, memory: r.MemoryBytes,
		kind: job.Success, race: r.OnSiteLost == job.Race, task: f.Task,
		saving: r.Checkpoint, movable: r.Movable(), ending: f.Ending,
	}
	s.procs[a] = p
	p.resume(f)
	p.leaseUntil(f.Lease)
	s.w.log.started(s, a)
	s.w.watch.started(p)
	s.w.watch.levels.launched(s, a, r)
	s.w.watch.estimates.launched(p, &f)
	s.w.keeper.tally(s)
	if a.Job.Origin == s.cfg.ID {
		s.w.keeper.startedLocal(s, r)
	}
	var e entry
	if p.task == nil {
		e = s.w.entry(a.Job)
		p.plan(e.pieces)
	} else {
		b := s.w.bagOf(p.work())
		e.tag = b.Tag
		e.run, p.kind, p.reason = b.ofTask(s.cfg.ID, p.task.Ordinal)
	}
	if e.fills {
		p.fills = true
		s.fillers++
		s.upsets++
	}
	if f := s.w.cfg.Began; f != nil {
		f(s.cfg.ID, a, e.tag)
	}
	if !p.estimate(f, e.estimators) {
		s.w.watch.estimates.commanded(p)
		p.runCommand(&e, r.Walltime)
	}
	s.soon(meta.AttemptStarted{Attempt: a, At: p.started})
}

// runCommand has the command of a process run for as long as it takes, and no longer than a limit.
func (p *process) runCommand(e *entry, limit time.Duration) {
	s := p.s
	run := job.Scaled(s.w.rest(p.attempt.Job, p.from, e.run), s.cfg.Meta.Self.Speed)
	if run > limit {
		run, p.kind, p.reason = limit, job.Timeout, "stopped at its walltime"
	}
	if p.attempt.Job.Origin != s.cfg.ID {
		run += e.transfer
	}
	if s.shimless {
		run, p.kind, p.reason = min(run, shimLife), job.Loss, "its shim died"
	}
	s.w.agenda.add(s.w.now.Add(max(run, time.Nanosecond)), completion, s.w.order(p.attempt.Job), p)
}

// order is the key of a job's events within an instant.
func (w *World) order(id job.ID) uint64 {
	if s := w.byID[id.Origin]; s != nil {
		return jobOrder(s.index, id.Seq)
	}
	return 0
}

// act implements action: the process ends by itself.
func (p *process) act() {
	if p.s.machine { // it is stopped along with the rest
		p.s.asleep = append(p.s.asleep, p)
		return
	}
	if p.estimating != nil {
		p.estimated()
		return
	}
	p.end(p.kind, p.reason)
}

// end ends the process if it still runs, and tells the daemon if there is one.
func (p *process) end(kind job.OutcomeKind, reason string) {
	if p.outcome != nil || p.s.procs[p.attempt] != p && !p.orphan {
		return
	}
	s := p.s
	p.hear()
	p.final = job.Outcome{Kind: kind, Reason: reason, Start: p.command, End: s.now(), Bound: p.bound}
	p.outcome = &p.final
	if p.ending.AtLimit(p.outcome) {
		kind, p.saves, p.cause = job.Demoted, 0, p.final.Cause // it was not asked in time
	}
	if kind == job.Failure {
		p.final.ExitCode = 1
		if p.task != nil {
			p.final.ErrorLine = "the command: " + reason
		}
	}
	if kind == job.Demoted {
		p.final.Cause = p.cause
	}
	if kind == job.Demoted && p.saves != 0 {
		p.final.Checkpoint, p.final.Files = p.saves, []byte("checkpoint")
		p.final.FilesRemain = p.attempt.Job.Origin != s.cfg.ID && s.w.output(p.attempt.Job) > 0
	}
	if kind == job.Success && p.attempt.Job.Origin != s.cfg.ID && s.w.output(p.attempt.Job) > 0 {
		p.final.Files, p.final.FilesRemain = []byte("output"), true
	}
	if p.task != nil && s.w.output(p.work()) > 0 {
		p.final.Files, p.final.FilesRemain = p.leaves(), true
	}
	if s.w.cfg.Trace != nil {
		s.w.trace("%s: %v ends", s.cfg.ID, p.attempt)
	}
	s.w.log.ended(s, p.attempt, kind)
	p.empty() // what ended attempts leave is removed first where the disk is full
	s.w.watch.ended(p)
	s.w.keeper.left(p)
	if f := s.w.cfg.Ended; f != nil {
		f(s.cfg.ID, p.attempt, s.w.Tag(p.work()), p.outcome)
	}
	if !p.orphan {
		s.report(p, s.feed)
	}
}

// output returns how long the output of a job takes to its origin.
func (w *World) output(id job.ID) time.Duration {
	if w.cfg.Output == nil {
		return 0
	}
	return w.cfg.Output(w.Tag(id))
}

// fetch brings the output of an attempt home. It is tried again while there is
// no stream, and comes to an end when the host has lost it.
func (s *Site) fetch(f meta.Fetch) {
	took := s.w.output(f.Attempt.Job)
	if took == 0 {
		s.soon(meta.FilesHome{Attempt: f.Attempt})
		return
	}
	life := s.life
	s.fetching[f.Attempt] = true
	s.w.agenda.add(s.w.now.Add(took), message, 0, call(func() {
		host := s.w.byID[f.From]
		switch p, _ := s.w.net.pair(s, host); {
		case s.life != life, !s.fetching[f.Attempt]:
		case !p.up || host.frozen:
			s.fetch(f)
		case host.procs[f.Attempt] == nil:
			delete(s.fetching, f.Attempt)
			s.feed(meta.FilesHome{Attempt: f.Attempt, Error: "its output is gone"})
		default:
			delete(s.fetching, f.Attempt)
			s.w.watch.saved.home[f.Attempt] = true
			s.feed(meta.FilesHome{Attempt: f.Attempt})
		}
	}))
}

// lose is what a power loss does to it.
func (p *process) lose() {
	if p.outcome == nil {
		p.outcome = &job.Outcome{Kind: job.Loss, Reason: "lost: the machine was restarted", Start: p.command, End: p.s.now()}
		p.s.w.watch.ended(p)
	}
}

// unstarted ends an attempt that was never launched: it must not start any more.
func (s *Site) unstarted(f meta.Kill) {
	outcome := f.Unstarted(s.now())
	s.procs[f.Attempt] = &process{s: s, attempt: f.Attempt, boot: s.bootID(), outcome: &outcome}
	s.soon(meta.AttemptEnded{Attempt: f.Attempt, Outcome: outcome})
}

func (s *Site) kill(f meta.Kill) {
	kind, reason := job.Cancel, "cancelled"
	if f.Lease {
		kind, reason = job.Loss, "its lease ended"
	}
	p := s.procs[f.Attempt]
	if p == nil {
		delete(s.staged, f.Attempt)
		s.unstarted(f)
		return
	}
	p.stale = p.stale || f.Stale
	s.w.agenda.add(s.w.now, completion, s.w.order(f.Attempt.Job), call(func() {
		if p.outcome == nil {
			p.end(kind, reason)
		} else if p.stale && s.procs[f.Attempt] == p {
			s.report(p, s.feed) // what is being collected is not wanted
		}
	}))
}

// leaseUntil lets the process's shim end it at a time by the site's clock,
// unless the lease is prolonged. A machine that is stopped runs nothing, so the
// end of a lease is its jobs' end as well.
func (p *process) leaseUntil(until job.Time) {
	if until == 0 || until-p.s.shift <= p.lease {
		return
	}
	watched := p.lease != 0
	p.lease = until - p.s.shift
	if !watched {
		p.watchLease(0)
	}
}

// watchLease ends the process when its lease is over, not before an instant: a lease that was
// prolonged meanwhile is watched on.
func (p *process) watchLease(from job.Time) {
	p.s.w.agenda.add(max(from, p.s.instant(p.lease+p.s.shift)), completion, p.s.w.order(p.attempt.Job), call(func() {
		switch {
		case p.outcome != nil:
		case p.lease <= p.s.now()-p.s.shift:
			p.end(job.Loss, "its lease ended")
		default:
			p.watchLease(p.s.w.now + 1)
		}
	}))
}

// extend prolongs a lease.
func (s *Site) extend(f meta.Extend) {
	if p := s.procs[f.Attempt]; p != nil && p.outcome == nil {
		p.leaseUntil(f.Until)
	}
	if g := s.staged[f.Attempt]; g != nil {
		g.launch.Lease = max(g.launch.Lease, f.Until)
	}
}

// adopt tells a new daemon what became of an attempt.
func (s *Site) adopt(f meta.Adopt) {
	p := s.procs[f.Attempt]
	switch {
	case p == nil && f.BootID != s.bootID():
		s.soon(meta.AttemptEnded{Attempt: f.Attempt, Outcome: job.Outcome{
			Kind: job.Loss, End: s.now(), Reason: fmt.Sprintf("lost: begun under %s", f.BootID),
		}})
	case p == nil:
		s.soon(meta.AttemptMissing{Attempt: f.Attempt})
	case p.outcome != nil:
		p.empty() // it may have been lost with the machine
		s.report(p, s.soon)
	default:
		s.soon(meta.AttemptStarted{Attempt: f.Attempt, At: p.started})
	}
}
