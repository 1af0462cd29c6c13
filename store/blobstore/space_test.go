package blobstore

import (
	"errors"
	"fmt"
	"io/fs"
	"math"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
)

func TestQuota(t *testing.T) {
	s := open(t, Config{QuotaBytes: 10 * blockBytes})
	var group sync.WaitGroup
	var mu sync.Mutex
	stored := 0
	for i := range 40 {
		group.Go(func() {
			_, err := s.Put(fmt.Appendf(nil, "chunk %d", i))
			mu.Lock()
			defer mu.Unlock()
			switch {
			case err == nil:
				stored++
			case !errors.Is(err, ErrQuota):
				t.Errorf("Put returned %v, want ErrQuota", err)
			}
		})
	}
	group.Wait()
	if u := s.Usage(); stored != 10 || u.Chunks != 10 || u.Bytes != 10*blockBytes {
		t.Errorf("%d puts went through, usage %+v; want 10", stored, u)
	}
	if s.ledger.pending() != 0 {
		t.Errorf("%d bytes stay reserved", s.ledger.pending())
	}
	if err := s.Room(1); !errors.Is(err, ErrQuota) {
		t.Errorf("Room(1) returned %v, want ErrQuota", err)
	}
	_, err := s.Put([]byte("one more"))
	for _, part := range []string{s.config.Dir, "40.0 KiB of 40.0 KiB used", "4.0 KiB more needed", "raise files.quota"} {
		if !strings.Contains(fmt.Sprint(err), part) {
			t.Errorf("%q does not say %q", err, part)
		}
	}
	for _, sum := range anySums(s) { // What is there needs no room.
		data, err := s.Get(sum)
		if err != nil {
			t.Fatal(err)
		}
		mustPut(t, s, data)
	}
}

// anySums returns the chunks of a store.
func anySums(s *Store) []Sum {
	var sums []Sum
	for i := range s.shards {
		for sum := range s.shards[i].chunks {
			sums = append(sums, sum)
		}
	}
	return sums
}

func TestLowWater(t *testing.T) {
	s := open(t, Config{LowWaterBytes: math.MaxInt64 / 2})
	_, err := s.Put([]byte("x"))
	if !errors.Is(err, ErrDiskFull) || !errors.Is(err, syscall.ENOSPC) {
		t.Errorf("Put returned %v, want ErrDiskFull and ENOSPC", err)
	}
	for _, part := range []string{s.config.Dir, "free, of which 4096.0 PiB must stay free", "lower files.keep_free"} {
		if !strings.Contains(fmt.Sprint(err), part) {
			t.Errorf("%q does not say %q", err, part)
		}
	}
	if err := s.Room(1 << 20); !errors.Is(err, ErrDiskFull) {
		t.Errorf("Room returned %v, want ErrDiskFull", err)
	}
	if s.ledger.pending() != 0 || leftovers(t, s) != 0 {
		t.Errorf("%d bytes stay reserved, %d temporary files are left", s.ledger.pending(), leftovers(t, s))
	}
}

func TestFormatBytes(t *testing.T) {
	for n, want := range map[int64]string{
		0: "0 B", 1023: "1023 B", 1024: "1.0 KiB", 4 << 20: "4.0 MiB", 1 << 30: "1.0 GiB", 5 << 40: "5.0 TiB",
		math.MaxInt64: "8192.0 PiB", -2048: "-2.0 KiB",
	} {
		if got := FormatBytes(n); got != want {
			t.Errorf("FormatBytes(%d) = %q, want %q", n, got, want)
		}
	}
}

// A look at the disk names a folder that is not there, and has no other error of its own.
func TestCheckFreeNamesAMissingFolder(t *testing.T) {
	dir := t.TempDir()
	if err := CheckFree(dir, 1, 1); err != nil {
		t.Errorf("a folder on a disk with room: %v", err)
	}
	if err := CheckFree(filepath.Join(dir, "none"), 1, 1); !errors.Is(err, fs.ErrNotExist) || !strings.Contains(err.Error(), "none") {
		t.Errorf("a folder that is not there: %v", err)
	}
	if err := CheckFree(dir, 1, math.MaxInt64/2); !errors.Is(err, ErrDiskFull) {
		t.Errorf("more than any disk has: %v", err)
	}
}
