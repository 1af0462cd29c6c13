package sitesched

import (
	"fmt"
	"testing"
	"time"

	"kith/internal/job"
)

// longQueue is a site of two processors, which are taken, with a queue behind a guarantee
// depth of 100. It comes with a copy that would be the next one.
func longQueue(t testing.TB, backfill Backfill, jobs int) (s *Scheduler, next func() job.Copy) {
	t.Helper()
	s = mustNew(t, Config{Processors: 2, Backfill: backfill, Queues: DualBackfill, Scope: ScopeAll, GuaranteeDepth: 100})
	n := 0
	next = func() job.Copy {
		n++
		return job.Copy{ID: attempt("a", n), Request: job.Request{Processors: 1, Walltime: time.Hour}, Arrival: job.Time(n)}
	}
	running := next()
	running.Request.Processors = 2
	s.Adopt(0, running, 0)
	s.Pass(0)
	for range jobs {
		s.Enqueue(0, next())
	}
	s.Pass(0)
	return s, next
}

// A question that comes with each copy costs the same whatever waits: a site of three machines
// took 468 submissions a second with 10,000 jobs, as each one was asked about and planned behind
// all of them.
func TestQuestionsBehindALongQueue(t *testing.T) {
	t.Parallel()
	for _, backfill := range []Backfill{EASY, Conservative} {
		t.Run(backfill.String(), func(t *testing.T) {
			t.Parallel()
			cost := make(map[int]int64)
			for _, jobs := range []int{2000, 20_000} {
				s, next := longQueue(t, backfill, jobs)
				s.EarliestStart(0, next())
				before := s.work()
				for range 100 {
					s.Enqueue(0, next())
					s.Pass(0)
					s.EarliestStart(0, next())
				}
				cost[jobs] = s.work() - before
				if got, want := s.earliestOf(next()), s.Clone().earliestOf(next()); got != want {
					t.Errorf("%d jobs: the next copy would start at %v, by a plan made anew at %v", jobs, got, want)
				}
			}
			if cost[20_000] > 2*cost[2000] {
				t.Errorf("a hundred questions take %d steps with 20,000 jobs and %d with 2,000", cost[20_000], cost[2000])
			}
		})
	}
}

func (s *Scheduler) earliestOf(c job.Copy) job.Time {
	at, _ := s.EarliestStart(s.clock, c)
	return at
}

// A question may come between an arrival and its pass. What it has planned for this very instant
// is not what a later one is told, if there was no pass meanwhile.
func TestAQuestionBeforeThePass(t *testing.T) {
	t.Parallel()
	s := mustNew(t, Config{Processors: 3, Backfill: EASY, Queues: DualBackfill, Scope: ScopeAll, GuaranteeDepth: 1})
	c := func(n int, processors int32, wall time.Duration) job.Copy {
		return job.Copy{ID: attempt("a", n), Request: job.Request{Processors: processors, Walltime: wall}, Arrival: job.Time(n)}
	}
	s.Adopt(0, c(1, 2, time.Minute), 0)
	s.Enqueue(0, c(2, 3, time.Minute))
	s.Pass(0)
	s.Enqueue(0, c(3, 1, 30*time.Second)) // fits before the one that waits
	for _, now := range []job.Time{0, 10 * second, 40 * second} {
		next := c(4, 1, 20*time.Second)
		got, _ := s.EarliestStart(now, next)
		if want, _ := s.Clone().EarliestStart(now, next); got != want {
			t.Errorf("at %v the next copy would start at %v, by a plan made anew at %v", now, got, want)
		}
	}
}

// BenchmarkQuestionBehind is a question with each copy that arrives, behind a queue much longer than
// the guarantee depth.
func BenchmarkQuestionBehind(b *testing.B) {
	for _, jobs := range []int{10_000, 100_000} {
		b.Run(fmt.Sprint(jobs), func(b *testing.B) {
			s, next := longQueue(b, EASY, jobs)
			for b.Loop() {
				c := next()
				s.Enqueue(0, c)
				s.Pass(0)
				s.EarliestStart(0, c)
			}
		})
	}
}
