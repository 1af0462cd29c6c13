package harm

import (
	"context"
	"fmt"

	"kith/testbed/lab"
	"kith/testbed/report"
)

// Experiment is a study that no paper has: what a promise to home users is worth to them, and
// what the caps that a site may set do.
func Experiment() lab.Experiment {
	study := lab.Study[trial, *answers]{Questions: questions(), Shown: allTrials(), Answer: answer}
	return study.Experiment(lab.Experiment{
		ID: "harm", Title: "What guests cost home users, and what helps",
		Source: "a study of our own", Jobs: homeJobs, Seeds: 1, UsesTrace: true,
	})
}

// answers are what came of trials: one outcome for each seed.
type answers struct {
	lab.Outcomes[trial, *outcome]
	env *lab.Env
}

func answer(ctx context.Context, env *lab.Env, trials []trial) (*answers, error) {
	src, seeds := &source{env: env}, env.SeedList()
	plan := lab.Plan[trial, *outcome]{
		Seeds:   func(trial) int { return len(seeds) },
		Expense: func(t trial) int { return int(t.k) + 1 },
		Run:     func(ctx context.Context, t trial, i int) (*outcome, error) { return t.run(ctx, src, seeds[i]) },
	}
	all, err := plan.Try(ctx, env, trials)
	return &answers{Outcomes: all, env: env}, err
}

// Workload says which jobs were run.
func (a *answers) Workload() string {
	home, partner := "generated jobs like those of the CTC log, load 0.59", "generated jobs of Lublin's model, load 0.69 of their own site"
	if a.env.Trace != nil {
		home = a.env.Trace.Name
	}
	if a.env.Guests != nil {
		partner = a.env.Guests.Name
	}
	return fmt.Sprintf("a home site of %d processors, EASY, %d jobs: %s; guests, or a partner of %d processors: %s, in the same time; in federations a third site of %d processors, load 0.7",
		homeProcessors, a.env.JobsOr(homeJobs), home, partnerProcessors, partner, thirdProcessors)
}

// Remark says how things were read.
func (a *answers) Remark(r *lab.Report) {
	r.Remark("The bands of this experiment are our own, drawn from a prototype before the first run and not moved since; N9 was added after it, when the second part of N8 had failed.")
	r.Remark("With guests alone, home jobs stay at home and nobody is helped: all that is measured is harm. The guests' own site has one processor, so that nearly all of them need the home site; caps leave those out of the guests whose limits are longer. In federations all jobs have K copies, and a cap is the rule that a daemon has.")
	r.Remark("Guests that leave write checkpoints: each takes a minute to save, in which it holds its processors and gets on with nothing that counts, and goes on from there. Their wait is to the first start; their wait in all is what they did not run until they had ended. One that was evicted eight times is taken by nobody, as there is no other site here; it is not in the means.")
	r.Remark("Messages take no time and claims none. Blocked times and promises are those that the engines count; later means against a schedule of the home jobs alone with the same run times.")
}

// The figures that the study is about.
func blocked(o *outcome) float64    { return o.share(o.All.Blocked) }
func blocked10m(o *outcome) float64 { return o.share(o.All.Blocked10m) }
func blocked1h(o *outcome) float64  { return o.share(o.All.Blocked1h) }
func worst(o *outcome) float64      { return o.All.Worst }
func meanWait(o *outcome) float64   { return o.All.Wait }
func p95(o *outcome) float64        { return o.All.P95 }
func later1m(o *outcome) float64    { return o.share(o.All.Later[0]) }
func later10m(o *outcome) float64   { return o.share(o.All.Later[1]) }
func later1h(o *outcome) float64    { return o.share(o.All.Later[2]) }
func moved(o *outcome) float64      { return float64(o.moved) }
func lost(o *outcome) float64       { return o.All.Delays / max(o.All.Gains, 1) }
func guestLoad(o *outcome) float64  { return o.guestLoad }
func guestWait(o *outcome) float64  { return o.GuestWait }
func evictions(o *outcome) float64  { return o.evictions }

// whyLittle is what we think where the band of N4 is not met.
const whyLittle = "We think that generated jobs have little to gain: they come evenly, so that alone they wait less than half as long as those of the log, whose bursts find room elsewhere."

// over returns a figure of one trial over that of another, each the mean over the seeds.
func (a *answers) over(t, base trial, figure func(*outcome) float64) lab.Spread {
	const little = 1e-9
	return lab.Spread{(a.Of(t, figure).Mean() + little) / (a.Of(base, figure).Mean() + little)}
}

