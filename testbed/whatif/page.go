package whatif

import (
	"fmt"
	"time"

	"kith/testbed/join"
	"kith/testbed/metrics"
	"kith/testbed/report"
)

const hour = 3600.0

// The names of the two replays on the page.
const (
	asItIs  = "as it is"
	asAsked = "as asked"
)

// Page is the answer as a page to look at.
func (a *Answer) Page() *report.Page {
	return &report.Page{
		Title: a.Title, Lead: a.Sentences[:1], Figures: a.cards(),
		Sections: []report.Section{
			{
				Name: "who", Title: "Who wins, who loses", Texts: a.Sentences[1:],
				Tables: []report.Table{a.usersTable(), a.machineTable()}, Plots: []report.Plot{a.changePlot(), a.waitPlot()},
			},
			{
				Name: "kinds", Title: "Kinds of jobs",
				Texts: []string{fmt.Sprintf("Jobs that run for less than %s are short, those on fewer than %d processors narrow.",
					report.Span(metrics.ShortBelow.Seconds()), metrics.NarrowBelow)},
				Tables: []report.Table{a.kindsTable()}, Plots: a.kindPlots(),
			},
			a.harmSection(),
			{
				Name: "waiting", Title: "Waiting times",
				Texts: []string{"How many jobs had started after how long. A curve further to the left is better; where it begins is the share that did not wait at all."},
				Plots: []report.Plot{join.WaitingPlot("waits", "All jobs that are compared",
					join.Curve{Name: asItIs, Records: a.common[0]}, join.Curve{Name: asAsked, Records: a.common[1]})},
			},
			{
				Name: "utilisation", Title: "Utilisation over time", Texts: []string{"Busy processors, of all jobs that run here."},
				Plots: []report.Plot{join.BusyPlot("busy", a.Site, a.until,
					join.Curve{Name: asItIs, Records: a.was, Processors: a.Was.Processors}, join.Curve{Name: asAsked, Records: a.then, Processors: a.Then.Processors})},
			},
			{Name: "question", Title: "What was asked", Texts: a.assumptions(), Tables: a.questionTables()},
		},
		Foot: fmt.Sprintf("Made by kith what-if site from the past of %s in virtual time, through the scheduler that kithd runs.", a.Site),
	}
}

// cards are the numbers to see first.
func (a *Answer) cards() []report.Figure {
	var figures []report.Figure
	figures = append(figures, report.Figure{Label: "For its users", Value: effectWords[a.Effect], Hint: a.Changes, Tone: tone(a.Effect)})
	for i := range min(len(a.Groups), 2) {
		if g := &a.Groups[i]; g.Then.Jobs > 0 {
			figures = append(figures, report.Figure{Label: "Jobs of " + g.name(), Value: report.Change(g.Then.Change), Hint: "mean turnaround", Tone: tone(g.Then.Effect)})
		}
	}
	figures = append(figures,
		report.Figure{Label: "Mean wait", Value: report.Span(a.All.Then.Wait), Hint: "instead of " + report.Span(a.All.Was.Wait)},
		report.Figure{Label: "Busy", Value: report.Share(a.Then.Utilisation), Hint: "instead of " + report.Share(a.Was.Utilisation)})
	if n := a.All.TooWide.Jobs; n > 0 {
		figures = append(figures, report.Figure{Label: "Cannot run", Value: report.Count(n, "job", "jobs"), Hint: fmt.Sprintf("wider than %d processors", a.Then.Processors), Tone: report.Bad})
	}
	return figures
}

func tone(e join.Effect) report.Tone {
	switch e {
	case join.Wins:
		return report.Good
	case join.Loses:
		return report.Bad
	case join.Even:
	}
	return report.Plain
}

func (g *Group) name() string {
	if g.Name == "" {
		return "other sites"
	}
	return g.Name
}

// shown are the groups that have jobs, and all of them together if they are several.
func (a *Answer) shown() (list []*Group) {
	for i := range a.Groups {
		if g := &a.Groups[i]; g.Then.Jobs > 0 {
			list = append(list, g)
		}
	}
	if len(list) > 1 {
		list = append(list, &a.All)
	}
	return list
}

