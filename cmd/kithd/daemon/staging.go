package daemon

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"kith/internal/job"
	"kith/meta"
	"kith/meta/transfer"
)

// needsStaging reports whether anything is to be put into the private folder.
func (s *attempts) needsStaging(r *run) bool {
	return len(r.payload.inputs.Files) > 0 || r.attempt.Job.Origin != s.site
}

// startBytes is the room on the disk for an attempt: its folder, its record,
// and something to write.
const startBytes = 1 << 20

// stagePause is how often a full disk is looked at.
const stagePause = time.Second

// fetchPatience is how long files may fail to come until their fetch gives up.
const fetchPatience = 20 * time.Second

// errAway is returned while the site that has an attempt's inputs is out of reach.
var errAway = errors.New("no stream is up to the site that has its inputs")

// comesLater reports whether an attempt's inputs cannot be had for now and may be
// had another time.
func comesLater(err error) bool {
	return errors.Is(err, errAway) || errors.Is(err, transfer.ErrGaveUp) && !isFull(err) && !final(err)
}

// room returns an error if the disk has no room for one more attempt.
func (s *attempts) room() error {
	return checkRoom(s.dir, startBytes, 0)
}

// stagePatiently stages an attempt. While the disk is full it waits, until
// somebody kills the attempt: a site with a full disk must not run through its
// queue and fail one job after the other.
func (s *attempts) stagePatiently(ctx context.Context, r *run) error {
	for told := false; ; told = true {
		err := s.room()
		if err == nil && s.needsStaging(r) {
			err = s.stage(ctx, r)
		}
		if !isFull(err) || ctx.Err() != nil {
			return err
		}
		if !told {
			s.log.Warn("attempt waits for room on the disk", "attempt_id", r.attempt.String(), "error", err.Error())
		}
		if !pause(ctx, stagePause) {
			return ctx.Err()
		}
	}
}

// stageAndStart brings the attempt's files into its private folder and starts it.
func (s *attempts) stageAndStart(ctx context.Context, r *run) {
	err := s.stagePatiently(ctx, r)
	if s.ctx.Err() != nil {
		return // the daemon stops; the next one stages again
	}
	s.mu.Lock()
	r.stopStaging = nil
	killed := r.killed
	later := killed == nil && comesLater(err)
	if later {
		delete(s.runs, r.attempt)
	}
	s.mu.Unlock()
	switch {
	case killed != nil:
		s.over(r, unstarted(killed))
	case later:
		// Nothing has been started, so that no cut, however long, may end the job: its
		// copy waits in the queue for its origin, and others have the processors.
		s.log.Warn("attempt waits for its inputs", "attempt_id", r.attempt.String(), "error", err.Error())
		s.tell(meta.AttemptMissing{Attempt: r.attempt})
	case err != nil:
		s.fail(r, err)
	default:
		s.start(r)
	}
}

func (s *attempts) stage(ctx context.Context, r *run) error {
	origin := r.attempt.Job.Origin
	if origin != s.site && hasChunks(r.payload.inputs) {
		if s.away(origin) {
			return fmt.Errorf("site %s: %w", origin, errAway)
		}
		if err := s.fetcher.Fetch(ctx, r.attempt, r.payload.inputs, s.source(origin), nil); err != nil {
			return fmt.Errorf("inputs could not be brought from site %s: %w", origin, err)
		}
	}
	work, err := s.exec.Prepare(r.attempt)
	if err != nil {
		return fmt.Errorf("private folder: %w", err)
	}
	if err := s.unpacker.Unpack(ctx, r.payload.inputs, work); err != nil {
		return fmt.Errorf("inputs: %w", err)
	}
	return s.markStaged(r.attempt, r.payload.raw)
}

// markStaged writes the mark in one step: it is whole or it is not there. A
// power failure may lose it, but then the machine's boot id has changed, too,
// and nothing of an earlier boot is ever started.
func (s *attempts) markStaged(a job.AttemptID, payload []byte) error {
	path := s.stagedPath(a)
	if err := os.WriteFile(path+".new", payload, 0o600); err != nil {
		return fmt.Errorf("mark of staged files: %w", err)
	}
	return os.Rename(path+".new", path)
}

func (s *attempts) stagedPath(a job.AttemptID) string {
	return filepath.Join(filepath.Dir(s.exec.WorkPath(a)), stagedName)
}
