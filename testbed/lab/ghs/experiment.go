package ghs

import (
	"context"
	"fmt"

	"kith/testbed/lab"
)

// runsOf is how many runs there are for each seed where a mean is measured; the bands are meant
// for as many.
const runsOf = 100

// Experiment is the study of spec 003.
func Experiment() lab.Experiment {
	study := lab.Study[trial, *answers]{Questions: questions(), Answer: answer}
	return study.Experiment(lab.Experiment{
		ID: "003", Title: "Work on machines whose owners come first",
		Source: "Grid harvest service: a performance system of grid computing (JPDC 2006)",
		Jobs:   runsOf, Seeds: 10,
	})
}

// answers are what came of trials: figures for each seed.
type answers struct {
	lab.Outcomes[trial, outcome]
	env *lab.Env
}

// answer runs all trials with all seeds.
func answer(ctx context.Context, env *lab.Env, trials []trial) (*answers, error) {
	seeds := env.SeedList()
	plan := lab.Plan[trial, outcome]{
		Seeds: func(t trial) int {
			if t.timed() {
				return 1
			}
			return len(seeds)
		},
		Expense: trial.expense,
		Run: func(ctx context.Context, t trial, i int) (outcome, error) {
			o, err := t.run(ctx, &bench{seed: seeds[i], runs: env.JobsOr(runsOf), clock: env.Clock})
			if err != nil {
				err = fmt.Errorf("%s of %d, seed %d: %w", t.what, t.size, seeds[i], err)
			}
			return o, err
		},
	}
	all, err := plan.Try(ctx, env, trials)
	return &answers{Outcomes: all, env: env}, err
}

// Workload says what was run.
func (a *answers) Workload() string {
	return fmt.Sprintf("owners who come and go job by job, %d runs for each mean, seeds %d to %d",
		a.env.JobsOr(runsOf), a.env.FirstSeed, a.env.FirstSeed+uint64(a.env.Seeds)-1)
}

// Remark says how things were read.
func (a *answers) Remark(r *lab.Report) {
	r.Remark("Two generators, written down before the first run was looked at. Where predictions and divisions are judged (S1 to S7, S10), owners have the source's life times, 2/u s, cut at 1 h (mean %.1f s, coefficient of variation %.1f), and mean shares from 0.1 to 0.5; where parameters are predicted (S1 to S5, S10) they come half as often again at the height of a day, half as often at its depth, and half as often on two days of a week, and four weeks are measured before. Where choices are judged (S8, S9, S11, S12), machines are those of the specification's generator, and what is predicted of them is right.",
		meanLife, sigmaLife/meanLife)
	r.Remark("Owners' jobs have absolute priority and one processor each; a guest begins when the machine is idle. The parameters of the source's experiments, the usage logs it mentions and its Figures 4 to 7 are lost.")
	r.Remark("An error is |predicted − measured| ÷ measured. \"Falls\" allows a tenth of noise from one size to the next.")
	r.Remark("S11: what AppLeS measures is what one more process would get in the last 5 min, 1 ÷ (1 + processes that are there), one for the owner if he is there, and its own subtask among them; every 500 s it divides what has not begun anew by min-min. First reading, by which the band is judged: it divides all of it, so that no machine waits for a plan. Second reading: it plans only what its forecast says will end within the phase.")
	r.Remark("After a first look at three seeds each task on one machine begins after a moment of its own instead of right after the last one, and the sensors of S10 and S11 count one process for an owner who is there instead of all his jobs that wait, which had made them see hundreds behind a long one; the programs that communicate got the same owners as those that do not, savings became those of the mean times over all runs, as in the source's tables, and the errors by true rates were added; nothing else of the experiment was changed. The sampler of S13 was, as it missed an acceptance check: it takes at least four samples an hour, and looks at the last hour by itself, too.")
	r.Remark("S9 and S14 are processor times of one run, each the least of several, and so no two runs give quite the same. For 20 machines every 64th set was evaluated, and the time multiplied.")
}
