package levels

import (
	"context"
	"fmt"

	"kith/testbed/lab"
	"kith/testbed/report"
)

// Experiment is a study of our own beside spec 000.
func Experiment() lab.Experiment {
	study := lab.Study[trial, *answers]{Questions: questions(), Shown: allTrials(), Answer: answer}
	return study.Experiment(lab.Experiment{
		ID: "levels", Title: "Whether levels are still needed where lengths are predicted", Source: "a study of our own, beside spec 000",
		Jobs: jobs, Seeds: 3, UsesTrace: true,
	})
}

// answers are what came of trials: one outcome for each seed.
type answers struct {
	lab.Outcomes[trial, *outcome]
	env *lab.Env
}

func answer(ctx context.Context, env *lab.Env, trials []trial) (*answers, error) {
	seeds := env.SeedList()
	plan := lab.Plan[trial, *outcome]{
		Seeds:   func(trial) int { return len(seeds) },
		Expense: func(trial) int { return 1 },
		Run:     func(ctx context.Context, t trial, i int) (*outcome, error) { return t.run(ctx, env, seeds[i]) },
	}
	all, err := plan.Try(ctx, env, trials)
	return &answers{Outcomes: all, env: env}, err
}

type question = lab.Question[trial, *answers]

func shortTime(o *outcome) float64  { return o.short.time }
func narrowTime(o *outcome) float64 { return o.narrow.time }
func longTime(o *outcome) float64   { return o.long.time }
func repeated(o *outcome) float64   { return o.repeated }
func stopped(o *outcome) float64    { return o.stopped }

// ratio asks how a figure of one trial compares with that of another. It is met from least to most; why says what we
// think where it is not.
func ratio(id, text string, of func(*outcome) float64, x, over trial, least, most float64, band, why string) question {
	return question{
		ID: id, Kind: lab.Direction, Text: text, Source: "no paper says", Band: band, Needs: []trial{x, over},
		Judge: func(a *answers) lab.Finding {
			return lab.Conclude(lab.Shown(string(x), a.Of(x, of), ""), lab.Shown(string(over), a.Of(over, of), ""),
				lab.Within("the first ÷ the second", a.Ratio(x, over, of), least, most)).Noted("", why)
		},
	}
}

func questions() []question {
	return []question{
		ratio("L1", "Short jobs end sooner on levels than where all wait together by their users' limits.", shortTime, hierarchy, limits, 0, 1, "mean time: at most 1",
			"Short jobs that are too wide for the upper levels wait at the last one, where nobody knows when anything ends, so that nothing is backfilled. With users' limits there it is otherwise (L8), and so it is for narrow jobs; the source's tasks are divisible and have no width."),
		ratio("L2", "Where lengths are predicted short jobs need no levels: they end about as soon without.", shortTime, predicted, hierarchy, 0, 1.1, "mean time: at most 1.1", ""),
		ratio("L3", "Predicted lengths serve short jobs better than their users' limits do.", shortTime, predicted, limits, 0, 1, "mean time: at most 1",
			"Limits that are far too long leave room that EASY backfills short jobs into; with tighter ones there is less of it. That is known of this discipline, and the truth does no better (L5)."),
		ratio("L4", "Long jobs pay for levels: they end later than where all wait together.", longTime, hierarchy, limits, 1, lab.Unbounded, "mean time: at least 1", ""),
		ratio("L5", "Nobody does better than who knows the truth.", shortTime, perfect, predicted, 0, 1, "mean time: at most 1", "See L3."),
		{
			ID: "L6", Kind: lab.Direction, Text: "Moves cost little work.", Source: "no paper says", Band: "saved and repeated, on levels: at most 5 % of the processor time", Needs: []trial{hierarchy, predicted},
			Judge: func(a *answers) lab.Finding {
				return lab.Conclude(lab.Within("levels (%)", a.Of(hierarchy, repeated), 0, 5), lab.Shown("predicted, goes on", a.Of(predicted, repeated), "%"))
			},
		},
		{
			ID: "L7", Kind: lab.Direction, Text: "A prediction is no limit: where it stops jobs, more than a tenth of the processor time is of jobs that it stopped.", Source: "no paper says", Band: "at least 10 %", Needs: []trial{hard},
			Judge: func(a *answers) lab.Finding {
				return lab.Conclude(lab.Within("stopped (%)", a.Of(hard, stopped), 10, 100))
			},
		},
		ratio("L8", "Short jobs that fit the smallest level, and have a limit, end sooner on levels than where all wait together.", narrowTime, limited, limits, 0, 1, "mean time: at most 1", ""),
		ratio("L9", "For those, too, predicted lengths make levels needless.", narrowTime, predicted, limited, 0, 1.1, "mean time: at most 1.1",
			"A prediction says that a job is short, and it still waits behind those that run; a level keeps processors for such."),
	}
}

// Workload says what was run.
func (a *answers) Workload() string {
	return a.described("all jobs are submitted at the largest one")
}

