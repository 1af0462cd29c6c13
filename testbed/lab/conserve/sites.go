package conserve

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"kith/internal/job"
	"kith/testbed/lab"
	"kith/testbed/workload"
)

// The federation of the study. Every second site has half the processors.
const (
	siteCount = 4
	siteJobs  = 600
	// largeProcessors is the size of a large site where jobs are generated. On a
	// log it is that of the log's machine.
	largeProcessors = 128
	// firstStream keeps the random numbers of a site's jobs apart from others.
	firstStream = 700
)

func siteID(i int) job.SiteID { return job.SiteID(fmt.Sprintf("site%d", i+1)) }

// offered is the offered load of the own jobs of site i: evenly spread, and the
// busiest site just not overloaded by them.
func offered(load, i int) float64 {
	const busiest = 1.0
	least := 2*float64(load)/100 - busiest
	return least + (busiest-least)*(float64(i)+0.5)/siteCount
}

// source is where jobs come from.
type source struct {
	env   *lab.Env
	large int32
	// logs are the log as a site of each size could have it; nil if jobs are
	// generated. work is the mean work of a job, in processor-seconds.
	logs map[int32]*workload.Workload
	work float64
}

func newSource(env *lab.Env) (*source, error) {
	src := &source{env: env, large: env.ProcessorsOr(largeProcessors)}
	if env.Trace == nil {
		const sample = 20_000
		w, err := workload.CTCLike{Jobs: sample, Processors: src.large}.Generate(workload.NewRand(0, 0))
		if err != nil {
			return nil, err
		}
		src.work = w.Work() / sample
		return src, nil
	}
	if env.Processors == 0 && env.Trace.Processors > 0 {
		src.large = env.Trace.Processors
	}
	src.logs = make(map[int32]*workload.Workload)
	for _, p := range []int32{src.large, max(1, src.large/2)} {
		w, err := env.Trace.Fit(p, workload.Kill)
		if err != nil {
			return nil, err
		}
		if len(w.Jobs) == 0 {
			return nil, fmt.Errorf("log %s has no job for %d processors: %w", env.Trace.Name, p, lab.ErrEnv)
		}
		src.logs[p] = w
	}
	w := src.logs[src.large]
	src.work = w.Work() / float64(len(w.Jobs))
	return src, nil
}

func (src *source) processors(i int) int32 {
	if i%2 == 1 {
		return max(1, src.large/2)
	}
	return src.large
}

// span is how long jobs are submitted: so long that a large site of the mean
// load gets about the number of jobs asked for.
func (src *source) span(load int) time.Duration {
	seconds := float64(src.env.JobsOr(siteJobs)) * src.work / (float64(src.large) * float64(load) / 100)
	return time.Duration(seconds) * time.Second
}

// workloads returns the jobs of all sites with a seed.
func (src *source) workloads(load int, seed uint64) ([]*workload.Workload, error) {
	list := make([]*workload.Workload, siteCount)
	for i := range list {
		p, own := src.processors(i), offered(load, i)
		w, err := src.take(p, own, src.span(load), workload.NewRand(seed, firstStream+uint64(i))) //nolint:gosec // A small index.
		if err != nil {
			return nil, err
		}
		// Jobs in a row hardly ever make up the load over the span to the second.
		if natural := w.OfferedLoad(p); natural > 0 {
			if w, err = w.ScaleLoad(own / natural); err != nil {
				return nil, err
			}
		}
		list[i] = w
	}
	return list, nil
}

// take returns jobs in a row, as many as make up the load of p processors over
// the span.
func (src *source) take(p int32, own float64, span time.Duration, rng *rand.Rand) (*workload.Workload, error) {
	want := span.Seconds() * float64(p) * own
	if src.logs == nil {
		w, err := workload.CTCLike{Jobs: int(3*want/src.work) + 100, Processors: p, Load: own}.Generate(rng)
		if err != nil {
			return nil, err
		}
		return w.Window(0, needed(w.Jobs, want))
	}
	log := src.logs[p]
	// The last place to begin with enough jobs behind it.
	behind := slices.Clone(log.Jobs)
	slices.Reverse(behind)
	last := len(behind) - needed(behind, want)
	if last <= 0 {
		return nil, fmt.Errorf("log %s, %d processors: it has too few jobs for %d a site: choose fewer: %w",
			log.Name, p, src.env.JobsOr(siteJobs), lab.ErrEnv)
	}
	from := int(rng.Float64() * float64(last))
	return log.Window(from, needed(log.Jobs[from:], want))
}

// needed returns how many of the first jobs make up the work, in
// processor-seconds; at least two, if there are so many.
func needed(jobs []workload.Job, work float64) int {
	n, sum := 0, 0.0
	for n < len(jobs) && (sum < work || n < 2) {
		sum += jobs[n].Work()
		n++
	}
	return n
}
