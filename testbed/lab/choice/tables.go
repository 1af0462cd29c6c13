package choice

import (
	"fmt"

	"kith/testbed/lab"
	"kith/testbed/metrics"
	"kith/testbed/report"
)

// Tables shows what was run.
func (a *answers) Tables() []report.Table {
	return lab.WithRows(a.mainTable(), a.costTable(), a.loadTable(), a.numberTable(), a.fairTable(), a.weightTable())
}

func columns(first string, others ...string) []report.Column {
	list := []report.Column{{Title: first}}
	for _, title := range others {
		list = append(list, report.Column{Title: title, Right: true})
	}
	return list
}

// cell is a mean, marked if it is worse than alone.
func cell(v float64) report.Cell {
	c := report.Cell{Text: report.Number(v)}
	if v > 1 {
		c.Tone = report.Bad
	}
	return c
}

// mainTable has a row for each way to place jobs.
func (a *answers) mainTable() report.Table {
	t := report.Table{
		Name: "choice-users", Title: "What users get, 5 sites, load 0.85",
		Caption: "What is left of what they would have alone, whose row is in seconds. The sites are in the order of their own load, 0.73 to 0.97; their figures are mean waits of the jobs submitted there. Longer: jobs that wait over a minute longer than alone.",
		Columns: columns("placement", "mean wait", "p95 wait", "bounded slowdown", "short-narrow", "short-wide", "long-narrow", "long-wide",
			"site1", "site2", "site3", "site4", "site5", "longer (%)"),
	}
	for _, x := range mainTrials() {
		if !a.Has(x, x.alone()) {
			continue
		}
		row := []report.Cell{{Text: x.String()}}
		if x == x.alone() {
			for _, f := range []func(*outcome) float64{meanWait, longWait, meanBounded} {
				row = append(row, report.Cell{Text: report.Number(a.Of(x, f).Mean())})
			}
			for c := range metrics.Class(metrics.Classes) {
				row = append(row, report.Cell{Text: report.Number(a.Of(x, classBounded(c)).Mean())})
			}
			for i := range x.sites {
				row = append(row, report.Cell{Text: report.Number(a.Of(x, func(o *outcome) float64 { return o.sites()[i] }).Mean())})
			}
			t.AddCells(append(row, report.Cell{Text: "0"})...)
			continue
		}
		for _, f := range []func(*outcome) float64{meanWait, longWait, meanBounded} {
			row = append(row, cell(a.left(x, f).Mean()))
		}
		for c := range metrics.Class(metrics.Classes) {
			row = append(row, cell(a.left(x, classBounded(c)).Mean()))
		}
		for _, v := range a.sites(x) {
			row = append(row, cell(v))
		}
		t.AddCells(append(row, report.Cell{Text: report.Number(100 * a.longer(x).Mean())})...)
	}
	return t
}

// costTable has the same rows with what they cost.
func (a *answers) costTable() report.Table {
	t := report.Table{
		Name: "choice-cost", Title: "What it costs, 5 sites, load 0.85",
		Caption: "Messages and copies are per job. Logical messages are one claim and K − 1 withdrawals, those on the wire the part that crossed between sites; all are whatever did, loads left out, and queries the part that asks for starts. A job that starts at its origin at once sends nothing. The queue is what waits at a site.",
		Columns: columns("placement", "mean wait", "logical", "wire", "all", "queries", "copies sent", "mean queue", "p95 queue", "run elsewhere (%)"),
	}
	for _, x := range mainTrials() {
		if !a.Has(x, x.alone()) {
			continue
		}
		row := []string{x.String(), report.Number(a.left(x, meanWait).Mean())}
		for _, f := range []func(*outcome) float64{
			logicalSent, wireSent, allMessages, func(o *outcome) float64 { return o.queries }, copiesSent,
			meanQueue, longQueue, func(o *outcome) float64 { return 100 * o.remote },
		} {
			row = append(row, report.Number(a.Of(x, f).Mean()))
		}
		t.Add(row...)
	}
	return t
}

