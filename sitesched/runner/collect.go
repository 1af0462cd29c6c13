package runner

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"
	"time"

	"kith/internal/job"
	"kith/internal/pause"
	"kith/internal/scarce"
	"kith/meta"
	"kith/meta/transfer"
)

// errorTail is how much of the end of stderr is looked at for its last line, in bytes.
const errorTail = 1024

// finished collects what the attempt left, unless that is nothing, and reports its end. Its
// processors are free at once.
func (s *Runner) finished(r *run, outcome job.Outcome, blank bool) {
	explain(&outcome)
	if r.task != nil && !blank && (outcome.Kind == job.Failure || outcome.Kind == job.Timeout) {
		outcome.ErrorLine = r.errorLine() // before room is made
	}
	s.ends(r)
	leaving := transfer.Leaving{Dir: r.files.Work, Stdout: r.files.Stdout, Stderr: r.files.Stderr, Ran: outcome.Start != 0}
	r.judge(&outcome)
	switch {
	case r.payload == nil:
	case outcome.Kind == job.Demoted && outcome.Start == 0: // its command has saved nothing
	case outcome.Kind == job.Demoted: // its outputs are those of its last attempt
		leaving.Outputs = r.payload.savedPaths()
	default:
		leaving.Outputs = r.payload.outputs()
	}
	if blank && len(leaving.Outputs) == 0 {
		s.over(r, outcome)
		return
	}
	if len(leaving.Outputs) == 0 && isEmpty(leaving.Stdout, leaving.Ran) && isEmpty(leaving.Stderr, leaving.Ran) {
		s.over(r, outcome)
		return
	}
	s.cfg.Tell(meta.AttemptOver{Attempt: r.attempt})
	ctx, stop := s.untilStale(r)
	s.wg.Go(func() {
		defer stop()
		// What it left is known to the byte before anything is read of it.
		way, size := s.large, s.collector.Bytes(ctx, leaving)
		if size <= smallOutput {
			way = s.small
		}
		if r.task == nil || !s.gathering.reserve(size) || !s.collectLoose(ctx, r, outcome, leaving, size) {
			s.collectAlone(ctx, r, outcome, leaving, way)
		}
	})
}

// collectAlone collects what an attempt left, whatever it takes, and reports its end.
func (s *Runner) collectAlone(ctx context.Context, r *run, outcome job.Outcome, leaving transfer.Leaving, way *lane) {
	s.collectInto(ctx, &outcome, leaving, r, way)
	if s.ctx.Err() == nil { // else collected by the next daemon
		s.over(r, outcome)
	}
}

// collectLoose reads what a task left, of which size bytes are reserved, and has what is
// short wait for a container. It reports false if that must be tried by collectAlone.
func (s *Runner) collectLoose(ctx context.Context, r *run, outcome job.Outcome, leaving transfer.Leaving, size int64) bool {
	if !s.small.enter(ctx, r.attempt.Job.Origin) {
		s.gathering.release(size)
		return false
	}
	leaving.Loose = true
	c, err := s.collect(ctx, leaving)
	s.small.leave()
	leaving.Loose = false
	if err == nil && len(c.Loose) > 0 {
		s.gather(gathered{r, outcome, leaving, c, size})
		return true
	}
	s.gathering.release(size)
	if err != nil {
		return false
	}
	s.attach(&outcome, c, r, r.requires())
	s.over(r, outcome)
	return true
}

// requires reports whether a success that lacks declared outputs is a failure.
func (r *run) requires() bool { return r.payload != nil && r.payload.job.GetRequireOutputs() }

// untilStale returns a context that ends when nobody wants any more what an attempt leaves.
func (s *Runner) untilStale(r *run) (context.Context, context.CancelFunc) {
	ctx, stop := context.WithCancel(s.ctx)
	s.mu.Lock()
	defer s.mu.Unlock()
	r.stopCollect = stop
	if r.stale {
		stop()
	}
	return ctx, stop
}

// unwanted is said of the output of an attempt whose result would be refused.
const unwanted = "its output was not collected: the attempt is stale"

// isEmpty reports whether there is nothing to collect or to say of a stream, at the cost
// of a look. ran says that the command ran: then a stream that is missing was removed.
func isEmpty(path string, ran bool) bool {
	if path == "" {
		return true
	}
	info, err := os.Lstat(path)
	switch {
	case err == nil:
		return info.Mode().IsRegular() && info.Size() == 0
	case errors.Is(err, fs.ErrNotExist):
		return !ran
	}
	return !scarce.Passes(err)
}

