package main

import (
	"fmt"
	"strings"
	"unicode/utf8"

	"kith/internal/cli"
	"kith/testbed/lab"
	"kith/testbed/report"
)

// foundRun is a run as "kith-lab run --output json" prints it.
type foundRun struct {
	Experiment string `json:"experiment"`
	Title      string `json:"title"`
	// Trace is empty for generated jobs.
	Trace string `json:"trace"`
	// Command is the command line that does the same again.
	Command  string        `json:"command"`
	Workload string        `json:"workload"`
	Seeds    []uint64      `json:"seeds"`
	Findings []lab.Finding `json:"findings"`
	Remarks  []string      `json:"remarks"`
	// Caveat says why the bands are not meant for this run, "" if they are.
	Caveat string `json:"caveat,omitempty"`
	// Tables and Plots are in the report's folder only.
	Tables []report.Table `json:"tables,omitempty"`
	Plots  []report.Plot  `json:"plots,omitempty"`
}

// runReport is the answer of "kith-lab run".
type runReport struct {
	Runs           []foundRun `json:"runs"`
	ElapsedSeconds float64    `json:"elapsed_seconds"`
	// Failed are the statements with an enforced band that do not hold.
	Failed []string `json:"failed"`
}

// runAnswer puts runs into the words of the answer; whole also has what
// findings rest on.
func runAnswer(runs []lab.Run, elapsed float64, whole bool) runReport {
	a := runReport{Runs: []foundRun{}, ElapsedSeconds: elapsed, Failed: append([]string{}, lab.Failed(runs)...)}
	for _, r := range runs {
		x := foundRun{
			Experiment: r.Experiment.ID, Title: r.Experiment.Title, Trace: r.Trace, Command: r.Command,
			Workload: r.Report.Workload, Seeds: r.Report.Seeds, Findings: r.Report.Findings, Remarks: append([]string{}, r.Report.Remarks...), Caveat: r.Report.Caveat,
		}
		if whole {
			x.Tables, x.Plots = r.Report.Tables, r.Report.Plots
		}
		a.Runs = append(a.Runs, x)
	}
	return a
}

// runText is what people see: a row for each statement. On a terminal, of which
// width is the width, what was measured stands below its row, in full.
func runText(runs []lab.Run, width int) string {
	var b strings.Builder
	for i, r := range runs {
		if i > 0 {
			b.WriteString("\n")
		}
		fmt.Fprintf(&b, "%s %s\n%s\n\n", r.Experiment.ID, r.Experiment.Title, cli.Clean(r.Report.Workload))
		g := cli.Grid{Columns: []cli.Column{{Title: "ID"}, {Title: "RESULT"}, {Title: "SOURCE", Elastic: true}, {Title: "BAND", Elastic: true}}}
		if width == 0 {
			g.Columns = append(g.Columns, cli.Column{Title: "MEASURED"})
		}
		for _, f := range r.Report.Findings {
			result := string(f.Result)
			if f.Result == lab.Fails && !f.Enforced {
				result += " (not enforced)"
			}
			row := []string{f.ID, result, f.Source, f.Band}
			if width == 0 {
				row = append(row, f.Measured)
			}
			g.Add(row...)
		}
		table := g.Render(width)
		if width > 0 {
			table = measuredBelow(table, r.Report.Findings, width)
		}
		b.WriteString(table)
		fmt.Fprintf(&b, "\n%d hold, %d do not, %d only measured.\n", r.Report.Count(lab.Holds), r.Report.Count(lab.Fails), r.Report.Count(lab.Informational))
		if r.Report.Caveat != "" {
			b.WriteString(r.Report.Caveat + "\n")
		}
		for _, f := range r.Report.Findings {
			switch {
			case f.Result == lab.Fails && f.Note != "":
				fmt.Fprintf(&b, "%s: %s\n", f.ID, f.Note)
			case f.Result == lab.Holds && f.Differs != "":
				fmt.Fprintf(&b, "%s, within its band but not as the source has it: %s\n", f.ID, f.Differs)
			}
		}
	}
	return b.String()
}

// measuredBelow puts what was measured below each row of a table.
func measuredBelow(table string, findings []lab.Finding, width int) string {
	const indent = "    "
	lines := strings.SplitAfter(strings.TrimSuffix(table, "\n"), "\n")
	var b strings.Builder
	for i, line := range lines {
		b.WriteString(strings.TrimSuffix(line, "\n") + "\n")
		if i == 0 {
			continue // the titles
		}
		at := len(indent)
		b.WriteString(indent)
		for k, word := range strings.Fields(cli.Clean(findings[i-1].Measured)) {
			n := utf8.RuneCountInString(word)
			switch {
			case k == 0:
			case at+1+n > width:
				b.WriteString("\n" + indent)
				at = len(indent)
			default:
				b.WriteString(" ")
				at++
			}
			b.WriteString(word)
			at += n
		}
		b.WriteString("\n")
	}
	return b.String()
}