// questions are the statements of the study.
func questions() []lab.Question[trial, *answers] {
	return []lab.Question[trial, *answers]{{
		ID: "N1", Kind: lab.Ours, Text: "No start of a guest moves a promise, whatever the policy.", Source: "S4", Band: "promises moved: 0 in each trial", Enforced: true,
		Needs: allTrials(), Judge: func(a *answers) lab.Finding {
			var parts []lab.Reading
			for _, t := range allTrials() {
				parts = append(parts, lab.Within(t.String(), a.Of(t, moved), 0, 0))
			}
			return lab.Conclude(parts...)
		},
	}, {
		ID: "N2", Kind: lab.Ours, Text: "A promise that is kept is not the same as no harm: guests alone keep a good part of the home jobs waiting.", Source: "no paper says",
		Band: "blocked at some time: at least 10 %; for more than 10 min: at least 5 %", Needs: []trial{promise}, Judge: func(a *answers) lab.Finding {
			return lab.Conclude(lab.Within("blocked (%)", a.Of(promise, blocked), 10, 100), lab.Within("for more than 10 min (%)", a.Of(promise, blocked10m), 5, 100))
		},
	}, {
		ID: "N3", Kind: lab.Ours, Text: "A cap on the limits of guests helps: with 2 h a fifth of that is left.", Source: "no paper says",
		Band: "blocked for more than 10 min, with the cap ÷ without: at most 0.6, 0.2 and 0.2 with 4, 2 and 1 h", Needs: append([]trial{promise}, caps...), Judge: func(a *answers) lab.Finding {
			var parts []lab.Reading
			for i, most := range []float64{0.6, 0.2, 0.2} {
				parts = append(parts, lab.Within(fmt.Sprintf("%v h", caps[i].limit.Hours()), a.over(caps[i], promise, blocked10m), 0, most))
			}
			return lab.Conclude(parts...)
		},
	}, {
		ID: "N4", Kind: lab.Ours, Text: "Taking part pays all the same: home users lose a fraction of what they gain.", Source: "no paper says",
		Band: "K = 3, sum of delays ÷ sum of gains: at most 0.25", Needs: []trial{joined3}, Judge: func(a *answers) lab.Finding {
			return lab.Conclude(lab.Within("K = 3", a.Of(joined3, lost), 0, 0.25)).Noted("", whyLittle)
		},
	}, {
		ID: "N5", Kind: lab.Ours, Text: "Strict queues are no better for home users than guests that fill gaps: more of them start later than alone.", Source: "no paper says",
		Band: "K = 3, started more than 1 min later, strict ÷ not: at least 1", Needs: []trial{joined3, joined3s}, Judge: func(a *answers) lab.Finding {
			return lab.Conclude(lab.Within("strict ÷ not", a.over(joined3s, joined3, later1m), 1, lab.Unbounded))
		},
	}, {
		ID: "N6", Kind: lab.Ours, Text: "Without guests nothing is measured: nobody is blocked, nobody starts at another time.", Source: "the definitions",
		Band: "blocked and later: 0", Enforced: true, Needs: []trial{alone}, Judge: func(a *answers) lab.Finding {
			return lab.Conclude(lab.Within("blocked (%)", a.Of(alone, blocked), 0, 0), lab.Within("later (%)", a.Of(alone, func(o *outcome) float64 { return o.All.Delays + o.All.Gains }), 0, 0))
		},
	}, {
		ID: "N7", Kind: lab.Ours, Text: "Where guests leave at a bound, they keep no home job waiting for longer, and leave at most once each on average.", Source: "no paper says",
		Band: "bound 10 min: blocked for longer: 0; evictions of each guest: at most 1", Needs: []trial{bounded}, Judge: func(a *answers) lab.Finding {
			return lab.Conclude(lab.Within("blocked for more than 10 min (%)", a.Of(bounded, blocked10m), 0, 0), lab.Within("evictions of each guest", a.Of(bounded, evictions), 0, 1))
		},
	}, {
		ID: "N8", Kind: lab.Ours, Text: "Home jobs that do not see guests wait for nothing but what these take to leave.", Source: "the definition of dual-preempt",
		Band: "longest time blocked: at most a minute, the grace; nobody starts more than 10 min later than alone", Needs: []trial{invisible}, Judge: func(a *answers) lab.Finding {
			return lab.Conclude(lab.Within("longest time blocked (s)", a.Of(invisible, worst), 0, leaving.Seconds()), lab.Within("later by more than 10 min (%)", a.Of(invisible, later10m), 0, 0)).Noted("", "The second part was too simple: a job that starts a minute later ends a minute later, and then others overtake than would have alone, in both directions. N9 puts the exact question.")
		},
	}, {
		ID: "N9", Kind: lab.Ours, Text: "Where guests leave at once, every home job starts when it would if there were none.", Source: "the definition of dual-preempt",
		Band: "blocked, later or sooner than alone: 0", Enforced: true, Needs: []trial{atOnce}, Judge: func(a *answers) lab.Finding {
			return lab.Conclude(lab.Within("blocked (%)", a.Of(atOnce, blocked), 0, 0), lab.Within("later or sooner (s)", a.Of(atOnce, func(o *outcome) float64 { return o.All.Delays + o.All.Gains }), 0, 0))
		},
	}, {
		ID: "N10", Kind: lab.Ours, Text: "That costs guests little: they wait about as long for their first start as where they may stay.", Source: "no paper says",
		Band: "their wait, invisible ÷ promise only: at most 1.2", Needs: []trial{invisible, promise}, Judge: func(a *answers) lab.Finding {
			return lab.Conclude(lab.Within("invisible ÷ promise", a.over(invisible, promise, guestWait), 0, 1.2))
		},
	}}
}

