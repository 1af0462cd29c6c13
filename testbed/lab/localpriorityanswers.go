package lab

import (
	"context"
	"fmt"
	"iter"
	"math"
	"slices"

	"kith/testbed/metrics"
	"kith/testbed/workload"
)

// priorityAnswers are the outcomes of trials, one for each seed.
type priorityAnswers struct {
	env *Env
	// Seeds count from from on and below until, but for without; -1 is none.
	from, until, without int

	trials map[priorityTrial][]*priorityOutcome
	order  []priorityTrial
	// streams is how many streams of jobs were made, runs how many runs there
	// were, strays how many streams had runs with different jobs.
	streams, runs, strays int
}

// answerPriority runs all trials with all seeds. What has its jobs in common
// is one piece of work: each stream is made once, and all its trials run the
// very same jobs.
func answerPriority(ctx context.Context, env *Env, trials []priorityTrial) (*priorityAnswers, error) {
	seeds := env.SeedList()
	a := &priorityAnswers{env: env, until: len(seeds), without: -1, trials: make(map[priorityTrial][]*priorityOutcome)}
	byCase := make(map[priorityCase][]priorityTrial)
	var cases []priorityCase
	for _, t := range trials {
		if a.trials[t] != nil {
			continue
		}
		a.trials[t] = make([]*priorityOutcome, len(seeds))
		a.order = append(a.order, t)
		if byCase[t.priorityCase] == nil {
			cases = append(cases, t.priorityCase)
		}
		byCase[t.priorityCase] = append(byCase[t.priorityCase], t)
	}
	a.streams = len(cases) * len(seeds)
	results, err := Map(ctx, env, a.streams, func(ctx context.Context, i int) (map[priorityTrial]*priorityOutcome, error) {
		c, n := cases[i/len(seeds)], i%len(seeds)
		trials := slices.Clone(byCase[c])
		return c.run(ctx, env, seeds[n], slices.DeleteFunc(trials, func(t priorityTrial) bool { return t.beside() && n >= fewSeeds }))
	})
	if err != nil {
		return nil, err
	}
	for i, outcomes := range results {
		for t, o := range outcomes {
			a.trials[t][i%len(seeds)] = o
			a.runs++
		}
		a.strays += strays(outcomes)
	}
	return a, nil
}

// strays returns 1 if not all runs had the same jobs.
func strays(outcomes map[priorityTrial]*priorityOutcome) int {
	jobs := ""
	for _, o := range outcomes {
		if jobs != "" && o.jobs != jobs {
			return 1
		}
		jobs = o.jobs
	}
	return 0
}

// run runs trials with the jobs that a seed stands for.
func (c priorityCase) run(ctx context.Context, env *Env, seed uint64, trials []priorityTrial) (map[priorityTrial]*priorityOutcome, error) {
	m, err := c.model(env)
	if err != nil {
		return nil, err
	}
	f, err := m.Generate(workload.NewRand(seed, 0))
	if err != nil {
		return nil, fmt.Errorf("%v, seed %d: %w", c, seed, err)
	}
	outcomes := make(map[priorityTrial]*priorityOutcome, len(trials))
	for _, t := range trials {
		if outcomes[t], err = t.run(ctx, &m, f, false); err != nil {
			return nil, fmt.Errorf("seed %d: %w", seed, err)
		}
	}
	return outcomes, nil
}

// has reports whether all trials were run.
func (a *priorityAnswers) has(trials ...priorityTrial) bool {
	return !slices.ContainsFunc(trials, func(t priorityTrial) bool { return a.trials[t] == nil })
}

// siteMeans are mean completion times in seconds: of the jobs of each origin,
// and of all jobs.
type siteMeans struct {
	sites [prioritySites]float64
	all   float64
}

// fewSeeds is how many seeds there are for what is beside the source's claims.
const fewSeeds = 10

// few returns a for comparisons with trials that were run with few seeds.
func (a *priorityAnswers) few() *priorityAnswers {
	b := *a
	b.until = min(a.until, fewSeeds)
	return &b
}

// lotSize is how many seeds the source has for each of its figures.
const lotSize = 10

