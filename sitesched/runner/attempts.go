package runner

import (
	"context"
	"errors"
	"fmt"
	"time"

	"kith/internal/job"
	"kith/internal/scarce"
	"kith/meta"
	"kith/meta/api"
	"kith/sitesched/work"
	"kith/store"
)

func (s *Runner) add(a job.AttemptID, task *meta.TaskRun, r job.Request, resume store.Resume, lease job.Time) (*run, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if old := s.byID[a]; old != nil && !old.over {
		return old, false
	}
	r0 := &run{attempt: a, task: task, request: r, resume: resume, files: s.system.Files(a), lease: lease, ended: make(chan struct{})}
	s.byID[a] = r0
	return r0, true
}

// Launch carries out a [meta.Launch].
func (s *Runner) Launch(f meta.Launch) {
	r, fresh := s.add(f.Attempt, f.Task, f.Request, f.Resume, f.Lease)
	if !fresh {
		return
	}
	r.ending, r.estimate = f.Ending, f.Estimate
	if f.Task == nil && (f.Payload != nil || f.Attempt.Job.Origin != s.site) {
		p, err := parsePayload(f.Payload)
		s.prepare(r, p, err)
		return
	}
	var p *payload
	hold := func() (context.Context, context.CancelFunc) { return s.stoppable(r) }
	s.whenRead(r, hold, func() (err error) {
		p, err = s.files.stored(r)
		return err
	}, func(err error) {
		killed := s.stopped(r)
		switch {
		case s.ctx.Err() != nil: // the next daemon launches it
		case killed != nil:
			s.over(r, killed.Unstarted(job.Instant(time.Now())))
		default:
			s.prepare(r, p, err)
		}
	})
}

// stored reads what an attempt runs from this site's store.
func (f *Files) stored(r *run) (*payload, error) {
	if r.task != nil {
		return f.taskPayload(*r.task)
	}
	raw, err := f.cfg.Backend.Payload(r.attempt.Job)
	if err == nil {
		raw, err = f.Resumed(r.attempt.Job, raw, r.resume)
	}
	if err != nil {
		return nil, err
	}
	return parsePayload(raw)
}

// stoppable returns a context that ends when the attempt is stopped.
func (s *Runner) stoppable(r *run) (context.Context, context.CancelFunc) {
	ctx, stop := context.WithCancel(s.ctx)
	s.mu.Lock()
	defer s.mu.Unlock()
	r.stopStaging = stop
	if r.killed != nil {
		stop()
	}
	return ctx, stop
}

// stopped returns why an attempt was stopped that has not been started yet, nil if
// it was not.
func (s *Runner) stopped(r *run) *meta.Kill {
	s.mu.Lock()
	defer s.mu.Unlock()
	r.stopStaging = nil
	return r.killed
}

// prepare stages an attempt, if there is anything to stage, and starts it. What was not
// accepted is refused before any of its files is asked for. An error says that what it runs
// cannot be had.
func (s *Runner) prepare(r *run, p *payload, err error) {
	if err == nil && p.task != "" && len(p.inputs.Files) == 0 && s.room() == nil {
		r.payload = p
		s.start(r) // which looks whether it agrees
		return
	}
	if err == nil {
		err = p.agrees(&r.request)
	}
	if err != nil {
		s.fail(r, err)
		return
	}
	r.payload = p
	if !s.needsStaging(r) && s.room() == nil {
		s.start(r)
		return
	}
	ctx, stop := s.stoppable(r)
	s.wg.Go(func() {
		defer stop()
		s.stageAndStart(ctx, r)
	})
}

// specOf is what the system runs for an attempt.
func (s *Runner) specOf(r *run) (work.Spec, error) {
	spec, err := r.payload.spec(r.attempt, &r.request, s.site, r.files.Work, s.files.blobs)
	if e := r.estimate; err == nil && e.Limit > 0 && r.request.Estimate {
		spec.Estimate = &work.Estimate{Argv: api.EstimateCommand(r.payload.job), Limit: e.Limit, Known: e.Known, Done: e.Done, Most: e.Most}
	}
	return spec, err
}

