package localpriority

import (
	"fmt"

	"kith/testbed/report"
	"kith/testbed/workload"
)

// The figures of the source (spec 004). Where it drew the same before and
// after weights in two figures, one plot has both.

// Plots draws every figure for which all runs were made.
func (a *answers) Plots() []report.Plot {
	var list []report.Plot
	for _, c := range settings() {
		if a.Has(mctTrials(c)...) {
			list = append(list, a.sitesPlot(c, false))
		}
	}
	for number := 1; number <= 3; number++ {
		needs := activeTrials(number)
		for _, load := range loads {
			needs = append(needs, mctTrials(setting{number, load})...)
		}
		if !a.Has(needs...) {
			continue
		}
		for _, load := range loads {
			list = append(list, a.sitesPlot(setting{number, load}, true))
		}
		list = append(list,
			a.figurePlot(number, "largest", "Largest mean of a site", fmt.Sprintf("3.%d and 4.%d", 6+number, 5+number), a.largest),
			a.figurePlot(number, "deviation", "Standard deviation over the sites", fmt.Sprintf("3.%d and 4.%d", 9+number, 8+number), a.deviation))
		for _, load := range loads {
			list = append(list, a.gainLossPlot(setting{number, load}))
		}
	}
	if a.Has(sweepTrials()...) {
		list = append(list, a.sweepPlot())
	}
	if a.Has(append(adaptiveTrials(), activeTrials(1, 2, 3)...)...) {
		list = append(list, a.adaptivePlot())
	}
	return list
}

// queueAxis is Q0 to Q5.
func queueAxis() report.Axis {
	x := report.Axis{Label: "queue configuration"}
	for k := range siteCount + 1 {
		x.Ticks = append(x.Ticks, report.Tick{At: float64(k), Label: fmt.Sprintf("Q%d", k)})
	}
	return x
}

// thousands makes thousands of seconds.
const thousands = 1e-3

// best returns the trial with weights where they act, else the plain one: at
// the others the two are the same.
func best(number int, load workload.PriorityLoad, k int) trial {
	t := mct(number, load, k)
	for _, active := range weightsAct[number-1] {
		if k == active {
			return t.weighted(paperWeight)
		}
	}
	return t
}

// over returns a figure for Q0 to Q5 as a series.
func (a *answers) over(name string, of func(k int) trial, figure func(trial) float64) report.Series {
	s := report.Series{Name: name, Style: report.Line}
	for k := range siteCount + 1 {
		s.X, s.Y = append(s.X, float64(k)), append(s.Y, figure(of(k)))
	}
	return s
}

// sitesPlot is the mean of each site over Q0 to Q5.
func (a *answers) sitesPlot(c setting, weighted bool) report.Plot {
	of, scheme, figure := func(k int) trial { return mct(c.number, c.load, k) }, "MCT", 3+c.number
	chapter, name := 3, "mct"
	if weighted {
		of = func(k int) trial { return best(c.number, c.load, k) }
		scheme, chapter, figure, name = "a = 1.3", 4, 2+c.number, "weighted"
	}
	p := report.Plot{
		Name:    fmt.Sprintf("%s-case-%d-%v", name, c.number, c.load),
		Title:   fmt.Sprintf("Mean completion time, %s, %v", scheme, c),
		Caption: fmt.Sprintf("Figure %d.%d%c of the source. At Qk the first k sites put local jobs first.", chapter, figure, 'a'+rune(c.load)),
		X:       queueAxis(), Y: report.Axis{Label: "completion time (1000 s)", Zero: c.load != light},
	}
	for i := range siteCount {
		p.Series = append(p.Series, a.over(string(rune('A'+i)), of, func(t trial) float64 { return thousands * a.of(t).sites[i] }))
	}
	p.Series = append(p.Series, a.over("ALL", of, func(t trial) float64 { return thousands * a.of(t).all }))
	return p
}

