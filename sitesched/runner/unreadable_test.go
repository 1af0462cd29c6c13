package runner

import (
	"bytes"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/durationpb"

	"kith/internal/job"
	"kith/meta"
	kithv1 "kith/proto/gen/kith/v1"
	"kith/sitesched/executor"
	"kith/sitesched/work"
	"kith/store"
)

// house is the data folder of site beta and those who run attempts in it, one
// after the other. Its store can be made unreadable.
type house struct {
	t       *testing.T
	dir     string
	script  string // of what the jobs submitted here run
	raw     []byte // their payload, if it is not made of that
	events  chan meta.Event
	runner  *Runner
	close   func()
	missing bool // the store knows no job

	mu    sync.Mutex
	bad   bool
	tries int
	log   bytes.Buffer
}

func newHouse(t *testing.T, script string) *house {
	t.Helper()
	h := &house{t: t, dir: t.TempDir(), script: script}
	h.open()
	t.Cleanup(func() { h.close() })
	return h
}

// open starts a runner over the folder.
func (h *house) open() {
	h.t.Helper()
	h.events = make(chan meta.Event, 16)
	log := slog.New(slog.NewTextHandler(h, nil))
	files, err := OpenFiles(FilesConfig{Site: "beta", Dir: h.dir, MaxFileBytes: 1 << 20, Backend: h, Log: log})
	if err != nil {
		h.t.Fatal(err)
	}
	events := h.events
	h.runner, err = New(Config{
		Files: files, Log: log, Tell: func(ev meta.Event) { events <- ev },
		System: func(report func(work.Event)) (work.System, error) {
			return executor.Open(executor.Config{Dir: filepath.Join(h.dir, "attempts")}, report)
		},
		Away: func(job.SiteID) bool { return true },
	})
	if err != nil {
		h.t.Fatal(err)
	}
	r := h.runner
	h.close = func() {
		r.Close()
		if err := files.Close(); err != nil {
			h.t.Error(err)
		}
	}
}

// reopen is what a restart of the daemon does.
func (h *house) reopen() {
	h.t.Helper()
	h.close()
	h.open()
}

// Write implements io.Writer, for the log.
func (h *house) Write(p []byte) (int, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.log.Write(p)
}

// Payload implements the part of the store that is read here.
func (h *house) Payload(id job.ID) ([]byte, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.missing {
		return nil, store.ErrUnknown
	}
	if h.bad {
		h.tries++
		return nil, fmt.Errorf("payload of job %v: %w", id, syscall.EIO)
	}
	return h.payload()
}

func (h *house) payload() ([]byte, error) {
	if h.raw != nil {
		return h.raw, nil
	}
	return proto.Marshal(&kithv1.Payload{Job: &kithv1.Job{Command: []string{"/bin/sh", "-c", h.script}, Processors: 1, Walltime: durationpb.New(time.Minute)}})
}

// Outputs implements the rest of it.
func (h *house) AttemptFiles(job.AttemptID) ([]byte, error) { return nil, nil }

func (h *house) Outputs(job.ID) ([]byte, error) { return nil, nil }

func (h *house) HeldPayload(job.AttemptID) ([]byte, error) { return nil, store.ErrUnknown }

func (h *house) TaskFilesFrom(job.ID, uint32) ([]store.TaskFiles, error) { return nil, nil }

func (h *house) isBad() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.bad
}

func (h *house) breaks(bad bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.bad = bad
}

// triedAgain waits until the store was read twice and has failed.
func (h *house) triedAgain() {
	h.t.Helper()
	h.eventually("the store is read again", func() bool {
		h.mu.Lock()
		defer h.mu.Unlock()
		return h.tries >= 2
	})
}

func (h *house) eventually(what string, is func() bool) {
	h.t.Helper()
	for end := time.Now().Add(time.Minute); !is(); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(end) {
			h.t.Fatalf("not within a minute: %s", what)
		}
	}
}

