package ghs

import (
	"fmt"

	"kith/testbed/lab"
	"kith/testbed/report"
)

// shown adds a table if all trials that it shows were run.
func (a *answers) shown(list []report.Table, needs []trial, make func() report.Table) []report.Table {
	if !a.Has(needs...) {
		return list
	}
	return append(list, make())
}

// columns are a first column, and others to the right.
func columns(first string, others ...string) []report.Column {
	list := []report.Column{{Title: first}}
	for _, o := range others {
		list = append(list, report.Column{Title: o, Right: true})
	}
	return list
}

// Tables are those whose trials were run.
func (a *answers) Tables() []report.Table {
	var list []report.Table
	list = a.shown(list, []trial{oneMachine}, a.singleTable)
	list = a.shown(list, []trial{nodes32, nodes8, cactus}, a.nodesTable)
	list = a.shown(list, []trial{pairs[0].trial, pairs[1].trial}, a.pairTable)
	list = a.shown(list, trialsOf(chosen, setSizes...), a.choiceTable)
	list = a.shown(list, trialsOf(phases, subtaskCounts...), a.phaseTable)
	list = a.shown(list, trialsOf(scaled, scaleSizes...), a.scaleTable)
	if a.env.Clock != nil {
		list = a.shown(list, []trial{nodesTimed}, a.costTable)
	}
	return list
}

func (a *answers) singleTable() report.Table {
	t := report.Table{
		Name: "ghs-single", Title: "Errors of predictions on one machine",
		Caption: "Means over runs and seeds, in percent; the variance is that of the error of GHS over runs. By true rates: what who knows how often the owner's jobs come at each hour would say. The last column is the error of the owner's share.",
		Columns: columns("task", "GHS", "variance (10⁻³)", "by true rates", "NWS, 10 s", "NWS, 5 min", "utilisation"),
	}
	for _, h := range singleHours {
		row := []string{fmt.Sprintf("%d h", h), report.Number(a.Of(oneMachine, percent(errorName("GHS", h))).Mean()),
			report.Number(1000 * a.Of(oneMachine, figure(errorName("GHS", h)+", variance")).Mean())}
		for _, name := range []string{"true rates", "NWS of 10 s", "NWS of 5 min", "utilisation"} {
			row = append(row, report.Number(a.Of(oneMachine, percent(errorName(name, h))).Mean()))
		}
		t.Add(row...)
	}
	return t
}

func (a *answers) nodesTable() report.Table {
	t := report.Table{
		Name: "ghs-nodes", Title: "Errors of predictions on several machines",
		Caption: "Means over runs and seeds, in percent; the work on each machine is the same.",
		Columns: columns("work on each", "32 machines", "8 machines", "8 machines, communication"),
	}
	for _, h := range nodeHours {
		row := []string{fmt.Sprintf("%d h", h)}
		for _, x := range []trial{nodes32, nodes8, cactus} {
			row = append(row, report.Number(a.Of(x, percent(errorName("GHS", h))).Mean()))
		}
		t.Add(row...)
	}
	return t
}

func (a *answers) pairTable() report.Table {
	t := report.Table{
		Name: "ghs-pair", Title: "What dividing by mean time saves on two machines",
		Caption: "In percent of the time, over runs and seeds. The row \"evenly\" is what owners would give who take their shares evenly.",
		Columns: columns("work", "fast one busy, over equal", "over equal by speed", "fast one idle, over equal", "over equal by speed"),
	}
	for _, h := range pairHours {
		row := []string{fmt.Sprintf("%d h", h)}
		for _, p := range pairs {
			row = append(row, a.savingAt(p.trial, equal, h).Text(""), a.savingAt(p.trial, speedEqual, h).Text(""))
		}
		t.Add(row...)
	}
	t.Add("evenly", "9.2", "20.5", "36", "25.5")
	return t
}