// figurePlot is a figure over the sites for each load, with weights and without.
func (a *answers) figurePlot(number int, name, title, figures string, figure func(trial) float64) report.Plot {
	p := report.Plot{
		Name: fmt.Sprintf("%s-case-%d", name, number), Title: fmt.Sprintf("%s, case %d", title, number),
		Caption: "Figures " + figures + " of the source. Where weights do not act, both are the same.",
		X:       queueAxis(), Y: report.Axis{Label: "seconds, logarithmic", Log: true},
	}
	for _, load := range loads {
		p.Series = append(p.Series,
			a.over(load.String()+", MCT", func(k int) trial { return mct(number, load, k) }, figure),
			a.over(load.String()+", a = 1.3", func(k int) trial { return best(number, load, k) }, figure))
	}
	return p
}

// gainLossPlot is the largest gain and loss of a site over Q0 to Q5.
func (a *answers) gainLossPlot(c setting) report.Plot {
	plain := func(k int) trial { return mct(c.number, c.load, k) }
	with := func(k int) trial { return best(c.number, c.load, k) }
	gain := func(t trial) float64 { g, _ := a.gainLoss(t); return g }
	loss := func(t trial) float64 { _, l := a.gainLoss(t); return -l }
	return report.Plot{
		Name: fmt.Sprintf("gain-loss-case-%d-%v", c.number, c.load), Title: fmt.Sprintf("Largest gain and loss of a site, %v", c),
		Caption: fmt.Sprintf("Figures 3.%d%c and 4.%d%c of the source: against the same site under MCT, Q0. Losses are drawn downwards.",
			12+c.number, 'a'+rune(c.load), 11+c.number, 'a'+rune(c.load)),
		X: queueAxis(), Y: report.Axis{Label: "shorter completion time (%)"}, Rules: []report.Rule{{At: 0}},
		Series: []report.Series{
			a.over("gain, MCT", plain, gain), a.over("gain, a = 1.3", with, gain),
			a.over("loss, MCT", plain, loss), a.over("loss, a = 1.3", with, loss),
		},
	}
}

// sweepPlot is the standard deviation over the constant a.
func (a *answers) sweepPlot() report.Plot {
	p := report.Plot{
		Name: "weights", Title: "Standard deviation over the sites by the constant a, case 1 medium",
		Caption: fmt.Sprintf("Figure 4.2 of the source, which takes a = 1.3. The first %d seeds.", fewSeeds),
		X:       report.Axis{Label: "constant a"}, Y: report.Axis{Label: "standard deviation (s)", Zero: true},
		Rules: []report.Rule{{At: paperWeight, Label: "a = 1.3", Vertical: true}},
	}
	a = a.few()
	for _, k := range []int{3, 4} {
		s := report.Series{Name: fmt.Sprintf("Q%d", k), Style: report.Line}
		for _, w := range sweptWeights {
			s.X, s.Y = append(s.X, w), append(s.Y, a.deviation(mct(1, medium, k).weighted(w)))
		}
		p.Series = append(p.Series, s)
	}
	return p
}

// adaptivePlot is the largest mean at Q4, against MCT.
func (a *answers) adaptivePlot() report.Plot {
	a = a.few()
	b := &report.Bars{Series: []report.BarSeries{{Name: "a = 1.3"}, {Name: "adaptive"}}}
	for _, c := range settings() {
		plain := mct(c.number, c.load, 4)
		b.Groups = append(b.Groups, c.String())
		base := a.largest(plain)
		for i, t := range []trial{plain.weighted(paperWeight), plain.adapting()} {
			b.Series[i].Values = append(b.Series[i].Values, percent(a.largest(t), base))
		}
	}
	return report.Plot{
		Name: "adaptive", Title: "Largest mean of a site against MCT, Q4",
		Caption: fmt.Sprintf("Not in the source, the first %d seeds. ", fewSeeds) + "Weights by the policy label, and weights that follow what the promises of a site were worth.",
		Y:       report.Axis{Label: "change of the largest mean (%)"}, Bars: b,
	}
}
