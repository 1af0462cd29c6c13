package sitesched

import (
	"slices"
	"testing"
	"time"

	"kith/internal/job"
)

// Ten thousand copies of an origin that was set aside cost a pass nothing, and
// are no load; they come back into their places.
func TestSetAsideCostsNothing(t *testing.T) {
	everyDiscipline(t, func(t *testing.T, c Config) {
		const n = 10_000
		c.Processors = 4
		s := mustNew(t, c)
		for i := range n {
			s.Enqueue(0, copyOf("a", i, 4, 10*time.Second).copy())
		}
		s.SetAside(0, "a")
		s.Enqueue(0, copyOf("a", n, 4, 10*time.Second).copy())
		if err := s.Check(); err != nil {
			t.Fatal(err)
		}
		if l := s.Load(0); l != (job.Load{Free: 4}) {
			t.Errorf("load %+v with all copies set aside", l)
		}
		s.Pass(0)
		work, now := s.work(), job.Time(0)
		for range 100 {
			now += second
			s.Drain(now, false) // look at all
			if got := s.Pass(now); len(got) > 0 {
				t.Fatalf("starts %v, which is set aside", got)
			}
		}
		if per := (s.work() - work) / 100; per > 3 {
			t.Errorf("a pass takes %d steps with %d copies set aside", per, n)
		}
		s.Probe(now, attempt("a", 7))
		if got := s.Pass(now); !slices.Equal(got, []job.AttemptID{attempt("a", 7)}) {
			t.Errorf("starts %v, expected the one that is tried", got)
		}
		if s.Postpone(now, attempt("a", 7), 0); len(s.Pass(now)) > 0 {
			t.Error("starts another after the one that was tried")
		}
		s.Probe(now, attempt("a", 8))
		s.SetAside(now, "a") // its origin has gone before its turn came
		if l := s.Load(now); l != (job.Load{Free: 4}) {
			t.Errorf("load %+v after the copy that was tried was set aside again", l)
		}
		if got := s.Pass(now); len(got) > 0 {
			t.Errorf("starts %v, which was set aside again", got)
		}
		s.BringBack(now, "a")
		if got := s.Pass(now); !slices.Equal(got, []job.AttemptID{attempt("a", 0)}) {
			t.Errorf("starts %v, expected the first of those that came back", got)
		}
		if err := s.Check(); err != nil {
			t.Fatal(err)
		}
	})
}

// copyOf returns a remote copy that arrived as the n-th.
func copyOf(origin job.SiteID, n int, processors int32, wall time.Duration) *entry {
	return &entry{id: attempt(origin, n), processors: processors, walltime: wall, remote: true, arrival: job.Time(n)}
}

// What runs since before a restart and is wider than the site now runs on, and
// nothing starts until it fits.
func TestOvercommittedSiteStartsNothing(t *testing.T) {
	everyDiscipline(t, func(t *testing.T, c Config) {
		c.Processors, c.MemoryBytes, c.Patience = 2, 1000, 2*time.Second
		s := mustNew(t, c)
		for i, processors := range []int32{4, 1} {
			s.Adopt(0, copyOf("a", i, processors, 10*time.Second).copy(), 0)
		}
		large := copyOf("a", 2, 1, 10*time.Second)
		large.memoryBytes = 3000
		s.Adopt(0, large.copy(), 0)
		near := copyOf("b", 3, 1, time.Second)
		near.remote = false
		s.Enqueue(0, near.copy())
		s.Enqueue(0, copyOf("c", 4, 1, time.Second).copy())
		for now, ends := range []int{-1, 1, 0, -1, -1, 2} {
			at := job.Time(now) * second
			if ends >= 0 {
				s.Finish(at, attempt("a", ends))
			}
			got := len(s.Pass(at))
			if err := s.Check(); err != nil {
				t.Fatal(err)
			}
			if want := now == 5; (got > 0) != want {
				t.Errorf("%d copies start at %d, over-committed: %v", got, now, !want)
			}
		}
	})
}
