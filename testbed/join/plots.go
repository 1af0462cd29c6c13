package join

import (
	"fmt"
	"math"
	"time"

	"kith/internal/job"
	"kith/internal/units"
	"kith/testbed/metrics"
	"kith/testbed/report"
)

const hour = 3600.0

func durationSeconds(d units.Duration) float64 { return time.Duration(d).Seconds() }

// plottedSites is how many sites plots show; tables have all of them.
func (a *Answer) plottedSites() int { return min(len(a.Sites), mostPlotted) }

const mostPlotted = 12

// changePlot is the gain or loss of each site for each K.
func (a *Answer) changePlot() report.Plot {
	b := &report.Bars{}
	for i := range a.plottedSites() {
		b.Groups = append(b.Groups, a.Sites[i].Name)
	}
	b.Groups = append(b.Groups, "all")
	for i := range a.Plans {
		p := &a.Plans[i]
		name := fmt.Sprintf("K = %d", p.Copies)
		if len(a.Plans) == 1 {
			name = p.Name
		}
		s := report.BarSeries{Name: name}
		for k := range a.plottedSites() {
			s.Values = append(s.Values, -p.Sites[k].Change)
		}
		b.Series = append(b.Series, report.BarSeries{Name: s.Name, Values: append(s.Values, -p.All.Change)})
	}
	return report.Plot{
		Name: "change", Title: "Gain and loss of each site", Caption: "How much sooner jobs are done than alone: upwards is a gain, downwards a loss.",
		Y: report.Axis{Label: "shorter mean turnaround (%)"}, Bars: b,
	}
}

// waitPlot is the mean wait of each site, alone and joined.
func (a *Answer) waitPlot(best *Outcome) report.Plot {
	alone, joined := report.BarSeries{Name: "alone"}, report.BarSeries{Name: best.Name}
	b := &report.Bars{}
	for i := range a.plottedSites() {
		b.Groups = append(b.Groups, a.Sites[i].Name)
		alone.Values = append(alone.Values, a.Alone.Sites[i].Wait/hour)
		joined.Values = append(joined.Values, best.Sites[i].Wait/hour)
	}
	b.Groups = append(b.Groups, "all")
	alone.Values, joined.Values = append(alone.Values, a.Alone.All.Wait/hour), append(joined.Values, best.All.Wait/hour)
	b.Series = []report.BarSeries{alone, joined}
	return report.Plot{
		Name: "wait", Title: "Mean waiting time of each site's users", Caption: "Wherever their jobs ran.",
		Y: report.Axis{Label: "mean wait (h)"}, Bars: b,
	}
}

// classPlots compare waits and gains by kind of job.
func (a *Answer) classPlots(best *Outcome) []report.Plot {
	alone, joined, all := report.BarSeries{Name: "alone"}, report.BarSeries{Name: best.Name}, report.BarSeries{Name: "all"}
	var groups []string
	for c := range metrics.Class(metrics.Classes) {
		groups = append(groups, c.String())
		alone.Values = append(alone.Values, a.Alone.Classes[c].Wait/hour)
		joined.Values = append(joined.Values, best.Classes[c].Wait/hour)
		all.Values = append(all.Values, -best.Classes[c].Change)
	}
	gains := []report.BarSeries{all}
	if n := len(best.Sites); n < report.MaxSeries {
		gains = nil
		for i := range best.Sites {
			s := report.BarSeries{Name: best.Sites[i].Site}
			for c := range best.Sites[i].Classes {
				s.Values = append(s.Values, -best.Sites[i].Classes[c].Change)
			}
			gains = append(gains, s)
		}
		gains = append(gains, all)
	}
	return []report.Plot{
		{
			Name: "class-wait", Title: "Mean waiting time by kind of job", Caption: "All sites together.",
			Y: report.Axis{Label: "mean wait (h)"}, Bars: &report.Bars{Groups: groups, Series: []report.BarSeries{alone, joined}},
		},
		{
			Name: "class-change", Title: "Gain and loss by kind of job", Caption: "How much sooner jobs are done than alone: upwards is a gain, downwards a loss.",
			Y: report.Axis{Label: "shorter mean turnaround (%)"}, Bars: &report.Bars{Groups: groups, Series: gains},
		},
	}
}