// start hands a staged attempt to the system.
func (s *Runner) start(r *run) {
	if r.spec == nil { // nothing was staged
		spec, err := s.specOf(r)
		if err != nil {
			s.fail(r, err)
			return
		}
		r.spec = &spec
	}
	spec := *r.spec
	r.spec = nil
	s.mu.Lock()
	killed := r.killed
	if killed == nil {
		r.begun = true
		if r.lease != 0 {
			spec.Leased, spec.Lease = true, s.lease(r.lease)
		}
		s.system.Start(spec) // before Extend finds that it has begun
	}
	s.mu.Unlock()
	if killed == nil && spec.Estimate != nil {
		s.watchBound(r)
	}
	if killed != nil {
		s.over(r, killed.Unstarted(job.Instant(time.Now())))
	}
}

// Launched reports whether an attempt was launched or adopted here, so that its
// beginning is durable, and has not ended.
func (s *Runner) Launched(a job.AttemptID) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	r := s.byID[a]
	return r != nil && !r.over
}

// Extend carries out a [meta.Extend]. Any goroutine may call it, as often as it
// likes: a lease never becomes shorter.
func (s *Runner) Extend(f meta.Extend) {
	s.mu.Lock()
	r := s.byID[f.Attempt]
	begun := r != nil && r.begun
	if r != nil {
		r.lease = max(r.lease, f.Until)
	}
	s.mu.Unlock()
	if begun {
		s.system.Extend(f.Attempt, s.lease(f.Until))
	}
}

// Adopt carries out a [meta.Adopt]: it finds out whether the attempt got as
// far as the executor before the restart.
func (s *Runner) Adopt(f meta.Adopt) {
	r, fresh := s.add(f.Attempt, f.Task, f.Request, store.Resume{}, 0)
	if !fresh {
		return
	}
	r.ending, r.estimate = f.Ending, f.Estimate
	var left found
	hold := func() (context.Context, context.CancelFunc) { return context.WithCancel(s.ctx) }
	s.whenRead(r, hold, func() (err error) {
		left, err = s.find(r)
		return err
	}, func(err error) {
		if err == nil { // else the daemon stops: the next one adopts it
			s.adopt(r, f, left)
		}
	})
}

// adopt goes on with what was found of an attempt.
func (s *Runner) adopt(r *run, f meta.Adopt, left found) {
	if !left.ready && f.BootID == s.system.BootID() {
		s.mu.Lock()
		delete(s.byID, f.Attempt)
		s.mu.Unlock()
		s.cfg.Tell(meta.AttemptMissing{Attempt: f.Attempt})
		return
	}
	var spec work.Spec
	if p := left.payload; p != nil {
		r.payload = p
		var err error
		if spec, err = s.specOf(r); err != nil {
			s.log.Warn("payload of an adopted attempt", "attempt_id", f.Attempt.String(), "error", err.Error())
		}
	}
	spec.Attempt, spec.Leased = f.Attempt, f.Leased
	if p := left.payload; p != nil && p.raw != nil {
		if err := s.reserveFolder(r, p.inputs, true); err != nil {
			s.log.Warn("room of an adopted attempt", "attempt_id", f.Attempt.String(), "error", err.Error())
		}
	}
	s.mu.Lock()
	r.begun = true
	s.system.Adopt(spec, f.BootID)
	killed, lease := r.killed, r.lease
	s.mu.Unlock()
	if spec.Estimate != nil {
		s.watchBound(r)
	}
	// What came while the store could not be read.
	if lease != 0 {
		s.system.Extend(f.Attempt, s.lease(lease))
	}
	if killed != nil {
		s.stop(*killed)
	}
}

// Kill carries out a [meta.Kill]. Any goroutine may call it for an attempt that
// was launched or adopted, see [Runner.Launched].
func (s *Runner) Kill(f meta.Kill) {
	s.mu.Lock()
	r := s.byID[f.Attempt]
	begun := true
	if r != nil {
		r.killed = &f
		begun = r.begun
		if r.stopStaging != nil {
			r.stopStaging()
		}
		if r.stale = r.stale || f.Stale; r.stale && r.stopCollect != nil {
			r.stopCollect()
		}
	}
	s.mu.Unlock()
	if begun {
		s.stop(f)
	}
}

