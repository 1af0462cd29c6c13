package daemon

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"strings"
	"sync"
	"time"

	"kith/internal/job"
	"kith/meta"
	"kith/meta/transfer"
	"kith/sitesched/executor"
	"kith/store"
)

// stagedName marks an attempt's folder: its files are staged, and from here on
// a shim may have started it. Its content is the payload. It stands in the
// attempt's folder, beside the job's own, and is missing for an attempt that
// needs no files and whose payload is in this site's store.
const stagedName = "payload"

// attempts stages, starts and collects what runs at this site. It stands
// between the engine and the executor.
type attempts struct {
	site     job.SiteID
	dir      string // of the attempts' folders
	exec     *executor.Executor
	backend  store.Backend
	fetcher  *transfer.Fetcher
	unpacker *transfer.Unpacker
	collect  *transfer.Collector
	source   func(job.SiteID) transfer.Source
	// away reports whether there is no stream to a site.
	away func(job.SiteID) bool
	// tell gives the loop an event. It does not wait: much of what is done here
	// is done while effects are carried out, for which the loop may wait.
	tell  func(meta.Event)
	lease func(until job.Time) executor.Lease
	// folders lists the attempts that have one.
	folders func() ([]job.AttemptID, error)
	log     *slog.Logger

	// collecting bounds how many attempts are collected at a time.
	collecting chan struct{}

	ctx    context.Context
	cancel context.CancelFunc
	wg     sync.WaitGroup

	mu   sync.Mutex
	runs map[job.AttemptID]*run
}

// run is an attempt from its launch until its folder is cleared.
type run struct {
	attempt job.AttemptID
	request job.Request
	payload *payload
	// ended is closed when nothing is written to its output any more.
	ended chan struct{}

	// Guarded by attempts.mu.
	stopStaging context.CancelFunc // while it is being staged
	killed      *meta.Kill
	lease       job.Time // what runs under a lease may run until then
	begun       bool     // handed to the executor
	over        bool
}

func (s *attempts) add(a job.AttemptID, r job.Request, lease job.Time) (*run, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if old := s.runs[a]; old != nil && !old.over {
		return old, false
	}
	r0 := &run{attempt: a, request: r, lease: lease, ended: make(chan struct{})}
	s.runs[a] = r0
	return r0, true
}

func (s *attempts) get(a job.AttemptID) *run {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.runs[a]
}

// launch carries out a [meta.Launch].
func (s *attempts) launch(f meta.Launch) {
	r, fresh := s.add(f.Attempt, f.Request, f.Lease)
	if !fresh {
		return
	}
	raw := f.Payload
	if raw == nil && f.Attempt.Job.Origin == s.site {
		var err error
		if raw, err = s.backend.Payload(f.Attempt.Job); err != nil {
			s.fail(r, err)
			return
		}
	}
	p, err := parsePayload(raw)
	if err != nil {
		s.fail(r, err)
		return
	}
	r.payload = p
	if !s.needsStaging(r) && s.room() == nil {
		s.start(r)
		return
	}
	ctx, stop := context.WithCancel(s.ctx)
	s.mu.Lock()
	r.stopStaging = stop
	s.mu.Unlock()
	s.wg.Go(func() {
		defer stop()
		s.stageAndStart(ctx, r)
	})
}

// start hands a staged attempt to the executor.
func (s *attempts) start(r *run) {
	spec, err := r.payload.spec(r.attempt, &r.request, s.site, s.exec.WorkPath(r.attempt))
	if err != nil {
		s.fail(r, err)
		return
	}
	s.mu.Lock()
	killed := r.killed
	if killed == nil {
		r.begun = true
		if r.lease != 0 {
			spec.Leased, spec.Lease = true, s.lease(r.lease)
		}
		s.exec.Start(spec) // before anybody extends what begun says has been started
	}
	s.mu.Unlock()
	if killed != nil {
		s.over(r, unstarted(killed))
	}
}

// unstarted is the outcome of an attempt that was stopped before it was started.
func unstarted(k *meta.Kill) job.Outcome {
	if k.Lease {
		return job.Outcome{Kind: job.Loss, End: job.Instant(time.Now()), Reason: "its lease ended before it was started"}
	}
	return job.Outcome{Kind: job.Cancel, End: job.Instant(time.Now()), Reason: "cancelled before it was started"}
}

// launched reports whether an attempt was launched or adopted here, so that its
// beginning is durable, and has not ended.
func (s *attempts) launched(a job.AttemptID) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	r := s.runs[a]
	return r != nil && !r.over
}

