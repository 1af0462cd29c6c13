package flight_test

import (
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"kith/meta/flight"
	"kith/testbed/check/faults"
)

func openRing(t *testing.T, c flight.RingConfig) *flight.Ring {
	t.Helper()
	if c.Log == nil {
		c.Log = slog.New(slog.NewTextHandler(t.Output(), nil))
	}
	r, err := flight.OpenRing(c)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(r.Close)
	return r
}

// files returns what lies in the folder of a ring, and how large it is.
func files(t *testing.T, data string) (names []string, sum int64) {
	t.Helper()
	entries, err := os.ReadDir(filepath.Join(data, flight.Folder))
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		info, err := e.Info()
		if errors.Is(err, fs.ErrNotExist) { // it has another name by now
			continue
		}
		if err != nil {
			t.Fatal(err)
		}
		names, sum = append(names, e.Name()), sum+info.Size()
	}
	return names, sum
}

// A ring has no more than it may over all lives of a daemon, and each file of it plays alone.
func TestTheRingIsBounded(t *testing.T) {
	t.Parallel()
	c := flight.RingConfig{SizeBytes: 100 << 10, Files: 4}
	data := make(map[string]string) // of each site
	last := make(map[string]*flight.Ring)
	recordTo(t, faults.Bagged(4, faults.Size{Sites: 2}), func(life string) flight.Sink {
		site, _, _ := strings.Cut(life, "-")
		if data[site] == "" {
			data[site] = t.TempDir()
		}
		if last[site] != nil {
			last[site].Flush(time.Minute)
		}
		c.Data = data[site]
		last[site] = openRing(t, c)
		return last[site]
	})
	old := false
	for site, ring := range last {
		ring.Flush(time.Minute)
		names, sum := files(t, data[site])
		t.Logf("%s: %v, %d bytes, %+v", site, names, sum, ring.Figures())
		if slack := int64(32 << 10); len(names) > c.Files || sum > c.SizeBytes+slack || ring.Figures().Failures > 0 {
			t.Errorf("%s: %d files of %d bytes: %v, %+v", site, len(names), sum, names, ring.Figures())
		}
		old = old || names[0] != "0000000001.flight"
		for _, name := range names {
			b, err := os.ReadFile(filepath.Join(data[site], flight.Folder, name))
			if err != nil {
				t.Fatal(err)
			}
			if steps, _, err := play(b); err != nil || steps == 0 {
				t.Errorf("%s, %s: %d steps, %v", site, name, steps, err)
			}
		}
	}
	if !old {
		t.Error("no ring was ever full")
	}
}

// A disk without room ends the recording, and nothing else: no call fails or waits.
func TestADiskWithoutRoom(t *testing.T) {
	t.Parallel()
	full := false
	data := t.TempDir()
	r := openRing(t, flight.RingConfig{Data: data, SizeBytes: 64 << 20, Files: 4, Room: func() error {
		if full {
			return errors.New("no room")
		}
		return nil
	}})
	r.Begin(func(n uint64) ([]byte, error) { return fmt.Appendf(nil, "file %d", n), nil })
	r.Write([]byte("x"))
	r.Flush(time.Minute)
	if f := r.Figures(); !f.Recording || f.Bytes != 7 || r.Wants() {
		t.Errorf("%+v", f)
	}
	full = true
	for range 20 {
		r.Write(make([]byte, 1<<20))
		r.Flush(time.Minute)
	}
	if f := r.Figures(); f.Recording || f.Failures != 1 || r.Wants() || r.Open() {
		t.Errorf("without room: %+v", f)
	}
}

// Where the disk is slower than what comes, the recording ends; memory is bounded.
func TestASlowDisk(t *testing.T) {
	t.Parallel()
	stuck, looks := make(chan struct{}), make(chan struct{}, 1)
	r := openRing(t, flight.RingConfig{Data: t.TempDir(), SizeBytes: 8 << 20, Files: 4, Room: func() error {
		looks <- struct{}{}
		<-stuck
		return nil
	}})
	t.Cleanup(func() { close(stuck) })
	r.Begin(func(uint64) ([]byte, error) { return []byte("head"), nil })
	<-looks // what comes from now on waits
	n := 0
	for ; r.Open() && n < 100; n++ {
		r.Write(make([]byte, 1<<20))
	}
	if f := r.Figures(); f.Failures != 1 || n > 20 {
		t.Errorf("after %d MiB: %+v", n, f)
	}
}

// A state that leaves no room for what happens is not recorded, and the log says what to do.
func TestAStateTooLarge(t *testing.T) {
	t.Parallel()
	var log strings.Builder
	r := openRing(t, flight.RingConfig{Data: t.TempDir(), SizeBytes: 1 << 20, Files: 4, Log: slog.New(slog.NewTextHandler(&log, nil))})
	r.Begin(func(uint64) ([]byte, error) { return make([]byte, 200<<10), nil })
	if r.Open() || !strings.Contains(log.String(), "raise flight.size or lower flight.files") {
		t.Errorf("open %v: %s", r.Open(), log.String())
	}
}

// What lies among the recordings and is none is not touched.
func TestOthersFilesStay(t *testing.T) {
	t.Parallel()
	data := t.TempDir()
	r := openRing(t, flight.RingConfig{Data: data, SizeBytes: 1 << 20, Files: 2})
	other := filepath.Join(data, flight.Folder, "incident-0000000001.flight")
	if err := os.WriteFile(other, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for range 5 {
		r.Begin(func(n uint64) ([]byte, error) { return fmt.Appendf(nil, "file %d", n), nil })
		r.Flush(time.Minute)
	}
	if names, _ := files(t, data); !slices.Equal(names, []string{"0000000004.flight", "0000000005.flight", "incident-0000000001.flight"}) {
		t.Error(names)
	}
}
