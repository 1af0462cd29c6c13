package runner

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"kith/internal/job"
	"kith/meta"
	"kith/meta/transfer"
	"kith/sitesched/work"
	"kith/store/blobstore"
)

// TestCopySaved copies what a job has saved while it runs: whole sets whose DONE is the same before and after,
// each once, and no older one.
func TestCopySaved(t *testing.T) {
	t.Parallel()
	f := openFilesFor(t, &payloads{raw: savingPayload(t)})
	f.cfg.MaxCheckpointBytes = 1 << 20
	p, err := parsePayload(savingPayload(t))
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	folder := filepath.Join(dir, ".kith", "checkpoint")
	if err := os.MkdirAll(folder, 0o700); err != nil {
		t.Fatal(err)
	}
	write := func(name, content string) {
		t.Helper()
		if err := os.WriteFile(filepath.Join(folder, name), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	meanwhile := func() error { return nil }
	s := &Runner{files: f, runs: f.runs, site: "alpha", log: slog.New(slog.DiscardHandler), saving: newLane(1), collector: &transfer.Collector{Store: f.blobs, MaxFileBytes: 1 << 21}}
	s.collect = func(ctx context.Context, l transfer.Leaving) (transfer.Collection, error) {
		c, err := s.collector.Collect(ctx, l)
		return c, errors.Join(err, meanwhile())
	}
	r := &run{attempt: job.AttemptID{Job: job.ID{Origin: "beta", Generation: 1, Seq: 1}, Number: 1}, payload: p, files: work.Files{Work: dir}}
	look := func(what string, want uint64, says string) meta.SavedCopied {
		t.Helper()
		ev, err := s.copySaved(t.Context(), r)
		if ev.Sequence != want || (err != nil) != (says != "") || err != nil && !strings.Contains(err.Error(), says) {
			t.Errorf("%s: %+v, %v; want %d, %q", what, ev, err, want, says)
		}
		return ev
	}
	look("nothing", 0, "")
	write("state-1", "one")
	look("without DONE", 0, "")
	done := filepath.Join(folder, "DONE")
	for what, make := range map[string]func() error{
		"DONE is a FIFO":   func() error { return syscall.Mkfifo(done, 0o600) },
		"DONE is a link":   func() error { return os.Symlink("/etc/passwd", done) },
		"DONE is a folder": func() error { return os.Mkdir(done, 0o700) },
	} {
		if err := make(); err != nil {
			t.Fatal(err)
		}
		if _, err := s.copySaved(t.Context(), r); err == nil || !strings.HasPrefix(err.Error(), "DONE is not a regular file") || strings.Contains(err.Error(), dir) {
			t.Errorf("%s: %v", what, err)
		}
		if err := os.Remove(done); err != nil {
			t.Fatal(err)
		}
	}
	write("DONE", "five")
	look("DONE is no number", 0, `DONE says "five"`)
	write("DONE", "5")
	write("other", "not declared")
	ev := look("whole", 5, "")
	set, err := transfer.Decode(ev.Files)
	if _, other := set.Find(savedName("other")); err != nil || len(set.Files) != 2 || other || ev.FilesRemain {
		t.Errorf("%v, %v", set, err)
	}
	look("nothing new", 0, "")
	write("DONE", "4")
	look("DONE shrinks", 0, "DONE says 4, and before it said 5")
	write("DONE", "6")
	meanwhile = func() error { write("DONE", "7"); return nil }
	look("it saves while it is copied", 0, "DONE changed while it was copied")
	meanwhile = func() error { return syscall.ENOSPC }
	look("the disk is full", 0, "the disk is full")
	meanwhile = func() error { return blobstore.ErrQuota }
	look("the quota", 0, blobstore.ErrQuota.Error())
	meanwhile = func() error { return nil }
	write("state-2", strings.Repeat("x", 1<<20))
	look("too large", 0, "and this site takes at most 1048576")
	write("state-2", strings.Repeat("x", 1<<19))
	if ev = look("the next one", 7, ""); !ev.FilesRemain {
		t.Error("its chunks need not be fetched")
	}
	if err := os.Remove(filepath.Join(folder, "state-2")); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("/etc/passwd", filepath.Join(folder, "state-2")); err != nil {
		t.Fatal(err)
	}
	write("DONE", "8")
	look("a link out", 0, "files are missing")
	if r.copied.sequence != 7 || r.copied.hold == nil {
		t.Errorf("it keeps %+v", r.copied)
	}
	s.letGoCopied(r.copied)
}

// TestCheckSavedWhileItRuns takes of another site what can be true of a checkpoint of an attempt that runs.
func TestCheckSavedWhileItRuns(t *testing.T) {
	t.Parallel()
	f := openFilesFor(t, &payloads{raw: savingPayload(t)})
	f.cfg.MaxCheckpointBytes = 1 << 20
	done, state := saved("DONE", "7\n"), saved("state-1", "x")
	large := transfer.File{Path: ".kith/checkpoint/state-2", Size: 1 << 20, Chunks: []blobstore.Sum{{1}}}
	for name, c := range map[string]struct {
		files    []transfer.File
		sequence uint64
		says     string
	}{
		"whole":           {files: []transfer.File{done, state}, sequence: 7},
		"another number":  {files: []transfer.File{done, state}, sequence: 8, says: "its host numbered it 8"},
		"without DONE":    {files: []transfer.File{state}, sequence: 7, says: "did not name DONE"},
		"without a state": {files: []transfer.File{done}, sequence: 7, says: "its host has no"},
		"too large":       {files: []transfer.File{done, state, large}, sequence: 7, says: "this site takes at most"},
		"a stranger":      {files: []transfer.File{done, saved("other", "x"), state}, sequence: 7, says: "not declared"},
		"stdout":          {files: []transfer.File{done, state, {Path: "stdout", Size: 1, Inline: []byte("s")}}, sequence: 7, says: "not declared"},
		"no files":        {sequence: 7, says: "DONE"},
	} {
		m := meta.Saved{Attempt: job.AttemptID{Job: job.ID{Origin: "alpha", Generation: 1, Seq: 1}, Number: 1}, Sequence: c.sequence, FilesRemain: true, Ran: -1, Reason: "a lie"}
		var err error
		if m.Files, err = (transfer.Set{Files: c.files}).Encode(); err != nil {
			t.Fatal(err)
		}
		got, err := f.CheckSaved("beta", m)
		if err != nil || got.Sequence != c.sequence || got.Ran != 0 || got.FilesRemain || !strings.Contains(got.Reason, c.says) || (got.Reason == "") != (c.says == "") || (len(got.Files) > 0) != (c.says == "") {
			t.Errorf("%s: %+v, %v", name, got, err)
		}
	}
}
