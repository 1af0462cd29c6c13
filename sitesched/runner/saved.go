package runner

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"kith/internal/job"
	"kith/meta"
	"kith/meta/api"
	"kith/meta/transfer"
	"kith/store"
	"kith/store/blobstore"
)

// What a job has saved is copied while it runs, if it asks for that: by the rules by which it is collected
// at the end, of a folder that is not trusted then either, and only if DONE says the same before and
// after. A job that renames DONE last has written all other files by then.

// savesAtOnce is how many attempts are copied at a time, in places of their own: what has ended waits
// for none of them.
const savesAtOnce = 2

// copied is the latest copy of what an attempt has saved.
type copied struct {
	sequence uint64
	set      transfer.Set
	hold     *blobstore.Hold // of it; nil if there is none
}

// CopySaved carries out a [meta.CopySaved].
func (s *Runner) CopySaved(a job.AttemptID) {
	s.mu.Lock()
	r := s.byID[a]
	if r == nil || !r.begun || r.over || r.finished || r.killed != nil || !r.payload.saves() {
		s.mu.Unlock()
		s.cfg.Tell(meta.SavedCopied{Attempt: a})
		return
	}
	ctx, stop := context.WithCancel(s.ctx)
	r.stopSaving = stop
	s.mu.Unlock()
	s.wg.Go(func() {
		defer stop()
		ev, err := s.copySaved(ctx, r)
		if ctx.Err() != nil && s.ctx.Err() != nil {
			return
		}
		if ev.Attempt = a; err != nil && ctx.Err() == nil {
			ev = meta.SavedCopied{Attempt: a, Reason: err.Error()}
			s.sayOfSaves(slog.LevelInfo, a, "what a job has saved was not copied", append(r.names(), "reason", ev.Reason)...)
		}
		s.cfg.Tell(ev)
	})
}

// sayOfSavesEvery is how often the log tells that copies fail of jobs of one origin: a job may have
// one made each second.
const sayOfSavesEvery = 10 * time.Second

// sayOfSaves logs that a copy failed, unless one of an attempt of that origin did a moment ago.
func (s *Runner) sayOfSaves(l slog.Level, a job.AttemptID, text string, args ...any) {
	if held, ok := s.saveLines.Pass(a.Job.Origin, time.Now(), sayOfSavesEvery); ok {
		s.log.Log(context.Background(), l, text, append(args, "held_back", held)...)
	}
}

// errChanges is returned where a job saved again while it was copied.
var errChanges = errors.New(api.DoneName + " changed while it was copied")

// copySaved makes a copy and returns what to tell of it. The error says why there is none.
func (s *Runner) copySaved(ctx context.Context, r *run) (ev meta.SavedCopied, err error) {
	before, err := s.doneNow(r)
	s.mu.Lock()
	last := max(r.copied.sequence, r.payload.parsed.GetResume().GetSequence())
	s.mu.Unlock()
	switch {
	case err != nil:
		return ev, err
	case before == 0 || before == last: // nothing, or nothing new
		return ev, nil
	case before < last:
		return ev, fmt.Errorf("%s says %d, and before it said %d", api.DoneName, before, last)
	}
	if !s.saving.enter(ctx, r.attempt.Job.Origin) {
		return ev, ctx.Err()
	}
	defer s.saving.leave()
	c, err := s.collect(ctx, transfer.Leaving{Dir: r.files.Work, Outputs: r.payload.savedPaths(), Ran: true})
	switch {
	case err != nil && comesBack(err):
		return ev, errors.New(waitText(err))
	case err != nil:
		return ev, err
	}
	ev, err = s.copyOf(&c, r, before)
	if err != nil {
		c.Hold.Close()
		s.files.drop(c.Set)
		return ev, err
	}
	s.mu.Lock()
	old := r.copied
	if fresh := (copied{sequence: before, set: c.Set, hold: c.Hold}); r.cleared {
		old = fresh
	} else {
		r.copied = fresh
	}
	s.mu.Unlock()
	s.letGoCopied(old)
	return ev, nil
}

// copyOf says what was copied while DONE said before, and why it does not count.
func (s *Runner) copyOf(c *transfer.Collection, r *run, before uint64) (ev meta.SavedCopied, err error) {
	sequence, err := s.numberOf(c, r)
	if err != nil {
		return ev, err
	}
	if after, _ := s.doneNow(r); sequence != before || after != before {
		return ev, errChanges
	}
	files, err := c.Set.Encode()
	if err != nil {
		return ev, err
	}
	return meta.SavedCopied{Sequence: sequence, Files: files, FilesRemain: hasChunks(c.Set)}, nil
}

