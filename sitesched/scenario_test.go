package sitesched

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"kith/internal/forecast"
	"kith/internal/job"
)

// scripted are draws that are known beforehand: run times by name, and arrivals.
type scripted struct {
	runs     map[job.AttemptID]time.Duration
	names    map[int32]job.AttemptID
	arrivals []forecast.Arrival
	next     int
}

func (d *scripted) Run(number int32, elapsed time.Duration) time.Duration {
	return max(d.runs[d.names[number]], elapsed)
}

func (d *scripted) Next() (a forecast.Arrival, ok bool) {
	if d.next == len(d.arrivals) {
		return a, false
	}
	d.next++
	return d.arrivals[d.next-1], true
}

// playScript runs s as a daemon would drive it, with the run times and arrivals of a script,
// and returns all starts.
func playScript(t *testing.T, s *Scheduler, now job.Time, d *scripted) map[job.AttemptID]job.Time {
	t.Helper()
	starts, ends := map[job.AttemptID]job.Time{}, map[job.AttemptID]job.Time{}
	for c := range s.Running {
		limit := c.End
		if limit <= now {
			limit = now.Add(time.Second)
		}
		run := max(d.runs[c.Copy.ID], now.Sub(c.Since))
		ends[c.Copy.ID] = min(max(c.Since.Add(run), now+1), limit)
	}
	arrivals := slices.Clone(d.arrivals)
	for n := uint64(1); ; {
		for _, e := range slices.Clone(s.Step(now, Event{Kind: Pass})) {
			starts[e] = now
			ends[e] = min(now.Add(max(d.runs[e], 1)), now.Add(s.known(e).walltime))
			s.Step(now, Event{Kind: Confirm, ID: e})
		}
		next := s.NextWake(now)
		for _, end := range ends {
			next = min(next, end)
		}
		if len(arrivals) > 0 {
			next = min(next, arrivals[0].At)
		}
		if next == job.Never {
			return starts
		}
		now = next
		for id, end := range ends {
			if end <= now {
				s.Step(now, Event{Kind: Finish, ID: id})
				delete(ends, id)
			}
		}
		for ; len(arrivals) > 0 && arrivals[0].At == now; arrivals = arrivals[1:] {
			a := arrivals[0]
			if a.Procs > s.cfg.Processors {
				continue
			}
			id := job.AttemptID{Job: job.ID{Seq: n}, Number: 1}
			n++
			d.runs[id] = a.Run
			s.Step(now, Event{Kind: Enqueue, Copy: entry{id: id, processors: a.Procs, memoryBytes: a.MemoryBytes, walltime: a.Limit, arrival: now, remote: a.Remote}})
		}
	}
}

// narrowed returns a copy of s with scope head.
func narrowed(s *Scheduler) *Scheduler {
	c := s.Clone()
	if c.cfg.Scope == ScopeAll {
		c.narrow()
	}
	return c
}

// A scenario is what the site would do if run times and arrivals were those: for every copy
// that waits and for one that comes now, under every discipline, whatever the scenarios before.
func TestScenarioIsTheSimulation(t *testing.T) {
	everyDiscipline(t, func(t *testing.T, c Config) {
		var p Player
		n, played := scaled(cases/28), 0
		for seed := range n {
			s, at := frozen(t, seed, c)
			if s.draining {
				continue
			}
			now := job.Time(at) * second
			before := sight(s, now)
			rng := rand.New(rand.NewPCG(seed, 21))
			d := &scripted{runs: make(map[job.AttemptID]time.Duration)}
			for x := range s.Running {
				d.runs[x.Copy.ID] = time.Duration(rng.Int64N(int64(12 * time.Second)))
			}
			var asked []job.Copy
			for x := range s.Queued {
				d.runs[x.Copy.ID] = time.Duration(rng.Int64N(int64(12 * time.Second)))
				asked = append(asked, x.Copy)
			}
			guest := entry{
				id: attempt("z", 99), processors: 1 + int32(seed)%s.cfg.Processors,
				walltime: secs(1 + int(seed)%9), arrival: now, remote: seed%2 == 0,
			}
			asked = append(asked, guest.copy())
			come := now
			for range rng.IntN(10) {
				come = come.Add(time.Duration(1 + rng.Int64N(int64(5*time.Second))))
				d.arrivals = append(d.arrivals, forecast.Arrival{
					At: come, Procs: 1 + rng.Int32N(s.cfg.Processors+1), Limit: secs(1 + rng.IntN(9)), Run: time.Duration(rng.Int64N(int64(9 * time.Second))), Remote: rng.IntN(2) == 0,
				})
			}
			want := playScript(t, narrowed(s), now, d)
			for _, x := range asked {
				if x.ID == guest.id {
					after := narrowed(s)
					after.Step(now, Event{Kind: Enqueue, Copy: guest})
					want = playScript(t, after, now, d)
				}
				err := s.Prepare(now, &x, 0, &p)
				if errors.Is(err, ErrNoStart) {
					continue
				}
				if err != nil {
					t.Fatalf("seed %d at %d: %v: %v", seed, at, x.ID, err)
				}
				d.names = make(map[int32]job.AttemptID)
				for number, y := range p.Copies {
					d.names[number] = y.ID
				}
				for again := range 2 {
					d.next = 0
					start, ok := p.Play(d)
					wanted, starts := want[x.ID]
					if !starts {
						wanted = job.Never
					}
					if played++; !ok || start != wanted {
						t.Fatalf("seed %d at %d, play %d: %v starts at %d (%v), want %d", seed, at, again, x.ID, start, ok, wanted)
					}
				}
			}
			if got := sight(s, now); got != before {
				t.Fatalf("seed %d: scenarios changed the site from\n%s\nto\n%s", seed, before, got)
			}
		}
		if played < int(n) {
			t.Errorf("only %d scenarios", played)
		}
	})
}

