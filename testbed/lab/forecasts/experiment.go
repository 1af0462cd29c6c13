package forecasts

import (
	"context"
	"fmt"
	"slices"
	"time"

	"kith/internal/forecast"
	"kith/testbed/lab"
	"kith/testbed/metrics"
)

// Experiment is a study of our own: how often forecasts hold and what they are worth.
func Experiment() lab.Experiment {
	study := lab.Study[trial, *answers]{Questions: questions(), Shown: allTrials(), Answer: answer}
	return study.Experiment(lab.Experiment{
		ID: "forecast", Title: "How often forecasts of starts and of run times hold",
		Source: "a study of our own",
		Jobs:   madeUp, Seeds: 3, UsesTrace: true,
	})
}

// answers are what came of trials, scored: one list for each seed.
type answers struct {
	outcomes lab.Outcomes[trial, *outcome]
	env      *lab.Env
	src      *source
	starts   map[setting][]methods
	runs     []methods
}

// methods are the scores of each method, the same forecasts in the same order.
type methods struct {
	names  []string
	scores [][]scored
}

func (m *methods) add(name string, s []scored) {
	m.names, m.scores = append(m.names, name), append(m.scores, s)
}

// The methods. Ours come first.
const (
	ours           = 0
	byLimits       = 1 // WhatIf × past ratio; the limit × past ratio
	byWaits        = 2 // past waits by width; the last two × past ratio
	atOrigin       = 3 // in a federation: the origin alone
	byRegression   = 3 // of run times
	warmUp         = 1000
	runTimesBefore = "the first 1,000 jobs are learnt from and not counted"
)

// answer runs all trials with all seeds. A log is run as a whole, and once.
func answer(ctx context.Context, env *lab.Env, trials []trial) (*answers, error) {
	src, err := newSource(env)
	if err != nil {
		return nil, err
	}
	seeds := env.SeedList()
	if src.log != nil {
		seeds = seeds[:1]
	}
	plan := lab.Plan[trial, *outcome]{
		Seeds:   func(trial) int { return len(seeds) },
		Expense: func(t trial) int { return parts / t.partsOf() },
		Run:     func(ctx context.Context, t trial, i int) (*outcome, error) { return t.run(ctx, src, seeds[i]) },
	}
	trials = slices.DeleteFunc(slices.Clone(trials), func(t trial) bool { return src.leavesOut(t.setting) })
	a := &answers{env: env, src: src, starts: make(map[setting][]methods)}
	if a.outcomes, err = plan.Try(ctx, env, trials); err != nil {
		return nil, err
	}
	for i, seed := range seeds {
		for _, s := range settings {
			if a.outcomes.Has(s.trials()...) {
				m, err := a.scoreStarts(s, i, seed)
				if err != nil {
					return nil, err
				}
				a.starts[s] = append(a.starts[s], m)
			}
		}
		if list := a.outcomes[trial{easy, 0}]; list != nil {
			m, err := scoreRuns(src, list[i], seed)
			if err != nil {
				return nil, err
			}
			a.runs = append(a.runs, m)
		}
	}
	return a, nil
}

// scoreStarts puts the parts of a setting together and scores all methods.
func (a *answers) scoreStarts(s setting, seedIndex int, seed uint64) (m methods, err error) {
	o := *a.outcomes[trial{s, 0}][seedIndex]
	o.waits = nil
	for _, t := range s.trials() {
		o.waits = append(o.waits, a.outcomes[t][seedIndex].waits...)
	}
	slices.SortFunc(o.waits, o.order)
	n := len(o.waits)
	items, widths := make([]item, n), make([]int32, n)
	all, own := make(scenarios, n), make(scenarios, n)
	latest := make([]time.Duration, n)
	for i := range o.waits {
		w := &o.waits[i]
		r := o.record(w)
		items[i] = item{r.Submit, r.Start, r.Start.Sub(r.Submit)}
		widths[i], all[i], own[i], latest[i] = r.Procs, w.all, w.own, w.latest
	}
	starts := func(x method) []scored { return score(items, x, forecast.StartClasses, forecast.FadeStarts, seed) }
	m.add("scenarios", starts(all))
	m.add("WhatIf × past ratio", starts(&pastRatio{items: items, latest: latest}))
	m.add("past waits by width", starts(&pastWaits{items: items, widths: widths}))
	if s == federated {
		m.add("scenarios of the origin alone", starts(own))
	}
	return m, nil
}

