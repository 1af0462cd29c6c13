package forecasts

import (
	"fmt"

	"kith/internal/forecast"
	"kith/testbed/lab"
	"kith/testbed/report"
)

// Tables are those whose trials were run.
func (a *answers) Tables() []report.Table {
	return lab.WithRows(a.methodTable(), a.classTable())
}

// blocks are the sets of forecasts that were made, with their names.
func (a *answers) blocks() (names []string, lists [][]methods) {
	for _, s := range settings {
		if list := a.starts[s]; list != nil {
			names, lists = append(names, "starts, "+string(s)), append(lists, list)
		}
	}
	if a.runs != nil {
		names, lists = append(names, "run times"), append(lists, a.runs)
	}
	return names, lists
}

// methodTable compares the methods.
func (a *answers) methodTable() report.Table {
	t := report.Table{
		Name: "forecast-methods", Title: "Ranges of 80 % by method",
		Caption: "All recalibrated alike. Means over the seeds; a width is that of the range of 80 %.",
		Columns: []report.Column{
			{Title: "what"}, {Title: "method"}, {Title: "forecasts", Right: true}, {Title: "held (%)", Right: true}, {Title: "earlier (%)", Right: true}, {Title: "later (%)", Right: true},
			{Title: "pinball loss (s)", Right: true}, {Title: "median width (s)", Right: true}, {Title: "mean width (s)", Right: true},
		},
	}
	names, lists := a.blocks()
	for b, list := range lists {
		for k, name := range list[0].names {
			of := func(figure func(r *forecast.Record) float64) string {
				return report.Number(spread(list, func(m *methods) float64 { r := record(m.scores[k]); return figure(&r) }).Mean())
			}
			percent := func(part func(r *forecast.Record) float64) string {
				return of(func(r *forecast.Record) float64 { return 100 * part(r) / float64(max(r.Forecasts, 1)) })
			}
			t.Add(names[b], name, of(func(r *forecast.Record) float64 { return float64(r.Forecasts) }),
				percent(func(r *forecast.Record) float64 { return r.Held }), percent(func(r *forecast.Record) float64 { return r.Below }), percent(func(r *forecast.Record) float64 { return r.Above }),
				of(func(r *forecast.Record) float64 { return r.Pinball }),
				report.Number(spread(list, func(m *methods) float64 { return medianWidth(m.scores[k]) }).Mean()),
				of(func(r *forecast.Record) float64 { return r.Width }))
		}
	}
	return t
}

// classTable shows our forecasts by class.
func (a *answers) classTable() report.Table {
	t := report.Table{
		Name: "forecast-classes", Title: "Our ranges by class",
		Caption: "All seeds together.",
		Columns: []report.Column{{Title: "what"}, {Title: "class"}, {Title: "forecasts", Right: true}, {Title: "held (%)", Right: true}, {Title: "earlier (%)", Right: true}, {Title: "later (%)", Right: true}},
	}
	names, lists := a.blocks()
	for b, list := range lists {
		n, name := forecast.StartClasses, forecast.StartClassName
		if names[b] == "run times" {
			n, name = forecast.RunClasses, forecast.RunClassName
		}
		for c := range forecast.Class(n) { //nolint:gosec // A few.
			var r forecast.Record
			for i := range list {
				x := classRecord(list[i].scores[ours], c)
				r.Forecasts, r.Held, r.Below, r.Above = r.Forecasts+x.Forecasts, r.Held+x.Held, r.Below+x.Below, r.Above+x.Above
			}
			if r.Forecasts == 0 {
				continue
			}
			percent := func(x float64) string { return report.Number(100 * x / float64(r.Forecasts)) }
			t.Add(names[b], name(c), fmt.Sprint(r.Forecasts), percent(r.Held), percent(r.Below), percent(r.Above))
		}
	}
	return t
}

// Plots are those whose trials were run.
func (a *answers) Plots() []report.Plot {
	names, lists := a.blocks()
	if len(lists) == 0 {
		return nil
	}
	return []report.Plot{a.reliability(names, lists), a.windowPlot(names, lists)}
}

// reliability shows how often the truth was below each level.
func (a *answers) reliability(names []string, lists [][]methods) report.Plot {
	p := report.Plot{
		Name: "forecast-levels", Title: "How often the truth was below the quantile of a level",
		Caption: "Less the level: on the line at 0 every level means what it says. Those marked raw are as they were before recalibration.",
		X:       report.Axis{Label: "level (%)", From: 0, To: 100}, Y: report.Axis{Label: "share below, less the level (points)"},
		Rules: []report.Rule{{At: 0}},
	}
	for b, list := range lists {
		for _, raw := range []bool{false, true} {
			s := report.Series{Name: names[b], Style: report.Line}
			if raw {
				s.Name += ", raw"
			}
			for k, level := range forecast.Levels {
				sum, n := 0.0, 0
				for i := range list {
					for _, x := range list[i].scores[ours] {
						if raw {
							sum += x.raw[k]
						} else {
							sum += x.below[k]
						}
						n++
					}
				}
				s.X, s.Y = append(s.X, 100*level), append(s.Y, 100*(sum/float64(max(n, 1))-level))
			}
			p.Series = append(p.Series, s)
		}
	}
	return p
}

// windowPlot shows the share that held over time.
func (a *answers) windowPlot(names []string, lists [][]methods) report.Plot {
	p := report.Plot{
		Name: "forecast-windows", Title: "Ranges that held, of 1,000 in a row",
		Caption: "The first seed. Nine of ten windows should lie between the lines.",
		X:       report.Axis{Label: "forecasts, in the order of submission"}, Y: report.Axis{Label: "held (%)", From: 50, To: 100},
		Rules: []report.Rule{{At: 75}, {At: 85}},
	}
	for b, list := range lists {
		s := report.Series{Name: names[b], Style: report.Line}
		for i, share := range windows(list[0].scores[ours]) {
			s.X, s.Y = append(s.X, float64((i+1)*windowSize)), append(s.Y, 100*share)
		}
		if len(s.X) > 0 {
			p.Series = append(p.Series, s)
		}
	}
	if len(p.Series) == 0 { // too few forecasts for a window
		r := record(lists[0][0].scores[ours])
		p.Series = []report.Series{{Name: names[0], Style: report.Line, X: []float64{float64(r.Forecasts)}, Y: []float64{100 * r.Share()}}}
	}
	return p
}
