package runner

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"kith/internal/job"
	"kith/internal/scarce"
	"kith/internal/scratch"
	"kith/meta"
	"kith/meta/api"
	"kith/meta/transfer"
	kithv1 "kith/proto/gen/kith/v1"
	"kith/store"
	"kith/store/blobstore"
)

// collecting collects the output of an attempt with a collector that fails so often
// with an error, and returns the outcome, and how long that took. A cancellation comes
// after cancelled, if that is not zero. told is what the site told of it at the last try; in
// the end it tells nothing.
func collecting(t *testing.T, failure error, failures int, cancelled time.Duration) (o job.Outcome, took time.Duration, told string) {
	t.Helper()
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	r := &run{attempt: own(1), ended: make(chan struct{}), payload: &payload{job: &kithv1.Job{}}}
	tries := 0
	var s *Runner
	s = &Runner{
		files: &Files{}, log: slog.New(slog.DiscardHandler), site: "beta", ctx: ctx, runs: newRuns(), collector: &transfer.Collector{},
		cfg: Config{Tell: func(ev meta.Event) {
			if w, ok := ev.(meta.FilesWait); !ok || w.Reason == "" {
				t.Errorf("told %T %+v", ev, ev)
			}
		}},
		collect: func(context.Context, transfer.Leaving) (transfer.Collection, error) {
			if tries++; tries > 1 {
				told = s.Scarcity()
			}
			if tries <= failures {
				return transfer.Collection{}, fmt.Errorf("collect output: %w", &os.PathError{Op: "open", Path: "x", Err: failure})
			}
			return transfer.Collection{Set: transfer.Set{Files: []transfer.File{{Path: "stdout", Size: 1, Inline: []byte("x")}}}}, nil
		},
	}
	s.byID[r.attempt] = r
	if cancelled > 0 {
		go func() {
			time.Sleep(cancelled)
			s.mu.Lock()
			defer s.mu.Unlock()
			r.killed = &meta.Kill{Attempt: r.attempt}
			r.stopStaging()
		}()
	}
	began := time.Now()
	s.collectInto(ctx, &o, transfer.Leaving{}, r, newLane(1))
	if still := s.Scarcity(); still != "" {
		t.Errorf("nothing waits, and the site tells %q", still)
	}
	return o, time.Since(began), told
}

// What the machine lacks for a while is never a lost output.
func TestCollectingOutlastsScarcity(t *testing.T) {
	for _, errno := range []syscall.Errno{syscall.EMFILE, syscall.ENFILE, syscall.ENOMEM, syscall.EAGAIN, syscall.ENOSPC, syscall.EDQUOT, syscall.EROFS} {
		synctest.Test(t, func(t *testing.T) {
			o, _, told := collecting(t, errno, 40, 0)
			if o.FilesLost || len(o.Files) == 0 || o.Reason != "" {
				t.Errorf("%v: lost %v, reason %q", errno, o.FilesLost, o.Reason)
			}
			if !strings.Contains(told, errno.Error()) {
				t.Errorf("%v: the site tells %q", errno, told)
			}
		})
	}
	synctest.Test(t, func(t *testing.T) { // what does not pass has an end
		o, took, _ := collecting(t, syscall.EIO, 1000, 0)
		if !o.FilesLost || took > time.Minute {
			t.Errorf("lost %v after %v: %q", o.FilesLost, took, o.Reason)
		}
	})
	synctest.Test(t, func(t *testing.T) { // and so does a cancelled job
		o, took, _ := collecting(t, syscall.EMFILE, 1000, time.Hour)
		if !o.FilesLost || took != time.Hour {
			t.Errorf("lost %v after %v: %q", o.FilesLost, took, o.Reason)
		}
	})
}

// An output that this site cannot open now is not one that is not there.
func TestReadingOutputDoesNotTakeScarcityForAbsence(t *testing.T) {
	files, err := OpenFiles(FilesConfig{Site: "beta", Dir: t.TempDir(), MaxFileBytes: 1 << 20, Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	defer files.Close() //nolint:errcheck // it was only read
	data := make([]byte, 5000)
	sum, err := files.blobs.Put(data)
	if err != nil {
		t.Fatal(err)
	}
	encoded, err := (transfer.Set{Files: []transfer.File{{Path: "stdout", Size: 5000, Chunks: []blobstore.Sum{sum}}}}).Encode()
	if err != nil {
		t.Fatal(err)
	}
	s, rec := &Runner{files: files, runs: newRuns()}, &store.Job{State: job.Completed}
	release := scratch.TakeFiles(t, 0)
	_, _, err = s.readHome(t.Context(), rec, encoded, "stdout", 0, 0)
	release()
	if !scarce.Passes(err) || errors.Is(err, api.ErrNoOutput) {
		t.Errorf("without descriptors: %v", err)
	}
	got, end, err := s.readHome(t.Context(), rec, encoded, "stdout", 0, 0)
	if err != nil || !end || len(got) != len(data) {
		t.Errorf("with descriptors: %d bytes, end %v, %v", len(got), end, err)
	}
}
