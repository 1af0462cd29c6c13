package sitesched

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"kith/internal/job"
)

// shadowed is a site that its shadow follows: jobs with real run times, some of them guests,
// some cancelled while they wait or run.
type shadowed struct {
	s      *Scheduler
	w      *Shadow
	now    job.Time
	copies []entry
	run    map[job.AttemptID]time.Duration
	// leave is when the user cancels, cancelled when that was not too late.
	leave, cancelled map[job.AttemptID]job.Time
	began, shade     map[job.AttemptID]job.Time
	drains           []job.Time   // at which the site begins to drain, and goes on, in turns
	tell             func(func()) // hands a fact to the shadow, now or later
	arrivals         []func()     // those about jobs that come, which are not told if apart
	apart            bool
	follow           func() // lets the shadow follow after an instant
	lag              time.Duration
}

func newShadowed(t testing.TB, rng *rand.Rand, c Config, jobs int, guests bool) *shadowed {
	t.Helper()
	c.Processors = 1 + rng.Int32N(12)
	w, err := NewShadow(c)
	if err != nil {
		t.Fatal(err)
	}
	x := &shadowed{
		s: mustNew(t, c), w: w, began: make(map[job.AttemptID]job.Time), shade: make(map[job.AttemptID]job.Time),
		run: make(map[job.AttemptID]time.Duration), leave: make(map[job.AttemptID]job.Time), cancelled: make(map[job.AttemptID]job.Time),
		tell: func(f func()) { f() },
	}
	x.follow = x.advance
	at := job.Time(0)
	for n := range jobs {
		at += job.Time(rng.IntN(6)) * second
		e := entry{id: attempt("a", n), processors: 1 + rng.Int32N(c.Processors), walltime: time.Duration(1+rng.IntN(30)) * time.Second, arrival: at}
		if rng.IntN(3) > 0 {
			e.processors = 1 + rng.Int32N((c.Processors+2)/3)
		}
		if guests && rng.IntN(2) == 0 {
			e.id.Job.Origin, e.remote = "b", true
		}
		run := e.walltime
		if rng.IntN(2) == 0 {
			run = time.Duration(1+rng.IntN(int(e.walltime/time.Second))) * time.Second
		}
		if rng.IntN(6) == 0 {
			x.leave[e.id] = at.Add(time.Duration(1+rng.IntN(60)) * time.Second)
		}
		x.copies, x.run[e.id] = append(x.copies, e), run
	}
	return x
}

// play drives the site to its end, and after instant the shadow with it.
func (x *shadowed) play() {
	type end struct {
		at job.Time
		id job.AttemptID
	}
	var ending []end
	next, home := 0, func(id job.AttemptID) bool { return id.Job.Origin == "a" }
	for {
		x.now = x.s.NextWake(x.now)
		for _, e := range ending {
			x.now = min(x.now, e.at)
		}
		for _, at := range x.leave {
			x.now = min(x.now, at)
		}
		if next < len(x.copies) {
			x.now = min(x.now, x.copies[next].arrival)
		}
		if len(x.drains) > 0 {
			x.now = min(x.now, x.drains[0])
		}
		if x.now == job.Never {
			return
		}
		now := x.now
		ending = slices.DeleteFunc(ending, func(e end) bool {
			if e.at == now {
				if x.s.Finish(now, e.id); home(e.id) {
					ran := now.Sub(x.began[e.id])
					x.tell(func() { x.w.Ran(e.id, ran) })
				}
			}
			return e.at == now
		})
		for i := range x.copies[:next] {
			id := x.copies[i].id
			if at, due := x.leave[id]; !due || at > now {
				continue
			}
			delete(x.leave, id)
			if !x.s.Has(id) {
				continue // it has ended
			}
			x.cancelled[id] = now
			x.s.Withdraw(now, id)
			x.s.Finish(now, id)
			ending = slices.DeleteFunc(ending, func(e end) bool { return e.id == id })
			if home(id) {
				x.tell(func() { x.w.Leave(id, now) })
			}
		}
		for len(x.drains) > 0 && x.drains[0] == now {
			on := len(x.drains)%2 == 0
			x.drains = x.drains[1:]
			x.s.Drain(now, on)
			x.tell(func() { x.w.Drain(on, now) })
		}
		for ; next < len(x.copies) && x.copies[next].arrival == now; next++ {
			c := x.copies[next].copy()
			if x.s.Enqueue(now, c); home(c.ID) {
				arrives := func() { x.w.Arrive(c, now) }
				if x.arrivals = append(x.arrivals, arrives); !x.apart {
					x.tell(arrives)
				}
			}
		}
		for _, id := range slices.Clone(x.s.Pass(now)) {
			x.s.Confirm(now, id, now)
			x.began[id] = now
			ending = append(ending, end{now.Add(x.run[id]), id})
		}
		for _, e := range ending {
			if began := x.began[e.id]; home(e.id) {
				x.tell(func() { x.w.Runs(e.id, now.Sub(began)) })
			}
		}
		if x.follow(); x.w != nil {
			x.lag = max(x.lag, x.now.Sub(x.w.Reached()))
		}
	}
}

