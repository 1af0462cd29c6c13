package hierarchy

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"kith/sitesched"
	"kith/sitesched/level"
	"kith/testbed/lab"
)

// trial is a run of the trace, or of one of the scenarios of Table 1.
type trial string

// The trials.
const (
	production7   trial = "production"
	doubled       trial = "production, twice the long tasks"
	potential     trial = "production, potential triggers on at the last level"
	unestimated   trial = "production, no estimates at level 1"
	fcfs          trial = "FCFS"
	fcfsHierarchy trial = "FCFS+H"
	mq            trial = "MQ"
	mqHierarchy   trial = "MQ+H"
)

var scenarios = []trial{fcfs, fcfsHierarchy, mq, mqHierarchy}

// setting is what is known of the work of tasks, in the three trials that the statements about that need.
type setting struct {
	name                      string
	plain, doubled, potential trial
	estimators                bool
	users                     users
}

var (
	printed      = setting{"estimators", production7, doubled, potential, true, nobody}
	unknown      = setting{"nothing", "no estimators", "no estimators, twice the long tasks", "no estimators, potential triggers on at the last level", false, nobody}
	guessKindred = setting{"guesses, users of one length", "guesses, users of one length", "guesses, users of one length, twice the long tasks", "guesses, users of one length, potential triggers on at the last level", false, kindred}
	guessVarious = setting{"guesses, users of any length", "guesses, users of any length", "guesses, users of any length, twice the long tasks", "guesses, users of any length, potential triggers on at the last level", false, various}
	settings     = []setting{printed, unknown, guessKindred, guessVarious}
)

func (s *setting) trials() []trial { return []trial{s.plain, s.doubled, s.potential} }

// base is the trial of the source that a trial is like but for what is known of tasks.
func (t trial) base() (trial, *setting) {
	for i := range settings {
		switch s := &settings[i]; t {
		case s.plain:
			return production7, s
		case s.doubled:
			return doubled, s
		case s.potential:
			return potential, s
		}
	}
	return t, &settings[0]
}

// result is what came of a trial: figures of a trace, or the times of two tasks in s.
type result struct {
	*outcome
	long, short float64
}

// Experiment is the study of spec 000.
func Experiment() lab.Experiment {
	study := lab.Study[trial, *answers]{Questions: questions(), Shown: shown(), Answer: answer}
	return study.Experiment(lab.Experiment{
		ID: "000", Title: "Tasks of unknown length on a hierarchy of grids",
		Source: "Scheduling of tasks on a grid execution hierarchy, Superlink-online (HPDC 2006)",
		Jobs:   traceTasks, Seeds: 2,
	})
}

// shown are the trials of tables and plots.
func shown() []trial {
	list := slices.Clone(scenarios)
	for i := range settings {
		list = append(list, settings[i].trials()...)
	}
	return list
}

// answers are what came of trials.
type answers struct {
	lab.Outcomes[trial, result]
	env *lab.Env
}

func answer(ctx context.Context, env *lab.Env, trials []trial) (*answers, error) {
	seeds := env.SeedList()
	plan := lab.Plan[trial, result]{
		Seeds: func(trial) int { return len(seeds) },
		Expense: func(t trial) int {
			switch base, _ := t.base(); base {
			case doubled:
				return 3
			case production7, potential, unestimated:
				return 2
			}
			return 0
		},
		Run: func(ctx context.Context, t trial, i int) (result, error) {
			return t.run(ctx, env.JobsOr(traceTasks), seeds[i])
		},
	}
	all, err := plan.Try(ctx, env, trials)
	return &answers{Outcomes: all, env: env}, err
}

// run runs a trial with a seed. All trials of a trace with one seed have the same tasks, but for the long ones that are added.
func (t trial) run(ctx context.Context, tasks int, seed uint64) (result, error) {
	sys, list := production(), []submitted(nil)
	extra := 1.0
	base, s := t.base()
	switch base {
	case fcfs, fcfsHierarchy, mq, mqHierarchy:
		sys, list = t.scenario()
	case doubled:
		extra = 2
	case potential:
		sys.queues[q4].limits.Actions[level.TaskOverdue] = level.Terminate
		sys.queues[q4].limits.Actions[level.QueueOverdue] = level.Terminate
	case unestimated:
		l := &sys.queues[q1].limits
		l.EstimateShare = 0
		for _, trigger := range []level.Trigger{level.Overload, level.Mismatch, level.TaskOverdue, level.QueueOverdue} {
			l.Actions[trigger] = level.Off // nothing is known that they could act on
		}
	case production7:
	}
	if list == nil {
		list = generate(tasks, extra, rand.New(rand.NewPCG(seed, 0)))
	}
	if !s.estimators {
		for i := range sys.queues {
			sys.queues[i].limits.EstimateShare = 0
		}
	}
	p, err := newPlay(sys, list, rand.New(rand.NewPCG(seed, 3)))
	if err != nil {
		return result{}, err
	}
	p.guesses = newGuesses(s.users, list, rand.New(rand.NewPCG(seed, 4)))
	if err := p.run(ctx); err != nil {
		return result{}, err
	}
	r := result{outcome: p.outcome()}
	if len(p.tasks) == 2 {
		r.long, r.short = p.tasks[0].end.Sub(p.tasks[0].at).Seconds(), p.tasks[1].end.Sub(p.tasks[1].at).Seconds()
	}
	return r, nil
}