// overLots returns the mean over lots of seeds of a figure. The largest of
// several means, and their deviation, come out the larger the fewer runs are
// behind them: what the source says of ten seeds is only met by lots of ten.
func (a *priorityAnswers) overLots(figure func(*priorityAnswers) float64) float64 {
	lots := max(1, (a.until-a.from)/lotSize)
	sum := 0.0
	for i := range lots {
		b := *a
		b.from, b.until = a.from+i*(a.until-a.from)/lots, a.from+(i+1)*(a.until-a.from)/lots
		sum += figure(&b)
	}
	return sum / float64(lots)
}

// largest returns the largest mean of a site, deviation the standard deviation
// over the sites.
func (a *priorityAnswers) largest(t priorityTrial) float64 {
	return a.overLots(func(a *priorityAnswers) float64 { return a.of(t).max() })
}

func (a *priorityAnswers) deviation(t priorityTrial) float64 {
	return a.overLots(func(a *priorityAnswers) float64 { return a.of(t).sd() })
}

// outcomes yields the outcomes of a trial that count.
func (a *priorityAnswers) outcomes(t priorityTrial) iter.Seq[*priorityOutcome] {
	return func(yield func(*priorityOutcome) bool) {
		for i, o := range a.trials[t] {
			if o != nil && i != a.without && i >= a.from && i < a.until && !yield(o) {
				return
			}
		}
	}
}

// of returns the means of a trial over the seeds.
func (a *priorityAnswers) of(t priorityTrial) siteMeans {
	var m siteMeans
	n := 0.0
	for o := range a.outcomes(t) {
		for i := range m.sites {
			m.sites[i] += o.sites[i]
		}
		m.all += o.all
		n++
	}
	for i := range m.sites {
		m.sites[i] /= n
	}
	m.all /= n
	return m
}

// moved returns the share of jobs that ran away from their origin.
func (a *priorityAnswers) moved(t priorityTrial) float64 {
	sum, n := 0.0, 0.0
	for o := range a.outcomes(t) {
		sum += o.moved
		n++
	}
	return sum / max(n, 1)
}

// standardErrors returns the standard error over the seeds of each margin of a
// reading, by leaving out one seed after the other (the jackknife).
func (a *priorityAnswers) standardErrors(judge func(*priorityAnswers) *priorityReading) []float64 {
	n := a.env.Seeds
	if n < 2 {
		return nil
	}
	var margins [][]float64 // of each need, without each seed
	for i := range n {
		b := *a
		b.without = i
		for k, x := range judge(&b).needs {
			if k == len(margins) {
				margins = append(margins, nil)
			}
			margins[k] = append(margins[k], x.margin)
		}
	}
	errors := make([]float64, len(margins))
	for k, m := range margins {
		errors[k] = metrics.SD(m) * math.Sqrt(float64(n-1))
	}
	return errors
}

func (m siteMeans) max() float64 { return slices.Max(m.sites[:]) }

// sd is over the sites, with the divisor n-1 (spec 004 section 2.5).
func (m siteMeans) sd() float64 { return metrics.SampleSD(m.sites[:]) }

// dual and single are the means over the first k sites and over the others.
func (m siteMeans) dual(k int) float64   { return metrics.Mean(m.sites[:k]) }
func (m siteMeans) single(k int) float64 { return metrics.Mean(m.sites[k:]) }

// gainLoss returns the most that a site gains against itself under base, and
// the most that one loses, in percent (spec 004 section 3.1).
func (m siteMeans) gainLoss(base siteMeans) (gain, loss float64) {
	for i := range m.sites {
		d := percent(m.sites[i], base.sites[i])
		gain, loss = max(gain, -d), max(loss, d)
	}
	return gain, loss
}

// percent returns how much more v is than base, in percent.
func percent(v, base float64) float64 { return 100 * (v/base - 1) }

// gainLoss is that of a trial against plain MCT with no dual queues.
func (a *priorityAnswers) gainLoss(t priorityTrial) (gain, loss float64) {
	base := mct(t.number, t.load, 0)
	gain = a.overLots(func(a *priorityAnswers) float64 { g, _ := a.of(t).gainLoss(a.of(base)); return g })
	loss = a.overLots(func(a *priorityAnswers) float64 { _, l := a.of(t).gainLoss(a.of(base)); return l })
	return gain, loss
}
