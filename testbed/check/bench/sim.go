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

// The log that the simulator's figures are about, and their targets: that of the
// CTC SP2. As many jobs as it has are generated where no log is at hand.
const (
	ctcProcessors = 338
	ctcJobs       = 77_205
	ctcLoad       = 0.66
)

// sim takes jobs through the engines in virtual time. Its figures are the best
// of some runs: they are what the code can do, not what the machine is at.
func (b *bench) sim(ctx context.Context) error {
	whole, err := b.log()
	if err != nil {
		return err
	}
	if b.opt.Trace != "" {
		if err := b.wholeReplay(ctx, whole); err != nil {
			return err
		}
	}
	easy := sitesched.Config{Processors: whole.Processors, Backfill: sitesched.EASY}
	core, err := b.fastest(5, func() error {
		_, err := replay.Run(ctx, whole, easy, nil)
		return err
	})
	if err != nil {
		return err
	}
	jobs := float64(len(whole.Jobs))
	b.addTargetOfLog(whole, fmt.Sprintf("%s, %d jobs on %d processors, scheduler alone, EASY", whole.Name, len(whole.Jobs), whole.Processors),
		jobs/core.Seconds(), "jobs/s", 1_000_000, false)
	one := []*workload.Workload{whole}
	engines, err := b.fastest(5, func() error {
		return federated(ctx, federation.Config{Sites: simSites(1, whole.Processors), Placement: meta.Placement{Scheme: meta.KDual, Copies: 1}}, one)
	})
	if err != nil {
		return err
	}
	b.addTargetOfLog(whole, "the same through all engines of a site", jobs/engines.Seconds(), "jobs/s", 200_000, false)

	if err := b.simFour(ctx); err != nil {
		return err
	}
	if err := b.simQueue(ctx); err != nil {
		return err
	}
	if b.opt.Large {
		return errors.Join(b.simMany(ctx), b.labs(ctx))
	}
	return nil
}

// addTargetOfLog adds a figure whose target is for the log of the CTC SP2: of
// another one it is only for information.
func (b *bench) addTargetOfLog(w *workload.Workload, name string, value float64, unit string, target float64, atMost bool) {
	if b.opt.Trace != "" && w.Processors == ctcProcessors && len(w.Jobs) == ctcJobs {
		b.addTarget(name, value, unit, target, atMost)
		return
	}
	b.add(name, value, unit)
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

// simQueue submits all jobs at once, so that queues are as long as they can be.
// Equal jobs are the best case: each starts when the one ahead of it ends. Of
// mixed ones a pass has to look at many, of two queues more, and a plan for all
// of them is longer still.
func (b *bench) simQueue(ctx context.Context) error {
	dual, single := simSites(2, 430), simSites(1, 430)
	single[0].Queues = sitesched.Single
	conservative := simSites(1, 430)
	conservative[0].Queues, conservative[0].Backfill = sitesched.Single, sitesched.Conservative
	bounded := simSites(2, 430)
	for i := range bounded {
		bounded[i].GuaranteeDepth = 1000 // what kithd does unless told
	}
	alone := meta.Placement{Scheme: meta.Independent}
	for _, c := range []struct {
		name  string
		sites []federation.Site
		place meta.Placement
		jobs  func(sites, jobs int) ([]*workload.Workload, error)
	}{
		{"equal jobs, EASY", simSites(1, 4), alone, equalJobs},
		{"mixed jobs, EASY", single, alone, mixedJobs},
		{"mixed jobs, dual queues of two sites, scope all, K=2", dual, meta.Placement{Scheme: meta.KDual, Copies: 2}, mixedJobs},
		{"mixed jobs, the same with guarantee_depth 1000", bounded, meta.Placement{Scheme: meta.KDual, Copies: 2}, mixedJobs},
		{"mixed jobs, conservative", conservative, alone, mixedJobs},
	} {
		took, growth := time.Duration(0), 100.0 // quadratic until something else shows
		for _, n := range b.queueLengths() {
			if next := time.Duration(growth * float64(took)); next > longestQueue {
				b.observe(fmt.Sprintf("sim: %d jobs queued at once, %s: left out, as it would take about %v", n, c.name, next.Round(time.Second)))
				break
			}
			ws, err := c.jobs(len(c.sites), n/len(c.sites))
			if err != nil {
				return err
			}
			before := took
			if took, err = b.fastest(1, func() error { return federated(ctx, federation.Config{Sites: c.sites, Placement: c.place}, ws) }); err != nil {
				return err
			}
			if before > 0 {
				growth = max(10, float64(took)/float64(before))
			}
			b.add(fmt.Sprintf("%d jobs queued at once, %s, each", n, c.name), float64(took.Nanoseconds())/float64(n)/1000, "µs")
		}
	}
	return nil
}

// longestQueue is the longest time that one of them may take. A queue that would
// take longer, going by the shorter ones, is left out.
const longestQueue = time.Minute

// queueLengths are the lengths of simulated queues, three orders of magnitude.
func (b *bench) queueLengths() []int {
	var list []int
	for _, n := range []int{b.opt.Queued / 100, b.opt.Queued / 10, b.opt.Queued} {
		if n >= 2 {
			list = append(list, n)
		}
	}
	return list
}

// equalJobs are jobs that are all alike, so many at each site.
func equalJobs(sites, jobs int) ([]*workload.Workload, error) {
	var all []*workload.Workload
	for range sites {
		w := &workload.Workload{Jobs: make([]workload.Job, jobs)}
		for i := range w.Jobs {
			w.Jobs[i] = workload.Job{ID: int64(i + 1), Run: time.Minute, Estimate: 2 * time.Minute, Procs: 4}
		}
		all = append(all, w)
	}
	return all, nil
}

// mixedJobs are jobs like those of the CTC SP2, all submitted at once.
func mixedJobs(sites, jobs int) ([]*workload.Workload, error) {
	all, err := generated(sites, jobs)
	for _, w := range all {
		for i := range w.Jobs {
			w.Jobs[i].Submit = 0
		}
	}
	return all, err
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

// log returns the log of the options on the machine that it is from, or as many
// generated jobs as that of the CTC SP2 has. Where the log does not say how large
// the machine is, it is the smallest that can run all jobs.
func (b *bench) log() (*workload.Workload, error) {
	if b.opt.Trace == "" {
		w, err := workload.CTCLike{Jobs: ctcJobs, Processors: ctcProcessors, Load: ctcLoad}.Generate(workload.NewRand(0, 0))
		if err != nil {
			return nil, err
		}
		return w.Fit(ctcProcessors, workload.Kill)
	}
	began := time.Now()
	w, err := workload.Open(b.opt.Trace)
	if err != nil {
		return nil, err
	}
	b.add("reading "+w.Name, milliseconds(time.Since(began)), "ms")
	processors := w.Processors
	if processors == 0 {
		for i := range w.Jobs {
			processors = max(processors, w.Jobs[i].Procs)
		}
	}
	return w.Fit(processors, workload.Kill)
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
