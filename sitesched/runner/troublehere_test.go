package runner

import (
	"bytes"
	"errors"
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

// preparing is a system with something that happens when a folder was made.
type preparing struct {
	work.System
	then func(a job.AttemptID) error
}

// Prepare implements work.System.
func (p preparing) Prepare(a job.AttemptID) error {
	if err := p.System.Prepare(a); err != nil {
		return err
	}
	return p.then(a)
}

// damage spoils every chunk of the store.
func (s *staging) damage() error {
	chunks, err := filepath.Glob(filepath.Join(s.files.cfg.Dir, "blobs", "*", "*", "*"))
	for _, path := range chunks {
		err = errors.Join(err, os.WriteFile(path, bytes.Repeat([]byte{1}, 5000), 0o600))
	}
	if len(chunks) == 0 {
		err = errors.Join(err, errors.New("the store has no chunk to spoil"))
	}
	return err
}

// What this host's disk does while an attempt is made ready is not the job's end.
func TestStagingTroubleOfTheHostIsNoOutcome(t *testing.T) {
	t.Parallel()
	for name, then := range map[string]func(s *staging, a job.AttemptID) error{
		"no right to its folder": func(*staging, job.AttemptID) error { return &os.PathError{Op: "mkdir", Path: "x", Err: syscall.EACCES} },
		"no folder for folders":  func(*staging, job.AttemptID) error { return &os.PathError{Op: "mkdir", Path: "x", Err: syscall.ENOENT} },
		"no descriptors":         func(*staging, job.AttemptID) error { return &os.PathError{Op: "mkdir", Path: "x", Err: syscall.EMFILE} },
		"the disk fails":         func(*staging, job.AttemptID) error { return &os.PathError{Op: "mkdir", Path: "x", Err: syscall.EIO} },
		"its folder vanishes":    func(s *staging, a job.AttemptID) error { return os.RemoveAll(s.system.Files(a).Work) },
		"a file in its place": func(s *staging, a job.AttemptID) error {
			work := s.system.Files(a).Work
			return errors.Join(os.RemoveAll(work), os.WriteFile(work, nil, 0o600))
		},
		"no place for its mark": func(s *staging, a job.AttemptID) error { return os.MkdirAll(s.system.Files(a).Mark+"/x", 0o700) },
		"inputs spoiled again and again": func(s *staging, _ job.AttemptID) error {
			if s.asked.Load() > fetchesAgain+1 {
				t.Errorf("asked %d times for an input that this disk spoils", s.asked.Load())
			}
			return s.damage()
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newStaging(t)
			s.system = preparing{s.system, func(a job.AttemptID) error { return then(s, a) }}
			launch := s.launch()
			s.Launch(launch)
			ev, failed := (<-s.events).(meta.StartFailed)
			if !failed || ev.Attempt != launch.Attempt || ev.Reason == "" {
				t.Fatalf("%T %+v, want that it goes back to its origin", ev, ev)
			}
		})
	}
}

// An input that was damaged on this host's disk is brought again.
func TestDamagedInputsAreBroughtAgain(t *testing.T) {
	t.Parallel()
	s := newStaging(t)
	if _, err := s.files.blobs.Put(s.chunk); err != nil {
		t.Fatal(err)
	}
	if err := s.damage(); err != nil {
		t.Fatal(err)
	}
	s.Launch(s.launch())
	if got := s.outcome(); got.Kind != job.Success || s.asked.Load() == 0 {
		t.Errorf("%+v after %d requests", got, s.asked.Load())
	}
}

// What its origin has lost itself is nowhere else: the job ends and says so.
func TestDamagedInputsAtTheOrigin(t *testing.T) {
	t.Parallel()
	s := newStaging(t)
	if _, err := s.files.blobs.Put(s.chunk); err != nil {
		t.Fatal(err)
	}
	if err := s.damage(); err != nil {
		t.Fatal(err)
	}
	launch := s.launch()
	launch.Attempt = own(1)
	s.Launch(launch)
	if got := s.outcome(); got.Kind != job.Failure || !strings.Contains(got.Reason, "submit the job again") {
		t.Errorf("%+v", got)
	}
}

func TestUnpackError(t *testing.T) {
	for _, c := range []struct {
		err  error
		here bool
	}{
		{transfer.ErrBadSet, false},
		{transfer.ErrTooLarge, false},
		{errPayload, false},
		{blobstore.ErrNotFound, false}, // it is brought again
		{blobstore.ErrDiskFull, true},  // and waited for
		{syscall.EIO, true},
		{syscall.EMFILE, true},
		{errors.New("something else"), true},
	} {
		if _, here := errors.AsType[troubleHere](unpackError(c.err)); here != c.here || !errors.Is(unpackError(c.err), c.err) {
			t.Errorf("%v: %v", c.err, here)
		}
	}
}