// loadTable has K over the load of the sites.
func (a *answers) loadTable() report.Table {
	t := report.Table{
		Name: "choice-loads", Title: "Copies over the load of the federation, 5 sites",
		Caption: "What is left of the mean wait alone, and messages of all kinds per job.",
		Columns: columns("placement"),
	}
	for _, c := range threeLoads {
		t.Columns = append(t.Columns,
			report.Column{Title: fmt.Sprintf("load 0.%02d", c.load), Right: true}, report.Column{Title: "messages", Right: true})
	}
	rows := []func(c setting) trial{}
	for _, k := range allCopies {
		rows = append(rows, func(c setting) trial { return c.copies(k) })
	}
	rows = append(rows, func(c setting) trial { return c.asked(2) })
	for _, f := range rows {
		row := []string{f(busySites).String()}
		for _, c := range threeLoads {
			if !a.Has(f(c), c.alone()) {
				return report.Table{}
			}
			row = append(row, a.left(f(c), meanWait).Text(""), report.Number(a.Of(f(c), allMessages).Mean()))
		}
		t.Add(row...)
	}
	return t
}

// numberTable has waits and messages over the number of sites.
func (a *answers) numberTable() report.Table {
	t := report.Table{
		Name: "choice-sites", Title: "Over the number of sites, load 0.85",
		Caption: "What is left of the mean wait alone, and messages of all kinds per job.",
		Columns: columns("placement"),
	}
	for _, n := range siteCounts {
		t.Columns = append(t.Columns,
			report.Column{Title: fmt.Sprintf("%d sites", n), Right: true}, report.Column{Title: "messages", Right: true})
	}
	for _, l := range numberLines() {
		row := []string{l.name}
		for _, n := range siteCounts {
			x := l.of(n)
			switch {
			case int(x.k) > n:
				row = append(row, "", "")
			case !a.Has(x, x.alone()):
				return report.Table{}
			default:
				row = append(row, report.Number(a.left(x, meanWait).Mean()), report.Number(a.Of(x, allMessages).Mean()))
			}
		}
		t.Add(row...)
	}
	return t
}

// fairTable has users who ask for one copy beside those who ask for K.
func (a *answers) fairTable() report.Table {
	t := report.Table{
		Name: "choice-one", Title: "Users who ask for one copy, 5 sites, load 0.85",
		Caption: "Mean waits in seconds of the very same jobs. K-Dual keeps their copy at home, behind no copy of others; K-Distributed in one queue sends it to the least loaded site.",
		Columns: columns("the others", "share of one-copy jobs (%)", "one copy, if all ask for one", "one copy", "÷", "others, K copies"),
	}
	for _, k := range []int32{2, 3, 5} {
		for _, p := range oneShares {
			for _, pair := range [][2]trial{{busySites.copies(k), busySites.alone()}, {busySites.spread(k), busySites.one()}} {
				x, base := pair[0].onesAsked(p), pair[1]
				if !a.Has(x, base) {
					return report.Table{}
				}
				ones, before := a.asks(x, p, true), a.asks(base, p, true)
				t.AddCells(
					report.Cell{Text: pair[0].String()}, report.Cell{Text: fmt.Sprint(p)}, report.Cell{Text: report.Number(before.Mean())},
					report.Cell{Text: report.Number(ones.Mean())}, cell(overEach(ones, before).Mean()), report.Cell{Text: report.Number(a.asks(x, p, false).Mean())})
			}
		}
	}
	return t
}

// weightTable has the weights where policies differ.
func (a *answers) weightTable() report.Table {
	t := report.Table{
		Name: "choice-weights", Title: "Weights where policies differ, 5 sites, load 0.85",
		Caption: "Large sites with dual queues, small ones (site2, site4) with one. What is left of the waits alone.",
		Columns: columns("placement", "mean wait", "site1", "site2", "site3", "site4", "site5"),
	}
	for _, x := range weightTrials() {
		if !a.Has(x, x.alone()) {
			continue
		}
		row := []report.Cell{{Text: x.String()}, cell(a.left(x, meanWait).Mean())}
		for _, v := range a.sites(x) {
			row = append(row, cell(v))
		}
		t.AddCells(row...)
	}
	return t
}
