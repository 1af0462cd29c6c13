package lab

import (
	"context"
	"fmt"
	"slices"

	"kith/testbed/metrics"
	"kith/testbed/workload"
)

// priorityAnswers are the outcomes of trials, one for each seed.
type priorityAnswers struct {
	env    *Env
	trials map[priorityTrial][]*priorityOutcome
	order  []priorityTrial
	// streams is how many streams of jobs were made, strays how many trials
	// ran other jobs than the rest of their stream's.
	streams, strays int
}

// answerPriority runs all trials with all seeds. What has its jobs in common
// is one piece of work: each stream is made once, and all its trials run the
// very same jobs.
func answerPriority(ctx context.Context, env *Env, trials []priorityTrial) (*priorityAnswers, error) {
	a := &priorityAnswers{env: env, trials: make(map[priorityTrial][]*priorityOutcome)}
	seeds := env.SeedList()
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
	results, err := Map(ctx, env, a.streams, func(ctx context.Context, i int) ([]*priorityOutcome, error) {
		c := cases[i/len(seeds)]
		return c.run(ctx, env, seeds[i%len(seeds)], byCase[c])
	})
	if err != nil {
		return nil, err
	}
	for i, outcomes := range results {
		for k, o := range outcomes {
			a.trials[byCase[cases[i/len(seeds)]][k]][i%len(seeds)] = o
			if o.jobs != outcomes[0].jobs {
				a.strays++
			}
		}
	}
	return a, nil
}

// run runs trials with the jobs that a seed stands for.
func (c priorityCase) run(ctx context.Context, env *Env, seed uint64, trials []priorityTrial) ([]*priorityOutcome, error) {
	m, err := c.model(env)
	if err != nil {
		return nil, err
	}
	f, err := m.Generate(workload.NewRand(seed, 0))
	if err != nil {
		return nil, fmt.Errorf("%v, seed %d: %w", c, seed, err)
	}
	outcomes := make([]*priorityOutcome, len(trials))
	for i, t := range trials {
		if outcomes[i], err = t.run(ctx, &m, f, false); err != nil {
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

// of returns the means of a trial over the seeds.
func (a *priorityAnswers) of(t priorityTrial) siteMeans {
	var m siteMeans
	outcomes := a.trials[t]
	for _, o := range outcomes {
		for i := range m.sites {
			m.sites[i] += o.sites[i] / float64(len(outcomes))
		}
		m.all += o.all / float64(len(outcomes))
	}
	return m
}

// moved returns the share of jobs that ran away from their origin.
func (a *priorityAnswers) moved(t priorityTrial) float64 {
	sum := 0.0
	for _, o := range a.trials[t] {
		sum += o.moved
	}
	return sum / float64(max(len(a.trials[t]), 1))
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
	return a.of(t).gainLoss(a.of(mct(t.number, t.load, 0)))
}