// described says which jobs there are, on what sites, and how they come there.
func (a *answers) described(how string) string {
	log, p := "generated jobs like those of the CTC log", a.env.ProcessorsOr(machine)
	if a.env.Trace != nil {
		log = a.env.Trace.Name
		if a.env.Processors == 0 && a.env.Trace.Processors > 0 {
			p = a.env.Trace.Processors
		}
	}
	s := sites(p)
	return fmt.Sprintf("%d jobs in a row, scaled to a load of %v: %s; sites of %d, %d and %d processors, EASY, one queue each; %s",
		a.env.JobsOr(jobs), load, log, s[0].Processors, s[1].Processors, s[2].Processors, how)
}

// Remark says how things were read.
func (a *answers) Remark(r *lab.Report) {
	r.Remark("The bands of this experiment are our own, drawn before the first run; L8, L9 and the row of levels with users' limits were added after it, as were the sizes of the sites: with a quarter and three quarters of the machine for the upper levels the last one was overloaded. The engines are those of the product, in all trials on the same sites with the same jobs; messages take no time. On a log the run of a job is cut to its user's limit, as its site did.")
	r.Remark("Levels: every job is of unknown length and begins at the site of a twelfth of the log's machine, which lets it run for %v; the next one has a quarter and lets it run for %v, the last one as many processors as the machine and stops nothing. A job wider than a level goes past it. With users' limits jobs begin at the first level, too, but the last one plans them with what is left of their limit. Flat: three copies of each job, at all three sites; what the local schedulers go by is the user's limit, the %g quantile of the forecast of run times (similar earlier jobs of the user that had ended if they had started at once), or what the job really takes.", oneRun, twoRun, quantile)
	r.Remark("A job that goes on is asked to save %v before its limit, at a level a quarter of that before at most, takes %v to save, in which it holds its processors and gets on with nothing, and goes on in another attempt from there: at the next level, or with the same limit. No prediction is shorter than two minutes or, where jobs go on, 1/%d of the user's limit, as a job has 64 attempts.", askBefore, saving, pieces)
	r.Remark("Short jobs are those that run for at most %v, long ones for more than %v. Narrow are short jobs that the smallest site could run. Wait is all the time in which a job did not run, also between attempts; slowdowns are bounded by 10 s. Repeated is the processor time beyond what the jobs take by themselves, stopped that of jobs that their limit ended, both of all processor time. A job that was stopped ends early: the times of that row are no gain.", short, long)
}

// Tables has a row for each trial.
func (a *answers) Tables() []report.Table {
	t := report.Table{
		Name: "levels", Title: "Levels, and flat federations by what is known of lengths", Caption: "Means over the seeds; times in s.",
		Columns: []report.Column{{Title: "trial"}},
	}
	figures := []struct {
		title string
		of    func(*outcome) float64
	}{
		{"short: jobs", func(o *outcome) float64 { return o.short.n }}, {"time", shortTime}, {"wait", func(o *outcome) float64 { return o.short.wait }},
		{"slowdown", func(o *outcome) float64 { return o.short.slowdown }},
		{"of these narrow: jobs", func(o *outcome) float64 { return o.narrow.n }}, {"time", narrowTime}, {"slowdown", func(o *outcome) float64 { return o.narrow.slowdown }},
		{"long: jobs", func(o *outcome) float64 { return o.long.n }}, {"time", longTime}, {"wait", func(o *outcome) float64 { return o.long.wait }},
		{"slowdown", func(o *outcome) float64 { return o.long.slowdown }},
		{"all: time", func(o *outcome) float64 { return o.all.time }}, {"wait", func(o *outcome) float64 { return o.all.wait }},
		{"repeated (%)", repeated}, {"stopped (%)", stopped}, {"of jobs (%)", func(o *outcome) float64 { return o.stoppedJobs }},
		{"demotions of a job", func(o *outcome) float64 { return o.demotions }},
	}
	for _, f := range figures {
		t.Columns = append(t.Columns, report.Column{Title: f.title, Right: true})
	}
	for _, x := range allTrials() {
		if !a.Has(x) {
			continue
		}
		cells := []string{string(x)}
		for _, f := range figures {
			cells = append(cells, report.Number(a.Of(x, f.of).Mean()))
		}
		t.Add(cells...)
	}
	return lab.WithRows(t)
}

// Plots shows the mean times.
func (a *answers) Plots() []report.Plot {
	return lab.Draw(a.Outcomes, []lab.Figure[trial]{{Needs: allTrials(), Draw: func() report.Plot {
		shorts, longs := report.BarSeries{Name: "short"}, report.BarSeries{Name: "long"}
		var names []string
		for _, x := range allTrials() {
			names = append(names, string(x))
			lab.AddBar(&shorts, a.Of(x, func(o *outcome) float64 { return o.short.slowdown }))
			lab.AddBar(&longs, a.Of(x, func(o *outcome) float64 { return o.long.slowdown }))
		}
		return report.Plot{
			Name: "levels-slowdown", Title: "Slowdown of short and of long jobs", Caption: "Bounded by 10 s.",
			Y: report.Axis{Label: "mean bounded slowdown", Zero: true}, Bars: &report.Bars{Groups: names, Series: []report.BarSeries{shorts, longs}},
		}
	}}})
}
