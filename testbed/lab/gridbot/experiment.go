package gridbot

import (
	"context"
	"fmt"
	"time"

	"kith/testbed/lab"
)

// Experiment is the study of spec 002: bags of tasks under policies, on grids whose hosts come
// and go.
func Experiment() lab.Experiment {
	study := lab.Study[trial, *answers]{Questions: questions(), Answer: answer}
	return study.Experiment(lab.Experiment{
		ID: "002", Title: "Bags of tasks under policies of their owners, on grids whose hosts come and go",
		Source: "GridBot: execution of bags of tasks in multiple grids (SC 2009)",
		Jobs:   sourceTasks / scale, Seeds: 5,
	})
}

// answers are what came of trials: one outcome for each seed.
type answers struct {
	lab.Outcomes[trial, *outcome]
	env  *lab.Env
	size size
}

// answer runs all trials with all seeds.
func answer(ctx context.Context, env *lab.Env, trials []trial) (*answers, error) {
	size := sizeOf(env.JobsOr(sourceTasks / scale))
	seeds := env.SeedList()
	plan := lab.Plan[trial, *outcome]{
		Seeds:   func(trial) int { return len(seeds) },
		Expense: trial.expense,
		Run:     func(ctx context.Context, t trial, i int) (*outcome, error) { return t.run(ctx, size, seeds[i]) },
	}
	all, err := plan.Try(ctx, env, trials)
	return &answers{Outcomes: all, env: env, size: size}, err
}

// Workload says which tasks were run.
func (a *answers) Workload() string {
	return fmt.Sprintf("one %dth of the source's tasks and hosts, so that its bag of %d has %d tasks; seeds %d to %d",
		a.size.divisor, sourceTasks, a.size.tasks(sourceTasks), a.env.FirstSeed, a.env.FirstSeed+uint64(a.env.Seeds)-1)
}

// Remark says how things were read.
func (a *answers) Remark(r *lab.Report) {
	r.Remark("One generator serves all statements. It was written down before the first run was looked at: log-normal up times (sigma %v) of which the share below %s is that of preempted jobs in the source's Figures 1(c) and 6(c), a fifth of the hosts of a grid with %v × that share and the others with a quarter of it; log-normal waits in the queues (median %s, sigma %v); failures by the same figures, and %v × their share of the hosts fail each task at once; at community hosts a run takes 1 ÷ Beta(1, 7/3) as long, mean ratio 0.3. For each seed %v to %v of the hosts of each grid serve at a time. One seed has the same comings and goings under each dispatcher.",
		upSigma, minutesOf(preemptedWithin), fragileTimes, minutesOf(waitMedian), waitSigma, blackPart, leastPart, mostPart)
	r.Remark("The grids are kinder than the source's: its figures are of jobs of 20 to 60 min, and most bags here have shorter tasks; of a client that lives long, only the last run is lost. The tables show which share of the runs was preempted. The generator was not changed for that.")
	r.Remark("Hosts are played: they ask, run a task and tell how it ended, and vanish without a word. What dispatches is the engine of `kithd` as the origin of the bags, with policies in their language, unless a statement says otherwise; to it each host is a site of one processor. What it is compared with is in the laboratory only: a naive server (no policies, deadline 3 days), a queue with a job for each task, and the source's own server, its algorithms 1 and 2 as they are printed.")
	r.Remark("First reading of what the source leaves open: its own server; a fifth of the hosts carries most preemptions; the tail begins at 3,000 unsent tasks (divided as all is), more than hosts are at work; replicas go before unsent tasks; reliable means error rate alone; deadline 75 min. Bands are judged under it. Second reading: the engine of `kithd` by its own rules: hosts of a grid alike; the tail begins with fewer unsent tasks than places; replicas go last and have at most a tenth of the places; reliable wants recent success, too. Its verdict is shown beside. A replica that was sent counts, also one that was stopped or never answered; waste is results that came when the task had one.")
	r.Remark("The long bag of G4 to G6 has a %dth of the tasks that it would have by this scale: it takes days instead of weeks. G9 and G10, which no reading touches, have the hosts of the first one. G7 and G8 count how often policies are looked at for an ask, as nothing takes time here; what that is in microseconds is in `docs/performance.md`, and so is how guests yield to home users of a real log. Statements O1 to O3 are our own: what Kith does otherwise than the source, beside it.",
		longDivisor)
	r.Remark("The quota by which the first reading's server holds back hosts that fail at once (spec 002 section 2.8) was forgotten in the first draft and added after a first look, at which one such host had taken most of all runs; so was the owner's look at his bag (below). Later, to save time, hosts stopped asking while they are offered nothing, as hosts of `kithd` do; that moved figures of the second reading a little. G11 counted the asks of the tail as well in its first draft, and O2 looked at the last task of the good bag, which waits for a community host that has vanished for three days under either rule. Nothing else was changed after a look.")
	if runs, tasks := a.lookedAfter(); runs > 0 {
		r.Remark("In %d runs the engine of `kithd` held the bag because its first results were all failures: with two hosts or more that fail at once many runs end before the first one can end well, and as all that has ended has failed, it blames the bag and not these hosts. %d tasks ended as failed, after %d runs each. The owner, who looks every %s, released the bag and had these tasks run again. (To the engine hosts are sites here. Of sites with many hosts it takes two with a host that fails.)", runs, tasks, mostRetries+1, minutesOf(ownerLooks))
	}
}

func minutesOf(d time.Duration) string { return fmt.Sprintf("%g min", d.Minutes()) }

// lookedAfter is in how many runs a bag was held, and how many tasks were run again by hand.
func (a *answers) lookedAfter() (runs, tasks int) {
	for _, outcomes := range a.Outcomes {
		for _, o := range outcomes {
			held := false
			for i := range o.bags {
				held = held || o.bags[i].held
				tasks += o.bags[i].retried
			}
			if held {
				runs++
			}
		}
	}
	return runs, tasks
}
