package gridbot

import (
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
	for _, x := range slices.Concat([]trial{naive, policies, short, queued, long, outage}, singles(1, 2, 3, 4, 5), []trial{sourceLate, engineEarly}, bundles(), []trial{recalled}) {
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
	if t.recall {
		return t.rules + ", with recall"
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
