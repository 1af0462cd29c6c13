package gridbot

import (
	"fmt"
	"slices"

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
	for _, x := range slices.Concat([]trial{naive, policies, short, queued, long, outage}, singles(1, 2, 3, 4, 5), bundles()) {
		if !a.Has(x) {
			continue
		}
		row := []string{x.bag(), x.dispatched()}
		for _, f := range figures {
			row = append(row, report.Number(a.Of(x, f).Mean()))
		}
		t.Add(row...)
	}
	return lab.WithRows(t, a.fourTable())
}

// fourTable has the source's Figure 10.
func (a *answers) fourTable() report.Table {
	t := report.Table{
		Name: "gridbot-four", Title: "Four bags with priorities", Caption: "Means over the seeds. The own time of a bag is from when its first task was sent. The source: " + tableR + ".",
		Columns: []report.Column{
			{Title: "bag"}, {Title: "dispatched by"}, {Title: "own time (h)", Right: true}, {Title: "ended after (h)", Right: true},
			{Title: "replicas (%)", Right: true}, {Title: "waste (%)", Right: true}, {Title: "needless (%)", Right: true},
		},
	}
	figures := []func(*bagOutcome) float64{bagOwn, (*bagOutcome).span, bagReplicas, bagWaste, func(b *bagOutcome) float64 { return percent(b.stopped, b) }}
	for _, r := range []reading{first, second} {
		for _, row := range []struct {
			name, rules string
			number      int
		}{{"R1", asItStands, 1}, {"R2", asItStands, 2}, {"R3", asItStands, 3}, {"R4 (2000)", asItStands, 4}, {"R4 (4000)", later, 4}, {"R4 (dynamic)", dynamic, 4}} {
			x := r.four(row.rules)
			if !a.Has(x) {
				continue
			}
			cells := []string{row.name, x.dispatched()}
			for _, f := range figures {
				cells = append(cells, report.Number(a.Of(x, of(row.number, f)).Mean()))
			}
			t.Add(cells...)
		}
	}
	return t
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
	case "long":
		return "long, all grids"
	case "outage":
		return "long, with an outage"
	}
	return t.rules
}

func (t trial) dispatched() string {
	switch {
	case t.rules == "naive":
		return "naive server"
	case t.by == byQueue:
		return "a job for each task"
	case t.work == "bundles":
		return "the source's server"
	case t.work != "single" && t.work != "four":
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
		{Needs: []trial{long, outage}, Draw: a.days},
		{Needs: singles(1, 2, 3, 4, 5), Draw: a.turnarounds},
		{Needs: []trial{first.four(asItStands)}, Draw: a.fourCurves},
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
		p.Series = append(p.Series, curve(x.name, &a.Outcomes[x.trial][0].bags[0]))
	}
	return p
}

// curve is how many tasks of a bag have not ended, as some hundred points.
func curve(name string, b *bagOutcome) report.Series {
	s := report.Series{Name: name, Style: report.Step}
	const points, last = 200, 50
	each := 1 + len(b.ends)/points
	for i, at := range b.ends {
		if left := len(b.ends) - i; i%each == 0 || left <= last {
			s.X, s.Y = append(s.X, at), append(s.Y, float64(left))
		}
	}
	return s
}

// days is the source's Figure 6(a).
func (a *answers) days() report.Plot {
	return report.Plot{
		Name: "gridbot-long", Title: "Tasks of a long bag that have not ended",
		Caption: fmt.Sprintf("Seed %d, dispatched by kithd; in one run no host reached it for %g h.", a.env.FirstSeed, outageFor.Hours()),
		X:       report.Axis{Label: "time since the submission (h)", Zero: true}, Y: report.Axis{Label: "tasks", Zero: true},
		Series: []report.Series{curve("without an outage", &a.Outcomes[long][0].bags[0]), curve("with an outage", &a.Outcomes[outage][0].bags[0])},
	}
}

// fourCurves is the source's Figure 10(a).
func (a *answers) fourCurves() report.Plot {
	p := report.Plot{
		Name: "gridbot-four", Title: "Four bags with priorities: tasks that have not ended",
		Caption: fmt.Sprintf("Seed %d, dispatched by the source's server (first reading).", a.env.FirstSeed),
		X:       report.Axis{Label: "time since the submission (h)", Log: true}, Y: report.Axis{Label: "tasks", Log: true},
	}
	bags := a.Outcomes[first.four(asItStands)][0].bags
	for i := range bags {
		p.Series = append(p.Series, curve(fmt.Sprintf("R%d", i+1), &bags[i]))
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