// collectInto adds the attempt's files to its outcome. What the machine has run out of
// for now, room on its disk among it, has all the time it takes: the folder is kept, its
// processors are free, a place among those that collect is held for one try at a time,
// and the origin can cancel the job. Any other trouble gets some
// time; then the job ends without its output, and says so. It does so at once, too, when
// held ends.
func (s *Runner) collectInto(held context.Context, outcome *job.Outcome, leaving transfer.Leaving, r *run, way *lane) {
	const tries, wait, longest = 5, 2 * time.Second, time.Minute
	ctx, stop := s.stoppable(r) // a cancelled job does not wait for room
	defer stop()
	quota := s.files.cfg.QuotaBytes
	tooMuch := quota > 0 && s.collector.Bytes(held, leaving) > quota
	require := r.requires()
	defer s.scarcity.over(r.attempt)
	var err error
	for failed, again := 0, wait; failed < tries; again = min(2*again, longest) {
		if !way.enter(held, r.attempt.Job.Origin) {
			s.giveUp(outcome)
			return
		}
		var c transfer.Collection
		c, err = s.collect(held, leaving)
		way.leave()
		switch {
		case err == nil:
			s.attach(outcome, c, r, require)
			return
		case held.Err() != nil:
			s.giveUp(outcome)
			return
		}
		s.log.Warn("output not collected; tried again", append(r.names(), "error", err.Error())...)
		s.scarcity.note(r.attempt, err)
		if comesBack(err) && !tooMuch {
			s.cfg.Tell(meta.FilesWait{Attempt: r.attempt, Reason: waitText(err)})
		} else {
			failed, again = failed+1, wait
		}
		if !pause.For(ctx, again) {
			if s.ctx.Err() != nil {
				return
			}
			break
		}
	}
	outcome.FilesLost = true
	outcome.Reason = addNote(outcome.Reason, "its output is lost: "+err.Error())
	if require && len(leaving.Outputs) > 0 && outcome.Kind == job.Success {
		outcome.Kind = job.Failure
	}
}

// attach adds what was collected to an outcome. With require a success that
// lacks declared outputs is a failure.
func (s *Runner) attach(outcome *job.Outcome, c transfer.Collection, r *run, require bool) {
	a := r.attempt
	if outcome.Kind == job.Demoted && r.payload != nil && r.payload.saves() {
		s.checkSaved(outcome, &c, r)
	}
	s.mu.Lock()
	r.output, r.kept = c.Set, c.Hold // until it is cleared
	s.mu.Unlock()
	files, err := c.Set.Encode()
	if err != nil {
		outcome.FilesLost = true
		outcome.Reason = addNote(outcome.Reason, "its output is lost: "+err.Error())
		return
	}
	if len(c.Set.Files) > 0 {
		outcome.Files = files
	}
	outcome.FilesRemain = a.Job.Origin != s.site && hasChunks(c.Set)
	notes := ""
	if len(c.Notes) > 0 && outcome.Kind != job.Demoted {
		notes = "output " + strings.Join(c.Notes, "; ")
		outcome.Reason = addNote(outcome.Reason, notes)
	}
	// The notes of a task do not come with its result.
	outcome.FilesLost = outcome.FilesLost || c.Lost || r.task != nil && c.Untaken
	if c.Incomplete && outcome.Kind == job.Success && require {
		outcome.Kind = job.Failure
		if r.task != nil {
			outcome.ErrorLine = job.ErrorLineOf([]byte(notes))
		}
	}
}

// errorLine is the last line of stderr, without the path of the work folder: a shell begins
// with it what it says of a script, and it is another one for each task, so that tasks that
// failed alike would have no line in common.
func (r *run) errorLine() string {
	tail := transfer.End(r.files.Stderr, errorTail)
	return job.ErrorLineOf(bytes.ReplaceAll(tail, []byte(r.files.Work+"/"), nil))
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

// explain gives a reason to an end that has none.
func explain(o *job.Outcome) {
	switch {
	case o.Reason != "":
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

// giveUp ends an output that nobody wants any more, unless the daemon ends: then the
// next one collects it.
func (s *Runner) giveUp(outcome *job.Outcome) {
	if s.ctx.Err() == nil {
		outcome.FilesLost = true
		outcome.Reason = addNote(outcome.Reason, unwanted)
	}
}
