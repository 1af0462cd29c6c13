package localpriority

import (
	"cmp"
	"context"
	"iter"
	"math"
	"slices"

	"kith/testbed/lab"
	"kith/testbed/metrics"
)

// answers are what came of trials: one outcome for each seed.
type answers struct {
	lab.Outcomes[trial, *outcome]
	env *lab.Env
	// Seeds count from from on and below until, but for without; -1 is none.
	from, until, without int
}

// answer runs all trials with all seeds, but those beside the source's
// statements with the first few only.
func answer(ctx context.Context, env *lab.Env, trials []trial) (*answers, error) {
	plan := lab.Plan[trial, *outcome]{
		Seeds: func(t trial) int {
			switch {
			case t.small:
				return 1
			case t.beside():
				return min(env.Seeds, fewSeeds)
			}
			return env.Seeds
		},
		Expense: func(trial) int { return 0 },
		Run:     func(ctx context.Context, t trial, seed int) (*outcome, error) { return t.run(ctx, env, seed) },
	}
	all, err := plan.Try(ctx, env, trials)
	return &answers{Outcomes: all, env: env, until: env.Seeds, without: -1}, err
}

// sameJobs counts streams of jobs, those of a setting and a seed, and the runs
// with them; strays are the streams whose runs did not all have the same jobs.
func (a *answers) sameJobs() (streams, runs, strays int) {
	type stream struct {
		setting
		seed int
	}
	jobs := make(map[stream]string)
	astray := make(map[stream]bool)
	for t, outcomes := range a.Outcomes {
		if t.small {
			continue
		}
		for seed, o := range outcomes {
			runs++
			s := stream{t.setting, seed}
			if first := cmp.Or(jobs[s], o.jobs); first != o.jobs {
				astray[s] = true
			}
			jobs[s] = o.jobs
		}
	}
	return len(jobs), runs, len(astray)
}

// siteMeans are mean completion times in seconds: of the jobs of each origin,
// and of all jobs.
type siteMeans struct {
	sites [siteCount]float64
	all   float64
}

// fewSeeds is how many seeds there are for what is beside the source's statements.
const fewSeeds = 10

// few returns a for comparisons with trials that were run with few seeds.
func (a *answers) few() *answers {
	b := *a
	b.until = min(a.until, fewSeeds)
	return &b
}

// lotSize is how many seeds the source has for each of its figures.
const lotSize = 10

// overLots returns the mean over lots of seeds of a figure. The largest of
// several means, and their deviation, come out the larger the fewer runs are
// behind them: what the source says of ten seeds is only met by lots of ten.
func (a *answers) overLots(figure func(*answers) float64) float64 {
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
func (a *answers) largest(t trial) float64 {
	return a.overLots(func(a *answers) float64 { return a.of(t).max() })
}

func (a *answers) deviation(t trial) float64 {
	return a.overLots(func(a *answers) float64 { return a.of(t).sd() })
}

// outcomes yields the outcomes of a trial that count.
func (a *answers) outcomes(t trial) iter.Seq[*outcome] {
	return func(yield func(*outcome) bool) {
		for i, o := range a.Outcomes[t] {
			if i != a.without && i >= a.from && i < a.until && !yield(o) {
				return
			}
		}
	}
}

// of returns the means of a trial over the seeds.
func (a *answers) of(t trial) siteMeans {
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
func (a *answers) moved(t trial) float64 {
	sum, n := 0.0, 0.0
	for o := range a.outcomes(t) {
		sum += o.moved
		n++
	}
	return sum / max(n, 1)
}

// standardErrors returns the standard error over the seeds of each margin of a
// reading, by leaving out one seed after the other (the jackknife).
func (a *answers) standardErrors(judge func(*answers) *reading) []float64 {
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
func (a *answers) gainLoss(t trial) (gain, loss float64) {
	base := mct(t.number, t.load, 0)
	gain = a.overLots(func(a *answers) float64 { g, _ := a.of(t).gainLoss(a.of(base)); return g })
	loss = a.overLots(func(a *answers) float64 { _, l := a.of(t).gainLoss(a.of(base)); return l })
	return gain, loss
}
