package blobstore

import (
	"bytes"
	"context"
	"io"
	"iter"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"
	"testing/iotest"
	"time"
)

// open opens a store that the test closes at its end.
func open(t testing.TB, config Config) *Store {
	t.Helper()
	if config.Dir == "" {
		config.Dir = filepath.Join(t.TempDir(), "blobs")
	}
	s, err := Open(config)
	if err != nil {
		t.Fatalf("Open: %v", err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Errorf("Close: %v", err)
		}
	})
	return s
}

// random returns n bytes that depend on seed and n alone.
func random(seed uint64, n int) []byte {
	rng := rand.New(rand.NewPCG(seed, uint64(n)))
	b := make([]byte, n)
	for i := range b {
		b[i] = byte(rng.Uint32())
	}
	return b
}

// mustPut puts data or fails the test.
func mustPut(t testing.TB, s *Store, data []byte) Sum {
	t.Helper()
	sum, err := s.Put(data)
	if err != nil {
		t.Fatalf("Put of %d bytes: %v", len(data), err)
	}
	return sum
}

// checkContent fails the test unless the store returns data for sum.
func checkContent(t testing.TB, s *Store, sum Sum, data []byte) {
	t.Helper()
	got, err := s.Get(sum)
	if err != nil {
		t.Errorf("Get(%s): %v", sum.Short(), err)
	} else if !bytes.Equal(got, data) {
		t.Errorf("Get(%s) returned %d other bytes, want the %d put", sum.Short(), len(got), len(data))
	}
}

// chunkFile is where a chunk lies on disk.
func chunkFile(s *Store, sum Sum) string {
	return filepath.Join(s.config.Dir, filepath.FromSlash(sum.path()))
}

// leftovers counts the files being written.
func leftovers(t testing.TB, s *Store) int {
	t.Helper()
	entries, err := os.ReadDir(filepath.Join(s.config.Dir, tempDir))
	if err != nil {
		t.Fatal(err)
	}
	return len(entries)
}

// alive yields sums as live chunks.
func alive(sums ...Sum) iter.Seq2[Sum, error] {
	return func(yield func(Sum, error) bool) {
		for _, sum := range sums {
			if !yield(sum, nil) {
				return
			}
		}
	}
}

// A clock stands still until it is moved.
type clock struct{ now time.Time }

func newClock() *clock { return &clock{now: time.Date(2026, 11, 21, 10, 0, 0, 0, time.UTC)} }

func (c *clock) read() time.Time { return c.now }

func (c *clock) pass(d time.Duration) { c.now = c.now.Add(d) }

// slow is a reader that returns few bytes at a time.
func slow(data []byte) io.Reader { return iotest.HalfReader(bytes.NewReader(data)) }

// background is for calls that are not cancelled.
func background() context.Context { return context.Background() }
