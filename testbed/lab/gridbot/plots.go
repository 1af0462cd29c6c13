package gridbot

import (
	"fmt"

	"kith/testbed/lab"
	"kith/testbed/metrics"
	"kith/testbed/report"
)

// Plots are those whose trials were run.
func (a *answers) Plots() []report.Plot {
	return lab.Draw(a.Outcomes, []lab.Figure[trial]{
		{Needs: []trial{naive, policies}, Draw: a.incomplete},
		{Needs: []trial{long, outage}, Draw: a.days},
		{Needs: []trial{long}, Draw: a.throughput},
		{Needs: []trial{ranked}, Draw: a.ranks},
		{Needs: []trial{ranked}, Draw: a.queuing},
		{Needs: append(bundles(), recalled), Draw: a.bundles},
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

// throughput is the source's Figure 6(b).
func (a *answers) throughput() report.Plot {
	p := report.Plot{
		Name: "gridbot-throughput", Title: "Throughput of a long bag by grid",
		Caption: fmt.Sprintf("Seed %d, dispatched by kithd. The size of a cluster that would do as much: how long the latest 1000 tasks from a grid run on a reference processor, times how many ended in half an hour.", a.env.FirstSeed),
		X:       report.Axis{Label: "time since the submission (h)", Zero: true}, Y: report.Axis{Label: "processors", Zero: true},
	}
	b := &a.Outcomes[long][0].bags[0]
	for g := range grids {
		p.Series = append(p.Series, effective(b, &grids[g]))
	}
	return p
}

// effective is the throughput of a grid as the source samples it.
func effective(b *bagOutcome, g *grid) report.Series {
	const sample, latest = 0.5, 1000
	s := report.Series{Name: g.name, Style: report.Line}
	var ran []float64
	count, next := 0, sample
	flush := func() {
		of := ran[max(0, len(ran)-latest):]
		s.X, s.Y = append(s.X, next), append(s.Y, metrics.Mean(of)*float64(count)/sample)
		count, next = 0, next+sample
	}
	for i, at := range b.ends {
		for at > next && len(ran) > 0 {
			flush()
		}
		for at > next {
			next += sample
		}
		if b.from[i].name == g.name {
			ran = append(ran, b.ran[i])
			count++
		}
	}
	if len(ran) > 0 {
		flush()
	}
	return s
}

// ranks is the source's Figure 7(a).
func (a *answers) ranks() report.Plot {
	p := report.Plot{
		Name: "gridbot-ranks", Title: "Fifty bags in the order of their ranks",
		Caption: fmt.Sprintf("Seed %d, dispatched by kithd. When 1000, 500 and 100 of 1200 tasks of a bag had not ended (tasks divided as all is).", a.env.FirstSeed),
		X:       report.Axis{Label: "place by rank"}, Y: report.Axis{Label: "time since the submission (h)", Zero: true},
	}
	list := a.Outcomes[ranked][0].bags
	for _, m := range []struct {
		name string
		part float64
	}{{"1000 left", fullLeft}, {"500 left", halfLeft}, {"100 left", 100.0 / 1200}} {
		s := report.Series{Name: m.name, Style: report.Line}
		for i := range list {
			s.X, s.Y = append(s.X, float64(i+1)), append(s.Y, leftOf(&list[len(list)-1-i], m.part))
		}
		p.Series = append(p.Series, s)
	}
	return p
}

// queuing is the source's Figure 7(b).
func (a *answers) queuing() report.Plot {
	p := report.Plot{
		Name: "gridbot-queue", Title: "Turnaround of fifty bags by how many come before",
		Caption: "From the first task of a bag that was sent to its last one that ended, dispatched by kithd; means over the seeds, with their range.",
		X:       report.Axis{Label: "bags before it"}, Y: report.Axis{Label: "own time (h)", Zero: true},
	}
	s := report.Series{Name: "own time", Style: report.Line}
	for i := range rankedBags {
		lab.AddPoint(&s, float64(i), a.Of(ranked, func(o *outcome) float64 { return o.bags[len(o.bags)-1-i].own() }))
	}
	p.Series = append(p.Series, s)
	return p
}

// bundles is the source's Figure 8(a).
func (a *answers) bundles() report.Plot {
	p := report.Plot{
		Name: "gridbot-bundles", Title: "Bundles and the tail", Caption: "The source's server, means over the seeds, with their range.",
		Y: report.Axis{Label: "turnaround (min)", Zero: true}, Bars: &report.Bars{Groups: []string{"B1", "B2", "B3", "B4", "B2, with recall"}},
	}
	s := report.BarSeries{Name: "turnaround"}
	for _, t := range append(bundles(), recalled) {
		lab.AddBar(&s, a.Of(t, minutes))
	}
	p.Bars.Series = append(p.Bars.Series, s)
	return p
}
