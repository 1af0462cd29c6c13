package choice

import (
	"context"

	"kith/meta"
	"kith/testbed/lab"
	"kith/testbed/metrics"
)

// question is a statement together with the trials that answer it.
type question = lab.Question[trial, *answers]

// answers are what came of trials: one outcome for each seed of their setting.
type answers struct {
	lab.Outcomes[trial, *outcome]
	env *lab.Env
	src *source
}

// answer runs all trials with all seeds.
func answer(ctx context.Context, env *lab.Env, trials []trial) (*answers, error) {
	src, err := newSource(env)
	if err != nil {
		return nil, err
	}
	a := &answers{env: env, src: src}
	plan := lab.Plan[trial, *outcome]{
		Seeds:   func(t trial) int { return a.seedsOf(t) },
		Expense: trial.expense,
		Run: func(ctx context.Context, t trial, seed int) (*outcome, error) {
			return t.run(ctx, src, a.seeds(t.setting)[seed])
		},
	}
	a.Outcomes, err = plan.Try(ctx, env, trials)
	return a, err
}

// expense is a guess at how long the trial takes, in no unit.
func (t trial) expense() int {
	w := t.sites * (10 + int(t.k))
	if t.rank == meta.RankForecast {
		w *= 100
	}
	if t.rank == meta.RankStart || t.rank == meta.RankCompletion {
		w *= 2
	}
	return w
}

// seedSites is up to how many sites a setting takes all seeds. With more of them
// each seed is a larger sample, and fewer do.
const seedSites = 8

// forecastSeeds is how many seeds trials by forecasts have, each with fifty scenarios at five sites
// for each job that waits: they take a hundred times as long as others.
const forecastSeeds = 3

// seedsOf returns how many seeds a trial has: the first ones of its setting.
func (a *answers) seedsOf(t trial) int {
	n := len(a.seeds(t.setting))
	if t.rank == meta.RankForecast {
		return min(n, forecastSeeds)
	}
	return n
}

// seeds returns those of a setting.
func (a *answers) seeds(c setting) []uint64 {
	list := a.env.SeedList()
	if c.sites > seedSites {
		list = list[:max(1, len(list)*seedSites/c.sites)]
	}
	return list
}

// ratio returns a figure of one trial over that of another, for each seed that both have.
func (a *answers) ratio(t, base trial, figure func(*outcome) float64) lab.Spread {
	return overEach(a.Of(t, figure), a.Of(base, figure))
}

// over divides. Nothing over nothing is 1, as in runs so short that no job waits.
func over(x, by float64) float64 {
	const little = 1e-6
	return (x + little) / (by + little)
}

// left returns what a trial leaves of a figure of staying alone.
func (a *answers) left(t trial, figure func(*outcome) float64) lab.Spread {
	return a.ratio(t, t.alone(), figure)
}

// sites returns what a trial leaves of the mean wait of the jobs of each site,
// over all seeds together: a site's wait in one of them may be next to nothing.
func (a *answers) sites(t trial) []float64 {
	here, alone := make([]float64, t.sites), make([]float64, t.sites)
	for i, o := range a.Outcomes[t] {
		for s, w := range o.sites() {
			here[s] += w
		}
		for s, w := range a.Outcomes[t.alone()][i].sites() {
			alone[s] += w
		}
	}
	for s := range here {
		here[s] = over(here[s], alone[s])
	}
	return here
}

// longer returns the share of jobs that wait more than a minute longer than alone.
func (a *answers) longer(t trial) lab.Spread {
	const minute = 60
	var s lab.Spread
	for i, o := range a.Outcomes[t] {
		n := 0
		for k, w := range a.Outcomes[t.alone()][i].waits {
			if o.waits[k] > w+minute {
				n++
			}
		}
		s = append(s, float64(n)/float64(max(o.jobs, 1)))
	}
	return s
}

// asks returns the mean wait of the jobs that ask for one copy, or of the
// others, if percent do so. In trials in which all ask alike it is that of the
// same jobs.
func (a *answers) asks(t trial, percent int, one bool) lab.Spread {
	var s lab.Spread
	for i, o := range a.Outcomes[t] {
		s = append(s, o.of(oneCopy(a.seeds(t.setting)[i], percent, o.jobs), one))
	}
	return s
}

// overEach divides one by one.
func overEach(s, by lab.Spread) lab.Spread {
	var list lab.Spread
	for i := range min(len(s), len(by)) {
		list = append(list, over(s[i], by[i]))
	}
	return list
}

// The figures that the study is about.
func meanWait(o *outcome) float64    { return o.wait.Mean }
func longWait(o *outcome) float64    { return o.wait.P95 }
func meanBounded(o *outcome) float64 { return o.bounded.Mean }
func meanQueue(o *outcome) float64   { return o.queue.Mean }
func longQueue(o *outcome) float64   { return o.queue.P95 }
func allMessages(o *outcome) float64 { return o.all }
func copiesSent(o *outcome) float64  { return o.copies }
func logicalSent(o *outcome) float64 { return float64(o.logical) / float64(max(o.jobs, 1)) }
func wireSent(o *outcome) float64    { return float64(o.wire) / float64(max(o.jobs, 1)) }

func classBounded(c metrics.Class) func(*outcome) float64 {
	return func(o *outcome) float64 { return o.class[c].BoundedSlowdown.Mean }
}
