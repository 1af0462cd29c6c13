package transfer

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

func TestTailReads(t *testing.T) {
	dir := t.TempDir()
	path := write(t, dir, "out", random(1, 300000))
	running, ended := make(chan struct{}), make(chan struct{})
	close(ended)
	symlink(t, path, dir, "link")
	mkfifo(t, dir, "pipe")
	tail := NewTail(TailConfig{})
	for name, c := range map[string]struct {
		path   string
		ended  chan struct{}
		offset int64
		limit  int
		want   int
		end    bool
		err    error
	}{
		"beginning":        {"out", running, 0, 10, 10, false, nil},
		"all, running":     {"out", running, 100000, MaxPieceBytes, 200000, false, nil},
		"all, ended":       {"out", ended, 100000, MaxPieceBytes, 200000, true, nil},
		"part, ended":      {"out", ended, 100000, 199999, 199999, false, nil},
		"bounded":          {"out", ended, 0, 1 << 30, MaxPieceBytes, false, nil},
		"no limit":         {"out", ended, 0, 0, MaxPieceBytes, false, nil},
		"at the end":       {"out", running, 300000, 10, 0, false, nil},
		"at the end, over": {"out", ended, 300000, 10, 0, true, nil},
		"behind the end":   {"out", ended, 1 << 60, 10, 0, true, nil},
		"no file yet":      {"none", running, 0, 10, 0, false, nil},
		"never a file":     {"none", ended, 0, 10, 0, true, nil},
		"negative":         {"out", running, -1, 10, 0, false, ErrBadRange},
		"a link":           {"link", running, 0, 10, 0, false, ErrNotRegular},
		"a pipe":           {"pipe", running, 0, 10, 0, false, ErrNotRegular},
		"a folder":         {".", running, 0, 10, 0, false, ErrNotRegular},
	} {
		t.Run(name, func(t *testing.T) {
			data, end, err := tail.Read(background(), Output{filepath.Join(dir, c.path), c.ended}, c.offset, c.limit, 0)
			if len(data) != c.want || end != c.end || !errors.Is(err, c.err) {
				t.Errorf("%d bytes, end %v, %v; want %d, %v, %v", len(data), end, err, c.want, c.end, c.err)
			}
			if c.want > 0 && !equal(data, random(1, 300000)[c.offset:c.offset+int64(c.want)]) {
				t.Error("other bytes")
			}
		})
	}
}

func TestTailWaits(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "out")
	synctest.Test(t, func(t *testing.T) {
		begin := time.Now()
		ended := make(chan struct{})
		output := Output{path, ended}
		tail := NewTail(TailConfig{})
		read := func(offset int64, wait time.Duration) (string, bool, time.Duration) {
			t.Helper()
			before := time.Now()
			data, end, err := tail.Read(t.Context(), output, offset, 100, wait)
			if err != nil {
				t.Errorf("Read: %v", err)
			}
			return string(data), end, time.Since(before)
		}
		var writer sync.WaitGroup
		writer.Go(func() {
			time.Sleep(950 * time.Millisecond)
			write(t, dir, "out", []byte("hello"))
			time.Sleep(4 * time.Second)
			close(ended)
		})
		if data, end, took := read(0, 10*time.Second); data != "hello" || end || took != time.Second {
			t.Errorf("the first read = %q, %v after %v", data, end, took)
		}
		if data, end, took := read(5, time.Second); data != "" || end || took != time.Second {
			t.Errorf("a read to the deadline = %q, %v after %v", data, end, took)
		}
		if data, end, _ := read(5, time.Hour); data != "" || !end || time.Since(begin) != 4950*time.Millisecond {
			t.Errorf("the read to the end = %q, %v at %v", data, end, time.Since(begin))
		}
		if data, end, _ := read(3, 0); data != "lo" || !end {
			t.Errorf("a read after the end = %q, %v", data, end)
		}
		writer.Wait()
	})
}

// TestTailMissesNothing follows a writer and checks every byte.
func TestTailMissesNothing(t *testing.T) {
	path := filepath.Join(t.TempDir(), "out")
	want := random(1, 50000)
	ended := make(chan struct{})
	var writer sync.WaitGroup
	writer.Go(func() {
		defer close(ended)
		f, err := os.Create(path)
		if err != nil {
			t.Error(err)
			return
		}
		defer f.Close() //nolint:errcheck // Nothing is buffered.
		for rest := want; len(rest) > 0; {
			n := min(len(rest), 700)
			if _, err := f.Write(rest[:n]); err != nil {
				t.Error(err)
			}
			rest = rest[n:]
			time.Sleep(100 * time.Microsecond)
		}
	})
	tail := NewTail(TailConfig{Poll: time.Millisecond})
	var got []byte
	for end := false; !end; {
		var data []byte
		var err error
		data, end, err = tail.Read(background(), Output{path, ended}, int64(len(got)), 3000, time.Second)
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, data...)
	}
	writer.Wait()
	if !equal(got, want) {
		t.Errorf("%d bytes came, want the %d written", len(got), len(want))
	}
}

func TestTailWaitersAreBounded(t *testing.T) {
	path := filepath.Join(t.TempDir(), "none")
	synctest.Test(t, func(t *testing.T) {
		tail := NewTail(TailConfig{Waiters: 2})
		ctx, cancel := context.WithCancel(t.Context())
		var group sync.WaitGroup
		for range 2 {
			group.Go(func() {
				if _, _, err := tail.Read(ctx, Output{Path: path}, 0, 1, time.Hour); !errors.Is(err, context.Canceled) {
					t.Errorf("a waiter got %v, want Canceled", err)
				}
			})
		}
		synctest.Wait()
		if _, _, err := tail.Read(ctx, Output{Path: path}, 0, 1, time.Hour); !errors.Is(err, ErrBusy) {
			t.Errorf("the third waiter got %v, want ErrBusy", err)
		}
		if _, _, err := tail.Read(ctx, Output{Path: path}, 0, 1, 0); err != nil {
			t.Errorf("who does not wait got %v", err)
		}
		cancel()
		group.Wait()
		if _, _, err := tail.Read(t.Context(), Output{Path: path}, 0, 1, time.Second); err != nil {
			t.Errorf("a waiter after the others got %v", err)
		}
	})
}
