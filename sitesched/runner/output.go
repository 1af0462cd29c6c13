package runner

import (
	"context"
	"errors"
	"fmt"
	"path"
	"slices"
	"time"

	"kith/internal/job"
	"kith/internal/pause"
	"kith/meta"
	"kith/meta/api"
	"kith/meta/transfer"
	"kith/store"
)

// Read implements api.Output: it finds the file where it is at the moment, in
// this site's store, in a folder of a job that runs here, or at the holder.
func (s *Runner) Read(ctx context.Context, a job.AttemptID, name string, offset int64, wait time.Duration) ([]byte, bool, error) {
	data, end, err := s.readNow(ctx, a, name, offset, wait)
	if errors.Is(err, errMoved) { // it is home by now, or lost
		data, end, err = s.readNow(ctx, a, name, offset, wait)
	}
	return data, end, err
}

// errMoved is returned where a file is not at the site where it was a moment ago.
var errMoved = errors.New("it is not there any more")

// How long a reader waits for a host that is busy, at most mostBusy times.
const (
	busyPause = 100 * time.Millisecond
	mostBusy  = 50
)

func (s *Runner) readNow(ctx context.Context, a job.AttemptID, name string, offset int64, wait time.Duration) ([]byte, bool, error) {
	var view meta.JobView
	var err error
	if e := s.files.cfg.Look(ctx, func(_ job.Time, v meta.Views) { view, err = v.JobView(a.Job) }); e != nil {
		return nil, false, e
	}
	if err != nil {
		return nil, false, err
	}
	rec := &view.Record
	if a.Number != 0 && a != rec.AttemptID() {
		return s.readEarlier(rec, a, name, offset)
	}
	if rec.Outcome == nil {
		if name != transfer.Stdout && name != transfer.Stderr {
			return nil, false, fmt.Errorf("output %q: it can be read when the job has ended: %w", name, api.ErrNoOutput)
		}
		if rec.State.Terminal() {
			return nil, true, nil // it never ran
		}
		return s.readLive(ctx, &view, name, offset, wait)
	}
	encoded := rec.Outcome.Files
	if rec.State.Terminal() {
		if encoded, err = s.files.cfg.Backend.Outputs(a.Job); err != nil {
			return nil, false, err
		}
	}
	return s.readHome(ctx, rec, encoded, name, offset, wait)
}

// readLive reads the output of a job that has not ended.
func (s *Runner) readLive(ctx context.Context, view *meta.JobView, name string, offset int64, wait time.Duration) (data []byte, end bool, err error) {
	a := view.Record.AttemptID()
	switch view.Record.Holder {
	case "":
		pause.For(ctx, wait/4)
		return nil, false, ctx.Err()
	case s.site:
		data, end, err = s.files.readLive(ctx, a, name, offset, 0, wait)
	default:
		data, end, err = s.liveAt(ctx, view.Record.Holder, a, name, offset, wait)
	}
	switch {
	case errors.Is(err, transfer.ErrNotFound), errors.Is(err, transfer.ErrBusy):
		// Not started yet, or ended just now and on its way home.
		pause.For(ctx, wait/10)
		return nil, false, ctx.Err()
	case errors.Is(err, transfer.ErrUnavailable):
		return nil, false, fmt.Errorf("job %v runs at site %s: %w: %w", a.Job, view.Record.Holder, api.ErrHostAway, err)
	case err != nil:
		return nil, false, err
	}
	if end && len(data) == 0 {
		pause.For(ctx, wait/20) // the outcome follows in a moment
	}
	// The end is what the outcome says, not what the live file says.
	return data, false, nil
}

// readEarlier reads what an attempt wrote that ended with its job to go on.
func (s *Runner) readEarlier(rec *store.Job, a job.AttemptID, name string, offset int64) ([]byte, bool, error) {
	if name != transfer.Stdout && name != transfer.Stderr {
		return nil, false, fmt.Errorf("output %q of attempt %v: only stdout and stderr of earlier attempts are kept: %w", name, a, api.ErrNoOutput)
	}
	if !slices.ContainsFunc(rec.Demotions, func(d store.Demotion) bool { return d.Attempt == a.Number }) {
		return nil, false, fmt.Errorf("attempt %v: no attempt of the job that ended for it to go on: %w", a, api.ErrNoOutput)
	}
	encoded, err := s.files.cfg.Backend.AttemptFiles(a)
	if err != nil {
		return nil, false, err
	}
	set, err := transfer.Decode(encoded)
	if err != nil {
		return nil, false, err
	}
	file, ok := set.Find(name)
	if !ok || offset >= file.Size {
		return nil, true, nil // it wrote nothing, or no more
	}
	return s.files.ReadFile(file, offset)
}

// readHome reads the output of a job whose outcome is known.
func (s *Runner) readHome(ctx context.Context, rec *store.Job, encoded []byte, name string, offset int64, wait time.Duration) ([]byte, bool, error) {
	set, err := transfer.Decode(encoded)
	if err != nil {
		return nil, false, err
	}
	file, ok := set.Find(path.Clean(name))
	if !ok {
		if name == transfer.Stdout || name == transfer.Stderr {
			return nil, true, nil // it wrote nothing
		}
		return nil, false, fmt.Errorf("output %q: %w", name, api.ErrNoOutput)
	}
	if offset >= file.Size {
		return nil, true, nil
	}
	if len(file.Chunks) > 0 && rec.State == job.Returning {
		a := rec.AttemptID()
		at := s.awayAt(a)
		if at == "" && offset > 0 {
			at = rec.Holder // who has read the begin there reads on, though the rest may be on its way
		}
		if at != "" {
			return s.readAway(ctx, at, a, file, offset)
		}
		pause.For(ctx, wait/4)
		return nil, false, ctx.Err()
	}
	return s.files.ReadFile(file, offset)
}

// readAway reads a file of an attempt's output at the site where it ran: there is no
// room for it here.
func (s *Runner) readAway(ctx context.Context, at job.SiteID, a job.AttemptID, file transfer.File, offset int64) ([]byte, bool, error) {
	i, within, left := file.Place(offset)
	limit := min(transfer.MaxPieceBytes, left)
	data, err := s.sourceAt(at).ReadChunk(ctx, a, file.Chunks[i], within, int(limit))
	for n := 0; errors.Is(err, transfer.ErrBusy) && n < mostBusy && pause.For(ctx, busyPause); n++ {
		data, err = s.sourceAt(at).ReadChunk(ctx, a, file.Chunks[i], within, int(limit))
	}
	switch {
	case errors.Is(err, transfer.ErrBusy):
		return nil, false, fmt.Errorf("output %q is at site %s: %w", file.Path, at, api.ErrBusy)
	case errors.Is(err, transfer.ErrNotFound), errors.Is(err, transfer.ErrDenied):
		return nil, false, fmt.Errorf("output %q at site %s: %w: %w", file.Path, at, errMoved, api.ErrNoOutput)
	case errors.Is(err, transfer.ErrUnavailable):
		return nil, false, fmt.Errorf("output %q is at site %s: %w: %w", file.Path, at, api.ErrHostAway, err)
	case err != nil:
		return nil, false, fmt.Errorf("output %q at site %s: %w: %w", file.Path, at, api.ErrNoOutput, err)
	}
	return data, offset+int64(len(data)) >= file.Size, nil
}
