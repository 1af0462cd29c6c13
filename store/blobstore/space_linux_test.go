package blobstore

import (
	"errors"
	"os"
	"strings"
	"syscall"
	"testing"
)

// mountTmpfs returns a folder on a small disk of its own.
func mountTmpfs(t *testing.T, options string) string {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("needs root to mount a tmpfs")
	}
	dir := t.TempDir()
	if err := syscall.Mount("tmpfs", dir, "tmpfs", 0, options); err != nil {
		t.Skipf("cannot mount a tmpfs here: %v", err)
	}
	t.Cleanup(func() {
		if err := syscall.Unmount(dir, syscall.MNT_DETACH); err != nil {
			t.Errorf("unmount: %v", err)
		}
	})
	return dir
}

func TestDiskFull(t *testing.T) {
	for name, c := range map[string]struct {
		options string
		size    int
		says    string
	}{
		"bytes":  {"size=4m", 300 << 10, "free space on this disk"},
		"inodes": {"size=64m,nr_inodes=300", 10, "no inodes are free"},
	} {
		t.Run(name, func(t *testing.T) {
			clock := newClock()
			s := open(t, Config{Dir: mountTmpfs(t, c.options), Now: clock.read})
			var sums []Sum
			var err error
			for i := 0; err == nil && i < 1000; i++ {
				var sum Sum
				if sum, err = s.Put(random(uint64(i), c.size)); err == nil {
					sums = append(sums, sum)
				}
			}
			if !errors.Is(err, ErrDiskFull) || !errors.Is(err, syscall.ENOSPC) || !strings.Contains(err.Error(), c.says) {
				t.Fatalf("after %d chunks Put returned %v, want ErrDiskFull", len(sums), err)
			}
			if s.ledger.pending() != 0 || leftovers(t, s) != 0 {
				t.Errorf("%d bytes stay reserved, %d temporary files are left", s.ledger.pending(), leftovers(t, s))
			}
			for i, sum := range sums {
				checkContent(t, s, sum, random(uint64(i), c.size))
			}
			clock.pass(1)
			if _, err := s.Sweep(background(), alive(sums[1:]...), 0); err != nil {
				t.Fatal(err)
			}
			mustPut(t, s, random(5000, c.size))
		})
	}
}
