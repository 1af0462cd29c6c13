package runner

import (
	"fmt"
	"os"
	"strings"
	"time"

	"kith/internal/job"
	"kith/meta/transfer"
)

// finished collects what the attempt left and reports its end.
func (s *Runner) finished(r *run, outcome job.Outcome) {
	explain(&outcome)
	s.ends(r)
	leaving := transfer.Leaving{Dir: r.files.Work, Stdout: r.files.Stdout, Stderr: r.files.Stderr}
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
		s.collectInto(&outcome, leaving, r.attempt, r.payload != nil && r.payload.job.GetRequireOutputs())
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
func (s *Runner) collectInto(outcome *job.Outcome, leaving transfer.Leaving, a job.AttemptID, require bool) {
	const tries, pause = 5, 2 * time.Second
	var err error
	for range tries {
		var c transfer.Collection
		if c, err = s.collector.Collect(s.ctx, leaving); err == nil {
			s.attach(outcome, c, a, require)
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
	if require && len(leaving.Outputs) > 0 && outcome.Kind == job.Success {
		outcome.Kind = job.Failure
	}
}

// attach adds what was collected to an outcome. With require a success that
// lacks declared outputs is a failure.
func (s *Runner) attach(outcome *job.Outcome, c transfer.Collection, a job.AttemptID, require bool) {
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
	if c.Incomplete && outcome.Kind == job.Success && require {
		outcome.Kind = job.Failure
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
