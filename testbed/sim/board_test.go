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
