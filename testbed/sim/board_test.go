package sim

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"kith/internal/job"
	"kith/meta"
	"kith/sitesched"
)

// TestBoardAgainstAllDigests holds what readers of the board see against every
// load that a site should have put there, taken down at its very instant. Most
// of the time no site reads, and then some digest is late or early if any is.
func TestBoardAgainstAllDigests(t *testing.T) {
	for _, c := range []LoadConfig{
		{Period: 30 * time.Second},
		{Period: 30 * time.Second, Delay: time.Second},
		{Period: 30 * time.Second, Delay: 29 * time.Second, Staggered: true},
		{Period: time.Minute, Delay: time.Minute},
		{Period: time.Minute, Delay: 5*time.Minute + time.Second, Staggered: true},
		{Period: 10 * time.Minute, Delay: 25 * time.Second},
	} {
		t.Run(fmt.Sprintf("%v late %v", c.Period, c.Delay), func(t *testing.T) {
			for seed := range uint64(4) {
				testBoard(t, c, seed)
			}
		})
	}
}

func testBoard(t *testing.T, loads LoadConfig, seed uint64) {
	rng := rand.New(rand.NewPCG(seed, 1)) //nolint:gosec // A test.
	loads.Shared = true
	cfg := Config{Seed: seed, Loads: loads, Check: true}
	for i := range 3 {
		m := meta.Default()
		m.Placement.Copies, m.Timing.Load, m.Timing.AntiEntropy = 2, 1000*time.Hour, 1000*time.Hour
		cfg.Sites = append(cfg.Sites, SiteConfig{
			ID: job.SiteID(fmt.Sprint("s", i)), Meta: m,
			Scheduler: sitesched.Config{Processors: 4, Backfill: sitesched.EASY, Queues: sitesched.DualBackfill, Scope: sitesched.ScopeAll},
		})
	}
	w, err := New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	const jobs = 120
	for range jobs {
		run := time.Duration(1+rng.IntN(400)) * time.Second
		w.Submit(Start.Add(time.Duration(rng.Int64N(int64(2*time.Hour)))), cfg.Sites[rng.IntN(3)].ID, Submission{
			Request: job.Request{Name: "test", User: "ada", Processors: 1 + rng.Int32N(4), Walltime: 2 * run}, RunTime: run,
		})
	}
	type posting struct {
		at   job.Time
		load job.Load
	}
	posted := make([][]posting, 3)
	due := make([]job.Time, 3)
	for i := range due {
		due[i] = Start
		if loads.Staggered {
			due[i] = Start.Add(loads.Period * time.Duration(i) / 3)
		}
	}
	seen := 0
	for {
		at, _, ok := w.agenda.next()
		if !ok || at > Start.Add(3*time.Hour) {
			break
		}
		for i, s := range w.sites {
			for ; due[i] <= at; due[i] = due[i].Add(loads.Period) {
				posted[i] = append(posted[i], posting{due[i], s.scheduler.Load(due[i])})
			}
		}
		w.now = at
		w.instant()
		if w.watch.broken != nil {
			t.Fatal(w.watch.broken)
		}
		if rng.IntN(6) > 0 {
			continue
		}
		i := rng.IntN(3)
		want := posting{at: -1}
		for _, p := range posted[i] {
			if p.at.Add(loads.Delay) <= at {
				want = p
			}
		}
		e := &w.board.entries[i]
		w.board.show(at, e, w.sites[i])
		if e.shown.at != want.at || e.shown.at >= 0 && e.shown.digest.Load != want.load {
			t.Fatalf("seed %d, %v: readers see s%d as at %v: %+v, want %v: %+v", seed, at.Sub(Start), i,
				e.shown.at.Sub(Start), e.shown.digest.Load, want.at.Sub(Start), want.load)
		}
		if want.load != (job.Load{Free: want.load.Free}) {
			seen++
		}
	}
	if seen < 10 {
		t.Errorf("seed %d: %d looks at a loaded site: nothing was tested", seed, seen)
	}
}

// A level looks at other sites to say how loaded it is, and they at it: with a board that, too, comes to an end, and
// each sees how much work the levels have.
func TestBoardOfLevels(t *testing.T) {
	t.Parallel()
	for _, period := range []time.Duration{0, 30 * time.Second} {
		cfg := Config{Seed: 1, Loads: LoadConfig{Shared: true, Period: period}, Check: true}
		for i := range 3 {
			m := meta.Default()
			m.Placement.Copies, m.Timing.Load, m.Timing.AntiEntropy = 2, 1000*time.Hour, 1000*time.Hour
			m.Self = meta.Self{Processors: 2, Speed: 1}
			m.Level = meta.LevelPolicy{Rank: i + 1, Queue: 2 * time.Hour, Run: time.Hour, Beta: 1}
			cfg.Sites = append(cfg.Sites, SiteConfig{
				ID: job.SiteID(fmt.Sprint("s", i)), Meta: m,
				Scheduler: sitesched.Config{Processors: 2, Backfill: sitesched.EASY, Queues: sitesched.DualBackfill, Scope: sitesched.ScopeAll},
			})
		}
		w, err := New(cfg)
		if err != nil {
			t.Fatal(err)
		}
		for i := range 6 {
			w.Submit(Start.Add(time.Duration(i+1)*time.Minute), "s0", Submission{
				Request: job.Request{
					Name: "test", User: "ada", Processors: 1, Walltime: job.MaxWalltime, Unknown: true, Level: 1, Checkpoint: true,
				}, RunTime: 10 * time.Minute, Pieces: 1,
			})
		}
		if err := w.Run(Start.Add(8 * time.Minute)); err != nil {
			t.Fatal(err)
		}
		sites := w.byID["s1"].engine.Views().Sites(w.now)
		if l := sites[1].Level; len(sites) != 3 || l == nil || l.Rank != 1 || l.Work == 0 {
			t.Errorf("every %v: s0 is level %+v", period, l)
		}
	}
}
