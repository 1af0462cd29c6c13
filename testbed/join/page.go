package join

import (
	"cmp"
	"fmt"
	"math"
	"time"

	"kith/testbed/metrics"
	"kith/testbed/report"
)

// Page is the answer as a page to look at.
func (a *Answer) Page() *report.Page {
	best := &a.Plans[a.Best]
	p := &report.Page{Title: a.Title, Lead: a.Sentences[:1], Figures: a.cards(best), Foot: a.foot()}
	p.Sections = []report.Section{
		{
			Name: "who", Title: "Who wins, who loses", Texts: a.Sentences[1:],
			Tables: []report.Table{a.usersTable(best), a.machinesTable(best), a.fairnessTable()}, Plots: []report.Plot{a.changePlot(), a.waitPlot(best)},
		},
		{
			Name: "kinds", Title: "Kinds of jobs",
			Texts:  []string{fmt.Sprintf("Jobs that run for less than %s are short, those on fewer than %d processors narrow.", report.Span(metrics.ShortBelow.Seconds()), metrics.NarrowBelow)},
			Tables: []report.Table{a.classesTable(best)}, Plots: a.classPlots(best),
		},
		HarmSection(best.Harms(), ", "+best.Name),
		{Name: "waiting", Title: "Waiting times", Texts: []string{"How many jobs had started after how long. A curve further to the left is better; where it begins is the share that did not wait at all."}, Plots: a.waitingPlots(best)},
		{Name: "utilisation", Title: "Utilisation over time", Texts: []string{"Busy processors of each site. Jobs that moved fill the valleys of one site with the peaks of another."}, Plots: a.utilisationPlots(best)},
	}
	if len(a.Plans) > 1 {
		p.Sections = append(p.Sections, report.Section{
			Name: "copies", Title: "How many copies", Texts: []string{"Each job queues at K sites and runs at the first that can start it. More copies cost messages and make queues look longer than they are."},
			Tables: []report.Table{a.plansTable()}, Plots: []report.Plot{a.sweepPlot(), a.messagesPlot()},
		})
	}
	p.Sections = append(p.Sections, report.Section{Name: "question", Title: "What was asked", Texts: a.assumptions(), Tables: a.questionTables()})
	return p
}

// cards are the numbers to see first.
func (a *Answer) cards(best *Outcome) []report.Figure {
	tone := report.Plain
	switch a.Join {
	case Yes:
		tone = report.Good
	case No:
		tone = report.Bad
	case Depends:
	}
	word := map[Advice]string{Yes: "Yes", No: "No", Depends: "It depends"}[a.Join]
	figures := []report.Figure{{Label: "Join?", Value: word, Hint: best.Name, Tone: tone}}
	if f := a.Asks; f != "" {
		x := a.asking(best)
		figures = append(figures, report.Figure{Label: "Jobs of " + f, Value: report.Change(x.Change), Hint: "mean turnaround against alone", Tone: toneOf(x.Effect)})
	}
	figures = append(figures,
		report.Figure{Label: "Jobs of all sites", Value: report.Change(best.All.Change), Hint: "mean turnaround against alone", Tone: toneOf(best.All.Effect)},
		report.Figure{Label: "Mean wait", Value: report.Span(best.All.Wait), Hint: "instead of " + report.Span(a.Alone.All.Wait)},
		report.Figure{Label: "Sites that gain", Value: fmt.Sprintf("%d of %d", best.Winners, len(best.Sites)), Hint: report.Count(best.Losers, "site loses", "sites lose")},
		report.Figure{Label: "Messages", Value: report.Number(best.MessagesPerJob), Hint: "a job, between sites"})
	return figures
}

func toneOf(e Effect) report.Tone {
	switch e {
	case Wins:
		return report.Good
	case Loses:
		return report.Bad
	}
	return report.Plain
}

func (a *Answer) foot() string {
	maker := cmp.Or(a.study.cfg.Maker, "kith replay --federation")
	s := fmt.Sprintf("Made by %s from %s in virtual time, through the engines that kithd runs.", maker, report.Count(a.Alone.All.Jobs, "job", "jobs"))
	if a.madeUp() {
		s += fmt.Sprintf(" Made-up jobs are those of seed %d.", a.Seed)
	}
	return s
}

