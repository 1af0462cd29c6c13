package blobstore

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"maps"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"
)

func TestSweep(t *testing.T) {
	clock := newClock()
	s := open(t, Config{Now: clock.read})
	live, dead, renewed, putAgain := mustPut(t, s, []byte("live")), mustPut(t, s, []byte("dead")), mustPut(t, s, []byte("renewed")), mustPut(t, s, []byte("again"))
	clock.pass(time.Hour)
	s.Missing([]Sum{renewed})
	mustPut(t, s, []byte("again"))
	young := mustPut(t, s, []byte("young"))

	report, err := s.Sweep(background(), alive(live, SumOf([]byte("unknown"))), time.Minute)
	if err != nil || report != (SweepReport{Kept: 4, Removed: 1, FreedBytes: blockBytes}) {
		t.Errorf("Sweep = %+v, %v; want 4 kept, 1 removed", report, err)
	}
	for name, c := range map[string]struct {
		sum  Sum
		want bool
	}{
		"live": {live, true}, "dead": {dead, false}, "found by Missing": {renewed, true},
		"put again": {putAgain, true}, "young": {young, true},
	} {
		if got := s.Has(c.sum); got != c.want {
			t.Errorf("%s: Has = %v, want %v", name, got, c.want)
		}
	}
	clock.pass(time.Hour)
	if report, err = s.Sweep(background(), alive(live), time.Minute); err != nil || report.Removed != 3 {
		t.Errorf("the sweep an hour later = %+v, %v; want 3 removed", report, err)
	}
	if u := s.Usage(); u.Chunks != 1 || u.Bytes != blockBytes {
		t.Errorf("usage %+v, want one chunk", u)
	}
}

func TestSweepStopsBeforeItRemoves(t *testing.T) {
	clock := newClock()
	s := open(t, Config{Now: clock.read})
	sum := mustPut(t, s, []byte("x"))
	clock.pass(time.Hour)
	broken := errors.New("a record cannot be read")
	cancelled, cancel := context.WithCancel(background())
	cancel()
	for name, c := range map[string]struct {
		ctx  context.Context
		live iter.Seq2[Sum, error]
		want error
	}{
		"error":     {background(), func(yield func(Sum, error) bool) { yield(Sum{}, broken) }, broken},
		"cancelled": {cancelled, alive(Sum{}), context.Canceled},
		"no record": {cancelled, alive(), context.Canceled},
	} {
		if report, err := s.Sweep(c.ctx, c.live, 0); !errors.Is(err, c.want) || report.Removed != 0 {
			t.Errorf("%s: Sweep = %+v, %v; want %v", name, report, err, c.want)
		}
	}
	if !s.Has(sum) {
		t.Error("a sweep that failed removed a chunk")
	}
}

// TestSweepAfterRestart checks that a renewal is not forgotten with the process.
func TestSweepAfterRestart(t *testing.T) {
	clock := newClock()
	config := Config{Dir: filepath.Join(t.TempDir(), "blobs"), Now: clock.read}
	s, err := Open(config)
	if err != nil {
		t.Fatal(err)
	}
	data := []byte("x")
	mustPut(t, s, data)
	clock.now = time.Now().Add(24 * time.Hour) // The file's own time is the kernel's.
	s.Missing([]Sum{SumOf(data)})
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	s = open(t, config)
	clock.pass(30 * time.Minute)
	if _, err := s.Sweep(background(), alive(), time.Hour); err != nil {
		t.Fatal(err)
	}
	if !s.Has(SumOf(data)) {
		t.Error("the first sweep after a restart took a renewed chunk")
	}
}

// records is what a caller knows to be in use: how many of its records name a chunk.
type records struct {
	mu    sync.Mutex
	named map[Sum]int
}

// change adds n records that name sum.
func (r *records) change(sum Sum, n int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.named[sum] += n; r.named[sum] == 0 {
		delete(r.named, sum)
	}
}

// live yields the chunks that are named now.
func (r *records) live(yield func(Sum, error) bool) {
	r.mu.Lock()
	sums := slices.Collect(maps.Keys(r.named))
	r.mu.Unlock()
	alive(sums...)(yield)
}

// TestSweepAgainstPuts runs sweeps without pause against goroutines that put
// chunks and record some of them, and checks B5: a chunk is there for as long
// as a record names it.
func TestSweepAgainstPuts(t *testing.T) {
	const grace = 60 * time.Millisecond
	s := open(t, Config{})
	recorded := &records{named: make(map[Sum]int)}
	stop := make(chan struct{})
	var sweeper, writers sync.WaitGroup
	removed := 0
	sweeper.Go(func() {
		for {
			report, err := s.Sweep(background(), recorded.live, grace)
			if err != nil {
				t.Errorf("Sweep: %v", err)
			}
			removed += report.Removed
			select {
			case <-stop:
				return
			case <-time.After(time.Millisecond):
			}
		}
	})
	for w := range 4 {
		writers.Go(func() {
			begin := time.Now()
			for i := 0; time.Since(begin) < 500*time.Millisecond; i++ {
				data := fmt.Appendf(nil, "chunk %d", (i*7+w)%40)
				put := time.Now()
				sum, err := s.Put(data)
				if err != nil {
					t.Errorf("Put: %v", err)
					return
				}
				if i%3 != 0 {
					continue // Put and never recorded: garbage.
				}
				recorded.change(sum, 1)
				inTime := time.Since(put) < grace
				time.Sleep(time.Duration(i%4) * grace / 2)
				if _, err := s.Get(sum); err != nil && inTime {
					t.Errorf("a chunk that a record names: %v", err)
				}
				recorded.change(sum, -1)
			}
		})
	}
	writers.Wait()
	time.Sleep(2 * grace)
	close(stop)
	sweeper.Wait()
	if removed == 0 {
		t.Error("no sweep ever removed a chunk: the test shows nothing")
	}
	if u := s.Usage(); u.Chunks != len(anySums(s)) || u.Bytes != int64(u.Chunks)*blockBytes {
		t.Errorf("usage %+v, but the index has %d chunks", u, len(anySums(s)))
	}
}
