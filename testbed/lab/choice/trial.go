package choice

import (
	"context"
	"fmt"
	"math"
	"strings"
	"time"

	"kith/internal/job"
	"kith/meta"
	"kith/sitesched"
	"kith/testbed/federation"
	"kith/testbed/metrics"
	"kith/testbed/workload"
)

// trial is one way to place jobs in one setting. Equal trials are run once.
type trial struct {
	setting
	scheme meta.Scheme
	k      int32
	rank   meta.Rank
	queues queueing
	// weight and adaptive are those of meta.Placement.
	weight   float64
	adaptive bool
	// period is how old the loads of others may be; each site tells its own at
	// another moment of it. maxAge is how old one may be to rank by; zero is any.
	period, maxAge time.Duration
	// ones is the share of jobs that ask for one copy whatever k is, in percent.
	ones int
	rule copiesRule
}

// queueing is how sites treat copies of other sites.
type queueing string

const (
	dualQueues   queueing = ""          // behind local jobs, where they do no harm
	singleQueues queueing = "one queue" // like local jobs
	mixedQueues  queueing = "mixed"     // dual at large sites, single at small ones
)

// copiesRule lets K differ from job to job; a trial's k is then the most.
type copiesRule string

const (
	// byDrain asks for one copy more for each drainStep that the origin would
	// need to drain.
	byDrain copiesRule = "K by the origin's load"
	// byLength asks for all copies for jobs of estimates up to shortEstimate, and
	// for two for others.
	byLength copiesRule = "K by length"
)

const (
	drainStep     = 4 * time.Hour
	shortEstimate = time.Hour
	// sampling is how often queues are looked at, and loads for byDrain.
	sampling = 5 * time.Minute
	// usualPeriod is how often sites tell their load unless a trial says otherwise.
	usualPeriod = 30 * time.Second
)

// String names the trial for people, without its setting.
func (t trial) String() string {
	var s []string
	switch {
	case t.scheme == meta.Independent:
		return "alone"
	case t.scheme == meta.MCT:
		s = append(s, "MCT")
	case t.k == 1:
		s = append(s, "least loaded site")
	case t.scheme == meta.KDual:
		s = append(s, fmt.Sprintf("K-Dual, K = %d, by %v", t.k, t.rank))
	default:
		s = append(s, fmt.Sprintf("K-Distributed, K = %d, by %v", t.k, t.rank))
	}
	if t.queues != dualQueues {
		s = append(s, string(t.queues))
	}
	switch {
	case t.adaptive:
		s = append(s, "learning weights")
	case t.weight != 0:
		s = append(s, fmt.Sprintf("weight %.4g", t.weight))
	}
	if t.rule != "" {
		s = append(s, string(t.rule))
	}
	if t.ones > 0 {
		s = append(s, fmt.Sprintf("%d %% ask for one copy", t.ones))
	}
	if t.period != usualPeriod {
		s = append(s, fmt.Sprintf("loads each %v", t.period))
	}
	if t.maxAge > 0 {
		s = append(s, fmt.Sprintf("none over %v", t.maxAge))
	}
	return strings.Join(s, ", ")
}

// outcome is what came of a trial with one seed. Times are in seconds,
// messages and copies per job.
type outcome struct {
	jobs          int
	wait, bounded metrics.Distribution
	class         [metrics.Classes]metrics.ClassSummary
	// waits are those of all jobs, one site after the other, and ends where the
	// jobs of each site end.
	waits []float32
	ends  []int
	// logical and wire are claims and withdrawals, expected how many logical ones
	// there should be; all is whatever crossed between sites but loads.
	logical, wire, expected int64
	all, queries, copies    float64
	// queue is the copies that wait at a site, over sites and time.
	queue  metrics.Distribution
	remote float64
}

// federation returns the configuration of a trial.
func (t trial) federation(large int32) federation.Config {
	cfg := federation.Config{
		LoadPeriod: t.period, Staggered: t.period > 0,
		Placement: meta.Placement{Scheme: t.scheme, Copies: max(t.k, 1), Rank: t.rank, Weight: t.weight, Adaptive: t.adaptive, MaxLoadAge: t.maxAge},
	}
	for i := range t.sites {
		s := member{t.setting, i}
		site := federation.Site{
			ID: s.id(), Processors: s.processors(large), Backfill: sitesched.EASY, Queues: sitesched.DualBackfill, Scope: sitesched.ScopeAll, Zone: s.zone(),
		}
		if t.queues == singleQueues || t.queues == mixedQueues && i%2 == 1 {
			site.Queues = sitesched.Single
		}
		cfg.Sites = append(cfg.Sites, site)
	}
	return cfg
}