// letGoCopied lets go of a copy in whose place another one is, or that is not wanted. What the records
// name of it stays.
func (s *Runner) letGoCopied(c copied) {
	if c.hold != nil {
		c.hold.Close()
		s.files.drop(c.set)
	}
}

// FetchSaved carries out a [meta.FetchSaved].
func (s *Runner) FetchSaved(ef meta.FetchSaved) {
	ctx, end := s.fetches.begin(s.ctx, ef.Attempt)
	s.wg.Go(func() {
		defer end()
		err := s.fetchSaved(ctx, ef)
		if ctx.Err() != nil {
			return
		}
		ev := meta.SavedHome{Attempt: ef.Attempt, Sequence: ef.Sequence}
		if err != nil {
			s.sayOfSaves(slog.LevelWarn, ef.Attempt, "checkpoint of a running attempt not brought home", "attempt_id", ef.Attempt.String(), "peer_id", string(ef.From), "error", err.Error())
			if ev.Error = err.Error(); comesBack(err) {
				ev.Error = waitText(err)
			}
		}
		s.cfg.Post(ev)
	})
}

// fetchSaved brings a checkpoint home. It is tried once, as patiently as any file: the next one comes
// soon.
func (s *Runner) fetchSaved(ctx context.Context, ef meta.FetchSaved) error {
	set, err := transfer.Decode(ef.Files)
	if err == nil {
		err = s.everFits(set)
	}
	if err != nil {
		return err
	}
	hold := s.files.blobs.Hold(set.Sums()...)
	defer hold.CloseAfter(recordedWithin)
	return s.fetcher.Fetch(ctx, ef.Attempt, set, s.sourceAt(ef.From), nil)
}

// Grown says that other files than before can be read of an attempt here.
func (f *Files) Grown(a job.AttemptID) { f.server.Forget(a) }

// CheckSaved keeps of what another site says of a checkpoint of an attempt that runs what can be true:
// what is not taken has a reason and no files. An error says that the job cannot be read now: it is to
// be forgotten, it comes again.
func (f *Files) CheckSaved(from job.SiteID, m meta.Saved) (meta.Saved, error) {
	m.Ran = min(max(0, m.Ran), job.MaxWalltime)
	if m.Sequence == 0 {
		m.Files, m.FilesRemain = nil, false
		return m, nil
	}
	raw, err := f.cfg.Backend.Payload(m.Attempt.Job)
	switch {
	case errors.Is(err, store.ErrUnknown):
		m.Reason = "no such job"
	case err != nil:
		return m, err
	default:
		m.Reason = f.savedTrouble(from, &m, raw)
	}
	if m.Reason != "" {
		m.Files, m.FilesRemain = nil, false
	}
	return m, nil
}

// savedTrouble says why a checkpoint of a job does not count; "" if it does.
func (f *Files) savedTrouble(from job.SiteID, m *meta.Saved, raw []byte) string {
	p, err := parsePayload(raw)
	if err != nil || !p.saves() {
		return "the job writes no checkpoints"
	}
	set, err := transfer.Decode(m.Files)
	if err != nil {
		f.refuse(from, WhatResult, fmt.Errorf("%v: %w: %w", m.Attempt, errList, err))
		return "the list of its files is not valid"
	}
	kept, strange, large := f.wanted(set, p.savedPaths())
	switch most := f.cfg.MaxCheckpointBytes; {
	case len(strange) > 0 || len(withoutSaved(set).Files) > 0:
		f.refuse(from, WhatResult, fmt.Errorf("%v: %w: %s", m.Attempt, errUndeclared, some(strange)))
		return "it has files that were not declared"
	case len(large) > 0:
		return "larger than this site takes: " + some(large)
	case most > 0 && set.Bytes() > most:
		return fmt.Sprintf("its files have %d bytes together, and this site takes at most %d", set.Bytes(), most)
	case len(m.Files) > maxCheckpoint:
		return fmt.Sprintf("the description of its %d files has %d bytes, at most %d", len(set.Files), len(m.Files), maxCheckpoint)
	}
	if why := checkpointMissing(&job.Outcome{Checkpoint: m.Sequence}, set, kept, p); why != "" {
		return why
	}
	m.FilesRemain = hasChunks(set)
	return ""
}
