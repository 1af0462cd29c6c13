package choice

import (
	"fmt"
	"slices"
	"time"

	"kith/meta"
	"kith/testbed/lab"
	"kith/testbed/metrics"
	"kith/testbed/report"
)

// Plots are those whose trials were run.
func (a *answers) Plots() []report.Plot {
	return lab.Draw(a.Outcomes, []lab.Figure[trial]{
		{Needs: loadTrials(), Draw: a.plotCopies},
		{Needs: mainTrials(), Draw: a.plotRanks},
		{Needs: mainTrials(), Draw: a.plotClasses},
		{Needs: mainTrials(), Draw: a.plotSites},
		{Needs: mainTrials(), Draw: a.plotMessages},
		{Needs: mainTrials(), Draw: a.plotPrice},
		{Needs: mainTrials(), Draw: a.plotQueue},
		{Needs: append(fairTrials(), mainTrials()...), Draw: a.plotOne},
		{Needs: periodTrials(), Draw: a.plotPeriods},
		{Needs: numberTrials(), Draw: a.plotNumbers},
		{Needs: numberTrials(), Draw: a.plotNumberMessages},
	})
}

// plotCopies is the gain over K.
func (a *answers) plotCopies() report.Plot {
	p := report.Plot{
		Name: "choice-copies", Title: "What each further copy leaves of the waits",
		Caption: "K-Dual by load, 5 sites, at three loads of the federation; K = 1 is staying alone.",
		X:       report.Axis{Label: "copies per job, K", From: 1, To: 5, Ticks: lab.CountTicks(5)},
		Y:       report.Axis{Label: "mean wait ÷ alone", Zero: true},
	}
	for _, c := range threeLoads {
		s := report.Series{Name: fmt.Sprintf("load 0.%02d", c.load), Style: report.Line}
		lab.AddPoint(&s, 1, a.left(c.alone(), meanWait))
		for _, k := range allCopies {
			lab.AddPoint(&s, float64(k), a.left(c.copies(k), meanWait))
		}
		p.Series = append(p.Series, s)
	}
	return p
}

// rankNames are the rankings of the main comparison.
var rankNames = []struct {
	name string
	rank meta.Rank
}{{"load work", meta.RankWork}, {"load procs", meta.RankProcs}, {"asked: start", meta.RankStart}, {"asked: completion", meta.RankCompletion}}

func (a *answers) plotRanks() report.Plot {
	p := report.Plot{
		Name: "choice-ranks", Title: "Rankings",
		Y:    report.Axis{Label: "mean wait ÷ alone", Zero: true},
		Bars: &report.Bars{},
	}
	p.Caption = "K-Dual, 5 sites, load 0.85. A load is the same for all jobs; a site that is asked says when this very job would start or end."
	for _, r := range rankNames {
		s := report.BarSeries{Name: r.name}
		for _, k := range []int32{2, 3, 5} {
			lab.AddBar(&s, a.left(busySites.place(meta.KDual, k, r.rank), meanWait))
		}
		p.Bars.Series = append(p.Bars.Series, s)
	}
	p.Bars.Groups = []string{"K = 2", "K = 3", "K = 5"}
	return p
}

// shownArms are the placements that several plots compare.
func shownArms() []struct {
	name  string
	trial trial
} {
	c := busySites
	return []struct {
		name  string
		trial trial
	}{
		{"one copy, least loaded", c.one()}, {"K-Distributed, K = 2", c.spread(2)},
		{"K-Dual, K = 2", c.copies(2)}, {"K-Dual, K = 3", c.copies(3)}, {"K-Dual, K = 5", c.copies(5)},
		{"K-Dual, K = 2, asked", c.asked(2)},
	}
}

func (a *answers) plotClasses() report.Plot {
	p := report.Plot{
		Name: "choice-classes", Title: "Classes of jobs",
		Caption: "5 sites, load 0.85. Short means under 900 s, narrow under 8 processors.",
		Y:       report.Axis{Label: "mean bounded slowdown", Log: true},
		Bars:    &report.Bars{},
	}
	for c := range metrics.Class(metrics.Classes) {
		p.Bars.Groups = append(p.Bars.Groups, c.String())
	}
	alone := report.BarSeries{Name: "alone"}
	for c := range metrics.Class(metrics.Classes) {
		lab.AddBar(&alone, a.Of(busySites.alone(), classBounded(c)))
	}
	p.Bars.Series = append(p.Bars.Series, alone)
	for _, arm := range shownArms()[2:] {
		s := report.BarSeries{Name: arm.name}
		for c := range metrics.Class(metrics.Classes) {
			lab.AddBar(&s, a.Of(arm.trial, classBounded(c)))
		}
		p.Bars.Series = append(p.Bars.Series, s)
	}
	return p
}