// run runs the trial with the jobs of a seed.
func (t trial) run(ctx context.Context, src *source, seed uint64) (*outcome, error) {
	workloads, err := src.workloads(t.setting, seed)
	if err != nil {
		return nil, err
	}
	cfg := t.federation(src.Large)
	cfg.Seed = seed
	o := &outcome{}
	for _, w := range workloads {
		o.jobs += len(w.Jobs)
		o.ends = append(o.ends, o.jobs)
	}
	var queue []float64
	loads := make(map[job.SiteID]job.Load)
	span := job.Time(src.span(t.setting))
	cfg.SampleEvery = sampling
	cfg.Sample = func(s federation.Sample) {
		loads[s.Site] = s.Load
		if s.At <= span {
			queue = append(queue, float64(s.Load.Queued))
		}
	}
	asks := t.asking(workloads, seed, o, func(site int) job.Load { return loads[cfg.Sites[site].ID] })
	cfg.CopiesOf = func(site, index int) int32 {
		k := asks(site, index)
		o.expected += int64(min(int(k), t.able(workloads[site].Jobs[index].Procs, src.Large)))
		return k
	}
	r, err := federation.Run(ctx, cfg, workloads)
	if err != nil {
		return nil, fmt.Errorf("%v, %v, seed %d: %w", t.setting, t, seed, err)
	}
	if len(r.Refused) > 0 {
		return nil, fmt.Errorf("%v, %v, seed %d: %d jobs were refused, the first: %w", t.setting, t, seed, len(r.Refused), r.Refused[0].Err)
	}
	o.queue = metrics.Describe(queue)
	o.measure(&r)
	return o, nil
}

// asking returns the K of each job.
func (t trial) asking(ws []*workload.Workload, seed uint64, o *outcome, load func(site int) job.Load) func(site, index int) int32 {
	k := max(t.k, 1)
	if t.scheme == meta.Independent || t.scheme == meta.MCT {
		k = 1
	}
	one := oneCopy(seed, t.ones, o.jobs)
	return func(site, index int) int32 {
		at := index
		if site > 0 {
			at += o.ends[site-1]
		}
		switch {
		case one[at]:
			return 1
		case t.rule == byDrain:
			steps := math.Ceil(load(site).Work / drainStep.Seconds())
			return int32(min(float64(k), 1+steps))
		case t.rule == byLength && ws[site].Jobs[index].Estimate > shortEstimate:
			return min(k, 2)
		}
		return k
	}
}

// oneCopy says which of n jobs ask for one copy if percent of them do. The same
// jobs do so in all trials.
func oneCopy(seed uint64, percent, n int) []bool {
	rng := workload.NewRand(seed, firstStream-1)
	list := make([]bool, n)
	for i := range list {
		list[i] = rng.IntN(100) < percent
	}
	return list
}

// able returns how many sites are wide enough.
func (c setting) able(procs, large int32) int {
	n := 0
	for i := range c.sites {
		if (member{c, i}).processors(large) >= procs {
			n++
		}
	}
	return n
}

// measure sums up a run.
func (o *outcome) measure(r *federation.Result) {
	sum := metrics.Summarise(r.Records, metrics.Options{})
	o.wait, o.bounded, o.class = sum.Wait, sum.BoundedSlowdown, sum.Classes
	moved := 0
	for i := range r.Records {
		x := &r.Records[i]
		o.waits = append(o.waits, float32(x.Wait().Seconds()))
		if x.Site != x.Origin {
			moved++
		}
	}
	n := float64(max(o.jobs, 1))
	o.remote = float64(moved) / n
	o.logical, o.wire = r.Messages.Logical, r.Messages.Wire
	all := int64(0)
	for kind, count := range r.Messages.ByKind {
		all += count
		switch kind {
		case "start-query", "start-answer":
			o.queries += float64(count) / n
		case "place-copy":
			o.copies += float64(count) / n
		}
	}
	o.all = float64(all) / n
}

// sites returns the mean wait of the jobs of each site.
func (o *outcome) sites() []float64 {
	list := make([]float64, len(o.ends))
	from := 0
	for i, end := range o.ends {
		list[i] = meanOf(o.waits[from:end])
		from = end
	}
	return list
}

// of returns the mean wait of the jobs that are, or are not, marked.
func (o *outcome) of(marked []bool, want bool) float64 {
	var list []float32
	for i, w := range o.waits {
		if marked[i] == want {
			list = append(list, w)
		}
	}
	return meanOf(list)
}

func meanOf(list []float32) float64 {
	sum := 0.0
	for _, v := range list {
		sum += float64(v)
	}
	return sum / float64(max(len(list), 1))
}
