package choice

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"kith/internal/job"
	"kith/testbed/lab"
	"kith/testbed/workload"
)

// setting is a federation without its policies: how many sites there are
// and how busy they are.
type setting struct {
	sites int
	// load is the mean offered load of a processor, in percent.
	load int
	// brief makes it briefPart times as long: for many sites.
	brief bool
}

// The federations of the study. Every second site, by load, has half the
// processors: then the whole is equally loaded however many sites there are.
const (
	siteJobs  = 3000
	briefPart = 0.4
	// largeProcessors is the size of a large site where jobs are generated, that
	// of the CTC log's machine. On a log it is that of the log's machine.
	largeProcessors = 338
	// zones is how many zones, an hour apart, the sites lie in.
	zones = 4
)

// String names the setting for people.
func (c setting) String() string {
	s := fmt.Sprintf("%d sites, load 0.%02d", c.sites, c.load)
	if c.brief {
		s += ", shorter"
	}
	return s
}

// member is a site of a setting.
type member struct {
	setting
	index int
}

func (s member) id() job.SiteID { return job.SiteID(fmt.Sprintf("site%d", s.index+1)) }

// offered is the offered load of the site's own jobs: evenly spread, and the
// busiest site just not overloaded.
func (s member) offered() float64 {
	busiest := 1.0
	least := 2*float64(s.load)/100 - busiest
	return least + (busiest-least)*(float64(s.index)+0.5)/float64(s.sites)
}

func (s member) processors(large int32) int32 {
	if s.index%2 == 1 {
		return max(1, large/2)
	}
	return large
}

func (s member) zone() time.Duration { return time.Duration(s.index%zones) * time.Hour }

// source is where jobs come from.
type source struct {
	env   *lab.Env
	large int32
	// logs are the log as a site of each size could have it; nil if jobs are generated.
	logs map[int32]*measuredLog
	// work is the mean work of a job, in processor-seconds.
	work float64
}

// measuredLog is a log with the work of its first 0, 1, 2, … jobs.
type measuredLog struct {
	*workload.Workload
	done []float64
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
	src.logs = make(map[int32]*measuredLog)
	for _, p := range []int32{src.large, max(1, src.large/2)} {
		w, err := env.Trace.Fit(p, workload.Kill)
		if err != nil {
			return nil, err
		}
		if len(w.Jobs) == 0 {
			return nil, fmt.Errorf("log %s has no job for %d processors: %w", env.Trace.Name, p, lab.ErrEnv)
		}
		l := &measuredLog{Workload: w, done: make([]float64, 1, len(w.Jobs)+1)}
		for i := range w.Jobs {
			l.done = append(l.done, l.done[i]+w.Jobs[i].Work())
		}
		src.logs[p] = l
	}
	l := src.logs[src.large]
	src.work = l.done[len(l.Jobs)] / float64(len(l.Jobs))
	return src, nil
}

// span is how long jobs are submitted: so long that a large site of the mean
// load gets about the number of jobs asked for.
func (src *source) span(c setting) time.Duration {
	n := float64(src.env.JobsOr(siteJobs))
	if c.brief {
		n *= briefPart
	}
	seconds := n * src.work / (float64(src.large) * float64(c.load) / 100)
	return time.Duration(seconds) * time.Second
}

// firstStream keeps the random numbers of a site's jobs apart from others.
const firstStream = 100

// workloads returns the jobs of all sites with a seed.
func (src *source) workloads(c setting, seed uint64) ([]*workload.Workload, error) {
	list := make([]*workload.Workload, c.sites)
	for i := range list {
		s := member{c, i}
		w, err := src.take(s, workload.NewRand(seed, firstStream+uint64(i))) //nolint:gosec // A small index.
		if err != nil {
			return nil, err
		}
		// Jobs in a row hardly ever make up the load over the span to the second.
		if natural := w.OfferedLoad(s.processors(src.large)); natural > 0 {
			if w, err = w.ScaleLoad(s.offered() / natural); err != nil {
				return nil, err
			}
		}
		list[i] = w
	}
	return list, nil
}

// take returns jobs in a row, as many as make up the site's load over the span.
func (src *source) take(s member, rng *rand.Rand) (*workload.Workload, error) {
	p := s.processors(src.large)
	want := src.span(s.setting).Seconds() * float64(p) * s.offered()
	if src.logs == nil {
		n := int(3*want/src.work) + 100
		w, err := workload.CTCLike{Jobs: n, Processors: p, Load: s.offered()}.Generate(rng)
		if err != nil {
			return nil, err
		}
		sum, need := 0.0, 0
		for need < len(w.Jobs) && (sum < want || need < 2) {
			sum += w.Jobs[need].Work()
			need++
		}
		return w.Window(0, need)
	}
	l := src.logs[p]
	enough := l.done[len(l.Jobs)] - want
	last, _ := slices.BinarySearch(l.done, enough) // the last place to begin with enough jobs behind it
	if enough < 0 || last >= len(l.Jobs) {
		return nil, fmt.Errorf("log %s, %d processors: it has too few jobs for %d a site: choose fewer: %w",
			l.Name, p, src.env.JobsOr(siteJobs), lab.ErrEnv)
	}
	from := int(rng.Float64() * float64(last))
	to, _ := slices.BinarySearch(l.done, l.done[from]+want)
	return l.Window(from, max(to-from, 2))
}