func (a *answers) plotSites() report.Plot {
	p := report.Plot{
		Name: "choice-winners", Title: "Winners and losers among sites",
		Caption: "Jobs by the site they were submitted at, 5 sites with own loads of 0.73 to 0.97. Above the line a site had better stayed alone.",
		Y:       report.Axis{Label: "mean wait ÷ alone", Zero: true},
		Bars:    &report.Bars{},
		Rules:   []report.Rule{{At: 1, Label: "alone"}},
	}
	for i := range busySites.sites {
		s := member{busySites, i}
		p.Bars.Groups = append(p.Bars.Groups, fmt.Sprintf("%s: load %.2f", s.id(), s.offered()))
	}
	for _, arm := range shownArms() {
		p.Bars.Series = append(p.Bars.Series, report.BarSeries{Name: arm.name, Values: a.sites(arm.trial)})
	}
	return p
}

func (a *answers) plotMessages() report.Plot {
	p := report.Plot{
		Name: "choice-messages", Title: "Messages over K",
		Caption: "K-Dual by load, 5 sites, load 0.85. Logical messages are one claim and K − 1 withdrawals. All kinds are whatever crosses between sites, acknowledgements and results included. Jobs that start at their origin at once send nothing.",
		X:       report.Axis{Label: "copies per job, K", From: 1, To: 5, Ticks: lab.CountTicks(5)},
		Y:       report.Axis{Label: "messages per job", Zero: true},
	}
	for _, line := range []struct {
		name   string
		figure func(*outcome) float64
	}{{"logical", logicalSent}, {"logical, on the wire", wireSent}, {"all kinds", allMessages}} {
		s := report.Series{Name: line.name, Style: report.Line}
		lab.AddPoint(&s, 1, a.Of(busySites.alone(), line.figure))
		for _, k := range allCopies {
			lab.AddPoint(&s, float64(k), a.Of(busySites.copies(k), line.figure))
		}
		p.Series = append(p.Series, s)
	}
	s := report.Series{Name: "all kinds, sites asked", Style: report.Line}
	for _, k := range []int32{2, 3, 5} {
		lab.AddPoint(&s, float64(k), a.Of(busySites.asked(k), allMessages))
	}
	p.Series = append(p.Series, s)
	return p
}

// plotPrice sets waits against messages.
func (a *answers) plotPrice() report.Plot {
	p := report.Plot{
		Name: "choice-price", Title: "Waits for messages",
		Caption: "5 sites, load 0.85; each line goes from K = 2 through 3 to 5, K-Distributed from 1. Below and to the left is better.",
		X:       report.Axis{Label: "messages of all kinds per job", Zero: true},
		Y:       report.Axis{Label: "mean wait ÷ alone", Zero: true},
	}
	add := func(s *report.Series, t trial) {
		s.X = append(s.X, a.Of(t, allMessages).Mean())
		s.Y = append(s.Y, a.left(t, meanWait).Mean())
	}
	for _, r := range rankNames {
		s := report.Series{Name: "K-Dual, " + r.name, Style: report.Line}
		for _, k := range []int32{2, 3, 5} {
			add(&s, busySites.place(meta.KDual, k, r.rank))
		}
		p.Series = append(p.Series, s)
	}
	s := report.Series{Name: "K-Distributed, load work", Style: report.Line}
	add(&s, busySites.one())
	for _, k := range []int32{2, 3, 5} {
		add(&s, busySites.spread(k))
	}
	m := report.Series{Name: "MCT, one copy", Style: report.Scatter}
	add(&m, busySites.mct())
	d := report.Series{Name: "K by the origin's load", Style: report.Scatter}
	add(&d, busySites.copies(5).ruled(byDrain))
	p.Series = append(p.Series, s, m, d)
	return p
}

func (a *answers) plotQueue() report.Plot {
	p := report.Plot{
		Name: "choice-queue", Title: "What waits at a site",
		Caption: "5 sites, load 0.85: copies in the queue, mean over sites and time. More copies for each job do not add up, as all jobs leave sooner.",
		Y:       report.Axis{Label: "copies waiting at a site", Zero: true},
		Bars:    &report.Bars{Groups: []string{"alone"}, Series: []report.BarSeries{{Name: "mean"}, {Name: "95th percentile"}}},
	}
	add := func(t trial) {
		lab.AddBar(&p.Bars.Series[0], a.Of(t, meanQueue))
		lab.AddBar(&p.Bars.Series[1], a.Of(t, longQueue))
	}
	add(busySites.alone())
	for _, arm := range shownArms() {
		p.Bars.Groups = append(p.Bars.Groups, arm.name)
		add(arm.trial)
	}
	return p
}