func (a *answers) choiceTable() report.Table {
	t := report.Table{
		Name: "ghs-sets", Title: "Sets of machines",
		Caption: "Mean times in s, of runs that were played, over seeds; in brackets how many machines were used.",
		Columns: columns("machines", "best of all sets", "bisection", "prefix scan", "random 5", "random 10", "random 15"),
	}
	for _, q := range setSizes {
		x := trial{chosen, q}
		row := []string{fmt.Sprint(q)}
		for _, name := range []string{"optimal", "bisection", scanName, randomName(5), randomName(10), randomName(15)} {
			row = append(row, fmt.Sprintf("%s (%s)", report.Number(a.Of(x, figure(name)).Mean()), report.Number(a.Of(x, figure(name+", machines")).Mean())))
		}
		t.Add(row...)
	}
	return t
}

func (a *answers) phaseTable() report.Table {
	t := report.Table{
		Name: "ghs-subtasks", Title: "Subtasks on 20 machines",
		Caption: "Times in s, means over seeds with their range; the source's in brackets.",
		Columns: columns("subtasks", "GHS", "AppLeS", "AppLeS, second reading"),
	}
	for _, n := range subtaskCounts {
		x := trial{phases, n}
		t.Add(fmt.Sprint(n), fmt.Sprintf("%s [%.0f]", a.Of(x, figure("GHS")).Text(""), table1[n][0]),
			fmt.Sprintf("%s [%.0f]", a.Of(x, figure("AppLeS")).Text(""), table1[n][1]), a.Of(x, figure("AppLeS, within phases")).Text(""))
	}
	return t
}

func (a *answers) scaleTable() report.Table {
	t := report.Table{
		Name: "ghs-scale", Title: "The same prediction, another scheduler",
		Caption: "Times in s and machines used, means over seeds; the source's in brackets.",
		Columns: columns("machines", "GHS", "machines", "prefix scan", "machines", "AppLeS", "machines"),
	}
	for _, q := range scaleSizes {
		x, source := trial{scaled, q}, table2[q]
		of := func(name string) string { return report.Number(a.Of(x, figure(name)).Mean()) }
		t.Add(fmt.Sprint(q), fmt.Sprintf("%s [%.1f]", of("GHS"), source[0]), fmt.Sprintf("%s [%.0f]", of("GHS, machines"), source[1]),
			of(scanName), of(scanName+", machines"), fmt.Sprintf("%s [%.1f]", of("AppLeS"), source[2]), fmt.Sprintf("%s [%.0f]", of("AppLeS, machines"), source[3]))
	}
	return t
}

func (a *answers) costTable() report.Table {
	t := report.Table{
		Name: "ghs-costs", Title: "What a prediction takes",
		Caption: "Processor time in ms, least of seven; 8 h of work on each machine. The source's are of a workstation of its time.",
		Columns: columns("machines", "measured", "the source"),
	}
	source := []string{"0", "0", "10", "20", "40", "80", "160", "310", "660"}
	for i, n := range nodeCounts {
		t.Add(fmt.Sprint(n), report.Number(a.Of(nodesTimed, figure(nodeName(n))).Mean()), source[i])
	}
	return t
}

// Plots are those whose trials were run.
func (a *answers) Plots() []report.Plot {
	return lab.Draw(a.Outcomes, []lab.Figure[trial]{
		{Needs: []trial{oneMachine}, Draw: a.plotSingle},
		{Needs: []trial{nodes32, nodes8, cactus}, Draw: a.plotNodes},
		{Needs: trialsOf(phases, subtaskCounts...), Draw: a.plotPhases},
		{Needs: trialsOf(scaled, scaleSizes...), Draw: a.plotScale},
		{Needs: []trial{samplesTaken}, Draw: a.plotSamples},
	})
}

// hourTicks are ticks of a logarithmic axis of hours.
func hourTicks(hours []int) report.Axis {
	x := report.Axis{Label: "work on each machine (h)", Log: true, From: float64(hours[0]), To: float64(hours[len(hours)-1])}
	for _, h := range hours {
		x.Ticks = append(x.Ticks, report.Tick{At: float64(h), Label: fmt.Sprint(h)})
	}
	return x
}

