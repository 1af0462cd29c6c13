package blobstore

import (
	"fmt"
	"math/rand/v2"
	"sync/atomic"
	"testing"
	"time"
)

// A needs is the slow reference: a list of all that needs chunks, looked through
// from the first to the last whenever it is asked.
type needs struct {
	holds   []*held
	records [][]Sum
}

// held is a hold and what it should have.
type held struct {
	hold *Hold
	sums []Sum
	end  time.Time // zero: until it is closed
}

// has reports whether a chunk is needed.
func (n *needs) has(sum Sum, now time.Time) bool {
	for _, h := range n.holds {
		if !h.end.IsZero() && h.end.Before(now) {
			continue
		}
		for _, s := range h.sums {
			if s == sum {
				return true
			}
		}
	}
	for _, r := range n.records {
		for _, s := range r {
			if s == sum {
				return true
			}
		}
	}
	return false
}

// live yields what records name.
func (n *needs) live(yield func(Sum, error) bool) {
	for _, r := range n.records {
		for _, s := range r {
			if !yield(s, nil) {
				return
			}
		}
	}
}

// TestHoldsAgainstReference makes random puts, holds, records and sweeps under a quota
// and checks, by the slow reference, that a chunk that is needed is there, and that
// no put is refused as long as a chunk that is not needed is there.
func TestHoldsAgainstReference(t *testing.T) {
	var refused atomic.Int64
	t.Cleanup(func() {
		if refused.Load() == 0 {
			t.Error("nothing was ever refused: the test shows little")
		}
	})
	for seed := range uint64(60) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			t.Parallel()
			rng := rand.New(rand.NewPCG(seed, 31))
			clock := newClock()
			n := &needs{}
			there := map[Sum]bool{} // was put, and not seen to be gone since it was needed last
			var s *Store
			const quota = 12
			s = open(t, Config{Now: clock.read, QuotaBytes: quota * blockBytes, Reclaim: func() bool {
				report, err := s.Sweep(background(), n.live, 0)
				if err != nil {
					t.Error(err)
				}
				return report.Removed > 0
			}})
			for step := range 400 {
				clock.pass(time.Duration(rng.IntN(20)) * time.Second)
				data := fmt.Appendf(nil, "chunk %d", rng.IntN(24))
				sum := SumOf(data)
				switch rng.IntN(8) {
				case 0, 1, 2: // a transfer goes on: it holds, then puts
					if len(n.holds) == 0 || rng.IntN(3) == 0 {
						n.holds = append(n.holds, &held{hold: s.Hold()})
					}
					h := n.holds[rng.IntN(len(n.holds))]
					if !h.end.IsZero() {
						continue
					}
					clock.pass(time.Second)
					if _, err := s.Put(data); err != nil {
						refused.Add(1)
						for other := range s.All() {
							if !n.has(other, clock.read()) {
								t.Fatalf("step %d: a put is refused (%v), and %s is not needed", step, err, other.Short())
							}
						}
						continue
					}
					h.hold.Add(sum)
					h.sums = append(h.sums, sum)
					there[sum] = true
				case 3: // it ends, with a record or without
					if len(n.holds) == 0 {
						continue
					}
					i := rng.IntN(len(n.holds))
					h := n.holds[i]
					if rng.IntN(2) == 0 {
						n.records = append(n.records, h.sums)
					}
					h.hold.Close()
					h.hold.Close()
					h.hold.Add(sum) // too late
					n.holds = append(n.holds[:i], n.holds[i+1:]...)
				case 4: // it is to end by itself
					if len(n.holds) > 0 {
						if h := n.holds[rng.IntN(len(n.holds))]; h.end.IsZero() {
							h.hold.CloseAfter(time.Minute)
							h.end = clock.read().Add(time.Minute)
						}
					}
				case 5: // a record goes
					if len(n.records) > 0 {
						i := rng.IntN(len(n.records))
						n.records = append(n.records[:i], n.records[i+1:]...)
					}
				case 6:
					if _, err := s.Sweep(background(), n.live, time.Duration(rng.IntN(3))*time.Minute); err != nil {
						t.Fatal(err)
					}
				case 7:
					only := map[Sum]struct{}{sum: {}}
					before := s.Usage().Chunks
					if _, err := s.SweepOnly(background(), n.live, only); err != nil {
						t.Fatal(err)
					}
					if s.Usage().Chunks < before-1 {
						t.Fatalf("step %d: a sweep of one chunk took more", step)
					}
				}
				for sum := range there {
					switch {
					case n.has(sum, clock.read()):
						if !s.Has(sum) {
							t.Fatalf("step %d: %s is gone, and it is needed", step, sum.Short())
						}
					case !s.Has(sum):
						delete(there, sum)
					}
				}
			}
		})
	}
}

// A hold's chunks begin their grace when it ends, not when they were put.
func TestGraceBeginsAtTheEnd(t *testing.T) {
	clock := newClock()
	s := open(t, Config{Now: clock.read})
	b := s.NewBatch()
	sum, err := b.Put([]byte("x"))
	if err != nil {
		t.Fatal(err)
	}
	clock.pass(100 * time.Hour)
	sweep := func() {
		if _, err := s.Sweep(background(), alive(), time.Hour); err != nil {
			t.Fatal(err)
		}
	}
	sweep()
	b.Close()
	clock.pass(30 * time.Minute)
	sweep()
	if !s.Has(sum) {
		t.Error("it is gone half an hour after its transfer")
	}
	clock.pass(31 * time.Minute)
	sweep()
	if s.Has(sum) {
		t.Error("it is there more than an hour after its transfer")
	}
}

// What lies beside the store on its account counts against the quota.
func TestReserve(t *testing.T) {
	s := open(t, Config{QuotaBytes: 4 * blockBytes})
	release, err := s.Reserve(3*blockBytes, false)
	if err != nil {
		t.Fatal(err)
	}
	mustPut(t, s, []byte("x"))
	if _, err := s.Put([]byte("y")); err == nil {
		t.Error("the quota is passed by a put")
	}
	if _, err := s.Reserve(1, false); err == nil {
		t.Error("the quota is passed by a folder")
	}
	more, err := s.Reserve(blockBytes, true) // it is written already
	if err != nil || s.Usage().FolderBytes != 4*blockBytes {
		t.Errorf("%v, %+v", err, s.Usage())
	}
	more()
	release()
	release()
	if u := s.Usage(); u.FolderBytes != 0 {
		t.Errorf("%+v", u)
	}
	mustPut(t, s, []byte("y"))
}

// Holds that have come to their end leave memory without a sweep.
func TestHoldsEndWithoutASweep(t *testing.T) {
	clock := newClock()
	s := open(t, Config{Now: clock.read})
	sum := mustPut(t, s, []byte("x"))
	for range 100 * leastLingers {
		s.Hold(sum).CloseAfter(time.Second)
		clock.pass(time.Second)
		if n := len(s.lingers); n > 2*leastLingers {
			t.Fatalf("%d holds are kept, all but two of which have come to their end", n)
		}
	}
	if n := s.shards[sum[0]].held[sum]; n > 2*leastLingers {
		t.Errorf("the chunk is held %d times", n)
	}
}
