package sim

import (
	"errors"
	"fmt"
	"time"

	"kith/internal/job"
	"kith/meta"
)

var errDown = errors.New("the site is down")

// process is a job that runs at a site, or has run there; it knows nothing of
// the daemon's lives.
type process struct {
	s       *Site
	attempt job.AttemptID
	boot    string
	started job.Time
	// outcome is nil while it runs.
	outcome *job.Outcome
}

// launch starts an attempt, once.
func (s *Site) launch(a job.AttemptID, r job.Request) {
	if s.procs[a] != nil {
		return
	}
	p := &process{s: s, attempt: a, boot: s.bootID(), started: s.w.now}
	s.procs[a] = p
	s.w.trace("%s: %v starts", s.cfg.ID, a)
	s.w.watch.started(p)
	run, kind, reason := s.w.runTimes[a.Job], job.Success, ""
	if run > r.Walltime {
		run, kind, reason = r.Walltime, job.Timeout, "stopped at its walltime"
	}
	s.w.agenda.add(s.w.now.Add(max(run, time.Nanosecond)), completion, func() { p.end(kind, reason) })
	s.soon(meta.AttemptStarted{Attempt: a, At: p.started})
}

// end ends the process if it still runs, and tells the daemon if there is one.
func (p *process) end(kind job.OutcomeKind, reason string) {
	if p.outcome != nil || p.s.procs[p.attempt] != p {
		return
	}
	p.outcome = &job.Outcome{Kind: kind, Reason: reason, Start: p.started, End: p.s.w.now}
	p.s.w.trace("%s: %v ends: %d %s", p.s.cfg.ID, p.attempt, kind, reason)
	p.s.w.watch.ended(p)
	p.s.feed(meta.AttemptEnded{Attempt: p.attempt, Outcome: *p.outcome})
}

// lose is what a power loss does to it.
func (p *process) lose() {
	if p.outcome == nil {
		p.outcome = &job.Outcome{Kind: job.Loss, Reason: "lost: the machine was restarted", Start: p.started, End: p.s.w.now}
		p.s.w.watch.ended(p)
	}
}

func (s *Site) kill(a job.AttemptID) {
	p := s.procs[a]
	if p == nil {
		// Never launched: it must not start any more.
		p = &process{s: s, attempt: a, boot: s.bootID(), outcome: &job.Outcome{Kind: job.Cancel, End: s.w.now, Reason: "cancelled before it was started"}}
		s.procs[a] = p
		s.soon(meta.AttemptEnded{Attempt: a, Outcome: *p.outcome})
		return
	}
	s.w.agenda.add(s.w.now, completion, func() { p.end(job.Cancel, "cancelled") })
}

// adopt tells a new daemon what became of an attempt.
func (s *Site) adopt(f meta.Adopt) {
	p := s.procs[f.Attempt]
	switch {
	case p == nil && f.BootID != s.bootID():
		s.soon(meta.AttemptEnded{Attempt: f.Attempt, Outcome: job.Outcome{
			Kind: job.Loss, End: s.w.now, Reason: fmt.Sprintf("lost: begun under %s", f.BootID),
		}})
	case p == nil:
		s.soon(meta.AttemptMissing{Attempt: f.Attempt})
	case p.outcome != nil:
		s.soon(meta.AttemptEnded{Attempt: f.Attempt, Outcome: *p.outcome})
	default:
		s.soon(meta.AttemptStarted{Attempt: f.Attempt, At: p.started})
	}
}