func changeCell(f *join.Figures) report.Cell {
	if f.Jobs == 0 {
		return report.Cell{Text: "-", Tone: report.Muted}
	}
	return report.Cell{Text: report.Change(f.Change), Tone: tone(f.Effect)}
}

func (a *Answer) usersTable() report.Table {
	t := report.Table{
		Name: "users", Title: "Users, as it is → as asked",
		Caption: "By the site at which jobs were submitted. Users win or lose by the mean turnaround, that is waiting and running; less than 1% counts as even. Recorded is what they really waited.",
		Columns: report.Columns([]string{"Users of"}, "Jobs", "Recorded wait", "Mean wait", "95% wait at most", "Mean turnaround", "Change", "Bounded slowdown", "Users who win", "lose"),
	}
	for _, g := range a.shown() {
		row := report.Cells(g.name(), fmt.Sprint(g.Then.Jobs), report.Span(g.Recorded.Wait), report.Arrow(report.Span(g.Was.Wait), report.Span(g.Then.Wait)),
			report.Arrow(report.Span(g.Was.WaitP95), report.Span(g.Then.WaitP95)), report.Arrow(report.Span(g.Was.Turnaround), report.Span(g.Then.Turnaround)))
		row = append(row, changeCell(&g.Then))
		t.AddCells(append(row, report.Cells(report.Arrow(report.Number(g.Was.BoundedSlowdown), report.Number(g.Then.BoundedSlowdown)),
			fmt.Sprint(g.Users.Win), fmt.Sprint(g.Users.Lose))...)...)
	}
	return t
}

func (a *Answer) machineTable() report.Table {
	t := report.Table{
		Name: "machine", Title: "The machine", Caption: "Until the last job was submitted.",
		Columns: report.Columns([]string{"", "Policy"}, "Processors", "Jobs", "Offered load", "Busy"),
	}
	for _, m := range []struct {
		name string
		m    *Machine
	}{{asItIs, &a.Was}, {asAsked, &a.Then}} {
		t.Add(m.name, m.m.Policy, fmt.Sprint(m.m.Processors), fmt.Sprint(m.m.Jobs), fmt.Sprintf("%.2f", m.m.OfferedLoad), report.Share(m.m.Utilisation))
	}
	return t
}

func (a *Answer) kindsTable() report.Table {
	t := report.Table{
		Name: "kinds", Title: "Change of the mean turnaround by kind of job", Caption: "In brackets the number of jobs. A handful of jobs says little.",
		Columns: report.Columns([]string{"Users of"}),
	}
	for c := range metrics.Class(metrics.Classes) {
		t.Columns = append(t.Columns, report.Column{Title: c.String(), Right: true})
	}
	for _, g := range a.shown() {
		row := report.Cells(g.name())
		for c := range g.ThenKinds {
			cell := changeCell(&g.ThenKinds[c])
			if n := g.ThenKinds[c].Jobs; n > 0 {
				cell.Text += fmt.Sprintf(" (%d)", n)
			}
			row = append(row, cell)
		}
		t.AddCells(row...)
	}
	return t
}

func (a *Answer) changePlot() report.Plot {
	b, s := &report.Bars{}, report.BarSeries{Name: asAsked}
	for _, g := range a.shown() {
		b.Groups = append(b.Groups, g.name())
		s.Values = append(s.Values, -g.Then.Change)
	}
	b.Series = []report.BarSeries{s}
	return report.Plot{
		Name: "change", Title: "Gain and loss", Caption: "How much sooner jobs are done than as it is: upwards is a gain, downwards a loss.",
		Y: report.Axis{Label: "shorter mean turnaround (%)"}, Bars: b,
	}
}

