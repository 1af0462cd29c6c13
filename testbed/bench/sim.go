package bench

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"kith/internal/job"
	"kith/meta"
	"kith/sitesched"
	"kith/testbed/federation"
	"kith/testbed/replay"
	"kith/testbed/workload"
)

// The log that the simulator's figures are about: the machine of the CTC SP2
// log, which has as many jobs as are generated where that log is not at hand.
const (
	logProcessors = 338
	logJobs       = 77_205
	logLoad       = 0.66
)

// sim takes jobs through the engines in virtual time. Its figures are the best
// of some runs: they are what the code can do, not what the machine is at.
func (b *bench) sim(ctx context.Context) error {
	whole, err := b.log()
	if err != nil {
		return err
	}
	easy := sitesched.Config{Processors: logProcessors, Backfill: sitesched.EASY}
	core, err := b.fastest(5, func() error {
		_, err := replay.Run(ctx, whole, easy, nil)
		return err
	})
	if err != nil {
		return err
	}
	jobs := float64(len(whole.Jobs))
	b.addTarget(fmt.Sprintf("%s, %d jobs, scheduler alone, EASY", whole.Name, len(whole.Jobs)), jobs/core.Seconds(), "jobs/s", 1_000_000, false)
	one := []*workload.Workload{whole}
	engines, err := b.fastest(5, func() error {
		return federated(ctx, federation.Config{Sites: simSites(1, logProcessors), Placement: meta.Placement{Scheme: meta.KDual, Copies: 1}}, one)
	})
	if err != nil {
		return err
	}
	b.addTarget("the same through all engines of a site", jobs/engines.Seconds(), "jobs/s", 200_000, false)

	if err := b.simFour(ctx); err != nil {
		return err
	}
	if err := b.simQueue(ctx); err != nil {
		return err
	}
	if b.opt.Large {
		return b.simMany(ctx)
	}
	return nil
}

// simFour is 4 sites with 5,000 jobs each, copies at all of them.
func (b *bench) simFour(ctx context.Context) error {
	four, err := generated(4, 5000)
	if err != nil {
		return err
	}
	took, err := b.fastest(3, func() error {
		return federated(ctx, federation.Config{Sites: simSites(4, 430), Placement: meta.Placement{Scheme: meta.KDual, Copies: 4}}, four)
	})
	if err != nil {
		return err
	}
	b.addTarget("4 sites with 5,000 jobs each, K-Dual, K=4, scope all", took.Seconds(), "s", 1.5, true)
	return nil
}

// simQueue submits all jobs at once, so that the queue is as long as it can be.
func (b *bench) simQueue(ctx context.Context) error {
	for _, n := range []int{1_000, 10_000, 100_000} {
		w := &workload.Workload{Jobs: make([]workload.Job, n)}
		for i := range w.Jobs {
			w.Jobs[i] = workload.Job{ID: int64(i + 1), Run: time.Minute, Estimate: 2 * time.Minute, Procs: 4}
		}
		took, err := b.fastest(1, func() error {
			return federated(ctx, federation.Config{Sites: simSites(1, 4), Placement: meta.Placement{Scheme: meta.Independent}}, []*workload.Workload{w})
		})
		if err != nil {
			return err
		}
		b.add(fmt.Sprintf("%d jobs queued at once, each", n), float64(took.Nanoseconds())/float64(n)/1000, "µs")
	}
	return nil
}

// simMany is 200 sites with 10,000 jobs each, and loads that travel every 30 s.
func (b *bench) simMany(ctx context.Context) error {
	many, err := generated(200, 10_000)
	if err != nil {
		return err
	}
	took, err := b.fastest(1, func() error {
		return federated(ctx, federation.Config{
			Sites: simSites(200, 430), Placement: meta.Placement{Scheme: meta.KDual, Copies: 3},
			LoadPeriod: 30 * time.Second, LoadDelay: time.Second, Staggered: true,
		}, many)
	})
	if err != nil {
		return err
	}
	b.addTarget("200 sites with 10,000 jobs each, K=3", took.Seconds(), "s", 600, true)
	memory, err := resident(os.Getpid())
	if err != nil {
		return err
	}
	b.addTarget("resident memory after it", memory, "MiB", 4096, true)
	return nil
}

// log returns the log of the options, or as many generated jobs.
func (b *bench) log() (*workload.Workload, error) {
	if b.opt.Trace == "" {
		w, err := workload.CTCLike{Jobs: logJobs, Processors: logProcessors, Load: logLoad}.Generate(workload.NewRand(0, 0))
		if err != nil {
			return nil, err
		}
		return w.Fit(logProcessors, workload.Kill)
	}
	began := time.Now()
	w, err := workload.Open(b.opt.Trace)
	if err != nil {
		return nil, err
	}
	b.add("reading "+w.Name, milliseconds(time.Since(began)), "ms")
	return w.Fit(logProcessors, workload.Kill)
}

// generated returns workloads for as many sites.
func generated(sites, jobs int) ([]*workload.Workload, error) {
	var all []*workload.Workload
	for i := range sites {
		w, err := workload.CTCLike{Jobs: jobs, Processors: 430, Load: 0.7}.Generate(workload.NewRand(0, uint64(i)))
		if err != nil {
			return nil, err
		}
		if w, err = w.Fit(430, workload.Kill); err != nil {
			return nil, err
		}
		all = append(all, w)
	}
	return all, nil
}

func simSites(n int, processors int32) []federation.Site {
	var sites []federation.Site
	for i := range n {
		sites = append(sites, federation.Site{
			ID: job.SiteID(fmt.Sprintf("s%03d", i)), Processors: processors,
			Backfill: sitesched.EASY, Queues: sitesched.DualBackfill, Scope: sitesched.ScopeAll,
		})
	}
	return sites
}

// federated runs a federation and checks that all jobs ran.
func federated(ctx context.Context, cfg federation.Config, ws []*workload.Workload) error {
	r, err := federation.Run(ctx, cfg, ws)
	if err == nil && len(r.Refused) > 0 {
		err = errors.New("jobs were refused")
	}
	return err
}

// fastest returns how long the fastest of some runs took.
func (b *bench) fastest(runs int, run func() error) (time.Duration, error) {
	best := time.Duration(0)
	for range runs {
		began := time.Now()
		if err := run(); err != nil {
			return 0, err
		}
		if took := time.Since(began); best == 0 || took < best {
			best = took
		}
	}
	return best, nil
}
