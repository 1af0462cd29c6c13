package sitesched

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"kith/internal/job"
)

// overtaking is what became of a copy within an hour.
type overtaking struct {
	started bool
	wait    time.Duration
	// times is how many copies that came later started before it, last how long
	// after it had come the last of them did.
	times int
	last  time.Duration
}

// stream plays an endless stream of narrow remote copies at a site of two
// processors, and a wide one that comes in their midst.
func stream(t *testing.T, c Config, wide entry, run func() time.Duration) (o overtaking) {
	t.Helper()
	c.Processors = 2
	s := mustNew(t, c)
	wide.arrival = 30 * second
	ends := make(map[job.Time][]job.AttemptID)
	arrivals := make(map[job.AttemptID]job.Time)
	next := 0
	for now := job.Time(0); now < 3600*second; now += second / 5 {
		for _, id := range ends[now] {
			s.Finish(now, id)
		}
		delete(ends, now)
		if now%(7*second/5) == 0 {
			next++
			narrow := copyOf("c", next, 1, time.Minute)
			narrow.arrival = now
			arrivals[narrow.id] = now
			s.Enqueue(now, narrow.copy())
		}
		if now == wide.arrival {
			s.Enqueue(now, wide.copy())
		}
		for _, id := range s.Pass(now) {
			if id == wide.id {
				o.started, o.wait = true, now.Sub(wide.arrival)
				return o
			}
			if now > wide.arrival && arrivals[id] > wide.arrival {
				o.times, o.last = o.times+1, now.Sub(wide.arrival)
			}
			s.Confirm(now, id, now)
			end := now.Add(run())
			ends[end] = append(ends[end], id)
		}
		if now%(30*second) == 0 {
			if err := s.Check(); err != nil {
				t.Fatal(err)
			}
		}
	}
	return o
}

// A copy that needs the whole site is not overtaken for longer than twice the
// longest walltime ahead of it if its origin can never run it, else than its
// patience and that much. Where the stream does not overload the site, it starts by
// then. Without patience it never does.
func TestWideCopyAmongNarrowOnes(t *testing.T) {
	const wall = time.Minute
	for b := range Backfill(len(backfillNames)) {
		for seed := range uint64(4) {
			rng := rand.New(rand.NewPCG(seed, 27))
			run := func() time.Duration { return 3 * time.Second } // the site is busy, and no queue forms
			if seed > 0 {
				run = func() time.Duration { return time.Duration(5+rng.IntN(296)) * time.Second / 5 }
			}
			c := Config{Backfill: b, Queues: DualBackfill}
			wide := *copyOf("a", 1, 2, wall)
			t.Run(fmt.Sprintf("%v/%d", b, seed), func(t *testing.T) {
				if o := stream(t, c, wide, run); seed == 0 && (o.started || o.times < 100) {
					t.Errorf("without patience: %+v", o)
				}
				c.Patience = 10 * time.Minute
				if o := stream(t, c, wide, run); !o.started || o.last > c.Patience+2*wall || seed == 0 && o.wait > c.Patience+2*wall {
					t.Errorf("with a patience of %v: %+v", c.Patience, o)
				}
				wide.elder = true
				if o := stream(t, c, wide, run); !o.started || o.last > 2*wall || seed == 0 && o.wait > 2*wall {
					t.Errorf("where its origin can never run it: %+v", o)
				}
			})
		}
	}
}

// The work of a pass with 10,000 remote copies, an elder among them that cannot
// start, is of the order of that without one, and allocates nothing.
func TestPassWithEldersScales(t *testing.T) {
	for _, c := range []Config{
		{Backfill: EASY, Queues: DualBackfill}, {Backfill: EASY, Queues: DualBackfill, Scope: ScopeAll},
		{Backfill: NoBackfill, Queues: DualBackfill}, {Backfill: Conservative, Queues: DualBackfill},
	} {
		t.Run(c.Policy(), func(t *testing.T) {
			steps := func(patience time.Duration, remote int) float64 {
				c.Patience = patience
				x := newCrowd(t, c, 200, 20, remote)
				x.s.Enqueue(x.now, job.Copy{
					ID: attempt("c", 1), Request: job.Request{Processors: x.s.cfg.Processors, Walltime: time.Hour}, Arrival: 1, Remote: true, Elder: true,
				})
				for range 20 { // scratch grows
					x.finish()
					x.pass()
				}
				work, passes := x.s.work(), 0
				for ; passes < 200; passes++ {
					x.finish()
					x.pass()
				}
				if patience > 0 && x.s.elder == gap {
					t.Error("no copy has the reservation")
				}
				if n := testing.AllocsPerRun(50, func() { x.s.stale = true; x.s.Pass(x.now) }); n > 0 {
					t.Errorf("a pass with patience %v allocates %v times", patience, n)
				}
				return float64(x.s.work()-work) / float64(passes)
			}
			off, on, fewer := steps(0, 10_000), steps(time.Minute, 10_000), steps(time.Minute, 1_000)
			t.Logf("%.0f steps a pass without patience, %.0f with, %.0f with a tenth of the copies", off, on, fewer)
			if on > 4*off+1000 || on > 20*fewer+1000 {
				t.Errorf("a pass takes %.0f steps, %.0f without patience, %.0f with a tenth of the copies", on, off, fewer)
			}
		})
	}
}
