package sitesched

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"kith/internal/job"
)

// blockedSlowly says the same as Blocked by means of a second scheduler. Where a discipline
// keeps no plan it is made from nothing and told of home jobs only; else it is a copy in which
// all guests end.
func blockedSlowly(s *Scheduler, now job.Time) []job.AttemptID {
	var alone *Scheduler
	if s.cfg.Backfill == Conservative {
		alone = s.Clone()
		for r := range s.Running {
			if r.Copy.Remote {
				alone.Finish(now, r.Copy.ID)
			}
		}
		for q := range s.Queued {
			if q.Copy.Remote {
				alone.Withdraw(now, q.Copy.ID)
			}
		}
	} else {
		var err error
		if alone, err = New(s.cfg); err != nil {
			panic(err)
		}
		for r := range s.Running {
			if !r.Copy.Remote {
				alone.Adopt(now, r.Copy, r.Since)
			}
		}
		for q := range s.Queued {
			if q.Copy.Remote {
				continue
			}
			if alone.Enqueue(now, q.Copy); q.NotBefore > now {
				alone.Postpone(now, q.Copy.ID, q.NotBefore)
			}
		}
		alone.Drain(now, s.draining)
	}
	return slices.Clone(alone.Pass(now))
}

// After each pass of random stories, under every discipline and with every complication, those
// are blocked whom a second scheduler without guests would start.
func TestBlockedIsASecondScheduler(t *testing.T) {
	everyDiscipline(t, func(t *testing.T, c Config) {
		some, all := 0, 0
		for _, depth := range []int32{0, 2} {
			c.GuaranteeDepth = depth
			stories(t, 400, c, everything, func(g *stage) func(int, []job.AttemptID) error {
				return func(now int, _ []job.AttemptID) error {
					at := job.Time(now) * second
					before := sight(g.s, at)
					got, want := g.s.Blocked(at, nil), blockedSlowly(g.s, at)
					slices.SortFunc(got, job.AttemptID.Compare)
					slices.SortFunc(want, job.AttemptID.Compare)
					if !slices.Equal(got, want) {
						return fmt.Errorf("at %d guests block %v, a second scheduler would start %v", now, got, want)
					}
					if after := sight(g.s, at); after != before {
						return fmt.Errorf("at %d a question changed\n%s\nto\n%s", now, before, after)
					}
					all++
					some += min(len(got), 1)
					return nil
				}
			})
		}
		if some*100 < all {
			t.Errorf("guests block somebody after %d passes of %d: the test sees nothing", some, all)
		}
	})
}

// Who waits for nothing but a guest is blocked; who waits for a home job, for processors that
// do not exist beside it, or while the site drains, is not.
func TestBlocked(t *testing.T) {
	s := mustNew(t, Config{Processors: 8, Backfill: EASY, Queues: DualBackfill})
	copyOf := func(n int, width int32, wall time.Duration, remote bool) job.Copy {
		e := entry{id: attempt("a", n), processors: width, walltime: wall, remote: remote, arrival: job.Time(n)}
		return e.copy()
	}
	begin := func(x job.Copy) job.AttemptID {
		s.Enqueue(10, x)
		for _, id := range s.Pass(10) {
			s.Confirm(10, id, 0)
		}
		return x.ID
	}
	blocked := func(want ...job.AttemptID) {
		t.Helper()
		if got := s.Blocked(10, nil); !slices.Equal(got, want) {
			t.Errorf("blocked are %v, want %v", got, want)
		}
	}
	begin(copyOf(1, 3, 4*time.Hour, false))
	begin(copyOf(2, 8, time.Hour, false)) // the head: a home job is in its way, too
	blocked()
	guest := begin(copyOf(3, 5, 2*time.Hour, true))
	blocked()
	short := begin(copyOf(4, 5, 3*time.Hour, false))
	begin(copyOf(5, 5, 9*time.Hour, false)) // would delay the head
	blocked(short)
	s.Drain(10, true)
	blocked()
	s.Drain(10, false)
	s.Finish(10, guest)
	for _, id := range s.Pass(10) {
		if id != short {
			t.Errorf("%v starts, want %v", id, short)
		}
	}
	blocked()
}

func TestBlockedAllocatesNothing(t *testing.T) {
	for _, c := range blockedConfigs {
		x := newCrowd(t, c, 50, 50, 50)
		x.swap()
		list := x.s.Blocked(x.now, nil)
		if n := testing.AllocsPerRun(50, func() { list = x.s.Blocked(x.now, list[:0]) }); n > 0 {
			t.Errorf("%s: %v allocations", c.Policy(), n)
		}
	}
}

var blockedConfigs = []Config{
	{Backfill: NoBackfill, Queues: DualBackfill}, {Backfill: EASY, Queues: DualBackfill, Scope: ScopeAll}, {Backfill: EASY, Queues: Single},
	{Backfill: Conservative, Queues: DualBackfill}, {Backfill: ConservativeReplan, Queues: DualBackfill},
}

// BenchmarkBlocked is the question after each pass, half of what runs and waits being guests.
func BenchmarkBlocked(b *testing.B) {
	for _, c := range blockedConfigs {
		for _, n := range []int{100, 1000, 10_000} {
			b.Run(fmt.Sprintf("%s/%d", c.Policy(), n), func(b *testing.B) {
				x := newCrowd(b, c, min(n, 1000), n/2, n/2)
				x.swap()
				var list []job.AttemptID
				blocked, running := 0, len(x.s.run.items())
				b.ReportAllocs()
				for b.Loop() {
					list = x.s.Blocked(x.now, list[:0])
					blocked += len(list)
				}
				b.ReportMetric(float64(blocked)/float64(b.N), "blocked")
				b.ReportMetric(float64(running), "running")
			})
		}
	}
}

// swap makes every second copy that runs one of another site.
func (c *crowd) swap() {
	var running []RunningCopy
	for r := range c.s.Running {
		running = append(running, r)
	}
	for i, r := range running {
		if i%2 == 0 {
			c.s.Finish(c.now, r.Copy.ID)
			r.Copy.Remote = true
			c.s.Adopt(c.now, r.Copy, r.Since)
		}
	}
	c.pass()
}
