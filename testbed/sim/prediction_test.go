package sim_test

import (
	"math/rand/v2"
	"testing"
	"time"

	"kith/internal/job"
	"kith/meta"
	"kith/sitesched"
	"kith/testbed/sim"
)

// Spec 004 section 5 no. 2: where nothing arrives any more and estimates are
// exact, every queued job starts when its site predicts, in one federation of
// single, strict dual and backfilling queues with jobs of each other.
func TestPredictionsComeTrue(t *testing.T) {
	states := 100
	if testing.Short() {
		states = 20
	}
	predicted, remote := 0, 0
	for seed := range uint64(states) {
		rng := rand.New(rand.NewPCG(seed, 1))
		cfg := federation(seed, 4, 4, 6, 6)
		for i := range cfg.Sites {
			cfg.Sites[i].Meta.Placement.Conserve = false // predictions know of no moves
		}

		for i, q := range []sitesched.Queues{sitesched.Single, sitesched.DualStrict, sitesched.DualBackfill, sitesched.Single} {
			s := &cfg.Sites[i].Scheduler
			if s.Queues = q; i < 2 {
				s.Backfill = sitesched.NoBackfill
			}
			cfg.Sites[i].Meta.Placement.Scheme, cfg.Sites[i].Meta.Placement.Rank = meta.MCT, meta.RankCompletion
		}
		starts := make(map[job.AttemptID]job.Time)
		var w *sim.World
		cfg.Began = func(_ job.SiteID, a job.AttemptID, _ int) { starts[a] = w.Now() }
		w = newWorld(t, cfg)
		frozen := sim.Start.Add(10 * time.Minute)
		n := 20 + rng.IntN(60)
		for range n {
			run := time.Duration(1+rng.IntN(400)) * time.Second
			w.Submit(sim.Start.Add(time.Duration(rng.Int64N(int64(10*time.Minute)))), cfg.Sites[rng.IntN(4)].ID,
				sim.Submission{Request: request(1+rng.Int32N(4), run), RunTime: run})
		}
		if err := w.Run(frozen); err != nil {
			t.Fatal(err)
		}
		want := make(map[job.AttemptID]job.Time)
		for _, s := range cfg.Sites {
			sched := w.Site(s.ID).Scheduler()
			var queued []job.Copy
			for q := range sched.Queued {
				queued = append(queued, q.Copy)
			}
			for _, c := range queued {
				p, err := sched.WhatIf(frozen, c)
				if err != nil || !p.Exact {
					t.Fatalf("seed %d: prediction for %v: %+v, %v", seed, c.ID, p, err)
				}
				want[c.ID] = p.Start
				predicted++
				if c.Remote {
					remote++
				}
			}
		}
		if err := w.RunWhile(frozen.Add(48*time.Hour), func() bool { return !drained(w) }); err != nil {
			t.Fatal(err)
		}
		for id, at := range want {
			if starts[id] != at {
				t.Fatalf("seed %d: %v started %v after the freeze, predicted %v", seed, id, starts[id].Sub(frozen), at.Sub(frozen))
			}
		}
	}
	if predicted < 10*states || remote < states {
		t.Errorf("%d predictions, %d of remote jobs, in %d states: nothing much was tested", predicted, remote, states)
	}
}
