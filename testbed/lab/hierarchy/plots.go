package hierarchy

import (
	"fmt"
	"math"

	"kith/testbed/lab"
	"kith/testbed/report"
)

var queueNames = []string{"Q1", "Q2", "Q3", "Q4"}

// items are the parts of the time of a task.
var items = []struct {
	name string
	of   func(*overheads) float64
}{
	{"estimation", estimation}, {"moves", migrations}, {"flow control", flow}, {"behind other tasks", local}, {"the grid's queue", gridQueue}, {"evictions", evictions}, {"running", running},
}

// Tables are those whose trials were run.
func (a *answers) Tables() []report.Table {
	var list []report.Table
	if a.Has(scenarios...) {
		t := report.Table{Name: "hierarchy-scenarios", Title: "Two tasks under four schemes", Caption: "Means over the seeds; the source's in brackets.",
			Columns: []report.Column{{Title: "task"}}}
		long, short := []string{"long (h)"}, []string{"short (s)"}
		source := [2][]string{{"6.2", "6.4", "6.1", "6.3"}, {"16,920", "15,120", "210", "44"}}
		for i, x := range scenarios {
			t.Columns = append(t.Columns, report.Column{Title: string(x), Right: true})
			long = append(long, fmt.Sprintf("%s [%s]", report.Number(a.Of(x, longTime).Mean()), source[0][i]))
			short = append(short, fmt.Sprintf("%s [%s]", report.Number(a.Of(x, shortTime).Mean()), source[1][i]))
		}
		t.Add(long...)
		t.Add(short...)
		list = append(list, t)
	}
	if a.Has(production7) {
		list = append(list, a.table3(), a.queuesTable())
	}
	if a.hasSettings() {
		list = append(list, a.settingsTable())
	}
	return list
}

func (a *answers) table3() report.Table {
	t := report.Table{Name: "hierarchy-table-3", Title: "Parallel tasks (Table 3)", Caption: "Means over the seeds; the source's in brackets.",
		Columns: []report.Column{{Title: ""}, {Title: "Q2", Right: true}, {Title: "Q3", Right: true}, {Title: "Q4", Right: true}}}
	for _, row := range []struct {
		name   string
		of     func(*perQueue) float64
		source [3]string
	}{
		{"run time lost to evictions (%)", lostRun, [3]string{"1", "4.5", "7"}}, {"sub-jobs evicted (%)", evicted, [3]string{"1", "7", "14"}},
		{"processors held at once", held, [3]string{"55", "81.7", "141"}}, {"of those asked for (%)", heldOf, [3]string{"50", "54", "9"}},
		{"sub-jobs of a task", perTask, [3]string{"93", "194", "1,600"}}, {"length of a sub-job (min)", subLength, [3]string{"9.4", "13.3", "15.3"}},
	} {
		cells := []string{row.name}
		for q := q2; q <= q4; q++ {
			cells = append(cells, fmt.Sprintf("%s [%s]", report.Number(a.Of(production7, inQueue(q, row.of)).Mean()), row.source[q-q2]))
		}
		t.Add(cells...)
	}
	return t
}

func (a *answers) queuesTable() report.Table {
	t := report.Table{Name: "hierarchy-queues", Title: "Where the time of tasks goes", Caption: "Tasks that ended in a queue with their result; means in s over tasks and seeds.",
		Columns: []report.Column{{Title: ""}}}
	for _, n := range queueNames {
		t.Columns = append(t.Columns, report.Column{Title: n, Right: true})
	}
	add := func(name string, of func(q int) func(result) float64) {
		cells := []string{name}
		for q := range queueNames {
			cells = append(cells, report.Number(a.Of(production7, of(q)).Mean()))
		}
		t.Add(cells...)
	}
	add("tasks", func(q int) func(result) float64 { return inQueue(q, func(x *perQueue) float64 { return x.N }) })
	for _, it := range items {
		add(it.name, func(q int) func(result) float64 { return part(q, it.of) })
	}
	add("all", meanTime)
	add("with all processors of the queue at once", expected)
	return t
}

// Plots are the source's Figures 4 to 7.
func (a *answers) Plots() []report.Plot {
	bars := func(name, title, caption, y string, groups []string, series ...report.BarSeries) report.Plot {
		return report.Plot{Name: name, Title: title, Caption: caption, Y: report.Axis{Label: y, Zero: true}, Bars: &report.Bars{Groups: groups, Series: series}}
	}
	needs := []trial{production7}
	levels := []string{"level 1", "level 2", "level 3"}
	return lab.Draw(a.Outcomes, []lab.Figure[trial]{
		{Needs: needs, Draw: func() report.Plot {
			tasks, time := report.BarSeries{Name: "tasks"}, report.BarSeries{Name: "processor time"}
			for l := 1; l <= 3; l++ {
				lab.AddBar(&tasks, a.Of(production7, taskShare(l)))
				lab.AddBar(&time, a.Of(production7, levelShare(l)))
			}
			return bars("hierarchy-levels", "Tasks and processor time by level", "The source's Figure 4.", "share (%)", levels, tasks, time)
		}},
		{Needs: needs, Draw: func() report.Plot {
			real, best := report.BarSeries{Name: "accumulated"}, report.BarSeries{Name: "with all processors of the queue at once"}
			for q := range queueNames {
				lab.AddBar(&real, logs(a.Of(production7, meanTime(q))))
				lab.AddBar(&best, logs(a.Of(production7, expected(q))))
			}
			return bars("hierarchy-times", "Time of tasks by the queue where they ended", "The source's Figure 5: from submission to the result, in powers of ten.", "log₁₀ of the mean time in s", queueNames, real, best)
		}},
		{Needs: needs, Draw: func() report.Plot {
			var series []report.BarSeries
			for _, it := range items[:6] {
				s := report.BarSeries{Name: it.name}
				for q := range queueNames {
					lab.AddBar(&s, a.Of(production7, func(r result) float64 { return 100 * it.of(&r.Queues[q].Cost) / max(r.Queues[q].Time, 1) }))
				}
				series = append(series, s)
			}
			return bars("hierarchy-overheads", "Overheads by queue", "The source's Figure 6: parts of the time from submission to the result.", "share of the time (%)", queueNames, series...)
		}},
		{Needs: needs, Draw: func() report.Plot {
			s := report.BarSeries{Name: "tasks"}
			for k := range 6 {
				lab.AddBar(&s, a.Of(production7, func(r result) float64 {
					sum := 0.0
					for _, n := range r.Sizes {
						sum += n
					}
					return 100 * r.Sizes[k] / sum
				}))
			}
			return bars("hierarchy-sizes", "Tasks by their time on one processor", "The source's Figure 7.", "share of tasks (%)", []string{"3 min", "30 min", "3 h", "30 h", "300 h", "more"}, s)
		}},
	})
}

// logs are the decimal logarithms of times of 1 s or more.
func logs(s lab.Spread) lab.Spread {
	for i := range s {
		s[i] = math.Log10(max(s[i], 1))
	}
	return s
}
