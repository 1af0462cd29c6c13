package sitesched

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"kith/internal/job"
)

// BenchmarkLog replays the whole CTC log, 77,205 jobs on 338 processors,
// event by event: enqueue, pass, confirm, finish.
func BenchmarkLog(b *testing.B) {
	for _, policy := range []Backfill{EASY, NoBackfill, Conservative, ConservativeReplan} {
		b.Run(policy.String(), func(b *testing.B) {
			w := readLoad(b, "ctc", 338)
			r := &replay{w: w, starts: make([]job.Time, len(w.copies))}
			b.ReportAllocs()
			for b.Loop() {
				r.s = mustNew(b, Config{Processors: 338, Backfill: policy})
				if err := r.all(); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64(len(w.copies)*b.N)/b.Elapsed().Seconds(), "jobs/s")
		})
	}
}

// crowd is a busy site: running copies, and queued copies that wait for them.
// Widths and walltimes are skewed as in real logs.
type crowd struct {
	s   *Scheduler
	rng *rand.Rand
	now job.Time
	n   int
}

func (c *crowd) copy(remote bool) entry {
	c.n++
	width := int32(1) << c.rng.IntN(8)
	wall := time.Duration(c.rng.ExpFloat64()*3600*float64(1+c.rng.IntN(10))+60) * time.Second
	origin := job.SiteID("a")
	if remote {
		origin = "b"
	}
	return entry{id: attempt(origin, c.n), processors: width, walltime: min(wall, 24*time.Hour), arrival: c.now, remote: remote}
}

func (c *crowd) job(remote bool) job.Copy {
	e := c.copy(remote)
	return e.copy()
}

func newCrowd(b testing.TB, cfg Config, running, local, remote int) *crowd {
	b.Helper()
	// The site is as wide as the running copies are together.
	c := &crowd{rng: rand.New(rand.NewPCG(1, 2))}
	var start []entry
	for range running {
		x := c.copy(false)
		start = append(start, x)
		cfg.Processors += x.processors
	}
	c.s = mustNew(b, cfg)
	for _, x := range start {
		c.s.Step(c.now, Event{Kind: Adopt, Copy: x, At: c.now - job.Time(c.rng.Int64N(int64(x.walltime)))})
	}
	c.now = 1
	for local+remote > 0 {
		far := c.rng.IntN(local+remote) < remote
		if far {
			remote--
		} else {
			local--
		}
		c.s.Step(c.now, Event{Kind: Enqueue, Copy: c.copy(far)})
		c.now += second
	}
	for range running {
		c.finish()
		c.pass()
	}
	return c
}

// pass runs a pass, confirms what it starts and lets as many fresh copies
// arrive. It returns how many started.
func (c *crowd) pass() int {
	started := c.s.Step(c.now, Event{Kind: Pass})
	for i := range started {
		c.s.Step(c.now, Event{Kind: Confirm, ID: started[i]})
		c.s.Step(c.now, Event{Kind: Enqueue, Copy: c.copy(c.s.known(started[i]).remote)})
	}
	return len(started)
}

// finish ends some running copy, a second later than whatever was before.
func (c *crowd) finish() {
	c.now += second
	items := c.s.run.items()
	it := items[c.rng.IntN(len(items))]
	if items[0].end <= c.now {
		it = items[0] // nothing runs longer than estimated
	}
	c.s.Step(c.now, Event{Kind: Finish, ID: c.s.table.rows[it.slot].copy.id})
}

// BenchmarkPass is one completion and the pass after it, with what it starts
// replaced by fresh arrivals.
func BenchmarkPass(b *testing.B) {
	for _, m := range []struct {
		cfg                    Config
		running, local, remote int
	}{
		{Config{Backfill: EASY}, 1000, 10000, 0},
		{Config{Backfill: EASY, Queues: DualBackfill, Scope: ScopeHead}, 1000, 2000, 8000},
		{Config{Backfill: EASY, Queues: DualBackfill, Scope: ScopeAll}, 1000, 2000, 8000},
		{Config{Backfill: EASY, Queues: DualBackfill, Scope: ScopeHead, Patience: time.Hour}, 1000, 2000, 10000},
		{Config{Backfill: EASY, Queues: DualBackfill, Scope: ScopeAll, Patience: time.Hour}, 1000, 2000, 10000},
		{Config{Backfill: NoBackfill, Queues: DualBackfill, Scope: ScopeAll}, 1000, 2000, 8000},
		{Config{Backfill: EASY, Queues: DualPreempt, Scope: ScopeHead}, 1000, 2000, 8000},
		{Config{Backfill: EASY, Queues: DualPreempt, Scope: ScopeAll}, 1000, 2000, 8000},
		{Config{Backfill: EASY, Queues: DualPreempt, Scope: ScopeAll, Patience: time.Hour}, 1000, 2000, 8000},
		{Config{Backfill: Conservative}, 1000, 2000, 0},
		{Config{Backfill: Conservative, Queues: DualPreempt}, 1000, 2000, 8000},
		{Config{Backfill: Conservative}, 1000, 10000, 0},
		{Config{Backfill: Conservative, Queues: DualBackfill}, 1000, 2000, 8000},
		{Config{Backfill: ConservativeReplan}, 1000, 10000, 0},
	} {
		b.Run(fmt.Sprintf("%s, patience %v/%d+%d", m.cfg.Policy(), m.cfg.Patience, m.local, m.remote), func(b *testing.B) {
			c := newCrowd(b, m.cfg, m.running, m.local, m.remote)
			started, running, free, n := 0, 0, int64(0), 0
			b.ReportAllocs()
			for b.Loop() {
				c.finish()
				started += c.pass()
				running += len(c.s.run.items())
				free += c.s.free
				n++
			}
			b.ReportMetric(float64(started)/float64(n), "starts/op")
			b.ReportMetric(float64(running)/float64(n), "running")
			b.ReportMetric(float64(free)/float64(n), "free")
		})
	}
}