func (a *Answer) madeUp() bool {
	for i := range a.study.cfg.Sites {
		if a.study.cfg.Sites[i].Generate != "" {
			return true
		}
	}
	return false
}

// effectCell is a change with its tone.
func effectCell(f *Figures) report.Cell {
	if f.Jobs == 0 {
		return report.Cell{Text: "-", Tone: report.Muted}
	}
	return report.Cell{Text: report.Change(f.Change), Tone: toneOf(f.Effect)}
}

// usersTable compares the users of each site with themselves alone.
func (a *Answer) usersTable(best *Outcome) report.Table {
	t := report.Table{
		Name: "users", Title: "Users of each site, alone → joined with " + best.Name,
		Caption: "By the site at which jobs were submitted, wherever they ran. Sites gain or lose by the mean turnaround, that is waiting and running; less than 1% counts as even.",
		Columns: report.Columns([]string{"Site"}, "Jobs", "Mean wait", "95% wait at most", "Mean turnaround", "Change", "Bounded slowdown"),
	}
	add := func(name string, alone, joined *Figures) {
		row := report.Cells(name, fmt.Sprint(joined.Jobs), report.Arrow(report.Span(alone.Wait), report.Span(joined.Wait)), report.Arrow(report.Span(alone.WaitP95), report.Span(joined.WaitP95)),
			report.Arrow(report.Span(alone.Turnaround), report.Span(joined.Turnaround)))
		row = append(row, effectCell(joined))
		t.AddCells(append(row, report.Cells(report.Arrow(report.Number(alone.BoundedSlowdown), report.Number(joined.BoundedSlowdown)))...)...)
	}
	for i := range best.Sites {
		add(best.Sites[i].Site, &a.Alone.Sites[i].Figures, &best.Sites[i].Figures)
	}
	add("all", &a.Alone.All, &best.All)
	return t
}

// machinesTable says what the sites do for each other.
func (a *Answer) machinesTable(best *Outcome) report.Table {
	t := report.Table{
		Name: "machines", Title: "Machines of each site, " + best.Name,
		Caption: "Busy is the share of processors in use until the last job was submitted.",
		Columns: report.Columns([]string{"Site"}, "Busy, alone → joined", "Own jobs run elsewhere", "Processor-hours there", "Jobs of others run", "Processor-hours for them"),
	}
	for i := range best.Sites {
		x := &best.Sites[i]
		t.Add(x.Site, report.Arrow(report.Share(a.Alone.Sites[i].Utilisation), report.Share(x.Utilisation)), report.Share(x.Elsewhere), report.Whole(x.WorkElsewhere), fmt.Sprint(x.Guests), report.Whole(x.WorkForOthers))
	}
	return t
}

// fairnessTable says how alike the sites fare alone and under each plan.
func (a *Answer) fairnessTable() report.Table {
	t := report.Table{
		Name: "fairness", Title: "Fairness between sites",
		Caption: "By the mean bounded slowdown of each site: of its users' jobs wherever they ran, and of the jobs that its machines ran. " +
			"Jain's index is 1 if all sites are alike, and " + report.Number(1/float64(len(a.Sites))) + " if one bears it all.",
		Columns: report.Columns([]string{"Plan"}, "Users: index", "least", "most", "Machines: index", "least", "most"),
	}
	add := func(o *Outcome) {
		row := []string{o.Name}
		for _, f := range []metrics.Fairness{o.Fairness.Users, o.Fairness.Machines} {
			row = append(row, fmt.Sprintf("%.3f", f.Jain), report.Number(f.Min), report.Number(f.Max))
		}
		t.Add(row...)
	}
	add(&a.Alone)
	for i := range a.Plans {
		add(&a.Plans[i])
	}
	return t
}

// classesTable has the change of each kind of job of each site.
func (a *Answer) classesTable(best *Outcome) report.Table {
	t := report.Table{
		Name: "kinds", Title: "Change of the mean turnaround by kind of job, " + best.Name,
		Caption: "In brackets the number of jobs. A handful of jobs says little.",
		Columns: report.Columns([]string{"Site"}),
	}
	for c := range metrics.Class(metrics.Classes) {
		t.Columns = append(t.Columns, report.Column{Title: c.String(), Right: true})
	}
	add := func(name string, list *[metrics.Classes]Figures) {
		row := report.Cells(name)
		for c := range list {
			cell := effectCell(&list[c])
			if list[c].Jobs > 0 {
				cell.Text += fmt.Sprintf(" (%d)", list[c].Jobs)
			}
			row = append(row, cell)
		}
		t.AddCells(row...)
	}
	for i := range best.Sites {
		add(best.Sites[i].Site, &best.Sites[i].Classes)
	}
	add("all", &best.Classes)
	return t
}

