package lab

import (
	"fmt"

	"kith/testbed/metrics"
	"kith/testbed/report"
)

// tables shows what was run.
func (a *choiceAnswers) tables() []report.Table {
	var list []report.Table
	for _, t := range []report.Table{a.mainTable(), a.costTable(), a.loadTable(), a.numberTable(), a.fairTable(), a.weightTable()} {
		if len(t.Rows) > 0 {
			list = append(list, t)
		}
	}
	return list
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
func (a *choiceAnswers) mainTable() report.Table {
	t := report.Table{
		Name: "choice-users", Title: "What users get, 5 sites, load 0.85",
		Caption: "What is left of what they would have alone, whose row is in seconds. The sites are in the order of their own load, 0.73 to 0.97; their figures are mean waits of the jobs submitted there. Longer: jobs that wait over a minute longer than alone.",
		Columns: columns("placement", "mean wait", "p95 wait", "bounded slowdown", "short-narrow", "short-wide", "long-narrow", "long-wide",
			"site1", "site2", "site3", "site4", "site5", "longer (%)"),
	}
	for _, x := range mainTrials() {
		if !a.has(x, x.alone()) {
			continue
		}
		row := []report.Cell{{Text: x.String()}}
		if x == x.alone() {
			for _, f := range []func(*choiceOutcome) float64{meanWait, longWait, meanBounded} {
				row = append(row, report.Cell{Text: report.Number(a.of(x, f).mean())})
			}
			for c := range metrics.Class(metrics.Classes) {
				row = append(row, report.Cell{Text: report.Number(a.of(x, classBounded(c)).mean())})
			}
			for i := range x.sites {
				row = append(row, report.Cell{Text: report.Number(a.of(x, func(o *choiceOutcome) float64 { return o.sites()[i] }).mean())})
			}
			t.AddCells(append(row, report.Cell{Text: "0"})...)
			continue
		}
		for _, f := range []func(*choiceOutcome) float64{meanWait, longWait, meanBounded} {
			row = append(row, cell(a.left(x, f).mean()))
		}
		for c := range metrics.Class(metrics.Classes) {
			row = append(row, cell(a.left(x, classBounded(c)).mean()))
		}
		for _, v := range a.sites(x) {
			row = append(row, cell(v))
		}
		t.AddCells(append(row, report.Cell{Text: report.Number(100 * a.longer(x).mean())})...)
	}
	return t
}

// costTable has the same rows with what they cost.
func (a *choiceAnswers) costTable() report.Table {
	t := report.Table{
		Name: "choice-cost", Title: "What it costs, 5 sites, load 0.85",
		Caption: "Messages and copies are per job. Logical messages are one claim and K − 1 withdrawals, those on the wire the part that crossed between sites; all are whatever did, loads left out, and queries the part that asks for starts. A job that starts at its origin at once sends nothing. The queue is what waits at a site.",
		Columns: columns("placement", "mean wait", "logical", "wire", "all", "queries", "copies sent", "mean queue", "p95 queue", "run elsewhere (%)"),
	}
	for _, x := range mainTrials() {
		if !a.has(x, x.alone()) {
			continue
		}
		row := []string{x.String(), report.Number(a.left(x, meanWait).mean())}
		for _, f := range []func(*choiceOutcome) float64{
			logicalSent, wireSent, allMessages, func(o *choiceOutcome) float64 { return o.queries }, copiesSent,
			meanQueue, longQueue, func(o *choiceOutcome) float64 { return 100 * o.remote },
		} {
			row = append(row, report.Number(a.of(x, f).mean()))
		}
		t.Add(row...)
	}
	return t
}

// loadTable has K over the load of the sites.
func (a *choiceAnswers) loadTable() report.Table {
	t := report.Table{
		Name: "choice-loads", Title: "Copies over the load of the federation, 5 sites",
		Caption: "What is left of the mean wait alone, and messages of all kinds per job.",
		Columns: columns("placement"),
	}
	for _, c := range choiceLoads {
		t.Columns = append(t.Columns,
			report.Column{Title: fmt.Sprintf("load 0.%02d", c.load), Right: true}, report.Column{Title: "messages", Right: true})
	}
	rows := []func(c choiceSetting) choiceTrial{}
	for _, k := range allCopies {
		rows = append(rows, func(c choiceSetting) choiceTrial { return c.copies(k) })
	}
	rows = append(rows, func(c choiceSetting) choiceTrial { return c.asked(2) })
	for _, f := range rows {
		row := []string{f(busySites).String()}
		for _, c := range choiceLoads {
			if !a.has(f(c), c.alone()) {
				return report.Table{}
			}
			row = append(row, a.left(f(c), meanWait).text(""), report.Number(a.of(f(c), allMessages).mean()))
		}
		t.Add(row...)
	}
	return t
}

// numberTable has waits and messages over the number of sites.
func (a *choiceAnswers) numberTable() report.Table {
	t := report.Table{
		Name: "choice-sites", Title: "Over the number of sites, load 0.85",
		Caption: "What is left of the mean wait alone, and messages of all kinds per job.",
		Columns: columns("placement"),
	}
	for _, n := range choiceNumbers {
		t.Columns = append(t.Columns,
			report.Column{Title: fmt.Sprintf("%d sites", n), Right: true}, report.Column{Title: "messages", Right: true})
	}
	for _, l := range numberLines() {
		row := []string{l.name}
		for _, n := range choiceNumbers {
			x := l.of(n)
			switch {
			case int(x.k) > n:
				row = append(row, "", "")
			case !a.has(x, x.alone()):
				return report.Table{}
			default:
				row = append(row, report.Number(a.left(x, meanWait).mean()), report.Number(a.of(x, allMessages).mean()))
			}
		}
		t.Add(row...)
	}
	return t
}

// fairTable has users who ask for one copy beside those who ask for K.
func (a *choiceAnswers) fairTable() report.Table {
	t := report.Table{
		Name: "choice-one", Title: "Users who ask for one copy, 5 sites, load 0.85",
		Caption: "Mean waits in seconds of the very same jobs. K-Dual keeps their copy at home, behind no copy of others; K-Distributed in one queue sends it to the least loaded site.",
		Columns: columns("the others", "share of one-copy jobs (%)", "one copy, if all ask for one", "one copy", "÷", "others, K copies"),
	}
	for _, k := range []int32{2, 3, 5} {
		for _, p := range oneShares {
			for _, pair := range [][2]choiceTrial{{busySites.copies(k), busySites.alone()}, {busySites.spread(k), busySites.one()}} {
				x, base := pair[0].onesAsked(p), pair[1]
				if !a.has(x, base) {
					return report.Table{}
				}
				ones, before := a.asks(x, p, true), a.asks(base, p, true)
				t.AddCells(
					report.Cell{Text: pair[0].String()}, report.Cell{Text: fmt.Sprint(p)}, report.Cell{Text: report.Number(before.mean())},
					report.Cell{Text: report.Number(ones.mean())}, cell(ones.over(before).mean()), report.Cell{Text: report.Number(a.asks(x, p, false).mean())})
			}
		}
	}
	return t
}

// weightTable has the weights where policies differ.
func (a *choiceAnswers) weightTable() report.Table {
	t := report.Table{
		Name: "choice-weights", Title: "Weights where policies differ, 5 sites, load 0.85",
		Caption: "Large sites with dual queues, small ones (site2, site4) with one. What is left of the waits alone.",
		Columns: columns("placement", "mean wait", "site1", "site2", "site3", "site4", "site5"),
	}
	for _, x := range weightTrials() {
		if !a.has(x, x.alone()) {
			continue
		}
		row := []report.Cell{{Text: x.String()}, cell(a.left(x, meanWait).mean())}
		for _, v := range a.sites(x) {
			row = append(row, cell(v))
		}
		t.AddCells(row...)
	}
	return t
}