func (x *shadowed) advance() {
	x.w.Advance(x.now, func(id job.AttemptID, at job.Time) { x.shade[id] = at })
}

// Without guests the shadow is the real schedule, start for start and at each instant, under
// every discipline.
func TestShadowWithoutGuestsIsReal(t *testing.T) {
	everyDiscipline(t, func(t *testing.T, c Config) {
		for seed := range scaled(200) {
			x := newShadowed(t, rand.New(rand.NewPCG(seed, 31)), c, 60, false)
			x.play()
			if want := fmt.Sprint(x.began); fmt.Sprint(x.shade) != want || x.lag != 0 || len(x.began) == 0 {
				t.Fatalf("seed %d: starts %v, want %v; the shadow is up to %v behind", seed, x.shade, want, x.lag)
			}
		}
	})
}

// A drain keeps jobs waiting in the shadow as it does in reality, and no longer.
func TestShadowDrains(t *testing.T) {
	everyDiscipline(t, func(t *testing.T, c Config) {
		waited := 0
		for seed := range scaled(100) {
			rng := rand.New(rand.NewPCG(seed, 33))
			x := newShadowed(t, rng, c, 60, false)
			at := job.Time(0)
			for range 2 * (1 + rng.IntN(4)) {
				at += job.Time(1+rng.IntN(40)) * second
				x.drains = append(x.drains, at)
			}
			drains := slices.Clone(x.drains)
			x.play()
			if want := fmt.Sprint(x.began); fmt.Sprint(x.shade) != want || x.lag != 0 || len(x.began) == 0 {
				t.Fatalf("seed %d, drains %v: starts %v, want %v; the shadow is up to %v behind", seed, drains, x.shade, want, x.lag)
			}
			for _, began := range x.began {
				for i := 0; i < len(drains); i += 2 {
					if began >= drains[i] && began < drains[i+1] {
						t.Fatalf("seed %d: a start at %v, while it drains from %v to %v", seed, began, drains[i], drains[i+1])
					}
					waited += btoi(began == drains[i+1])
				}
			}
		}
		if waited == 0 {
			t.Error("nothing ever waited for the end of a drain")
		}
	})
}

// With guests the shadow is the schedule in which there are none, whenever it hears of what
// has happened: at once, now and then, or all of it at the end and in any order.
func TestShadowIsTheScheduleAlone(t *testing.T) {
	everyDiscipline(t, func(t *testing.T, c Config) {
		differs, lags := 0, 0
		for seed := range scaled(200) {
			var x *shadowed
			for how := range 3 {
				rng := rand.New(rand.NewPCG(seed, 32))
				x = newShadowed(t, rng, c, 60, true)
				var late []func()
				if x.apart = how == 2; how > 0 {
					x.tell = func(f func()) { late = append(late, f) }
					x.follow = func() {
						if how == 2 || rng.IntN(20) > 0 {
							return
						}
						for _, f := range late {
							f()
						}
						late = late[:0]
						x.advance()
					}
				}
				x.play()
				if how == 2 { // what comes is known before what becomes of it
					rng.Shuffle(len(late), func(i, j int) { late[i], late[j] = late[j], late[i] })
					late = append(x.arrivals, late...)
				}
				for _, f := range late {
					f()
				}
				x.now = job.Never - 1
				x.advance()
				if got, want := fmt.Sprint(x.shade), fmt.Sprint(x.alone(t, c).began); got != want {
					t.Fatalf("seed %d, heard in way %d: the shadow starts\n%v, alone it is\n%v", seed, how, got, want)
				}
				if how == 0 {
					lags += min(int(x.lag), 1)
				}
			}
			for id, at := range x.shade {
				if began, did := x.began[id]; did && began != at {
					differs++
					break
				}
			}
		}
		if differs == 0 || lags == 0 {
			t.Errorf("guests change %d schedules and %d shadows lag: the test sees nothing", differs, lags)
		}
	})
}

// alone plays the home jobs by themselves. How long one that was cancelled would have run
// nobody knows: until its limit, or until it was cancelled.
func (x *shadowed) alone(t *testing.T, c Config) *shadowed {
	t.Helper()
	c.Processors = x.s.cfg.Processors
	y := &shadowed{s: mustNew(t, c), run: make(map[job.AttemptID]time.Duration), leave: make(map[job.AttemptID]job.Time), began: make(map[job.AttemptID]job.Time)}
	y.tell, y.follow = func(func()) {}, func() {}
	y.cancelled = make(map[job.AttemptID]job.Time)
	for _, e := range x.copies {
		if e.remote {
			continue
		}
		y.copies = append(y.copies, e)
		y.run[e.id] = x.run[e.id]
		if at, gone := x.cancelled[e.id]; gone {
			y.run[e.id], y.leave[e.id] = e.walltime, at
		}
	}
	y.play()
	return y
}