// Where every copy uses its limit and nothing arrives, a scenario says what WhatIf says.
func TestScenarioOfLimitsIsWhatIf(t *testing.T) {
	everyDiscipline(t, func(t *testing.T, c Config) {
		c.Scope = ScopeHead
		var p Player
		for seed := range scaled(cases / 100) {
			s, at := frozen(t, seed, c)
			now := job.Time(at) * second
			for x := range s.Clone().Queued {
				want, err := s.WhatIf(now, x.Copy)
				if err != nil || want.Start == job.Never {
					continue
				}
				if err := s.Prepare(now, &x.Copy, 0, &p); err != nil {
					t.Fatal(err)
				}
				if start, ok := p.Play(limits{}); !ok || start != want.Start {
					t.Fatalf("seed %d: %v starts at %d, what-if says %d", seed, x.Copy.ID, start, want.Start)
				}
			}
		}
	})
}

// limits is the scenario in which every copy uses its limit and nothing arrives.
type limits struct{}

func (limits) Run(int32, time.Duration) time.Duration { return job.MaxWalltime }
func (limits) Next() (a forecast.Arrival, ok bool)    { return a, false }

// Copies of other sites are planned with the margin and run without it.
func TestScenariosConfirmWhatTheyStart(t *testing.T) {
	s := mustNew(t, Config{Processors: 4, Backfill: EASY, Queues: DualBackfill, StartMargin: time.Hour})
	enqueueAll(s, 0, waiting(1, 4, 10, true), waiting(2, 4, 10, true), waiting(3, 4, 10, true))
	var p Player
	three := waiting(3, 4, 10, true)
	last := three.copy()
	if err := s.Prepare(0, &last, 0, &p); err != nil {
		t.Fatal(err)
	}
	if start, ok := p.Play(limits{}); !ok || start != 20*second {
		t.Errorf("%d, %v", start, ok)
	}
}

func TestPrepareRefuses(t *testing.T) {
	s := mustNew(t, Config{Processors: 4, Backfill: EASY})
	enqueueAll(s, 0, waiting(1, 4, 10, false), waiting(2, 4, 10, false))
	s.Pass(0)
	var p Player
	wide := job.Copy{ID: attempt("a", 9), Request: job.Request{Processors: 5, Walltime: time.Second}}
	if err := s.Prepare(0, &wide, 0, &p); !errors.Is(err, ErrTooWide) {
		t.Errorf("too wide: %v", err)
	}
	if err := s.Prepare(0, &job.Copy{ID: attempt("a", 1)}, 0, &p); !errors.Is(err, ErrStarted) {
		t.Errorf("started: %v", err)
	}
	if err := s.Prepare(0, &job.Copy{ID: attempt("a", 2)}, 1, &p); err != nil {
		t.Fatal(err)
	}
	p.Play(limits{})
	if start, ok := p.Play(limits{}); ok {
		t.Errorf("with its steps used up it starts at %d", start)
	}
	s.Drain(0, true)
	if err := s.Prepare(0, &job.Copy{ID: attempt("a", 2)}, 0, &p); !errors.Is(err, ErrNoStart) {
		t.Errorf("draining: %v", err)
	}
	s.Drain(0, false)
	s.SetAside(0, "a")
	if err := s.Prepare(0, &job.Copy{ID: attempt("a", 2)}, 0, &p); !errors.Is(err, ErrNoStart) {
		t.Errorf("aside: %v", err)
	}
}

// crowdCast gives every copy of a crowd a run time, and days of arrivals.
type crowdCast struct {
	forecast.Cast
	forecast.Stream
	days forecast.Days
	dist forecast.Dist
}

func newCrowdCast(c *crowd, numbers int, limit func(int32) time.Duration) *crowdCast {
	d := &crowdCast{}
	rng := rand.New(rand.NewPCG(1, 3))
	for range 60 {
		d.dist.Add(time.Duration(rng.Float64()*rng.Float64()*float64(10*time.Hour)), 1)
	}
	d.Reset(numbers)
	for i := range int32(numbers) {
		d.Set(i, &d.dist, limit(i), fmt.Sprint(i%50))
	}
	for at := c.now.Add(-10 * forecast.Day); at < c.now; at = at.Add(10 * time.Minute) {
		e := c.copy(rng.IntN(5) > 0)
		d.days.Add(forecast.Arrival{At: at, Procs: e.processors, Limit: e.walltime, Run: time.Duration(rng.Float64() * float64(e.walltime)), Remote: e.remote})
	}
	return d
}

