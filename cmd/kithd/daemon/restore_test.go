package daemon

import (
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"kith/cmd/kithd/config"
	"kith/internal/job"
	"kith/store"
	"kith/store/backup"
	"kith/store/boltstore"
	"kith/store/raftstore"
)

// factsOf makes the facts of a site of one machine with a job.
func factsOf(t *testing.T, dir string) (path string) {
	t.Helper()
	path = filepath.Join(dir, boltstore.FileName)
	b, err := boltstore.Open(path, "alpha")
	if err != nil {
		t.Fatal(err)
	}
	s, err := b.Load()
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Apply(store.SubmitJob{ID: s.NextID(), Request: job.Request{Processors: 1, Walltime: time.Hour}, Time: 1}); err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(b.Seal(s).Commit(), b.Close()); err != nil {
		t.Fatal(err)
	}
	return path
}

func jobsIn(t *testing.T, path string) int {
	t.Helper()
	b, err := boltstore.Open(path, "alpha")
	if err != nil {
		t.Fatal(err)
	}
	s, err := b.Load()
	if err = errors.Join(err, b.Close()); err != nil {
		t.Fatal(err)
	}
	return s.JobCount()
}

// A backup that cannot be restored leaves the data folder as it was, one machine or several.
func TestRestoreOfABadFile(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	facts := factsOf(t, dir)
	good := filepath.Join(dir, "good")
	b, err := boltstore.Open(facts, "alpha")
	if err != nil {
		t.Fatal(err)
	}
	d := &Daemon{backend: b, cfg: config.Config{Site: "alpha"}}
	if _, err := backup.Make(good, d.backUp); err != nil {
		t.Fatal(err)
	}
	if err := b.Close(); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(good)
	if err != nil {
		t.Fatal(err)
	}
	damaged, cut := filepath.Join(dir, "damaged"), filepath.Join(dir, "cut")
	broken := append([]byte(nil), text...)
	broken[len(broken)/2] ^= 1
	if err := errors.Join(os.WriteFile(damaged, broken, 0o600), os.WriteFile(cut, text[:len(text)-4096], 0o600)); err != nil {
		t.Fatal(err)
	}
	one, three, other := testConfig(t, "alpha"), testConfig(t, "alpha"), testConfig(t, "beta")
	three.Members.Self, three.Members.Cluster = "one", "a1a1a1a1a1a1a1a1a1a1a1a1a1a1a1a1"
	for _, c := range []struct {
		cfg  config.Config
		file string
		want error
	}{
		{one, damaged, store.ErrCorrupt},
		{three, damaged, store.ErrCorrupt},
		{one, cut, store.ErrCorrupt},
		{other, good, store.ErrOtherSite},
		{one, filepath.Join(dir, "none"), os.ErrNotExist},
		{one, dir, store.ErrCorrupt},
	} {
		if _, err := Restore(c.cfg, c.file, time.Now()); err == nil || c.file != dir && !errors.Is(err, c.want) {
			t.Errorf("%s for site %s: %v, want %v", filepath.Base(c.file), c.cfg.Site, err, c.want)
		}
		if list, err := os.ReadDir(c.cfg.Data); err != nil || len(list) > 0 {
			t.Fatalf("%s for site %s has left %v, %v", filepath.Base(c.file), c.cfg.Site, list, err)
		}
	}
	for _, cfg := range []config.Config{one, three} {
		// A process died while it restored.
		for _, left := range []string{boltstore.FileName + ".new", config.MembersFolder + ".new/snapshots"} {
			if err := os.MkdirAll(filepath.Join(cfg.Data, left), 0o700); err != nil {
				t.Fatal(err)
			}
		}
		r, err := Restore(cfg, good, time.Now())
		if err != nil || r.Held != 1 || r.Generation == r.Folder {
			t.Fatalf("%+v, %v", r, err)
		}
		if _, err := Restore(cfg, good, time.Now()); !errors.Is(err, errNotEmpty) {
			t.Errorf("again: %v", err)
		}
	}
	if left, err := filepath.Glob(filepath.Join(filepath.Dir(one.Data), "*", "*.new")); err != nil || len(left) > 0 {
		t.Errorf("%v is left, %v", left, err)
	}
	if n := jobsIn(t, filepath.Join(one.Data, boltstore.FileName)); n != 1 {
		t.Errorf("%d jobs", n)
	}
	if err := EndMembers(t.Context(), three); err != nil {
		t.Fatal(err)
	}
	if n := jobsIn(t, filepath.Join(three.Data, boltstore.FileName)); n != 1 {
		t.Errorf("%d jobs of the member", n)
	}
}