// The whole log, with guests nowhere: the shadow starts every job when it really starts.
func TestShadowOfALog(t *testing.T) {
	for name, processors := range map[string]int32{"ctc": 338, "kth-5k": 100} {
		t.Run(name, func(t *testing.T) {
			w := readLoad(t, name, processors)
			r := &replay{w: w, starts: make([]job.Time, len(w.copies)), s: mustNew(t, Config{Processors: processors, Backfill: EASY, Queues: DualBackfill, Scope: ScopeAll})}
			if err := r.all(); err != nil {
				t.Fatal(err)
			}
			shade, n := shadowOf(t, w, processors), 0
			for i, at := range shade {
				if at != r.starts[i] {
					n++
				}
			}
			if n > 0 || len(shade) == 0 {
				t.Errorf("%d of %d jobs start at another time in the shadow", n, len(shade))
			}
		})
	}
}

// shadowOf tells a shadow of a whole workload and returns all starts.
func shadowOf(t testing.TB, w *load, processors int32) []job.Time {
	t.Helper()
	x, err := NewShadow(Config{Processors: processors, Backfill: EASY})
	if err != nil {
		t.Fatal(err)
	}
	starts := make([]job.Time, len(w.copies))
	for i := range w.copies {
		c := w.copies[i].copy()
		x.Arrive(c, c.Arrival)
		x.Ran(c.ID, w.run[i])
		x.Advance(c.Arrival-1, func(id job.AttemptID, at job.Time) { starts[id.Job.Seq] = at })
	}
	x.Advance(job.Never-1, func(id job.AttemptID, at job.Time) { starts[id.Job.Seq] = at })
	return starts
}

// A shadow waits where it does not know how long a job runs, and says so; it goes on when the
// job has ended, has run for as long, or is cancelled. A job that is held comes again.
func TestShadowWaitsForRunTimes(t *testing.T) {
	w, err := NewShadow(Config{Processors: 4})
	if err != nil {
		t.Fatal(err)
	}
	starts := make(map[int]job.Time)
	advance := func(until, want job.Time) {
		t.Helper()
		if got := w.Advance(until*second, func(id job.AttemptID, at job.Time) { starts[int(id.Job.Seq)] = at / second }); got != want*second {
			t.Errorf("the shadow gets to %v, want %v s", time.Duration(got), want)
		}
	}
	come := func(n int, at job.Time) {
		w.Arrive(job.Copy{ID: attempt("a", n), Arrival: at * second, Request: job.Request{Processors: 4, Walltime: 100 * time.Second}}, at*second)
	}
	come(1, 10)
	come(1, 11) // again: nothing
	come(2, 20)
	come(3, 30)
	w.Arrive(job.Copy{ID: attempt("a", 9), Request: job.Request{Processors: 5, Walltime: time.Second}}, 0) // too wide
	advance(50, 10)                                                                                        // it has not started in reality
	w.Runs(attempt("a", 1), 5*time.Second)
	advance(50, 15)
	w.Leave(attempt("a", 2), 40*second) // held
	w.Ran(attempt("a", 1), 50*time.Second)
	advance(50, 50)
	advance(70, 60)
	w.Leave(attempt("a", 3), 65*second) // cancelled
	come(2, 90)
	advance(80, 80)
	advance(100, 90)
	w.Runs(attempt("a", 2), time.Hour) // more than its limit
	advance(1000, 1000)
	w.Ran(attempt("a", 2), time.Hour)
	if want := map[int]job.Time{1: 10, 3: 60, 2: 90}; fmt.Sprint(starts) != fmt.Sprint(want) {
		t.Errorf("starts %v, want %v", starts, want)
	}
	if len(w.slots) != 0 || len(w.spare) != len(w.jobs) || len(w.list) != 0 {
		t.Errorf("the shadow keeps %d names, %d of %d jobs and %d moments of jobs that are over", len(w.slots), len(w.jobs)-len(w.spare), len(w.jobs), len(w.list))
	}
}

// BenchmarkShadow tells a shadow of a log, job by job.
func BenchmarkShadow(b *testing.B) {
	for name, processors := range map[string]int32{"ctc": 338, "kth-5k": 100} {
		b.Run(name, func(b *testing.B) {
			w := readLoad(b, name, processors)
			b.ReportAllocs()
			for b.Loop() {
				shadowOf(b, w, processors)
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(len(w.copies)*b.N), "ns/job")
		})
	}
}