func (s *Runner) stop(f meta.Kill) {
	reason := work.StopCancel
	if f.Lease {
		reason = work.StopLease
	}
	s.system.Stop(f.Attempt, reason)
}

// Clear carries out a [meta.Clear].
func (s *Runner) Clear(a job.AttemptID) {
	s.mu.Lock()
	r := s.byID[a]
	delete(s.byID, a)
	var saved copied
	if r != nil {
		s.releaseFolder(r)
		r.cleared, saved = true, r.copied
	}
	s.mu.Unlock()
	s.letGo(a)
	s.letGoCopied(saved)
	s.system.Forget(a)
	s.files.server.Forget(a)
	if r != nil && r.kept != nil {
		r.kept.Close()
		if s.files.cfg.Apart || a.Job.Origin != s.site { // which has them, or does not want them
			s.files.drop(r.output)
		}
	}
	s.files.changed()
}

// fail ends an attempt that could not be started. What lies with this host is no end.
func (s *Runner) fail(r *run, err error) {
	if _, here := errors.AsType[troubleHere](err); here || scarce.OfHost(err) {
		s.unable(r, err.Error())
		return
	}
	if origin := r.attempt.Job.Origin; origin != s.site && s.files.refuse(origin, WhatInputs, fmt.Errorf("%v: %w", r.attempt, err)) {
		s.log.Debug("attempt not started", append(r.names(), "error", err.Error())...) // it counts as a refusal
	} else {
		s.log.Warn("attempt not started", append(r.names(), "error", err.Error())...)
	}
	s.over(r, job.Outcome{Kind: job.Failure, ExitCode: 127, End: job.Instant(time.Now()), Reason: "not started: " + err.Error()})
}

// unable says that this host could not start an attempt, which goes back to its origin.
func (s *Runner) unable(r *run, reason string) {
	s.log.Info("attempt not started here; it goes back to its origin", append(r.names(), "reason", reason)...)
	s.mu.Lock()
	r.over = true
	s.mu.Unlock()
	close(r.ended)
	s.cfg.Tell(meta.StartFailed{Attempt: r.attempt, Reason: reason})
}

// over reports the end of an attempt.
func (s *Runner) over(r *run, outcome job.Outcome) {
	s.mu.Lock()
	r.over = true
	s.mu.Unlock()
	close(r.ended)
	s.cfg.Tell(meta.AttemptEnded{Attempt: r.attempt, Outcome: outcome})
}

// report takes what the system says. It is called by the system's goroutines.
func (s *Runner) report(ev work.Event) {
	switch ev := ev.(type) {
	case work.Turn:
		// It comes again and again: it waits for the engine rather than heap up.
		s.cfg.Post(meta.TurnCame{Attempt: ev.Attempt})
	case work.Started:
		s.note("attempt started", ev.Attempt, false)
		s.cfg.Tell(meta.AttemptStarted{Attempt: ev.Attempt, At: ev.At})
	case work.StartFailed:
		if r := s.get(ev.Attempt); r != nil {
			s.unable(r, ev.Reason)
		}
	case work.Finished:
		s.note("attempt ended", ev.Attempt, ev.Outcome.Kind != job.Success,
			"exit_code", ev.Outcome.ExitCode, "signal", ev.Outcome.Signal, "reason", ev.Outcome.Reason)
		if r := s.get(ev.Attempt); r != nil {
			r.asked = ev.Asked
			s.finished(r, ev.Outcome, ev.Blank)
		}
	}
}

// RemoveStrays clears folders of attempts that are not known any more: the
// daemon died between forgetting and clearing. It is called before anything is
// launched: the folder of an attempt that begins meanwhile would be a stray.
func (s *Runner) RemoveStrays(known func(job.AttemptID) bool) {
	folders, err := s.system.Folders()
	if err != nil {
		s.log.Warn("attempt folders cannot be listed", "error", err.Error())
		return
	}
	for _, a := range folders {
		if !known(a) {
			s.system.Forget(a)
		}
	}
}