// Tables are those whose trials were run.
func (a *answers) Tables() []report.Table {
	if !a.Has(allTrials()...) {
		return nil
	}
	t := report.Table{
		Name: "harm", Title: "What guests cost the jobs of one site",
		Caption: "Means over the seeds. Blocked: kept waiting by guests alone at some time, for longer, and the longest. Later: than in a schedule of the home jobs alone.",
		Columns: []report.Column{{Title: "policy"}},
	}
	figures := []struct {
		title string
		of    func(*outcome) float64
	}{
		{"promises moved", moved},
		{"blocked (%)", blocked},
		{"> 10 min (%)", blocked10m},
		{"> 1 h (%)", blocked1h},
		{"longest (s)", worst},
		{"mean wait (s)", meanWait},
		{"later > 1 min (%)", later1m},
		{"> 10 min (%)", later10m},
		{"> 1 h (%)", later1h},
		{"95 % delayed by up to (s)", p95},
		{"delays ÷ gains", lost},
		{"load of guests", guestLoad},
		{"their wait (s)", guestWait},
		{"their wait in all (s)", func(o *outcome) float64 { return o.waited }},
		{"evictions of each", evictions},
		{"evicted 8 times", func(o *outcome) float64 { return float64(o.stranded) }},
	}
	for _, f := range figures {
		t.Columns = append(t.Columns, report.Column{Title: f.title, Right: true})
	}
	for _, x := range allTrials() {
		row := []string{x.String()}
		for _, f := range figures {
			if f.title == "delays ÷ gains" && x.k == 0 {
				row = append(row, "–") // nobody gains but by chance
				continue
			}
			row = append(row, report.Number(a.Of(x, f.of).Mean()))
		}
		t.Add(row...)
	}
	return []report.Table{t}
}

// Plots are those whose trials were run.
func (a *answers) Plots() []report.Plot {
	shown := []trial{caps[2], caps[1], caps[0], promise}
	return lab.Draw(a.Outcomes, []lab.Figure[trial]{{Needs: shown, Draw: func() report.Plot {
		p := report.Plot{
			Name: "harm-caps", Title: "Home jobs that guests alone keep waiting", Caption: "By the longest limit of a guest; the last are those of all guests.",
			X: report.Axis{Label: "longest limit of a guest (h)", From: 0.5, To: 8.5}, Y: report.Axis{Label: "share of home jobs (%)", Zero: true},
		}
		at := []float64{1, 2, 4, 8}
		for i, label := range []string{"1", "2", "4", "any"} {
			p.X.Ticks = append(p.X.Ticks, report.Tick{At: at[i], Label: label})
		}
		for _, f := range []struct {
			name string
			of   func(*outcome) float64
		}{{"at some time", blocked}, {"more than 10 min", blocked10m}, {"more than 1 h", blocked1h}} {
			s := report.Series{Name: f.name, Style: report.Line}
			for i, t := range shown {
				lab.AddPoint(&s, at[i], a.Of(t, f.of))
			}
			p.Series = append(p.Series, s)
		}
		return p
	}}})
}
