package sim_test

import (
	"fmt"
	"testing"
	"time"

	"kith/internal/job"
	"kith/meta"
	"kith/sitesched"
	"kith/testbed/sim"
	"kith/testbed/workload"
)

// federation returns sites s0, s1, … of the given widths.
func federation(seed uint64, widths ...int32) sim.Config {
	cfg := sim.Config{Seed: seed, Check: true}
	for i, p := range widths {
		cfg.Sites = append(cfg.Sites, sim.SiteConfig{
			ID:        job.SiteID(fmt.Sprint("s", i)),
			Scheduler: sitesched.Config{Processors: p, Backfill: sitesched.EASY, Queues: sitesched.DualBackfill, Scope: sitesched.ScopeAll},
			Meta:      meta.Default(),
		})
	}
	return cfg
}

func newWorld(t *testing.T, cfg sim.Config) *sim.World {
	t.Helper()
	w, err := sim.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	return w
}

func request(processors int32, walltime time.Duration) job.Request {
	return job.Request{Name: "test", User: "ada", Processors: processors, Walltime: walltime}
}

// drained reports whether all acknowledged jobs have ended and no copy is left.
func drained(w *sim.World) bool { return w.CheckEnded() == nil }

// No start of a remote copy moves a guarantee where guarantees reach only a few
// jobs deep either (ADR 0019). The queues are long, so that most wait behind.
func TestGuaranteesWithADepth(t *testing.T) {
	for _, depth := range []int32{1, 2} {
		cfg := federation(uint64(depth), 4, 8, 2)
		for i := range cfg.Sites {
			cfg.Sites[i].Scheduler.GuaranteeDepth = depth
		}
		w := newWorld(t, cfg)
		const n = 120
		for i := range n {
			run := time.Duration(1+w.Rand().IntN(600)) * time.Second
			w.Submit(sim.Start.Add(time.Duration(i)*time.Second), job.SiteID(fmt.Sprint("s", w.Rand().IntN(3))), sim.Submission{
				Request: request(1+w.Rand().Int32N(2), 2*run), RunTime: run,
			})
		}
		end := sim.Start.Add(72 * time.Hour)
		if err := w.RunWhile(end, func() bool { return len(w.Acknowledged()) < n || !drained(w) }); err != nil {
			t.Errorf("depth %d: %v", depth, err)
		}
		if err := w.CheckEnded(); err != nil {
			t.Errorf("depth %d: %v", depth, err)
		}
	}
}

func TestJobsRunAndEnd(t *testing.T) {
	for _, scheme := range meta.Schemes() {
		t.Run(string(scheme), func(t *testing.T) {
			cfg := federation(1, 4, 8, 2)
			for i := range cfg.Sites {
				cfg.Sites[i].Meta.Placement.Scheme = scheme
				if rank, ok := scheme.ImpliedRank(); ok {
					cfg.Sites[i].Meta.Placement.Rank = rank
				}
			}
			w := newWorld(t, cfg)
			const n = 300
			for i := range n {
				run := time.Duration(1+w.Rand().IntN(600)) * time.Second
				w.Submit(sim.Start.Add(time.Duration(i)*20*time.Second), job.SiteID(fmt.Sprint("s", w.Rand().IntN(2))), sim.Submission{
					Request: request(1+w.Rand().Int32N(4), 2*run), RunTime: run,
				})
			}
			end := sim.Start.Add(24 * time.Hour)
			if err := w.RunWhile(end, func() bool { return len(w.Acknowledged()) < n || !drained(w) }); err != nil {
				t.Fatal(err)
			}
			if err := w.CheckEnded(); err != nil {
				t.Error(err)
			}
			if len(w.Acknowledged()) != n {
				t.Errorf("%d jobs acknowledged, want %d", len(w.Acknowledged()), n)
			}
		})
	}
}

// A world and the workloads that are made from its seed draw numbers of their own.
func TestWorldDrawsItsOwnNumbers(t *testing.T) {
	for seed := range uint64(20) {
		w := newWorld(t, federation(seed, 4))
		first := w.Rand().Uint64()
		for stream := range uint64(300) {
			if workload.NewRand(seed, stream).Uint64() == first {
				t.Fatalf("seed %d: a world draws the numbers of stream %d", seed, stream)
			}
		}
	}
}