// extend carries out a [meta.Extend]. Any goroutine may call it, as often as it
// likes: a lease never becomes shorter.
func (s *attempts) extend(f meta.Extend) {
	s.mu.Lock()
	r := s.runs[f.Attempt]
	begun := r != nil && r.begun
	if r != nil {
		r.lease = max(r.lease, f.Until)
	}
	s.mu.Unlock()
	if begun {
		s.exec.Extend(f.Attempt, s.lease(f.Until))
	}
}

// adopt carries out a [meta.Adopt]: it finds out whether the attempt got as
// far as the executor before the restart.
func (s *attempts) adopt(f meta.Adopt) {
	r, fresh := s.add(f.Attempt, f.Request, 0)
	if !fresh {
		return
	}
	p, ready := s.recover(f.Attempt)
	if !ready && f.BootID == s.exec.BootID() {
		s.mu.Lock()
		delete(s.runs, f.Attempt)
		s.mu.Unlock()
		s.tell(meta.AttemptMissing{Attempt: f.Attempt})
		return
	}
	var spec executor.Spec
	if p != nil {
		r.payload = p
		var err error
		if spec, err = p.spec(f.Attempt, &f.Request, s.site, s.exec.WorkPath(f.Attempt)); err != nil {
			s.log.Warn("payload of an adopted attempt", "attempt_id", f.Attempt.String(), "error", err.Error())
		}
	}
	spec.Attempt, spec.Leased = f.Attempt, f.Leased
	s.mu.Lock()
	r.begun = true
	s.exec.Adopt(spec, f.BootID)
	s.mu.Unlock()
}

// recover finds the payload of an attempt that an earlier daemon began, and
// says whether that daemon had come so far as to start it.
func (s *attempts) recover(a job.AttemptID) (p *payload, ready bool) {
	if raw, err := os.ReadFile(s.stagedPath(a)); err == nil {
		p, err := parsePayload(raw)
		return p, err == nil
	}
	if a.Job.Origin != s.site {
		return nil, false
	}
	raw, err := s.backend.Payload(a.Job)
	if err != nil {
		return nil, false
	}
	p, err = parsePayload(raw)
	if err != nil {
		return nil, false
	}
	return p, len(p.inputs.Files) == 0
}

// kill carries out a [meta.Kill].
func (s *attempts) kill(f meta.Kill) {
	s.mu.Lock()
	r := s.runs[f.Attempt]
	begun := true
	if r != nil {
		r.killed = &f
		begun = r.begun
		if r.stopStaging != nil {
			r.stopStaging()
		}
	}
	s.mu.Unlock()
	if !begun {
		return
	}
	reason := executor.StopCancel
	if f.Lease {
		reason = executor.StopLease
	}
	s.exec.Stop(f.Attempt, reason)
}

// clear carries out a [meta.Clear].
func (s *attempts) clear(a job.AttemptID) {
	s.mu.Lock()
	delete(s.runs, a)
	s.mu.Unlock()
	s.exec.Forget(a)
}

// fail ends an attempt that could not be started.
func (s *attempts) fail(r *run, err error) {
	s.log.Warn("attempt not started", "attempt_id", r.attempt.String(), "error", err.Error())
	s.over(r, job.Outcome{Kind: job.Failure, ExitCode: 127, End: job.Instant(time.Now()), Reason: "not started: " + err.Error()})
}

// over reports the end of an attempt.
func (s *attempts) over(r *run, outcome job.Outcome) {
	s.mu.Lock()
	r.over = true
	s.mu.Unlock()
	close(r.ended)
	s.tell(meta.AttemptEnded{Attempt: r.attempt, Outcome: outcome})
}

// executed takes the executor's events. It is called by the executor's goroutines.
func (s *attempts) executed(ev executor.Event) {
	switch ev := ev.(type) {
	case executor.Started:
		s.log.Info("attempt started", "attempt_id", ev.Attempt.String(), "job_id", ev.Attempt.Job.String())
		s.tell(meta.AttemptStarted{Attempt: ev.Attempt, At: ev.At})
	case executor.Finished:
		s.log.Info("attempt ended", "attempt_id", ev.Attempt.String(), "job_id", ev.Attempt.Job.String(),
			"exit_code", ev.Exit.Code, "signal", ev.Exit.Signal, "reason", ev.Exit.Reason)
		r := s.get(ev.Attempt)
		if r != nil {
			s.finished(r, ev.Exit)
		}
	}
}

