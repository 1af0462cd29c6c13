package conserve

import (
	"fmt"

	"kith/testbed/lab"
	"kith/testbed/report"
)

// Tables are those whose trials were run.
func (a *answers) Tables() []report.Table {
	if !a.Has(allTrials()...) {
		return nil
	}
	t := report.Table{
		Name: "conserve", Title: "Queued copies that stay, and that are added and moved",
		Caption: "Each cell: without the switch, then with it. Means over the seeds; shares are of all processors while jobs wait; messages are those of all kinds but loads.",
		Columns: []report.Column{{Title: "placement"}, {Title: "load", Right: true}},
	}
	figures := []struct {
		title string
		of    func(*outcome) float64
	}{
		{"mean wait (s)", meanWait},
		{"worst tenth (s)", worstWait},
		{"idle (%)", idleShare},
		{"wasted (%)", wasteRate},
		{"messages", sent},
		{"copies sent", placed},
		{"loads told", loadsSent},
	}
	for _, f := range figures {
		t.Columns = append(t.Columns, report.Column{Title: f.title, Right: true})
	}
	for _, scheme := range schemes {
		for _, k := range copies {
			for _, load := range loads {
				x := scheme(load, k)
				row := []string{x.String(), fmt.Sprintf("0.%02d", load)}
				for _, f := range figures {
					row = append(row, report.Number(a.Of(x, f.of).Mean())+" → "+report.Number(a.Of(x.conserved(), f.of).Mean()))
				}
				t.Add(row...)
			}
		}
	}
	return []report.Table{t}
}

// Plots are those whose trials were run.
func (a *answers) Plots() []report.Plot {
	return lab.Draw(a.Outcomes, []lab.Figure[trial]{
		{Needs: onlyDual(copies...), Draw: func() report.Plot {
			return a.plot("conserve-wait", "Waits where copies stay and where they are moved", "mean wait (h)", func(o *outcome) float64 { return o.wait / 3600 })
		}},
		{Needs: onlyDual(copies...), Draw: func() report.Plot {
			return a.plot("conserve-wasted", "Processors that a waiting job would fit on", "wasted while jobs wait (%)", wasteRate)
		}},
	})
}

// plot shows a figure of K-Dual over the load, off and on.
func (a *answers) plot(name, title, label string, figure func(*outcome) float64) report.Plot {
	p := report.Plot{
		Name: name, Title: title, Caption: "K-Dual, over the mean load of the federation, without and with `placement.conserve`.",
		X: report.Axis{Label: "offered load", From: 0.58, To: 0.97}, Y: report.Axis{Label: label, Zero: true},
	}
	for _, load := range loads {
		p.X.Ticks = append(p.X.Ticks, report.Tick{At: float64(load) / 100, Label: fmt.Sprintf("0.%02d", load)})
	}
	for _, on := range []bool{false, true} {
		for _, k := range copies {
			s := report.Series{Name: fmt.Sprintf("K = %d", k), Style: report.Line}
			if on {
				s.Name += ", moved"
			}
			for _, load := range loads {
				t := dual(load, k)
				t.conserve = on
				lab.AddPoint(&s, float64(load)/100, a.Of(t, figure))
			}
			p.Series = append(p.Series, s)
		}
	}
	return p
}
