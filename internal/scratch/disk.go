package scratch

import (
	"fmt"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"
)

// Disk is a file system of its own that a test can fill.
type Disk struct {
	// Dir is where it is mounted.
	Dir string

	t testing.TB
}

// NewDisk mounts a file system of the given size for a test. It skips the test
// where that is not possible.
func NewDisk(t testing.TB, bytes int64) *Disk {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("only root can mount a small disk")
	}
	dir := t.TempDir()
	if err := unix.Mount("tmpfs", dir, "tmpfs", 0, fmt.Sprintf("size=%d,mode=0755", bytes)); err != nil {
		t.Skipf("cannot mount a small disk: %v", err)
	}
	t.Cleanup(func() {
		if err := unix.Unmount(dir, unix.MNT_DETACH); err != nil {
			t.Error(err)
		}
	})
	return &Disk{Dir: dir, t: t}
}

// Free returns how many bytes are free.
func (d *Disk) Free() int64 {
	d.t.Helper()
	var st syscall.Statfs_t
	if err := syscall.Statfs(d.Dir, &st); err != nil {
		d.t.Fatal(err)
	}
	return int64(st.Bavail) * int64(st.Bsize) //nolint:unconvert // its type differs between machines
}

// Fill takes all room but the given bytes.
func (d *Disk) Fill(left int64) {
	d.t.Helper()
	f, err := os.OpenFile(d.ballast(), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		d.t.Fatal(err)
	}
	defer f.Close() //nolint:errcheck // what it holds does not matter
	for page := make([]byte, 4096); d.Free() > left; {
		if _, err := f.Write(page); err != nil {
			return // another process took the rest
		}
	}
}

// Empty gives back what Fill took.
func (d *Disk) Empty() {
	d.t.Helper()
	if err := os.Remove(d.ballast()); err != nil {
		d.t.Error(err)
	}
}

func (d *Disk) ballast() string { return filepath.Join(d.Dir, "ballast") }