func (a *answers) plotSingle() report.Plot {
	p := report.Plot{
		Name: "ghs-single", Title: "Errors on one machine",
		Caption: "By what an owner does in the long run, and by what was available when the task began.",
		X:       hourTicks(singleHours), Y: report.Axis{Label: "mean error (%)", Zero: true},
	}
	for _, name := range []string{"GHS", "NWS of 10 s", "NWS of 5 min"} {
		s := report.Series{Name: name, Style: report.Line}
		for _, h := range singleHours {
			lab.AddPoint(&s, float64(h), a.Of(oneMachine, percent(errorName(name, h))))
		}
		p.Series = append(p.Series, s)
	}
	return p
}

func (a *answers) plotNodes() report.Plot {
	p := report.Plot{
		Name: "ghs-nodes", Title: "Errors on several machines",
		Caption: "Completion of the last of several tasks, the same work on each machine.",
		X:       hourTicks(nodeHours), Y: report.Axis{Label: "mean error (%)", Zero: true},
	}
	for _, x := range []struct {
		name  string
		trial trial
	}{{"32 machines", nodes32}, {"8 machines", nodes8}, {"8 machines, communication", cactus}} {
		s := report.Series{Name: x.name, Style: report.Line}
		for _, h := range nodeHours {
			lab.AddPoint(&s, float64(h), a.Of(x.trial, percent(errorName("GHS", h))))
		}
		p.Series = append(p.Series, s)
	}
	return p
}

// plotBars draws times of several names over sizes.
func (a *answers) plotBars(p report.Plot, what string, sizes []int, names ...string) report.Plot {
	p.Y = report.Axis{Label: "completion (s)", Zero: true}
	p.Bars = &report.Bars{}
	for _, n := range sizes {
		p.Bars.Groups = append(p.Bars.Groups, fmt.Sprint(n))
	}
	for _, name := range names {
		s := report.BarSeries{Name: name}
		for _, n := range sizes {
			lab.AddBar(&s, a.Of(trial{what, n}, figure(name)))
		}
		p.Bars.Series = append(p.Bars.Series, s)
	}
	return p
}

func (a *answers) plotPhases() report.Plot {
	p := a.plotBars(report.Plot{
		Name: "ghs-subtasks", Title: "One plan, and plans in phases", X: report.Axis{Label: "subtasks"},
		Caption: "20 machines, min-min. GHS plans once by what owners do in the long run; AppLeS every 500 s by what is available just then.",
	}, phases, subtaskCounts, "GHS", "AppLeS", "AppLeS, within phases")
	p.Y.Log, p.Y.Zero = true, false
	return p
}

func (a *answers) plotScale() report.Plot {
	return a.plotBars(report.Plot{
		Name: "ghs-scale", Title: "Some machines, and all of them", X: report.Axis{Label: "machines"},
		Caption: "The same prediction, works of the source's second table. GHS chooses machines by bisection, AppLeS takes all.",
	}, scaled, scaleSizes, "GHS", scanName, "AppLeS")
}

func (a *answers) plotSamples() report.Plot {
	p := report.Plot{
		Name: "ghs-samples", Title: "Measurements of an owner who becomes steady",
		Caption: "How often his share is measured: for a day his jobs have the source's life times, then they last 0.1 s. Means over seeds.",
		X:       report.Axis{Label: "hour", From: 0, To: 48}, Y: report.Axis{Label: "measurements in the next hour", Zero: true},
	}
	s := report.Series{Name: "measurements", Style: report.Line}
	for h := range 48 {
		s.X, s.Y = append(s.X, float64(h+1)), append(s.Y, a.Of(samplesTaken, figure(sampleName(h))).Mean())
	}
	p.Series = []report.Series{s}
	return p
}
