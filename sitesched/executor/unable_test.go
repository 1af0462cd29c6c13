package executor

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"kith/internal/job"
	"kith/sitesched/work"
)

// untilUnable waits until the attempt could not be started, and returns why.
func (b *bench) untilUnable(s work.Spec) string {
	b.t.Helper()
	id := s.Attempt
	b.until("failed start of "+id.String(), func() bool { return len(b.unable[id]) > 0 || len(b.finished[id]) > 0 })
	b.mu.Lock()
	defer b.mu.Unlock()
	if n := len(b.unable[id]); n != 1 || len(b.finished[id]) != 0 || b.started[id] != 0 {
		b.t.Fatalf("%v: %d failed starts, %d starts, ends %v", id, n, b.started[id], b.finished[id])
	}
	return b.unable[id][0]
}

func (b *bench) isUnable(id job.AttemptID) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return len(b.unable[id]) > 0
}

// A shim that is moved away for a moment, by an upgrade by hand, is no job's fault.
func TestWithoutAShimNothingEnds(t *testing.T) {
	beside(t)
	path := filepath.Join(t.TempDir(), "kith-shim")
	if err := copyFile(shimBinary(t), path); err != nil {
		t.Fatal(err)
	}
	b := openBench(t, Config{ShimPath: path, KeepIdle: -1})
	if o := b.run(shell(1, "exit 0")); o.ExitCode != 0 {
		t.Fatalf("the first: %+v", o)
	}
	if err := os.Rename(path, path+".old"); err != nil {
		t.Fatal(err)
	}
	b.Start(shell(2, "exit 0"))
	if why := b.untilUnable(shell(2, "")); !strings.Contains(why, "no shim") {
		t.Errorf("it could not be started: %s", why)
	}
	if err := os.Rename(path+".old", path); err != nil {
		t.Fatal(err)
	}
	if o := b.run(shell(3, "exit 0")); o.ExitCode != 0 || o.Start == 0 {
		t.Errorf("with the shim back: %+v", o)
	}
}

// The folder of an attempt that cannot be made is the host's trouble.
func TestWithoutAFolderNothingEnds(t *testing.T) {
	beside(t)
	b := openBench(t, Config{})
	// A file in the place of the folder.
	if err := os.WriteFile(b.folders.path(folderName(number(1)))+"/x", nil, 0o600); err == nil {
		t.Fatal("there is a folder")
	}
	if err := os.WriteFile(b.folders.path(folderName(number(1))), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	b.Start(shell(1, "exit 0"))
	if why := b.untilUnable(shell(1, "")); why == "" {
		t.Error("it does not say why")
	}
}

// A machine without descriptors fails no job; the shim's own lack of them counts alike.
func TestWithoutDescriptorsNothingEnds(t *testing.T) {
	var old unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_NOFILE, &old); err != nil {
		t.Fatal(err)
	}
	b := openBench(t, Config{KeepIdle: -1})
	b.run(shell(1, "exit 0"))
	eventually(t, "the shims are gone", func() bool {
		b.Executor.mu.Lock()
		defer b.Executor.mu.Unlock()
		return b.shims == 0
	})
	few := old
	few.Cur = uint64(openDescriptors(t))
	if err := unix.Setrlimit(unix.RLIMIT_NOFILE, &few); err != nil {
		t.Fatal(err)
	}
	b.Start(shell(2, "exit 0"))
	why := b.untilUnable(shell(2, ""))
	if err := unix.Setrlimit(unix.RLIMIT_NOFILE, &old); err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(why, "too many open files") {
		t.Errorf("it could not be started: %s", why)
	}
	if o := b.run(shell(3, "exit 0")); o.ExitCode != 0 || o.Start == 0 {
		t.Errorf("with descriptors: %+v", o)
	}
}

// openDescriptors returns the highest descriptor in use, and one more.
func openDescriptors(t *testing.T) int {
	t.Helper()
	fd, err := unix.Open(os.DevNull, unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = unix.Close(fd) }()
	return fd
}

func copyFile(from, to string) error {
	b, err := os.ReadFile(from)
	if err != nil {
		return err
	}
	return os.WriteFile(to, b, 0o700) //nolint:gosec // it is a program
}