// The tasks of Table 1: 3,000 sub-jobs that take about six hours on a large pool, and 30 s on one processor, an hour and a half later.
const (
	scenarioPool = 125
	scenarioSubs = 3000
	scenarioSub  = 15 * time.Minute
	shortTask    = 30 * time.Second
	shortComes   = 90 * time.Minute
)

// scenario is a system without owners and other tasks.
func (t trial) scenario() (system, []submitted) {
	sys := production()
	long := scenarioSubs * scenarioSub.Seconds() * sys.queues[q4].limits.Speed * share
	list := []submitted{{at: 1, work: long}, {at: seconds(shortComes.Seconds()), work: shortTask.Seconds() * sys.queues[q1].limits.Speed * share}}
	for i := range sys.queues {
		sys.queues[i].volatility, sys.queues[i].steady = 0, true
	}
	for i := range sys.grids {
		sys.grids[i].owners = 0
	}
	sys.grids[2].processors = scenarioPool
	if t == mqHierarchy {
		return sys, list
	}
	pool := queue{
		name: "all", limits: limits(2, 1e5, 1e5, scenarioSubs, 649505), parallel: true, sub: scenarioSub, latency: 3 * time.Minute, steady: true, sibling: -1, next: -1,
	}
	pool.limits.EstimateShare = 0
	for trigger := range pool.limits.Actions {
		pool.limits.Actions[trigger] = level.Off
	}
	g := grid{processors: scenarioPool, queues: sitesched.Single}
	if t == fcfsHierarchy {
		g.processors += 2 // the server of level 1
	}
	if t != mq {
		return system{queues: []queue{pool}, grids: []grid{g}}, list
	}
	// Everybody begins in the queue that goes first, and who has run for too long goes last.
	high, low := pool, pool
	high.limits.Rank, high.limits.Queue, high.limits.Run, high.next = 1, 6*time.Minute, 3*time.Minute, 1
	high.limits.Actions[level.Overdue] = level.Demote
	low.guest = true
	g.queues = sitesched.DualPreempt
	return system{queues: []queue{high, low}, grids: []grid{g}}, list
}

// Workload says what was run.
func (a *answers) Workload() string {
	n := a.env.JobsOr(traceTasks)
	return fmt.Sprintf("%d tasks in bursts of 4 in the mean, at the rate of 2,300 in seven months, seeds %d to %d; 60 %% of a few minutes or less, 28 %% up to 3 h, the others from a lognormal of median %g h and sigma %g, of processor time at the speed of Q3",
		n, a.env.FirstSeed, a.env.FirstSeed+uint64(a.env.Seeds)-1, tailMedian, tailSigma)
}

// Remark says how things were read.
func (a *answers) Remark(r *lab.Report) {
	r.Remark("Who leaves a level is decided by the rules that Kith has (sitesched/level), which sub-job runs where by its scheduler: first come, first served, and on the grid that Q3 and Q4 share the sub-jobs of Q4 are guests that those of Q3 do not see (dual-preempt). Masters, estimators, owners and moves from level to level are played. A move loses sub-jobs that run and keeps those that have ended.")
	r.Remark("The tail of the long tasks was fitted once, to H5 and H16 together: of nine pairs of median and sigma (190 and 2, 400 and 2, 300 and 2.3, 700 and 1.2, 700 and 1.5, 1000 and 1.3, 200 and 2.6, 150 and 2.6, 400 and 2.3) and one seed the one with the least |share of level 3 − 82 %%| + |share killed − 27 %%|, and left since, also when a mistake was mended that had limits act on tasks that were still being estimated. With it the system uses about 250,000 processor-hours instead of 460,000. Level 1 cannot have the 0.3 %% of processor time that the source gives it: its tasks have at most 0.1 processor-hours each, and 60 %% of 2,300 tasks are then 0.03 %% of the source's total.")
	r.Remark("Owners hold 30 %% of Q2's grid and 50 %% of that of Q3 and Q4 in the mean, and beside that running sub-jobs lose their processors at random; both are inputs, set to come near the row of evictions of Table 3, and so are latencies (20 s, 4 min and 6 min in the mean) and lengths of sub-jobs. H12, H13 and the rows of Table 3 for evictions say little: they are told, not judged. Long estimates below level 1 take time and no processors.")
	r.Remark("On the dual-processor server of level 1 a task runs on one processor, and estimates wait their turn. A task that leaves Q2 tries Q3 first. Where estimates are left out at level 1, so are the triggers that need one.")
	r.Remark("The default bound (`forecast.bounds` of kithd, off unless set) is for tasks without an estimator: the %g quantile of what earlier tasks of the user did, once %d of them have ended; by it a task begins at a lower level, and nothing else follows from it. Nobody estimates anything in these trials, at any level. The trace of the source has no users; %d are made up, in two ways between which real ones are: each sends tasks of one class of lengths, or tasks of any length. The bands of H20 to H22 were drawn before the first run. Waiting is all of the time in which no sub-job of a task ran, estimates and moves included, of tasks that ended with their result. In Q a task of which nothing is known counts as all that a limit lets it use: with the potential triggers on at the last level two of them are too many for it, so without estimators the second part of H15 says little.", guessQuantile, leastForGuess, usersOfClass*len(classes))
	r.Remark("Overhead is all of the accumulated time in which no sub-job ran, and of the rest the part of processor time that was lost.")
}