// plansTable compares the K.
func (a *Answer) plansTable() report.Table {
	t := report.Table{
		Name: "plans", Title: "Change of the mean turnaround by the number of copies", Columns: report.Columns([]string{"Plan"}),
	}
	for i := range a.Sites {
		t.Columns = append(t.Columns, report.Column{Title: a.Sites[i].Name, Right: true})
	}
	t.Columns = append(t.Columns, report.Columns(nil, "all", "Mean wait", "Messages a job")...)
	row := report.Cells("alone")
	for range a.Sites {
		row = append(row, report.Cell{Text: "0%"})
	}
	t.AddCells(append(row, report.Cells("0%", report.Span(a.Alone.All.Wait), "0")...)...)
	for i := range a.Plans {
		p := &a.Plans[i]
		name := p.Name
		if i == a.Best {
			name += " (chosen)"
		}
		row := report.Cells(name)
		for k := range p.Sites {
			row = append(row, effectCell(&p.Sites[k].Figures))
		}
		row = append(row, effectCell(&p.All))
		t.AddCells(append(row, report.Cells(report.Span(p.All.Wait), report.Number(p.MessagesPerJob))...)...)
	}
	return t
}

// questionTables describe the sites and what was mended in their logs.
func (a *Answer) questionTables() []report.Table {
	sites := report.Table{
		Name: "input", Title: "Sites and their jobs",
		Columns: append(report.Columns([]string{"Site", "Policy", "Jobs from"}), report.Columns(nil, "Processors", "Speed", "Jobs", "Left out", "Offered load")...),
	}
	notes := report.Table{Name: "notes", Title: "What was left out or mended", Columns: report.Columns([]string{"Site", "What", "The first"}, "Jobs")}
	for i := range a.Sites {
		x := &a.Sites[i]
		sites.Add(x.Name, x.Policy, x.Workload, fmt.Sprint(x.Processors), fmt.Sprintf("%.4g", x.Speed), fmt.Sprint(x.Jobs), fmt.Sprint(x.LeftOut), fmt.Sprintf("%.2f", x.OfferedLoad))
		for _, n := range x.Notes {
			what := "mended: "
			if n.Skipped {
				what = "left out: "
			}
			notes.Add(x.Name, what+n.Meaning, n.First, fmt.Sprint(n.Count))
		}
	}
	if len(notes.Rows) == 0 {
		return []report.Table{sites}
	}
	return []report.Table{sites, notes}
}

// assumptions say what the answer rests on.
func (a *Answer) assumptions() []string {
	c := &a.study.cfg
	lines := []string{"Each site ran its own jobs alone first, then all sites ran the same jobs together. Jobs come when they came, whatever became of those before them. Moving data costs nothing here."}
	lines = append(lines, c.Notes...)
	if c.Align == alignCalendar {
		lines = append(lines, "Logs lie at their own dates.")
	} else {
		lines = append(lines, "All logs begin at the same instant, whatever their dates.")
	}
	left := 0
	for _, n := range a.study.left {
		left += n
	}
	if left > 0 {
		days := a.study.end.Sub(0).Hours() / 24
		lines = append(lines, fmt.Sprintf("All logs together cover the time up to day %.0f; %s left out: a site whose log has ended would seem to be idle.",
			math.Ceil(days), map[bool]string{true: "1 job outside of it is", false: fmt.Sprintf("%d jobs outside of it are", left)}[left == 1]))
	}
	loads, latency := "Sites know each other's load as it is at every moment", "messages take no time."
	if c.Placement.Latency > 0 {
		loads, latency = "Sites know each other's load as it was when the message left", fmt.Sprintf("a message takes %v.", time.Duration(c.Placement.Latency))
	}
	if c.Placement.LoadAge > 0 {
		loads = fmt.Sprintf("Sites rank each other by loads that are up to %s old when they arrive", report.Span(durationSeconds(c.Placement.LoadAge)))
	}
	return append(lines, loads+"; "+latency)
}
