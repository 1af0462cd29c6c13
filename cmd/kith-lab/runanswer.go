package main

import (
	"fmt"
	"strings"

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
	// Tables and Plots are in the report's folder only.
	Tables []report.Table `json:"tables,omitempty"`
	Plots  []report.Plot  `json:"plots,omitempty"`
}

// runReport is the answer of "kith-lab run".
type runReport struct {
	Runs           []foundRun `json:"runs"`
	ElapsedSeconds float64    `json:"elapsed_seconds"`
	// Failed are the claims with an enforced band that do not hold.
	Failed []string `json:"failed"`
}

// runAnswer puts runs into the words of the answer; whole also has what
// findings rest on.
func runAnswer(runs []lab.Run, elapsed float64, whole bool) runReport {
	a := runReport{Runs: []foundRun{}, ElapsedSeconds: elapsed, Failed: append([]string{}, lab.Failed(runs)...)}
	for _, r := range runs {
		x := foundRun{
			Experiment: r.Experiment.ID, Title: r.Experiment.Title, Trace: r.Trace, Command: r.Command,
			Workload: r.Report.Workload, Seeds: r.Report.Seeds, Findings: r.Report.Findings, Remarks: append([]string{}, r.Report.Remarks...),
		}
		if whole {
			x.Tables, x.Plots = r.Report.Tables, r.Report.Plots
		}
		a.Runs = append(a.Runs, x)
	}
	return a
}

// runText is what people see: a row for each claim.
func runText(runs []lab.Run, width int) string {
	var b strings.Builder
	for i, r := range runs {
		if i > 0 {
			b.WriteString("\n")
		}
		fmt.Fprintf(&b, "%s %s\n%s\n\n", r.Experiment.ID, r.Experiment.Title, cli.Clean(r.Report.Workload))
		g := cli.Grid{Columns: []cli.Column{{Title: "CLAIM"}, {Title: "VERDICT"}, {Title: "SOURCE", Elastic: true}, {Title: "BAND", Elastic: true}, {Title: "MEASURED", Elastic: true}}}
		for _, f := range r.Report.Findings {
			verdict := string(f.Result)
			if f.Result == lab.Fails && !f.Enforced {
				verdict += " (not enforced)"
			}
			g.Add(f.ID, verdict, f.Source, f.Band, f.Measured)
		}
		b.WriteString(g.Render(width))
		fmt.Fprintf(&b, "\n%d hold, %d do not, %d only measured.\n", r.Report.Count(lab.Holds), r.Report.Count(lab.Fails), r.Report.Count(lab.Informational))
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