// Curve is one of the lines of a plot: jobs under one plan.
type Curve struct {
	Name    string
	Records []metrics.Record
	// Processors are those that they ran on; only [BusyPlot] reads it.
	Processors int32
}

// waitingPlots are the distributions of waiting times: of all, and by site.
func (a *Answer) waitingPlots(best *Outcome) []report.Plot {
	alone, joined := &a.outcomes[0], &a.outcomes[1+a.Best]
	plots := []report.Plot{WaitingPlot("waits-all", "All sites", Curve{Name: "alone", Records: alone.result.Records}, Curve{Name: best.Name, Records: joined.result.Records})}
	for i := range a.plottedSites() {
		plots = append(plots, WaitingPlot(fmt.Sprintf("waits-%d", i+1), "Users of "+a.Sites[i].Name,
			Curve{Name: "alone", Records: a.study.recordsOf(alone, i)}, Curve{Name: best.Name, Records: a.study.recordsOf(joined, i)}))
	}
	return plots
}

// shortestWait is where the axis of waiting times begins, in hours.
const shortestWait = 1.0 / 60

// WaitingPlot is the distribution of waiting times. Who hardly waited is at the left edge.
func WaitingPlot(name, title string, curves ...Curve) report.Plot {
	p := report.Plot{
		Name: name, Title: title,
		X: report.Axis{Label: "waiting time", Log: true, From: shortestWait, Ticks: []report.Tick{
			{At: 1.0 / 60, Label: "1 min"}, {At: 5.0 / 60, Label: "5 min"}, {At: 0.25, Label: "15 min"}, {At: 1, Label: "1 h"}, {At: 4, Label: "4 h"},
			{At: 12, Label: "12 h"}, {At: 48, Label: "2 d"}, {At: 168, Label: "1 w"}, {At: 720, Label: "30 d"},
		}},
		Y: report.Axis{Label: "share of jobs that have started (%)", From: 0, To: 100},
	}
	longest := 4 * shortestWait
	for _, c := range curves {
		waits := make([]float64, len(c.Records))
		for i := range c.Records {
			waits[i] = max(c.Records[i].Wait().Hours(), shortestWait)
			longest = max(longest, waits[i])
		}
		p.Series = append(p.Series, atOnce(report.CDF(c.Name, waits)))
	}
	p.X.To = longest
	var ticks []report.Tick
	for _, t := range p.X.Ticks {
		if t.At <= longest {
			ticks = append(ticks, t)
		}
	}
	p.X.Ticks = ticks
	return p
}

// atOnce keeps the highest of several points at one place, so that no line goes
// up along the axis.
func atOnce(s report.Series) report.Series {
	n := 0
	for i := range s.X {
		if n > 0 && s.X[n-1] == s.X[i] {
			n--
		}
		s.X[n], s.Y[n] = s.X[i], s.Y[i]
		n++
	}
	s.X, s.Y = s.X[:n], s.Y[:n]
	return s
}

// utilisationPlots are the busy processors of each site over time.
func (a *Answer) utilisationPlots(best *Outcome) []report.Plot {
	var plots []report.Plot
	for i := range a.plottedSites() {
		site := &a.study.sites[i]
		curves := []Curve{{Name: "alone"}, {Name: best.Name}}
		for k, o := range []*outcome{&a.outcomes[0], &a.outcomes[1+a.Best]} {
			curves[k].Processors = site.Processors
			for n := range o.result.Records {
				if r := &o.result.Records[n]; r.Site == site.ID {
					curves[k].Records = append(curves[k].Records, *r)
				}
			}
		}
		plots = append(plots, BusyPlot(fmt.Sprintf("busy-%d", i+1), a.Sites[i].Name, a.study.lastSubmission(), curves...))
	}
	return plots
}

