package runner

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"kith/internal/job"
	"kith/internal/jobfile"
	"kith/internal/pause"
	"kith/internal/scarce"
	"kith/meta"
	"kith/meta/api"
	"kith/meta/transfer"
	"kith/store/blobstore"
)

// needsStaging reports whether anything is to be put into the private folder.
func (s *Runner) needsStaging(r *run) bool {
	return len(r.payload.inputs.Files) > 0 || r.payload.saves() || (s.files.cfg.Apart || r.attempt.Job.Origin != s.site) && r.task == nil
}

// startBytes is the room on the disk for an attempt: its folder, its record,
// and something to write.
const startBytes = 1 << 20

// stagePause is how often a full disk is looked at.
const stagePause = time.Second

// roomPatience is for how long an attempt waits for room on the disk, with its processors.
// It is short: another site may have room, and this one starts what waits here once it has.
const roomPatience = 5 * time.Second

// errAway is returned while the site that has an attempt's inputs is out of reach.
var errAway = errors.New("no stream is up to the site that has its inputs")

// comesLater reports whether an attempt's inputs cannot be had for now and may be
// had another time.
func comesLater(err error) bool {
	return errors.Is(err, errAway) || errors.Is(err, errBringing) || errors.Is(err, blobstore.ErrQuota) || errors.Is(err, blobstore.ErrCopies) ||
		errors.Is(err, transfer.ErrGaveUp) && !scarce.Full(err) && !final(err)
}

// room returns an error if the disk has no room for one more attempt.
func (s *Runner) room() error {
	return s.disk.Check(startBytes, 0)
}

// stagePatiently stages an attempt. While the disk is full it waits for a moment: what has
// ended may be about to leave. After that the attempt goes back to its origin, and
// the site starts nothing for a while, see [troubleHere]: another site may run it.
func (s *Runner) stagePatiently(ctx context.Context, r *run) error {
	until := time.Now().Add(min(roomPatience, s.cfg.Staging))
	for told := false; ; told = true {
		err := s.room()
		if err == nil && s.needsStaging(r) {
			err = s.stage(ctx, r)
		}
		if !scarce.Full(err) || ctx.Err() != nil {
			return err
		}
		if told && !time.Now().Before(until) {
			return troubleHere{err}
		}
		if !told {
			s.log.Warn("attempt waits for room on the disk", append(r.names(), "error", err.Error())...)
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
	killed, unstaged := r.killed, r.unstaged
	later := killed == nil && (unstaged || comesLater(err))
	bringing := errors.Is(err, errBringing) && r.task == nil // the next task finds what came
	if later {
		s.releaseFolder(r)
		delete(s.byID, r.attempt)
	}
	s.mu.Unlock()
	switch {
	case killed != nil:
		s.over(r, killed.Unstarted(job.Instant(time.Now())))
	case later:
		// Nothing has been started, so that no cut, however long, may end the job: its
		// copy waits in the queue for its origin, and others have the processors.
		if unstaged {
			s.log.Info("attempt not started, as the site drains; it goes back to its origin", r.names()...)
		} else {
			s.log.Warn("attempt waits for its inputs", append(r.names(), "error", err.Error())...)
		}
		if r.task != nil {
			s.letGo(r.attempt)
		}
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

// fetchesAgain is how often inputs that are here and then are not are brought anew before
// this site's disk is taken to be the trouble.
const fetchesAgain = 3

// stage brings an attempt's inputs into its private folder. What of it fails at this
// host, and not for what is staged, is a [troubleHere].
func (s *Runner) stage(ctx context.Context, r *run) error {
	for again := 0; ; again++ {
		err := s.stageOnce(ctx, r)
		// A chunk that was damaged is gone from the store when that was found.
		if !errors.Is(err, blobstore.ErrNotFound) || ctx.Err() != nil {
			return err
		}
		if r.attempt.Job.Origin == s.site {
			return fmt.Errorf("an input was damaged on the disk of its origin, and no other site has it; submit the job again: %w", err)
		}
		s.log.Warn("an input is gone from the file store; it is brought again", append(r.names(), "error", err.Error())...)
		if again == fetchesAgain {
			return troubleHere{err}
		}
		s.letGo(r.attempt) // what was brought does not count any more
	}
}

func (s *Runner) stageOnce(ctx context.Context, r *run) error {
	origin, inputs := r.attempt.Job.Origin, r.payload.allFiles()
	if origin != s.site && hasChunks(inputs) {
		if err := s.bringIn(ctx, r, inputs); err != nil {
			return err
		}
	}
	if err := s.reserveFolder(r, inputs, false); err != nil {
		return err
	}
	if err := s.system.Prepare(r.attempt); err != nil {
		return troubleHere{fmt.Errorf("private folder: %w", err)}
	}
	if err := s.unpacker.Unpack(ctx, r.payload.inputs, r.files.Work); err != nil {
		return unpackError(fmt.Errorf("inputs: %w", err))
	}
	if r.payload.saves() {
		if err := os.MkdirAll(filepath.Join(r.files.Work, filepath.FromSlash(api.CheckpointFolder)), 0o700); err != nil {
			return troubleHere{fmt.Errorf("folder for checkpoints: %w", err)}
		}
		if err := s.unpacker.Unpack(ctx, r.payload.saved, r.files.Work); err != nil {
			return unpackError(fmt.Errorf("checkpoint: %w", err))
		}
	}
	spec, err := s.specOf(r)
	if err != nil {
		return unpackError(err)
	}
	if err := markStaged(r.files.Mark, r.payload.raw); err != nil {
		return troubleHere{err}
	}
	r.spec = &spec
	s.letGo(r.attempt) // what it needs lies in its folder
	return nil
}

// A troubleHere is an error of this host while it makes an attempt ready: a disk or a
// folder that does not do what it should. It is no outcome; see [Runner.fail].
type troubleHere struct{ error }

// Unwrap returns what went wrong.
func (t troubleHere) Unwrap() error { return t.error }

// unpackError tells what is wrong with what was to be unpacked, and stays as it is, from
// what is wrong with this host.
func unpackError(err error) error {
	for _, ofJob := range []error{
		transfer.ErrBadSet, transfer.ErrTooLarge, transfer.ErrTooMany, blobstore.ErrNotFound, errPayload, context.Canceled, context.DeadlineExceeded,
	} {
		if errors.Is(err, ofJob) {
			return err
		}
	}
	return troubleHere{err}
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

// releaseFolder gives back the room of an attempt's folder. The caller holds the mutex
// of the runs.
func (s *Runner) releaseFolder(r *run) {
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
