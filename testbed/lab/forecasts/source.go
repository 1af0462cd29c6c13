package forecasts

import (
	"fmt"

	"kith/internal/job"
	"kith/testbed/lab"
	"kith/testbed/workload"
)

// The sites of the study.
const (
	sites = 3
	// madeUp is how many jobs a site has where they are made up, on a machine of size, at the
	// offered load.
	madeUp = 5_000
	size   = 338
	load   = 0.7
	// firstStream keeps the random numbers of a site's jobs apart from others.
	firstStream = 1400
)

func siteID(i int) job.SiteID { return job.SiteID(fmt.Sprintf("site%d", i+1)) }

// source is where jobs come from: whole logs, as they are, or a generator.
type source struct {
	processors int32
	jobs       int
	log        *workload.Workload // nil for made-up jobs
}

func newSource(env *lab.Env) (*source, error) {
	src := &source{processors: env.ProcessorsOr(size), jobs: env.JobsOr(madeUp)}
	if env.Trace == nil {
		return src, nil
	}
	if env.Processors == 0 && env.Trace.Processors > 0 {
		src.processors = env.Trace.Processors
	}
	var err error
	if src.log, err = env.Trace.Fit(src.processors, workload.Kill); err != nil {
		return nil, err
	}
	if env.Jobs > 0 {
		src.log, err = src.log.Window(0, env.Jobs*sites)
	}
	if err == nil && len(src.log.Jobs) < sites {
		err = fmt.Errorf("log %s has %d jobs for %d processors: %w", src.log.Name, len(src.log.Jobs), src.processors, lab.ErrEnv)
	}
	return src, err
}

// workloads returns the jobs of all sites of a setting: on a log all of it at one site, and a
// third of it, in order, at each of three, so that days, users and loads are those of the log.
func (src *source) workloads(s setting, seed uint64) ([]*workload.Workload, error) {
	n := 1
	if s == federated {
		n = sites
	}
	list := make([]*workload.Workload, n)
	for i := range list {
		var err error
		if src.log != nil {
			each := len(src.log.Jobs) / n
			list[i], err = src.log.Window(i*each, each)
		} else {
			rng := workload.NewRand(seed, firstStream+uint64(i)) //nolint:gosec // A small index.
			list[i], err = workload.CTCLike{Jobs: src.jobs, Processors: src.processors, Load: load}.Generate(rng)
		}
		if err != nil {
			return nil, err
		}
	}
	return list, nil
}

// mostConservative is how many jobs a log may have to be run under conservative backfill, where a
// scenario costs thirty times as much and queues of a long log are long.
const mostConservative = 40_000

// leavesOut reports whether a setting is not run.
func (src *source) leavesOut(s setting) bool {
	return s == conservative && src.log != nil && len(src.log.Jobs) > mostConservative
}