func (d *crowdCast) scenario(p *Player, rng *rand.Rand) (job.Time, bool) {
	return d.scenarioUntil(p, rng, job.Never)
}

func (d *crowdCast) scenarioUntil(p *Player, rng *rand.Rand, until job.Time) (job.Time, bool) {
	d.Begin(rng)
	d.days.Draw(p.now, rng, &d.Stream)
	return p.PlayUntil(d, until)
}

// Once a player has played, it allocates nothing.
func TestScenariosAllocateNothing(t *testing.T) {
	c := newCrowd(t, Config{Backfill: EASY, Queues: DualBackfill, Scope: ScopeAll}, 50, 20, 80)
	var p Player
	last := c.job(false)
	rng := rand.New(rand.NewPCG(1, 4))
	if err := c.s.Prepare(c.now, &last, 0, &p); err != nil {
		t.Fatal(err)
	}
	d := newCrowdCast(c, p.Numbers(), p.limit)
	forecasting := func() {
		if err := c.s.Prepare(c.now, &last, 0, &p); err != nil {
			t.Fatal(err)
		}
		for range 5 {
			if _, ok := d.scenario(&p, rng); !ok {
				t.Fatal("the steps are used up")
			}
		}
	}
	for range 50 {
		forecasting()
	}
	if n := testing.AllocsPerRun(20, forecasting); n > 1 {
		t.Errorf("%v allocations", n)
	}
}

func (p *Player) limit(number int32) time.Duration { return walltime(&p.base.table.rows[number].copy) }

// BenchmarkScenario plays scenarios for the last local copy, with arrivals; a forecast is one
// preparation and 50 of them.
func BenchmarkScenario(b *testing.B) {
	for _, m := range []struct {
		cfg                    Config
		running, local, remote int
	}{
		{Config{Backfill: EASY}, 100, 100, 0},
		{Config{Backfill: EASY}, 300, 1000, 0},
		{Config{Backfill: EASY}, 1000, 10000, 0},
		{Config{Backfill: EASY, Queues: DualBackfill, Scope: ScopeAll}, 100, 20, 80},
		{Config{Backfill: EASY, Queues: DualBackfill, Scope: ScopeAll}, 300, 200, 800},
		{Config{Backfill: EASY, Queues: DualBackfill, Scope: ScopeAll}, 1000, 2000, 8000},
		{Config{Backfill: Conservative}, 100, 100, 0},
	} {
		b.Run(fmt.Sprintf("%s/%d+%d", m.cfg.Policy(), m.local, m.remote), func(b *testing.B) {
			c := newCrowd(b, m.cfg, m.running, m.local, m.remote)
			last := c.job(false)
			var p Player
			rng := rand.New(rand.NewPCG(1, 4))
			if err := c.s.Prepare(c.now, &last, 0, &p); err != nil {
				b.Fatal(err)
			}
			d := newCrowdCast(c, p.Numbers(), p.limit)
			b.ReportAllocs()
			steps := int64(0)
			for b.Loop() {
				p.left, steps = DefaultScenarioSteps, steps+DefaultScenarioSteps-p.left
				if _, ok := d.scenario(&p, rng); !ok {
					b.Fatal("the steps are used up")
				}
			}
			b.ReportMetric(float64(steps)/float64(b.N), "steps/op")
		})
	}
}

// BenchmarkPrepare is the time for which a forecast holds up the loop.
func BenchmarkPrepare(b *testing.B) {
	for _, n := range []int{100, 1000, 10_000} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			c := newCrowd(b, Config{Backfill: EASY, Queues: DualBackfill, Scope: ScopeAll}, max(100, n/10), n/5, n-n/5)
			last := c.job(false)
			var p Player
			b.ReportAllocs()
			for b.Loop() {
				if err := c.s.Prepare(c.now, &last, 0, &p); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// A scenario that is played up to an instant says that instant where the whole one starts later,
// and else the same.
func TestPlayUntil(t *testing.T) {
	c := newCrowd(t, Config{Backfill: EASY, Queues: DualBackfill, Scope: ScopeAll}, 30, 20, 20)
	last := c.job(true)
	var p Player
	if err := c.s.Prepare(c.now, &last, 0, &p); err != nil {
		t.Fatal(err)
	}
	d := newCrowdCast(c, p.Numbers(), p.limit)
	whole, ok := d.scenario(&p, rand.New(rand.NewPCG(1, 4)))
	if !ok || whole <= c.now || whole == job.Never {
		t.Fatalf("the whole scenario starts at %v, %v", whole, ok)
	}
	for _, until := range []job.Time{c.now + 1, c.now + (whole-c.now)/2, whole - 1, whole, whole + 1, job.Never} {
		before := p.Left()
		got, ok := d.scenarioUntil(&p, rand.New(rand.NewPCG(1, 4)), until)
		if want := min(whole, until); !ok || got != want {
			t.Errorf("up to %v: %v, %v, want %v", until, got, ok, want)
		}
		if p.Left() >= before {
			t.Errorf("up to %v: no steps were taken", until)
		}
	}
}
