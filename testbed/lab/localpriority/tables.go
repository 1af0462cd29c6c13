package localpriority

import (
	"fmt"

	"kith/testbed/lab"
	"kith/testbed/report"
)

// Tables shows what was run.
func (a *answers) Tables() []report.Table {
	return lab.WithRows(a.meansTable(), a.sweepTable(), a.adaptiveTable())
}

// meansTable has a row for each configuration of the source.
func (a *answers) meansTable() report.Table {
	t := report.Table{
		Name: "completion-times", Title: "Mean completion times (s)",
		Caption: "By origin; A to E are the sites, of which the first k put local jobs first. Gain and loss are the most that a site gains or loses against itself under MCT, Q0.",
		Columns: []report.Column{{Title: "Case"}, {Title: "Load"}, {Title: "Q"}, {Title: "Scheme"}},
	}
	for _, title := range []string{"A", "B", "C", "D", "E", "ALL", "Largest", "SD", "Gain (%)", "Loss (%)", "Moved (%)"} {
		t.Columns = append(t.Columns, report.Column{Title: title, Right: true})
	}
	for _, c := range settings() {
		for k := range siteCount + 1 {
			for _, x := range []trial{mct(c.number, c.load, k), mct(c.number, c.load, k).weighted(paperWeight)} {
				if a.Has(x) {
					t.Add(a.meansRow(x)...)
				}
			}
		}
	}
	return t
}

func (a *answers) meansRow(x trial) []string {
	scheme := "MCT"
	if x.weight != 1 {
		scheme = fmt.Sprintf("a = %.4g", x.weight)
	}
	m := a.of(x)
	row := []string{fmt.Sprint(x.number), x.load.String(), fmt.Sprintf("Q%d", x.duals), scheme}
	for _, v := range m.sites {
		row = append(row, report.Number(v))
	}
	row = append(row, report.Number(m.all), report.Number(a.largest(x)), report.Number(a.deviation(x)))
	if a.Has(mct(x.number, x.load, 0)) {
		gain, loss := a.gainLoss(x)
		row = append(row, report.Number(gain), report.Number(loss))
	} else {
		row = append(row, "", "")
	}
	return append(row, report.Number(100*a.moved(x)))
}

// sweepTable shows the sweep of a.
func (a *answers) sweepTable() report.Table {
	t := report.Table{
		Name: "weights", Title: "Sweep of the constant a",
		Caption: fmt.Sprintf("Case 1 medium, the first %d seeds. The larger a, the fewer jobs cross between sites of different policies.", fewSeeds),
		Columns: []report.Column{
			{Title: "Q"}, {Title: "a", Right: true}, {Title: "SD over sites (s)", Right: true}, {Title: "Largest mean (s)", Right: true},
			{Title: "ALL (s)", Right: true}, {Title: "Moved (%)", Right: true},
		},
	}
	if !a.Has(sweepTrials()...) {
		return t
	}
	a = a.few()
	for _, x := range sweepTrials() {
		t.Add(fmt.Sprintf("Q%d", x.duals), fmt.Sprintf("%.1f", x.weight), report.Number(a.deviation(x)), report.Number(a.largest(x)), report.Number(a.of(x).all),
			report.Number(100*a.moved(x)))
	}
	return t
}

// adaptiveTable compares the ways to choose weights.
func (a *answers) adaptiveTable() report.Table {
	t := report.Table{
		Name: "adaptive", Title: "Weights by policy and weights by kept promises",
		Caption: fmt.Sprintf("Q4, the first %d seeds. ", fewSeeds) + "MCT has no weights; a = 1.3 goes by the policy label; adaptive multiplies by actual over promised completion times of each site, which needs no label.",
		Columns: []report.Column{{Title: "Case"}, {Title: "Load"}},
	}
	schemes := []string{"MCT", "a = 1.3", "adaptive"}
	for _, what := range []string{"largest", "SD", "ALL"} {
		for _, s := range schemes {
			t.Columns = append(t.Columns, report.Column{Title: fmt.Sprintf("%s, %s (s)", s, what), Right: true})
		}
	}
	a = a.few()
	for _, c := range settings() {
		plain := mct(c.number, c.load, 4)
		trials := []trial{plain, plain.weighted(paperWeight), plain.adapting()}
		if !a.Has(trials...) {
			continue
		}
		row := []string{fmt.Sprint(c.number), c.load.String()}
		for _, figure := range []func(trial) float64{a.largest, a.deviation, func(t trial) float64 { return a.of(t).all }} {
			for _, x := range trials {
				row = append(row, report.Number(figure(x)))
			}
		}
		t.Add(row...)
	}
	return t
}
