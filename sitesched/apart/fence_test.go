package apart

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"kith/internal/job"
	"kith/meta"
)

// fenceIn opens the fence in a folder until the test ends.
func fenceIn(t *testing.T, dir string, cluster byte) *fence {
	t.Helper()
	f, err := openFence(dir, [16]byte{cluster})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { f.close() }) //nolint:errcheck // all of it is on the disk
	return f
}

// The number of the latest lead outlives a restart, within one founding.
func TestFenceFile(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	path := filepath.Join(dir, fenceName)
	if err := os.WriteFile(path, fmt.Appendf(nil, "%x %d\n", [16]byte{1}, 6), 0o600); err != nil { // as it was first
		t.Fatal(err)
	}
	if f := fenceIn(t, dir, 1); !errors.Is(f.pass(5), errDeposed) || f.pass(6) != nil || f.pass(7) != nil || f.pass(9) != nil {
		t.Error("the line of an earlier version is not believed")
	}
	if f := fenceIn(t, dir, 1); !errors.Is(f.pass(8), errDeposed) || f.pass(9) != nil || !errors.Is(f.pass(0), errDeposed) {
		t.Error("a restart has it forgotten")
	}
	whole, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	at := bytes.Index(whole, []byte(" 9\n")) // whose write was torn
	torn := bytes.Clone(whole)
	torn[at+1] = '8'
	if err := os.WriteFile(path, torn, 0o600); err != nil {
		t.Fatal(err)
	}
	if f := fenceIn(t, dir, 1); f.lead != 7 {
		t.Errorf("of a torn file lead %d is read, want the one before", f.lead)
	}
	if f := fenceIn(t, dir, 2); f.pass(1) != nil {
		t.Error("another founding counts from the number of this one")
	}
	for _, bad := range [][]byte{[]byte("x"), whole[:len(whole)-1], bytes.Repeat([]byte("x"), 2*fenceBlock)} {
		if err := os.WriteFile(path, bad, 0o600); err != nil {
			t.Fatal(err)
		}
		if f, err := openFence(dir, [16]byte{2}); err == nil {
			f.close() //nolint:errcheck // it is an error already
			t.Errorf("a file of %d bytes that says nothing is believed", len(bad))
		}
	}
}

// A full disk keeps no lead from the machine.
func TestFenceOnAFullDisk(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	if err := syscall.Mount("tmpfs", dir, "tmpfs", 0, "size=1m"); err != nil {
		t.Skipf("cannot mount a tmpfs here: %v", err)
	}
	t.Cleanup(func() { syscall.Unmount(dir, syscall.MNT_DETACH) }) //nolint:errcheck // it is gone with the test
	f := fenceIn(t, dir, 1)
	if err := os.WriteFile(filepath.Join(dir, "filler"), make([]byte, 2<<20), 0o600); !errors.Is(err, syscall.ENOSPC) {
		t.Fatalf("the disk is not full: %v", err)
	}
	for lead := uint64(1); lead < 6; lead++ {
		if err := f.pass(lead); err != nil {
			t.Fatalf("lead %d: %v", lead, err)
		}
	}
	if again := fenceIn(t, dir, 1); again.lead != 5 {
		t.Errorf("lead %d was kept, want 5", again.lead)
	}
}

// On a full disk what has ended gives the room back that nobody wants.
func TestWorkerMakesRoom(t *testing.T) {
	t.Parallel()
	m := newFakeMachine(t)
	l := lead(t, m, 1, time.Minute)
	eventually(t, "it is driven", l.isUp)
	a, b := attemptOf(1), attemptOf(2)
	for _, id := range []job.AttemptID{a, b} {
		l.Launch(launchOf(t, id, job.Wait))
		eventually(t, "it starts", func() bool { return m.count(id) == 1 })
	}
	m.end(a, job.Outcome{Kind: job.Success, Start: 1, End: 2})
	eventually(t, "it ends", func() bool { return l.hearsEnd(a, job.Success) })
	m.full.Store(true)
	emptied := func(id job.AttemptID) bool {
		m.mu.Lock()
		defer m.mu.Unlock()
		return m.emptied[id]
	}
	eventually(t, "its folder is emptied", func() bool { return emptied(a) })
	if emptied(b) {
		t.Error("the folder of what runs is emptied")
	}
}

// Who leads learns from the machine whether its disk has room for jobs of others, also one
// that begins to lead while it has none.
func TestLeaderLearnsThatTheDiskIsLow(t *testing.T) {
	t.Parallel()
	m := newFakeMachine(t)
	l := lead(t, m, 1, time.Minute)
	eventually(t, "it is driven", l.isUp)
	m.full.Store(true)
	told := func(l *fakeLeader, low bool) func() bool {
		return func() bool {
			return l.heard(func(ev meta.Event) bool {
				e, is := ev.(meta.DiskSeen)
				return is && (e.Low != "") == low
			})
		}
	}
	eventually(t, "its disk is low", told(l, true))
	next := lead(t, m, 2, time.Minute)
	eventually(t, "its disk is low for the next", told(next, true))
	m.full.Store(false)
	eventually(t, "its disk has room", told(next, false))
}
