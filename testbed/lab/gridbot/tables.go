package gridbot

import (
	"fmt"

	"kith/testbed/lab"
	"kith/testbed/report"
)

// Tables are those whose trials were run.
func (a *answers) Tables() []report.Table {
	t := report.Table{
		Name: "gridbot-trials", Title: "Bags and their dispatchers",
		Caption: "Means over the seeds, of the first bag. Needless runs were stopped as another had ended the task; preempted and failed are shares of all runs.",
		Columns: []report.Column{
			{Title: "bag"}, {Title: "dispatched by"}, {Title: "time (h)", Right: true}, {Title: "after the last was sent (h)", Right: true}, {Title: "replicas (%)", Right: true},
			{Title: "waste (%)", Right: true}, {Title: "needless (%)", Right: true}, {Title: "preempted (%)", Right: true}, {Title: "failed (%)", Right: true},
		},
	}
	figures := []func(*outcome) float64{
		hours, func(o *outcome) float64 { return o.bags[0].span() - o.bags[0].allSent }, replicas, waste,
		func(o *outcome) float64 { return percent(o.bags[0].stopped, &o.bags[0]) },
		func(o *outcome) float64 { return o.share(o.lost) }, func(o *outcome) float64 { return o.share(o.failed) },
	}
	for _, x := range append([]trial{naive, policies, short, queued}, singles(1, 2, 3, 4, 5)...) {
		if !a.Has(x) {
			continue
		}
		row := []string{x.bag(), x.dispatched()}
		for _, f := range figures {
			row = append(row, report.Number(a.Of(x, f).Mean()))
		}
		t.Add(row...)
	}
	return lab.WithRows(t)
}

// share is the part of all runs that some are, in percent.
func (o *outcome) share(of map[string]int) float64 {
	all, some := 0, 0
	for grid, n := range o.begun {
		all, some = all+n, some+of[grid]
	}
	return 100 * float64(some) / float64(max(1, all))
}

// bag names the bag of a trial for people, dispatched who dispatches it.
func (t trial) bag() string {
	switch t.work {
	case "all":
		return "all grids"
	case "madison":
		return "Madison"
	}
	return t.rules
}

func (t trial) dispatched() string {
	switch {
	case t.rules == "naive":
		return "naive server"
	case t.by == byQueue:
		return "a job for each task"
	case t.work != "single":
		return "kithd"
	case t.by == byPlain:
		return "the source's server (first reading)"
	}
	return "kithd (second reading)"
}

// Plots are those whose trials were run.
func (a *answers) Plots() []report.Plot {
	return lab.Draw(a.Outcomes, []lab.Figure[trial]{
		{Needs: []trial{naive, policies}, Draw: a.incomplete},
		{Needs: singles(1, 2, 3, 4, 5), Draw: a.turnarounds},
	})
}

// incomplete is the source's Figure 5.
func (a *answers) incomplete() report.Plot {
	p := report.Plot{
		Name: "gridbot-incomplete", Title: "Tasks that have not ended, on all grids",
		Caption: fmt.Sprintf("Seed %d. The naive server waits three days for each host that has vanished.", a.env.FirstSeed),
		X:       report.Axis{Label: "time since the submission (h)", Log: true}, Y: report.Axis{Label: "tasks", Log: true},
	}
	for _, x := range []struct {
		trial trial
		name  string
	}{{naive, "naive server"}, {policies, "kithd with policies"}} {
		s := report.Series{Name: x.name, Style: report.Step}
		ends := a.Outcomes[x.trial][0].bags[0].ends
		for i, at := range ends {
			s.X, s.Y = append(s.X, at), append(s.Y, float64(len(ends)-i))
		}
		p.Series = append(p.Series, s)
	}
	return p
}

// turnarounds is the source's Figure 9.
func (a *answers) turnarounds() report.Plot {
	p := report.Plot{
		Name: "gridbot-single", Title: "A single bag under five policies", Caption: "Means over the seeds, with their range. The source: " + tableP + ".",
		Y: report.Axis{Label: "turnaround (h)", Zero: true}, Bars: &report.Bars{},
	}
	for n := 1; n <= 5; n++ {
		p.Bars.Groups = append(p.Bars.Groups, fmt.Sprintf("P%d", n))
	}
	for _, r := range []struct {
		reading
		name string
	}{{first, "the source's server (first reading)"}, {second, "kithd (second reading)"}} {
		s := report.BarSeries{Name: r.name}
		for n := 1; n <= 5; n++ {
			lab.AddBar(&s, a.Of(r.single(n), hours))
		}
		p.Bars.Series = append(p.Bars.Series, s)
	}
	return p
}
