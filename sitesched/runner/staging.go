package runner

import (
	"context"
	"errors"
	"fmt"
	"time"

	"kith/internal/job"
	"kith/internal/jobfile"
	"kith/internal/pause"
	"kith/internal/scarce"
	"kith/meta"
	"kith/meta/transfer"
	"kith/store/blobstore"
)

// needsStaging reports whether anything is to be put into the private folder.
func (s *Runner) needsStaging(r *run) bool {
	return len(r.payload.inputs.Files) > 0 || r.attempt.Job.Origin != s.site
}

// startBytes is the room on the disk for an attempt: its folder, its record,
// and something to write.
const startBytes = 1 << 20

// stagePause is how often a full disk is looked at.
const stagePause = time.Second

// errAway is returned while the site that has an attempt's inputs is out of reach.
var errAway = errors.New("no stream is up to the site that has its inputs")

// comesLater reports whether an attempt's inputs cannot be had for now and may be
// had another time.
func comesLater(err error) bool {
	return errors.Is(err, errAway) || errors.Is(err, errBringing) || errors.Is(err, blobstore.ErrQuota) ||
		errors.Is(err, transfer.ErrGaveUp) && !scarce.Full(err) && !final(err)
}

// room returns an error if the disk has no room for one more attempt.
func (s *Runner) room() error {
	return CheckRoom(s.files.cfg.Dir, startBytes, 0)
}

// stagePatiently stages an attempt. While the disk is full it waits, until
// the attempt is killed: a site with a full disk must not run through its
// queue and fail one job after the other.
func (s *Runner) stagePatiently(ctx context.Context, r *run) error {
	for told := false; ; told = true {
		err := s.room()
		if err == nil && s.needsStaging(r) {
			err = s.stage(ctx, r)
		}
		if !scarce.Full(err) || ctx.Err() != nil {
			return err
		}
		if !told {
			s.log.Warn("attempt waits for room on the disk", "attempt_id", r.attempt.String(), "error", err.Error())
		}
		if !pause.For(ctx, stagePause) {
			return ctx.Err()
		}
	}
}

// stageAndStart brings the attempt's files into its private folder and starts it.
func (s *Runner) stageAndStart(ctx context.Context, r *run) {
	err := s.stagePatiently(ctx, r)
	if s.ctx.Err() != nil {
		return // the daemon stops; the next one stages again
	}
	s.mu.Lock()
	r.stopStaging = nil
	killed := r.killed
	later := killed == nil && (r.unstaged || comesLater(err))
	bringing := errors.Is(err, errBringing)
	if later {
		s.keepBack(r)
		delete(s.byID, r.attempt)
	}
	s.mu.Unlock()
	switch {
	case killed != nil:
		s.over(r, killed.Unstarted(job.Instant(time.Now())))
	case later:
		// Nothing has been started, so that no cut, however long, may end the job: its
		// copy waits in the queue for its origin, and others have the processors.
		s.log.Warn("attempt waits for its inputs", "attempt_id", r.attempt.String(), "error", fmt.Sprint(err))
		s.cfg.Tell(meta.AttemptMissing{Attempt: r.attempt, Bringing: bringing})
		if bringing {
			s.tellWhenHere(r.attempt)
		}
	case err != nil:
		s.fail(r, err)
	default:
		s.start(r)
	}
}

// Unstage carries out a [meta.Unstage].
func (s *Runner) Unstage(a job.AttemptID) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if r := s.byID[a]; r != nil && r.stopStaging != nil && !r.begun && r.killed == nil {
		r.unstaged = true
		r.stopStaging()
	}
}

func (s *Runner) stage(ctx context.Context, r *run) error {
	origin, inputs := r.attempt.Job.Origin, r.payload.inputs
	if origin != s.site && hasChunks(inputs) {
		if err := s.bringIn(ctx, r.attempt, inputs); err != nil {
			return err
		}
	}
	if err := s.reserveFolder(r, inputs, false); err != nil {
		return err
	}
	if err := s.system.Prepare(r.attempt); err != nil {
		return fmt.Errorf("private folder: %w", err)
	}
	if err := s.unpacker.Unpack(ctx, inputs, r.files.Work); err != nil {
		return fmt.Errorf("inputs: %w", err)
	}
	s.letGo(r.attempt) // what it needs lies in its folder
	return markStaged(r.files.Mark, r.payload.raw)
}

// reserveFolder takes what a set writes into an attempt's folder out of the quota of
// the files, before the first byte is written, until the attempt is cleared. One chunk
// may be named a thousand times, so that what was fetched says nothing about that. With
// force it lies there already.
func (s *Runner) reserveFolder(r *run, set transfer.Set, force bool) error {
	if len(set.Files) == 0 {
		return nil
	}
	chunks := chunkBytes(set)
	if quota := s.files.cfg.QuotaBytes; !force && quota > 0 && set.Bytes()+chunks > quota {
		return fmt.Errorf("inputs: %w: %s of them and %s in the attempt's folder, and all files together may have %s here",
			transfer.ErrTooLarge, blobstore.FormatBytes(chunks), blobstore.FormatBytes(set.Bytes()), blobstore.FormatBytes(quota))
	}
	release, err := s.files.blobs.Reserve(set.Bytes(), force)
	if err != nil {
		return fmt.Errorf("inputs: %w", err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if r.folder != nil {
		r.folder()
	}
	r.folder = release
	return nil
}

// keepBack gives the room of an attempt that does not start for now back. The caller
// holds the mutex of the runs.
func (s *Runner) keepBack(r *run) {
	if r.folder != nil {
		r.folder()
		r.folder = nil
	}
}

// markStaged writes an attempt's mark: its files are staged, and from here on
// it may have been started. Its content is the payload. It is missing for an
// attempt that needs no files and whose payload is in this site's store.
//
// It is written in one step: it is whole or it is not there. A power failure
// may lose it, but then the machine's boot id has changed, too, and nothing of
// an earlier boot is ever started.
func markStaged(path string, payload []byte) error {
	root, name, _ := markName(path)
	if err := jobfile.Replace(root, name, payload); err != nil {
		return fmt.Errorf("mark of staged files: %w", err)
	}
	return nil
}

// CheckRoom returns an error if less than keep bytes would stay free on the
// disk of dir after need more. Whatever else is wrong, writing itself will tell.
func CheckRoom(dir string, need, keep int64) error {
	if err := blobstore.CheckFree(dir, need, keep); scarce.Full(err) {
		return err
	}
	return nil
}