func (a *answers) plotOne() report.Plot {
	p := report.Plot{
		Name: "choice-one", Title: "Users who ask for one copy while others ask for K",
		Caption: "Mean waits of the same tenth of the jobs, K-Dual by load, 5 sites, load 0.85: if nobody asks for more, if all others do, and if they do, too.",
		Y:       report.Axis{Label: "mean wait (h)", Zero: true},
		Bars:    &report.Bars{Series: []report.BarSeries{{Name: "all ask for one copy"}, {Name: "they ask for one, others for K"}, {Name: "all ask for K"}}},
	}
	hours := func(v lab.Spread) lab.Spread { return overEach(v, slices.Repeat(lab.Spread{3600}, len(v))) }
	for _, k := range []int32{2, 3, 5} {
		p.Bars.Groups = append(p.Bars.Groups, fmt.Sprintf("K = %d", k))
		for i, t := range []trial{busySites.alone(), busySites.copies(k).onesAsked(10), busySites.copies(k)} {
			lab.AddBar(&p.Bars.Series[i], hours(a.asks(t, 10, true)))
		}
	}
	return p
}

func (a *answers) plotPeriods() report.Plot {
	p := report.Plot{
		Name: "choice-periods", Title: "Loads that are out of date",
		Caption: fmt.Sprintf("%d sites, load 0.85, each telling its load at another moment of the period. By default a site does not rank by loads older than %s; what it has no load of comes last, by name.", manyPeriods, periodName(maxAgeShown)),
		X:       report.Axis{Label: "time between reports of a load", From: 0, To: float64(len(periods) - 1)},
		Y:       report.Axis{Label: "mean wait ÷ alone", Log: true},
		Rules:   []report.Rule{{At: 1, Label: "alone"}},
	}
	for i, d := range periods {
		p.X.Ticks = append(p.X.Ticks, report.Tick{At: float64(i), Label: periodName(d)})
	}
	for _, l := range periodLines() {
		s := report.Series{Name: l.name, Style: report.Line}
		for i := range periods {
			lab.AddPoint(&s, float64(i), a.left(l.of(i), meanWait))
		}
		p.Series = append(p.Series, s)
	}
	return p
}

func periodName(d time.Duration) string {
	switch {
	case d == 0:
		return "always"
	case d < time.Minute:
		return fmt.Sprintf("%.0f s", d.Seconds())
	case d < time.Hour:
		return fmt.Sprintf("%.0f min", d.Minutes())
	default:
	}
	return fmt.Sprintf("%.0f h", d.Hours())
}

func (a *answers) plotNumbers() report.Plot {
	p := a.overNumbers("choice-numbers", "Over the number of sites", meanWait, true)
	p.Caption = "Load 0.85 however many sites there are."
	p.Y = report.Axis{Label: "mean wait ÷ alone", Log: true}
	return p
}

func (a *answers) plotNumberMessages() report.Plot {
	p := a.overNumbers("choice-number-messages", "Messages over the number of sites", allMessages, false)
	p.Caption = "Messages of all kinds but loads, load 0.85. By load a job's messages depend on K alone; asking goes to all sites, unless the job can start at its origin at once."
	p.Y = report.Axis{Label: "messages per job", Zero: true}
	return p
}

// overNumbers draws a figure over the number of sites, as part of that alone or not.
func (a *answers) overNumbers(name, title string, figure func(*outcome) float64, part bool) report.Plot {
	p := report.Plot{
		Name: name, Title: title,
		X: report.Axis{Label: "sites", Log: true, From: float64(siteCounts[0]), To: float64(siteCounts[len(siteCounts)-1])},
	}
	for _, n := range siteCounts {
		p.X.Ticks = append(p.X.Ticks, report.Tick{At: float64(n), Label: fmt.Sprint(n)})
	}
	for _, l := range numberLines() {
		s := report.Series{Name: l.name, Style: report.Line}
		for _, n := range siteCounts {
			t := l.of(n)
			switch {
			case int(t.k) > n:
			case part:
				lab.AddPoint(&s, float64(n), a.left(t, figure))
			default:
				lab.AddPoint(&s, float64(n), a.Of(t, figure))
			}
		}
		p.Series = append(p.Series, s)
	}
	return p
}