// scoreRuns scores all methods for the run times of the jobs of a log at one site.
func scoreRuns(src *source, o *outcome, seed uint64) (m methods, err error) {
	list, err := src.workloads(easy, seed)
	if err != nil {
		return m, err
	}
	base := runs{jobs: list[0].Jobs}
	for i := range o.records {
		r := &o.records[i]
		base.items = append(base.items, item{r.Submit, r.End, r.Run})
	}
	for _, x := range []struct {
		name string
		of   func(runs) method
	}{
		{"similar jobs", func(r runs) method { return &similar{r, forecast.NewHistory()} }},
		{"limit × past ratio", func(r runs) method { return &ofLimit{runs: r} }},
		{"last two × past ratio", func(r runs) method {
			return &lastTwo{runs: r, last: make(map[string][2]time.Duration), bases: make([]time.Duration, len(r.jobs))}
		}},
		{"quantile regression", func(r runs) method { return newRegression(r) }},
	} {
		r := base
		r.users = make(map[string]int)
		s := score(r.items, x.of(r), forecast.RunClasses, forecast.FadeRuns, seed)
		m.add(x.name, s[min(warmUp, len(s)/10):])
	}
	return m, nil
}

// Workload says which jobs were run.
func (a *answers) Workload() string {
	if a.src.log != nil {
		return fmt.Sprintf("%s on %d processors: all of it at one site, and a third of it at each of %d sites with as many processors each", a.src.log.Name, a.src.processors, sites)
	}
	return fmt.Sprintf("generated jobs like those of the CTC log, %d a site, offered load %.1f, on %d processors at one site, and at each of %d sites", a.src.jobs, load, a.src.processors, sites)
}

// Remark says how things were read.
func (a *answers) Remark(r *lab.Report) {
	r.Remark("A forecast is made at submission, after the pass of that instant, for jobs that did not start in it, and knows what had happened by then. It held if the start lay within the range of 80 %%; a start that ties with a bound counts by the part of it inside.")
	r.Remark("Under EASY every job that waits is looked at, in a federation every second, under conservative backfill every eighth. A forecast is %d scenarios, %d under conservative backfill. The least of three sites is taken scenario by scenario, and no site plays one further than the origin, which is asked first; a host goes by nine quantiles of the run times of others' jobs.",
		easy.draws(), conservative.draws())
	r.Remark("All methods are recalibrated in the same way and in the same classes. The simple ones go by the latest %d outcomes. Of run times, %s.", ringSize, runTimesBefore)
	r.Remark("The loss is the pinball loss, in seconds, mean over the levels %v. Our constants were found on the CTC and KTH logs.", forecast.Levels)
	if a.src.log != nil {
		r.Remark("A log is run as a whole, and once: the first seed.")
		if a.src.leavesOut(conservative) {
			r.Remark("%s has %d jobs: conservative backfill, which takes most of the time by far, is left out of logs of more than %d.", a.src.log.Name, len(a.src.log.Jobs), mostConservative)
		}
	} else {
		r.Remark("Run times of generated jobs do not hang on their users, so that there is little to learn from similar jobs.")
	}
	failed := 0
	for _, list := range a.outcomes {
		for _, o := range list {
			failed += o.failed
		}
	}
	if failed > 0 {
		r.Remark("%d forecasts came to nothing within their steps, and are left out.", failed)
	}
}

// spread returns a figure for each seed.
func spread(list []methods, figure func(m *methods) float64) lab.Spread {
	var s lab.Spread
	for i := range list {
		s = append(s, figure(&list[i]))
	}
	return s
}

// held is the share of our ranges that held, in percent.
func held(m *methods) float64 {
	r := record(m.scores[ours])
	return 100 * r.Share()
}

// lossOver is our loss over that of another method.
func lossOver(method int) func(*methods) float64 {
	return func(m *methods) float64 {
		a, b := record(m.scores[ours]), record(m.scores[method])
		return a.Pinball / b.Pinball
	}
}

// medianWidth is the median width of the ranges of a method.
func medianWidth(list []scored) float64 {
	var widths []float64
	for i := range list {
		widths = append(widths, list[i].Width)
	}
	return metrics.Describe(widths).P50
}
