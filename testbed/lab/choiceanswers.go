package lab

import (
	"context"
	"slices"

	"kith/meta"
	"kith/testbed/metrics"
)

// choiceQuestion is a claim together with the trials that answer it.
type choiceQuestion struct {
	Claim
	needs []choiceTrial
	judge func(a *choiceAnswers) Finding
}

// choiceAnswers are the outcomes of trials: one for each seed of their setting.
type choiceAnswers struct {
	env    *Env
	src    *choiceSource
	trials map[choiceTrial][]*choiceOutcome
}

// answerChoice runs all trials with all seeds.
func answerChoice(ctx context.Context, env *Env, src *choiceSource, trials []choiceTrial) (*choiceAnswers, error) {
	a := &choiceAnswers{env: env, src: src, trials: make(map[choiceTrial][]*choiceOutcome)}
	type run struct {
		trial choiceTrial
		seed  int
	}
	var list []run
	for _, t := range trials {
		if a.trials[t] == nil {
			n := len(a.seeds(t.choiceSetting))
			a.trials[t] = make([]*choiceOutcome, n)
			for i := range n {
				list = append(list, run{t, i})
			}
		}
	}
	// The long runs come first, so that no processor waits for one at the end.
	slices.SortStableFunc(list, func(x, y run) int { return y.trial.expense() - x.trial.expense() })
	outcomes, err := Map(ctx, env, len(list), func(ctx context.Context, i int) (*choiceOutcome, error) {
		r := list[i]
		return r.trial.run(ctx, src, a.seeds(r.trial.choiceSetting)[r.seed])
	})
	if err != nil {
		return nil, err
	}
	for i, o := range outcomes {
		a.trials[list[i].trial][list[i].seed] = o
	}
	return a, nil
}

// expense is a guess at how long the trial takes, in no unit.
func (t choiceTrial) expense() int {
	w := t.sites * (10 + int(t.k))
	if t.rank == meta.RankStart || t.rank == meta.RankCompletion {
		w *= 2
	}
	return w
}

// seedSites is up to how many sites a setting takes all seeds. With more of them
// each seed is a larger sample, and fewer do.
const seedSites = 8

// seeds returns those of a setting.
func (a *choiceAnswers) seeds(c choiceSetting) []uint64 {
	list := a.env.SeedList()
	if c.sites > seedSites {
		list = list[:max(1, len(list)*seedSites/c.sites)]
	}
	return list
}

// has reports whether all trials were run.
func (a *choiceAnswers) has(trials ...choiceTrial) bool {
	return !slices.ContainsFunc(trials, func(t choiceTrial) bool { return a.trials[t] == nil })
}

// of returns a figure of a trial for each seed.
func (a *choiceAnswers) of(t choiceTrial, figure func(*choiceOutcome) float64) spread {
	var s spread
	for _, o := range a.trials[t] {
		s = append(s, figure(o))
	}
	return s
}

// ratio returns a figure of one trial over that of another, for each seed.
func (a *choiceAnswers) ratio(t, base choiceTrial, figure func(*choiceOutcome) float64) spread {
	s := a.of(t, figure)
	for i, o := range a.trials[base] {
		s[i] = over(s[i], figure(o))
	}
	return s
}

// over divides. Nothing over nothing is 1, as in runs so short that nobody waits.
func over(x, by float64) float64 {
	const little = 1e-6
	return (x + little) / (by + little)
}

// left returns what a trial leaves of a figure of staying alone.
func (a *choiceAnswers) left(t choiceTrial, figure func(*choiceOutcome) float64) spread {
	return a.ratio(t, t.alone(), figure)
}

// sites returns what a trial leaves of the mean wait of the jobs of each site,
// over all seeds together: a site's wait in one of them may be next to nothing.
func (a *choiceAnswers) sites(t choiceTrial) []float64 {
	here, alone := make([]float64, t.sites), make([]float64, t.sites)
	for i, o := range a.trials[t] {
		for s, w := range o.sites() {
			here[s] += w
		}
		for s, w := range a.trials[t.alone()][i].sites() {
			alone[s] += w
		}
	}
	for s := range here {
		here[s] = over(here[s], alone[s])
	}
	return here
}

// longer returns the share of jobs that wait more than a minute longer than alone.
func (a *choiceAnswers) longer(t choiceTrial) spread {
	const minute = 60
	var s spread
	for i, o := range a.trials[t] {
		n := 0
		for k, w := range a.trials[t.alone()][i].waits {
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
func (a *choiceAnswers) asks(t choiceTrial, percent int, one bool) spread {
	var s spread
	for i, o := range a.trials[t] {
		s = append(s, o.of(oneCopy(a.seeds(t.choiceSetting)[i], percent, o.jobs), one))
	}
	return s
}

// over divides one by one.
func (s spread) over(by spread) spread {
	var list spread
	for i := range s {
		list = append(list, over(s[i], by[i]))
	}
	return list
}

// The figures that the study is about.
func meanWait(o *choiceOutcome) float64    { return o.wait.Mean }
func longWait(o *choiceOutcome) float64    { return o.wait.P95 }
func meanBounded(o *choiceOutcome) float64 { return o.bounded.Mean }
func meanQueue(o *choiceOutcome) float64   { return o.queue.Mean }
func longQueue(o *choiceOutcome) float64   { return o.queue.P95 }
func allMessages(o *choiceOutcome) float64 { return o.all }
func copiesSent(o *choiceOutcome) float64  { return o.copies }
func logicalSent(o *choiceOutcome) float64 { return float64(o.logical) / float64(max(o.jobs, 1)) }
func wireSent(o *choiceOutcome) float64    { return float64(o.wire) / float64(max(o.jobs, 1)) }

func classBounded(c metrics.Class) func(*choiceOutcome) float64 {
	return func(o *choiceOutcome) float64 { return o.class[c].BoundedSlowdown.Mean }
}