// BenchmarkPreempt is a pass at a site full of guests to which local jobs come: 1,000 guests hold
// half of it, 2,000 local jobs and 8,000 remote copies wait behind one that wants all of it. Each
// local job that comes is short and narrow, starts at once, and has guests leave for it.
func BenchmarkPreempt(b *testing.B) {
	for _, scope := range []Scope{ScopeHead, ScopeAll} {
		b.Run(Config{Backfill: EASY, Queues: DualPreempt, Scope: scope}.Policy(), func(b *testing.B) {
			c := &crowd{rng: rand.New(rand.NewPCG(1, 2)), now: 1}
			c.s = mustNew(b, Config{Processors: 2000, Backfill: EASY, Queues: DualPreempt, Scope: scope})
			long := entry{id: attempt("a", 1_000_000), processors: 1000, walltime: 48 * time.Hour}
			c.s.Step(c.now, Event{Kind: Adopt, Copy: long, At: c.now})
			wide := entry{id: attempt("a", 1_000_001), processors: 2000, walltime: 48 * time.Hour}
			c.s.Step(c.now, Event{Kind: Enqueue, Copy: wide})
			for n := range 1000 {
				g := c.copy(true)
				g.processors, g.walltime = 1, 24*time.Hour+time.Duration(n)*time.Second
				c.s.Step(c.now, Event{Kind: Adopt, Copy: g, At: c.now})
			}
			for n := range 10_000 {
				x := c.copy(n%5 != 0)
				x.processors, x.walltime = max(x.processors, 8), 49*time.Hour // no local one overtakes
				c.s.Step(c.now, Event{Kind: Enqueue, Copy: x})
			}
			evicted, n := 0, 0
			b.ReportAllocs()
			for b.Loop() {
				c.now += second
				mine := c.copy(false)
				mine.processors, mine.walltime = 8, time.Hour
				c.s.Step(c.now, Event{Kind: Enqueue, Copy: mine})
				c.s.Step(c.now, Event{Kind: Pass})
				told := slices.Clone(c.s.Evicted())
				for _, id := range told {
					c.s.Step(c.now, Event{Kind: Finish, ID: id})
				}
				for _, id := range slices.Clone(c.s.Step(c.now, Event{Kind: Pass})) {
					c.s.Step(c.now, Event{Kind: Finish, ID: id})
				}
				for range told {
					g := c.copy(true)
					g.processors, g.walltime = 1, 24*time.Hour
					c.s.Step(c.now, Event{Kind: Adopt, Copy: g, At: c.now})
				}
				evicted += len(told)
				n++
			}
			b.ReportMetric(float64(evicted)/float64(n), "evicted/op")
		})
	}
}

// BenchmarkWhatIf predicts the start of a copy that comes now.
func BenchmarkWhatIf(b *testing.B) {
	for _, m := range []struct {
		cfg                    Config
		running, local, remote int
	}{
		{Config{Backfill: NoBackfill}, 1000, 1000, 0},
		{Config{Backfill: EASY}, 100, 100, 0},
		{Config{Backfill: EASY}, 1000, 1000, 0},
		{Config{Backfill: EASY}, 1000, 10000, 0},
		{Config{Backfill: EASY, Queues: DualBackfill, Scope: ScopeAll}, 100, 20, 80},
		{Config{Backfill: EASY, Queues: DualBackfill, Scope: ScopeAll}, 1000, 200, 800},
		{Config{Backfill: Conservative}, 1000, 1000, 0},
	} {
		b.Run(fmt.Sprintf("%s/%d+%d", m.cfg.Policy(), m.local, m.remote), func(b *testing.B) {
			c := newCrowd(b, m.cfg, m.running, m.local, m.remote)
			guest := c.job(false)
			exact := 0.0
			b.ReportAllocs()
			for b.Loop() {
				p, err := c.s.WhatIf(c.now, guest)
				if err != nil {
					b.Fatal(err)
				}
				if p.Exact {
					exact = 1
				}
			}
			b.ReportMetric(exact, "exact")
		})
	}
}

// BenchmarkLoadMetrics asks for the loads of a crowded site.
func BenchmarkLoadMetrics(b *testing.B) {
	c := newCrowd(b, Config{Backfill: EASY}, 1000, 10000, 0)
	guest := c.job(false)
	b.Run("load", func(b *testing.B) {
		for b.Loop() {
			c.s.Load(c.now)
		}
	})
	b.Run("start", func(b *testing.B) {
		for b.Loop() {
			c.s.EarliestStart(c.now, guest)
		}
	})
	b.Run("start-after-change", func(b *testing.B) {
		for b.Loop() {
			c.s.surfaceValid = false
			c.s.EarliestStart(c.now, guest)
		}
	})
}

// BenchmarkPassScaling shows how a pass grows with the queue.
func BenchmarkPassScaling(b *testing.B) {
	for _, backfill := range []Backfill{NoBackfill, EASY} {
		for _, n := range []int{1000, 10000, 100000} {
			b.Run(fmt.Sprintf("%s/%d", backfill, n), func(b *testing.B) {
				c := newCrowd(b, Config{Backfill: backfill}, 1000, n, 0)
				b.ReportAllocs()
				for b.Loop() {
					c.finish()
					c.pass()
				}
			})
		}
	}
}
