package lab

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"kith/testbed/workload"
)

// Source is where the jobs of a federation with large and small sites come from: a
// generator of jobs like those of the CTC log, or the log of an [Env]. Small sites have
// half the processors of large ones. It may be used by several goroutines.
type Source struct {
	// Large is how many processors a large site has.
	Large int32
	// NotLast leaves out, on a log, the last place to begin that has enough jobs behind it.
	// It is set where documented figures were measured so.
	NotLast bool

	env *Env
	own int // jobs of a large site where the user did not choose
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

// NewSource returns the source of an experiment whose large sites have that many
// processors and jobs unless the user chose, or the log says how large its machine was.
// Errors wrap [ErrEnv].
func NewSource(env *Env, processors int32, jobs int) (*Source, error) {
	src := &Source{env: env, own: jobs, Large: env.ProcessorsOr(processors)}
	if env.Trace == nil {
		const sample = 20_000
		w, err := workload.CTCLike{Jobs: sample, Processors: src.Large}.Generate(workload.NewRand(0, 0))
		if err != nil {
			return nil, err
		}
		src.work = w.Work() / sample
		return src, nil
	}
	if env.Processors == 0 && env.Trace.Processors > 0 {
		src.Large = env.Trace.Processors
	}
	src.logs = make(map[int32]*measuredLog)
	for _, p := range []int32{src.Large, src.Small()} {
		w, err := env.Trace.Fit(p, workload.Kill)
		if err != nil {
			return nil, err
		}
		if len(w.Jobs) == 0 {
			return nil, fmt.Errorf("log %s has no job for %d processors: %w", env.Trace.Name, p, ErrEnv)
		}
		l := &measuredLog{Workload: w, done: make([]float64, 1, len(w.Jobs)+1)}
		for i := range w.Jobs {
			l.done = append(l.done, l.done[i]+w.Jobs[i].Work())
		}
		src.logs[p] = l
	}
	l := src.logs[src.Large]
	src.work = l.done[len(l.Jobs)] / float64(len(l.Jobs))
	return src, nil
}

// Small is how many processors a small site has.
func (src *Source) Small() int32 { return halfOf(src.Large) }

// halfOf is how many processors a small site has beside large ones of that size.
func halfOf(large int32) int32 { return max(1, large/2) }

// SiteSize is the size of site i where every second site is small.
func SiteSize(large int32, i int) int32 {
	if i%2 == 1 {
		return halfOf(large)
	}
	return large
}

// Offered is the offered load of the own jobs of site i of n, where load is that of all
// together in percent: evenly spread, and the busiest site just not overloaded by them.
func Offered(load, i, n int) float64 {
	const busiest = 1.0
	least := 2*float64(load)/100 - busiest
	return least + (busiest-least)*(float64(i)+0.5)/float64(n)
}

// Span is how long jobs are submitted: so long that a large site of the mean load, in
// percent, gets about part times the number of jobs asked for.
func (src *Source) Span(load int, part float64) time.Duration {
	seconds := float64(src.env.JobsOr(src.own)) * part * src.work / (float64(src.Large) * float64(load) / 100)
	return time.Duration(seconds) * time.Second
}

// Workload returns jobs in a row of a site with p processors, a large or a small one:
// as many as make up the offered load over the span. Errors wrap [ErrEnv] if the log has
// too few.
func (src *Source) Workload(p int32, offered float64, span time.Duration, rng *rand.Rand) (*workload.Workload, error) {
	w, err := src.take(p, offered, span, rng)
	if err != nil {
		return nil, err
	}
	// Jobs in a row hardly ever make up the load over the span to the second.
	if natural := w.OfferedLoad(p); natural > 0 {
		return w.ScaleLoad(offered / natural)
	}
	return w, nil
}

func (src *Source) take(p int32, offered float64, span time.Duration, rng *rand.Rand) (*workload.Workload, error) {
	want := span.Seconds() * float64(p) * offered
	if src.logs == nil {
		w, err := workload.CTCLike{Jobs: int(3*want/src.work) + 100, Processors: p, Load: offered}.Generate(rng)
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
	last, _ := slices.BinarySearch(l.done, enough) // the first place with too few jobs behind it, or just enough
	if src.NotLast {
		last--
	}
	if enough < 0 || last < 0 || last >= len(l.Jobs) {
		return nil, fmt.Errorf("log %s, %d processors: it has too few jobs for %d a site: choose fewer: %w",
			l.Name, p, src.env.JobsOr(src.own), ErrEnv)
	}
	from := int(rng.Float64() * float64(last))
	to, _ := slices.BinarySearch(l.done, l.done[from]+want)
	return l.Window(from, max(to-from, 2))
}
