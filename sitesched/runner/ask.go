package runner

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"syscall"

	"kith/internal/donemark"
	"kith/internal/job"
	"kith/internal/jobfile"
	"kith/meta"
	"kith/meta/api"
	"kith/sitesched/work"
)

// Ask carries out a [meta.AskCheckpoint]. Any goroutine may call it.
func (s *Runner) Ask(f meta.AskCheckpoint) {
	s.mu.Lock()
	r := s.byID[f.Attempt]
	runs := r != nil && r.begun && !r.over && r.killed == nil
	s.mu.Unlock()
	if !runs {
		return
	}
	ask := work.Ask{Cause: f.Cause}
	if p := r.payload; p != nil && p.saves() {
		c := p.job.GetCheckpoint()
		ask.Signal, ask.All, ask.Grace = int(api.CheckpointSignal(c)), c.GetSignalAll(), f.Grace
		if f.Cause != job.AtWalltime { // then it is the time that the job wants
			ask.Grace = min(f.Grace, api.CheckpointGrace(c))
		}
		ask.Done = savedName(api.DoneName)
		ask.Before = cmp.Or(s.numberNow(r), p.parsed.GetResume().GetSequence())
	}
	s.log.Info("attempt asked to save and end", append(r.names(), "cause", f.Cause.String(), "grace", ask.Grace.String())...)
	s.system.Ask(f.Attempt, ask)
}

// numberNow returns the number that is in the DONE of an attempt that runs, 0 if there is none.
func (s *Runner) numberNow(r *run) uint64 {
	n, _ := s.doneNow(r) // no number is none
	return n
}

// doneNow returns the number that is in the DONE of an attempt that runs, 0 if there is no such file. What
// is there and no number is an error.
func (s *Runner) doneNow(r *run) (uint64, error) {
	file, err := jobfile.Open(r.files.Work, savedName(api.DoneName), syscall.O_RDONLY)
	if errors.Is(err, fs.ErrNotExist) {
		return 0, nil
	}
	switch {
	case errors.Is(err, jobfile.ErrNotFile): // the job's user need not know where its folder is
		return 0, fmt.Errorf("%s is %w", api.DoneName, jobfile.ErrNotFile)
	case err != nil:
		return 0, fmt.Errorf("%s cannot be read: %w", api.DoneName, err)
	}
	defer file.Close() //nolint:errcheck // it was only read
	b, err := io.ReadAll(io.LimitReader(file, donemark.Most+1))
	if err != nil {
		return 0, fmt.Errorf("%s cannot be read: %w", api.DoneName, err)
	}
	return parseDone(b)
}

// judge says how an attempt ended for its job: whether it goes on in another one. An end that was
// not asked for and is not for that has no cause.
func (r *run) judge(o *job.Outcome) {
	switch {
	case r.demotes(o) && r.ending.Last:
		o.Cause, o.Reason = job.OwnAccord, fmt.Sprintf("it asked to be run again in its last attempt, of %d", job.MaxAttempts)
	case r.demotes(o):
		o.Kind, o.Reason = job.Demoted, ""
	case r.ending.AtLimit(o):
		// It was to be asked before, and its daemon was not there, or its clock was set.
	case o.Kind == job.Timeout && r.request.AskSeconds > 0 && !r.ending.Last:
		// So was this one.
		o.Kind, o.Cause, o.Reason = job.Demoted, job.AtWalltime, addNote(o.Reason, "nobody had asked it to save")
	case o.Kind != job.Demoted:
		o.Cause = job.OwnAccord
	}
}

// late returns the number above which checkpoints of an attempt do not count, as they were not
// saved in time, and whether there is one.
func (r *run) late() (before uint64, late bool) {
	if r.asked == nil || r.asked.InTime || r.asked.Done == "" {
		return 0, false
	}
	return r.asked.Before, true
}