// finished collects what the attempt left and reports its end.
func (s *attempts) finished(r *run, x executor.Exit) {
	outcome := outcomeOf(&x)
	leaving := transfer.Leaving{
		Dir: s.exec.WorkPath(r.attempt), Stdout: s.exec.StdoutPath(r.attempt), Stderr: s.exec.StderrPath(r.attempt),
	}
	if r.payload != nil {
		leaving.Outputs = r.payload.outputs()
	}
	if len(leaving.Outputs) == 0 && isEmpty(leaving.Stdout) && isEmpty(leaving.Stderr) {
		s.over(r, outcome)
		return
	}
	s.wg.Go(func() {
		select {
		case s.collecting <- struct{}{}:
			defer func() { <-s.collecting }()
		case <-s.ctx.Done():
			return // collected by the next daemon
		}
		s.collectInto(&outcome, leaving, r.attempt)
		if s.ctx.Err() == nil {
			s.over(r, outcome)
		}
	})
}

// isEmpty reports whether there is nothing to collect, at the cost of a look.
func isEmpty(path string) bool {
	info, err := os.Lstat(path)
	return err != nil || (info.Mode().IsRegular() && info.Size() == 0)
}

// collectInto adds the attempt's files to its outcome. A disk that is full
// gets some time; then the job ends without its output, and says so.
func (s *attempts) collectInto(outcome *job.Outcome, leaving transfer.Leaving, a job.AttemptID) {
	const tries, pause = 5, 2 * time.Second
	var err error
	for range tries {
		var c transfer.Collection
		if c, err = s.collect.Collect(s.ctx, leaving); err == nil {
			s.attach(outcome, c, a)
			return
		}
		s.log.Warn("output not collected", "attempt_id", a.String(), "error", err.Error())
		select {
		case <-time.After(pause):
		case <-s.ctx.Done():
			return
		}
	}
	outcome.Reason = addNote(outcome.Reason, "its output is lost: "+err.Error())
}

func (s *attempts) attach(outcome *job.Outcome, c transfer.Collection, a job.AttemptID) {
	files, err := c.Set.Encode()
	if err != nil {
		outcome.Reason = addNote(outcome.Reason, "its output is lost: "+err.Error())
		return
	}
	if len(c.Set.Files) > 0 {
		outcome.Files = files
	}
	outcome.FilesRemain = a.Job.Origin != s.site && hasChunks(c.Set)
	if len(c.Notes) > 0 {
		outcome.Reason = addNote(outcome.Reason, "output "+strings.Join(c.Notes, "; "))
	}
}

func hasChunks(set transfer.Set) bool {
	for i := range set.Files {
		if len(set.Files[i].Chunks) > 0 {
			return true
		}
	}
	return false
}

func addNote(reason, note string) string {
	if reason != "" {
		note = reason + "; " + note
	}
	return note
}

func outcomeOf(x *executor.Exit) job.Outcome {
	o := job.Outcome{
		Kind: x.Kind(), ExitCode: int32(x.Code), Signal: int32(x.Signal), Reason: x.Reason,
		Start: x.Start, End: x.End, CPUTime: x.CPUTime, MaxRSSBytes: x.MaxRSSBytes,
	}
	if o.Reason == "" {
		switch {
		case o.Kind == job.Timeout:
			o.Reason = "stopped at its walltime"
		case o.Kind == job.Cancel:
			o.Reason = "cancelled"
		case o.Signal != 0:
			o.Reason = fmt.Sprintf("killed by signal %d", o.Signal)
		case o.ExitCode != 0:
			o.Reason = fmt.Sprintf("exit code %d", o.ExitCode)
		}
	}
	return o
}

// live returns the output file of an attempt that runs here.
func (s *attempts) live(a job.AttemptID, name string) (transfer.Output, error) {
	r := s.get(a)
	if r == nil {
		return transfer.Output{}, fmt.Errorf("attempt %v: %w", a, transfer.ErrNotFound)
	}
	switch name {
	case transfer.Stdout:
		return transfer.Output{Path: s.exec.StdoutPath(a), Ended: r.ended}, nil
	case transfer.Stderr:
		return transfer.Output{Path: s.exec.StderrPath(a), Ended: r.ended}, nil
	}
	return transfer.Output{}, fmt.Errorf("output %q of attempt %v, while it runs: %w", name, a, transfer.ErrNotFound)
}

// close stops staging and collecting; jobs run on.
func (s *attempts) close() {
	s.cancel()
	s.wg.Wait()
}

// removeStrays clears folders of attempts that nobody knows any more: the
// daemon died between forgetting and clearing. It is called before anything is
// launched: the folder of an attempt that begins meanwhile would be a stray.
func (s *attempts) removeStrays(known func(job.AttemptID) bool) {
	folders, err := s.folders()
	if err != nil {
		s.log.Warn("attempt folders cannot be listed", "error", err.Error())
		return
	}
	for _, a := range folders {
		if !known(a) {
			s.exec.Forget(a)
		}
	}
}