// A process that dies in the midst of a change from one machine to several, or back, leaves both,
// and the command goes on when it is given again.
func TestFoundingAfterACrash(t *testing.T) {
	t.Parallel()
	cfg := testConfig(t, "alpha")
	cfg.Members.Self, cfg.Members.Cluster = "one", "a1a1a1a1a1a1a1a1a1a1a1a1a1a1a1a1"
	if err := os.MkdirAll(cfg.Data, 0o700); err != nil {
		t.Fatal(err)
	}
	facts, members := factsOf(t, cfg.Data), filepath.Join(cfg.Data, config.MembersFolder)
	if n, err := FoundMember(cfg); err != nil || n != 1 {
		t.Fatal(n, err)
	}
	if err := os.Rename(facts+beforeName, facts); err != nil { // it died before it did that
		t.Fatal(err)
	}
	if _, err := OpenMember(cfg, slog.New(slog.DiscardHandler)); err == nil {
		t.Error("it starts with both")
	}
	if n, err := FoundMember(cfg); err != nil || n != 1 {
		t.Fatal(n, err)
	}
	if _, err := FoundMember(cfg); !errors.Is(err, raftstore.ErrFounded) {
		t.Errorf("founded twice: %v", err)
	}
	if err := EndMembers(t.Context(), cfg); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(members+beforeName, members); err != nil {
		t.Fatal(err)
	}
	if err := EndMembers(t.Context(), cfg); err != nil {
		t.Fatal(err)
	}
	if n := jobsIn(t, facts); n != 1 {
		t.Errorf("%d jobs", n)
	}
	if err := EndMembers(t.Context(), cfg); err == nil {
		t.Error("a site of one machine is ended")
	}
}

// A site whose processors run something does not become one machine: nobody would find that again.
func TestEndOfMembersWhileSomethingRuns(t *testing.T) {
	t.Parallel()
	cfg := testConfig(t, "alpha")
	cfg.Members.Self, cfg.Members.Cluster, cfg.Members.Executor = "one", "a1a1a1a1a1a1a1a1a1a1a1a1a1a1a1a1", "four"
	facts := factsOf(t, t.TempDir())
	b, err := boltstore.Open(facts, "alpha")
	if err != nil {
		t.Fatal(err)
	}
	s, err := b.Load()
	if err != nil {
		t.Fatal(err)
	}
	a := job.AttemptID{Job: job.ID{Origin: "beta", Generation: 1, Seq: 1}, Number: 1}
	step := func(c store.Command) {
		t.Helper()
		if err := s.Apply(c); err != nil {
			t.Fatal(err)
		}
		if err := b.Seal(s).Commit(); err != nil {
			t.Fatal(err)
		}
	}
	found := func() {
		t.Helper()
		image, err := b.Image()
		if err != nil {
			t.Fatal(err)
		}
		if err := errors.Join(raftstore.FoundWith(raftConfig(&cfg, slog.New(slog.DiscardHandler)), image), image.Close()); err != nil {
			t.Fatal(err)
		}
	}
	members := filepath.Join(cfg.Data, config.MembersFolder)
	step(store.AcceptCopy{Attempt: a, Request: job.Request{Processors: 1, Walltime: time.Hour}, Time: 2})
	step(store.BeginAttempt{Attempt: a, BootID: "boot", Time: 3})
	found()
	for range 2 {
		err := EndMembers(t.Context(), cfg)
		if !errors.Is(err, errRunsHere) || !strings.Contains(err.Error(), "1 jobs or tasks run at machine four") {
			t.Fatalf("ended while an attempt runs: %v", err)
		}
		list, err := filepath.Glob(filepath.Join(cfg.Data, boltstore.FileName+"*"))
		if _, err2 := os.Stat(members); err != nil || len(list) > 0 || err2 != nil {
			t.Fatalf("it has left %v, %v, %v", list, err, err2)
		}
	}
	if err := os.RemoveAll(members); err != nil {
		t.Fatal(err)
	}
	step(store.EndAttempt{Attempt: a, Outcome: job.Outcome{Kind: job.Success, Start: 3, End: 4}})
	found()
	if err := errors.Join(b.Close(), EndMembers(t.Context(), cfg)); err != nil {
		t.Fatal(err)
	}
	if n := jobsIn(t, filepath.Join(cfg.Data, boltstore.FileName)); n != 1 {
		t.Errorf("%d jobs", n)
	}
}