func (a *Answer) waitPlot() report.Plot {
	recorded, was, then := report.BarSeries{Name: "recorded"}, report.BarSeries{Name: asItIs}, report.BarSeries{Name: asAsked}
	b := &report.Bars{}
	for _, g := range a.shown() {
		b.Groups = append(b.Groups, g.name())
		recorded.Values = append(recorded.Values, g.Recorded.Wait/hour)
		was.Values = append(was.Values, g.Was.Wait/hour)
		then.Values = append(then.Values, g.Then.Wait/hour)
	}
	b.Series = []report.BarSeries{recorded, was, then}
	return report.Plot{
		Name: "wait", Title: "Mean waiting time", Caption: "Recorded is what users really waited.", Y: report.Axis{Label: "mean wait (h)"}, Bars: b,
	}
}

func (a *Answer) kindPlots() []report.Plot {
	var groups []string
	was, then := report.BarSeries{Name: asItIs}, report.BarSeries{Name: asAsked}
	for c := range metrics.Class(metrics.Classes) {
		groups = append(groups, c.String())
		was.Values = append(was.Values, a.All.WasKinds[c].Wait/hour)
		then.Values = append(then.Values, a.All.ThenKinds[c].Wait/hour)
	}
	change := &report.Bars{Groups: groups}
	for i, g := range a.shown() {
		if i == report.MaxSeries {
			break
		}
		s := report.BarSeries{Name: g.name()}
		for c := range g.ThenKinds {
			s.Values = append(s.Values, -g.ThenKinds[c].Change)
		}
		change.Series = append(change.Series, s)
	}
	return []report.Plot{
		{
			Name: "kind-wait", Title: "Mean waiting time by kind of job", Caption: "All jobs that are compared.",
			Y: report.Axis{Label: "mean wait (h)"}, Bars: &report.Bars{Groups: groups, Series: []report.BarSeries{was, then}},
		},
		{
			Name: "kind-change", Title: "Gain and loss by kind of job", Caption: "How much sooner jobs are done than as it is: upwards is a gain, downwards a loss.",
			Y: report.Axis{Label: "shorter mean turnaround (%)"}, Bars: change,
		},
	}
}

// assumptions say what the answer rests on.
func (a *Answer) assumptions() []string {
	lines := []string{
		fmt.Sprintf("The jobs that ran at %s, its own and those of guests, from %s to %s, went through its scheduler twice: as the site is now and as it would be. "+
			"Jobs come when they came, whatever became of those before them, and run for as long as they ran.", a.Site, day(a.First), day(a.Last)),
		"Guests stay guests: where queues are dual they wait behind the site's own jobs. They come here whatever the queue is, as they did. Memory, files, drains and restarts are not in it, and the machine is empty at the start.",
	}
	if a.Added != nil {
		lines = append(lines, fmt.Sprintf("Jobs that were added are drawn by seed %d.", a.Seed))
	}
	return lines
}

func (a *Answer) questionTables() []report.Table {
	t := report.Table{Name: "left", Title: "Attempts of the past that are not in it", Columns: report.Columns([]string{"Why"}, "Attempts")}
	for _, x := range a.LeftOut.words() {
		t.Add(x.why, fmt.Sprint(x.n))
	}
	if len(t.Rows) == 0 {
		return nil
	}
	return []report.Table{t}
}

type leftWord struct {
	n   int
	why string
}

// words says why attempts are left out, for those reasons that there are.
func (l *LeftOut) words() (list []leftWord) {
	for _, x := range []leftWord{
		{l.Earlier, "ended before the time that is looked at"}, {l.NeverRan, "never ran"}, {l.Elsewhere, "ran at other sites"},
		{l.TooWide, "wider than the site is now"}, {l.Senseless, "times or sizes that cannot be"},
	} {
		if x.n > 0 {
			list = append(list, x)
		}
	}
	return list
}

// Notes says what is left out, for people.
func (l *LeftOut) Notes() (lines []string) {
	for _, x := range l.words() {
		lines = append(lines, fmt.Sprintf("left out %d: %s", x.n, x.why))
	}
	return lines
}

func day(t time.Time) string { return t.UTC().Format(time.DateOnly) }