// BusyPlot is the utilisation of a site over time, up to an instant.
func BusyPlot(name, title string, until job.Time, curves ...Curve) report.Plot {
	step := stepOf(until.Sub(0))
	p := report.Plot{
		Name: name, Title: title, Caption: fmt.Sprintf("Means over %s.", report.Span(step.Seconds())),
		X: report.Axis{Label: "day"}, Y: report.Axis{Label: "busy processors (%)", From: 0, To: 100},
	}
	for i := range curves {
		p.Series = append(p.Series, curves[i].busy(step, until))
	}
	return p
}

// stepOf divides a time into up to a hundred steps of whole hours.
func stepOf(total time.Duration) time.Duration {
	for _, h := range []time.Duration{1, 2, 3, 6, 12, 24, 48} {
		if total <= 100*h*time.Hour {
			return h * time.Hour
		}
	}
	return 168 * time.Hour
}

// busy is the utilisation over time.
func (c *Curve) busy(step time.Duration, until job.Time) report.Series {
	var ran []metrics.Record
	for k := range c.Records {
		if r := &c.Records[k]; r.Start < until {
			x := *r
			x.End = min(x.End, until)
			x.Submit = 0 // the series begins where time does
			ran = append(ran, x)
		}
	}
	s := report.Series{Name: c.Name, Style: report.Step}
	for k, v := range metrics.BusyOver(ran, step).Values {
		at := time.Duration(k) * step
		if job.Time(at) >= until {
			break
		}
		// The last step is shorter than the others.
		full := min(step, until.Sub(job.Time(at)))
		s.X = append(s.X, at.Hours()/24)
		s.Y = append(s.Y, math.Min(100, 100*v/float64(c.Processors)*float64(step)/float64(full)))
	}
	return s
}

// sweepPlot is the mean wait of each site over K.
func (a *Answer) sweepPlot() report.Plot {
	p := report.Plot{
		Name: "copies", Title: "Mean waiting time by the number of copies", Caption: "Alone is drawn at K = 1.",
		X: report.Axis{Label: "copies of a job, K"}, Y: report.Axis{Label: "mean wait (h)", Zero: true},
	}
	p.X.Ticks = []report.Tick{{At: 1, Label: "alone"}}
	add := func(name string, wait func(o *Outcome) float64) {
		s := report.Series{Name: name, Style: report.Line, X: []float64{1}, Y: []float64{wait(&a.Alone) / hour}}
		for i := range a.Plans {
			if k := a.Plans[i].Copies; k > 1 {
				s.X, s.Y = append(s.X, float64(k)), append(s.Y, wait(&a.Plans[i])/hour)
			}
		}
		p.Series = append(p.Series, s)
	}
	for i := range a.Plans {
		if k := a.Plans[i].Copies; k > 1 {
			p.X.Ticks = append(p.X.Ticks, report.Tick{At: float64(k), Label: fmt.Sprint(k)})
		}
	}
	add("all", func(o *Outcome) float64 { return o.All.Wait })
	for i := range min(len(a.Sites), report.MaxSeries-1) {
		add(a.Sites[i].Name, func(o *Outcome) float64 { return o.Sites[i].Wait })
	}
	return p
}

// messagesPlot is the cost of each K.
func (a *Answer) messagesPlot() report.Plot {
	b := &report.Bars{Series: []report.BarSeries{{}}}
	for i := range a.Plans {
		b.Groups = append(b.Groups, fmt.Sprintf("K = %d", a.Plans[i].Copies))
		b.Series[0].Values = append(b.Series[0].Values, a.Plans[i].MessagesPerJob)
	}
	return report.Plot{
		Name: "messages", Title: "Messages by the number of copies", Caption: "All that cross between sites for a job, without the loads that sites tell each other.",
		Y: report.Axis{Label: "messages a job"}, Bars: b,
	}
}