// silent checks that nothing has been said about an attempt, but in the log.
func (h *house) silent(want string) {
	h.t.Helper()
	select {
	case ev := <-h.events:
		h.t.Fatalf("%T %+v while the store cannot be read", ev, ev)
	default:
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if text := h.log.String(); !strings.Contains(text, "level=ERROR") || !strings.Contains(text, want) {
		h.t.Errorf("the log does not tell of it:\n%s", text)
	}
}

// next returns the next event.
func (h *house) next() meta.Event {
	h.t.Helper()
	select {
	case ev := <-h.events:
		return ev
	case <-time.After(time.Minute):
		h.t.Fatal("no event within a minute")
		return nil
	}
}

func (h *house) ends(kind job.OutcomeKind) {
	h.t.Helper()
	for {
		ev := h.next()
		if _, started := ev.(meta.AttemptStarted); started {
			continue
		}
		if end, ok := ev.(meta.AttemptEnded); !ok || end.Outcome.Kind != kind {
			h.t.Fatalf("%T %+v, expected the end as %v", ev, ev, kind)
		}
		return
	}
}

func own(n uint64) job.AttemptID {
	return job.AttemptID{Job: job.ID{Origin: "beta", Generation: 1, Seq: n}, Number: 1}
}

var request = job.Request{Processors: 1, Walltime: time.Minute}

// An I/O error of the store ended the job as failed.
func TestLaunchWhileTheStoreCannotBeRead(t *testing.T) {
	t.Parallel()
	h := newHouse(t, "true")
	h.breaks(true)
	h.runner.Launch(meta.Launch{Attempt: own(1), Request: request})
	h.runner.Launch(meta.Launch{Attempt: own(1), Request: request}) // harmless
	h.triedAgain()
	h.silent(syscall.EIO.Error())
	if !h.runner.Launched(own(1)) {
		t.Error("it does not count as launched")
	}
	h.breaks(false)
	h.ends(job.Success)
}

// A user who cancels need not wait for the disk, as nothing has been started.
func TestCancelWhileTheStoreCannotBeRead(t *testing.T) {
	t.Parallel()
	h := newHouse(t, "true")
	h.breaks(true)
	h.runner.Launch(meta.Launch{Attempt: own(1), Request: request})
	h.triedAgain()
	h.runner.Kill(meta.Kill{Attempt: own(1)})
	h.ends(job.Cancel)
}

// What is not in the store will not come by waiting.
func TestLaunchOfAnUnknownJob(t *testing.T) {
	t.Parallel()
	h := newHouse(t, "true")
	h.missing = true
	h.runner.Launch(meta.Launch{Attempt: own(1), Request: request})
	h.ends(job.Failure)
}

// An attempt that ran was taken for one that had never been started, and was
// launched a second time, as its payload could not be read.
func TestAdoptWhileTheStoreCannotBeRead(t *testing.T) {
	t.Parallel()
	count := filepath.Join(t.TempDir(), "count")
	h := newHouse(t, "echo x >>"+count+"; while [ ! -e "+count+".go ]; do sleep 0.05; done")
	h.runner.Launch(meta.Launch{Attempt: own(1), Request: request})
	if _, started := h.next().(meta.AttemptStarted); !started {
		t.Fatal("it does not start")
	}
	boot := h.runner.BootID()
	h.reopen()
	h.breaks(true)
	h.runner.Adopt(meta.Adopt{Attempt: own(1), Request: request, BootID: boot})
	h.triedAgain()
	h.silent(syscall.EIO.Error())
	h.breaks(false)
	if ev, started := h.next().(meta.AttemptStarted); !started {
		t.Fatalf("%T %+v, expected that it runs", ev, ev)
	}
	if err := os.WriteFile(count+".go", nil, 0o600); err != nil {
		t.Fatal(err)
	}
	h.ends(job.Success)
	if text, err := os.ReadFile(count); err != nil || string(text) != "x\n" {
		t.Errorf("it ran %d times: %v", len(text)/2, err)
	}
}

// A cancellation that comes while it is not known whether the attempt runs stops it
// when that is known.
func TestCancelOfAnAdoptedAttempt(t *testing.T) {
	t.Parallel()
	h := newHouse(t, "sleep 1000")
	h.runner.Launch(meta.Launch{Attempt: own(1), Request: request})
	if _, started := h.next().(meta.AttemptStarted); !started {
		t.Fatal("it does not start")
	}
	boot := h.runner.BootID()
	h.reopen()
	h.breaks(true)
	h.runner.Adopt(meta.Adopt{Attempt: own(1), Request: request, BootID: boot})
	h.triedAgain()
	h.runner.Kill(meta.Kill{Attempt: own(1)})
	h.silent(syscall.EIO.Error())
	h.breaks(false)
	h.ends(job.Cancel)
}

// The mark of staged files that is there and cannot be read was taken for one that
// is not there.
func TestAdoptWhileTheMarkCannotBeRead(t *testing.T) {
	t.Parallel()
	h := newHouse(t, "true")
	a := job.AttemptID{Job: job.ID{Origin: "alpha", Generation: 1, Seq: 7}, Number: 1}
	if err := h.runner.system.Prepare(a); err != nil {
		t.Fatal(err)
	}
	raw, err := h.payload()
	if err != nil {
		t.Fatal(err)
	}
	if err := markStaged(h.runner.system.Files(a).Mark, raw); err != nil {
		t.Fatal(err)
	}
	h.runner.readMark = func(path string) ([]byte, error) {
		if h.isBad() {
			return nil, &os.PathError{Op: "read", Path: path, Err: syscall.EIO}
		}
		return readMark(path)
	}
	h.breaks(true)
	h.runner.Adopt(meta.Adopt{Attempt: a, Request: request, BootID: h.runner.BootID()})
	h.silent(syscall.EIO.Error())
	h.breaks(false)
	h.ends(job.Success)
}
