package federation_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"kith/meta"
	"kith/meta/bags"
	"kith/sitesched"
	"kith/testbed/federation"
	"kith/testbed/metrics"
	"kith/testbed/workload"
)

// beside is a site with jobs of its own whose idle processors run bags of another site.
func beside(processors int32, yield bags.Yield, list ...federation.Bag) federation.Config {
	cfg := federation.Config{
		Sites: sites(2, processors, sitesched.DualBackfill), Placement: meta.Placement{Scheme: meta.KDual, Copies: 1},
		AntiEntropy: time.Hour, Guests: meta.Bags{Turn: 10 * time.Minute, Yield: yield}, Bags: list,
	}
	for i := range list {
		cfg.Bags[i].Site = 1
	}
	cfg.Sites[1].Processors = 1
	return cfg
}

// guest is a bag that is larger than what runs of it.
func guest() federation.Bag {
	return federation.Bag{Tasks: 1 << 24, Run: time.Minute, Walltime: 2 * time.Minute, Endless: true}
}

// S4 with pilots: no start of one moves a guarantee of a home job, however guests yield; and
// what S6 and the rules for tasks demand holds, too.
func TestGuestsKeepGuarantees(t *testing.T) {
	jobs, guarded := 15, 100
	if testing.Short() {
		jobs, guarded = 6, 30
	}
	for _, yield := range []bags.Yield{bags.YieldNever, bags.YieldTask, bags.YieldNow} {
		t.Run(fmt.Sprint(yield), func(t *testing.T) {
			t.Parallel()
			for name, n := range map[string]int{"all": jobs, "S4": guarded} {
				home := loads(t, 3, 1, n, 16, 0.9)[0]
				cfg := beside(16, yield, guest())
				cfg.Invariants, cfg.Guard = name == "all", name == "S4"
				r := run(t, cfg, []*workload.Workload{home, {}})
				if len(r.Records) != n || r.Tasks[0] == 0 {
					t.Errorf("%s: %d of %d jobs and %d tasks ended", name, len(r.Records), n, r.Tasks[0])
				}
			}
		})
	}
}

// Home jobs beside guests that are stopped for them wait as long as alone, and the guests
// have all that is left.
func TestGuestsThatYieldAtOnceCostNothing(t *testing.T) {
	home := loads(t, 5, 1, 100, 64, 0.8)[0]
	wait := func(cfg federation.Config) (mean float64, tasks uint32) {
		var waits []float64
		r := run(t, cfg, []*workload.Workload{home, {}})
		for i := range r.Records {
			waits = append(waits, r.Records[i].Wait().Seconds())
		}
		for _, n := range r.Tasks {
			tasks += n
		}
		return metrics.Mean(waits), tasks
	}
	alone, _ := wait(beside(64, bags.YieldNow))
	with, tasks := wait(beside(64, bags.YieldNow, guest()))
	if alone == 0 || with > alone*1.02 {
		t.Errorf("home jobs wait %.0f s beside guests and %.0f s alone", with, alone)
	}
	if tasks < 1000 {
		t.Errorf("the guests ran %d tasks only", tasks)
	}
}

// A run ends when its bags have, unless they are endless, and counts their tasks.
func TestBagsEnd(t *testing.T) {
	cfg := beside(8, bags.YieldTask, federation.Bag{Tasks: 100, Run: time.Second, Walltime: time.Minute}, federation.Bag{At: time.Hour, Tasks: 7, Run: time.Second, Walltime: time.Minute})
	cfg.Invariants = true
	r := run(t, cfg, []*workload.Workload{{}, {}})
	if len(r.Tasks) != 2 || r.Tasks[0] != 100 || r.Tasks[1] != 7 {
		t.Errorf("tasks that ended: %d", r.Tasks)
	}
}

func TestBadBags(t *testing.T) {
	good := federation.Bag{Tasks: 1, Run: time.Second, Walltime: time.Second}
	for name, spoil := range map[string]func(*federation.Bag){
		"no site":        func(b *federation.Bag) { b.Site = 2 },
		"no tasks":       func(b *federation.Bag) { b.Tasks = 0 },
		"too many tasks": func(b *federation.Bag) { b.Tasks = 1<<24 + 1 },
		"too early":      func(b *federation.Bag) { b.At = -1 },
		"too long":       func(b *federation.Bag) { b.Run = time.Minute },
		"spread below 0": func(b *federation.Bag) { b.Spread = -1 },
		"spread to 0":    func(b *federation.Bag) { b.Spread, b.Walltime = b.Run, time.Minute },
		"spread too far": func(b *federation.Bag) { b.Spread = 1 },
	} {
		cfg := beside(2, bags.YieldTask, good)
		spoil(&cfg.Bags[0])
		if _, err := federation.Run(context.Background(), cfg, []*workload.Workload{{}, {}}); !errors.Is(err, federation.ErrConfig) {
			t.Errorf("%s: error %v", name, err)
		}
	}
}

// BenchmarkBag takes a bag of tasks of a minute through the engines of four sites.
func BenchmarkBag(b *testing.B) {
	cfg := federation.Config{
		Sites: sites(4, 256, sitesched.DualBackfill), Placement: meta.Placement{Scheme: meta.KDual, Copies: 1}, AntiEntropy: time.Hour,
		Guests: meta.Bags{Turn: 10 * time.Minute, Yield: bags.YieldTask},
		Bags:   []federation.Bag{{Tasks: 100_000, Run: time.Minute, Walltime: 2 * time.Minute}},
	}
	b.ReportAllocs()
	tasks := 0
	for b.Loop() {
		tasks += int(run(b, cfg, []*workload.Workload{{}, {}, {}, {}}).Tasks[0])
	}
	b.ReportMetric(float64(tasks)/b.Elapsed().Seconds(), "tasks/s")
	b.ReportMetric(0, "ns/op")
}
