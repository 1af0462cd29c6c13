package lab

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"kith/testbed/report"
)

// Run is an experiment that was carried out with the jobs of one source.
type Run struct {
	Experiment Experiment
	// Trace names the log, "" for generated jobs.
	Trace string
	// Command is the command line that does the same again.
	Command string
	Report  *Report
}

// Refresh gives the findings of an earlier run the words that the statements have
// now. It returns an error if a statement is gone or has another band or another
// weight: then the result is not about it.
func (r *Run) Refresh() error {
	for i := range r.Report.Findings {
		f := &r.Report.Findings[i]
		k := slices.IndexFunc(r.Experiment.Statements, func(c Statement) bool { return c.ID == f.ID })
		if k < 0 {
			return fmt.Errorf("experiment %s, statement %s: %w", r.Experiment.ID, f.ID, ErrUnknown)
		}
		c := r.Experiment.Statements[k]
		if c.Band != f.Band || c.Enforced != f.Enforced {
			return fmt.Errorf("experiment %s, statement %s: its band was %q and is %q now: run it again: %w", r.Experiment.ID, f.ID, f.Band, c.Band, ErrStale)
		}
		if f.Result != Holds && f.Result != Fails && f.Result != Informational {
			return fmt.Errorf("experiment %s, statement %s: the report has no result for it (%q): run it again: %w", r.Experiment.ID, f.ID, f.Result, ErrStale)
		}
		f.Statement = c
	}
	return nil
}

// jobs names the source of the jobs for people.
func (r *Run) jobs() string {
	if r.Trace == "" {
		return "generated jobs"
	}
	return r.Trace
}

// slug is the anchor of the run on a page, and the end of names of its files.
func (r *Run) slug() string {
	if r.Trace == "" {
		return "generated"
	}
	return slugOf(r.Trace)
}

var notInSlug = regexp.MustCompile(`[^a-z0-9]+`)

// slugOf turns a name into lower case letters, digits and single hyphens.
func slugOf(name string) string {
	name = strings.ToLower(name)
	for _, end := range []string{".gz", ".swf", ".txt"} {
		name = strings.TrimSuffix(name, end)
	}
	return strings.Trim(notInSlug.ReplaceAllString(name, "-"), "-")
}

// PlotFile returns the name of the file for a plot of the run.
func (r *Run) PlotFile(p *report.Plot) string { return p.Name + "-" + r.slug() + ".svg" }

// having are the ids of the findings with the result.
func (r *Run) having(v Result) []string {
	var list []string
	for i := range r.Report.Findings {
		if r.Report.Findings[i].Result == v {
			list = append(list, r.Report.Findings[i].ID)
		}
	}
	return list
}

// Failed returns the ids of the statements with an enforced band that fail, each
// with the jobs it fails with.
func Failed(runs []Run) []string {
	var list []string
	for i := range runs {
		for k := range runs[i].Report.Findings {
			if f := &runs[i].Report.Findings[k]; f.Failed() {
				list = append(list, fmt.Sprintf("%s (%s)", f.ID, runs[i].jobs()))
			}
		}
	}
	return list
}

// Page puts runs on one page.
func Page(runs []Run) *report.Page {
	p := &report.Page{
		Title: "What holds of the papers",
		Lead:  []string{"Every statement of the sources, measured with the engines that kithd runs, in virtual time. A statement holds if what was measured lies in the band of its specification; bands are not moved to fit."},
		Foot:  "Made by " + strings.Join(commands(runs), "; ") + ".",
	}
	for i := range runs {
		r := &runs[i]
		title := fmt.Sprintf("%s, %s", r.Experiment.ID, r.jobs())
		holds, fails := r.Report.Count(Holds), r.having(Fails)
		figure := report.Figure{Label: title, Value: fmt.Sprintf("%d of %d hold", holds, holds+len(fails)), Tone: report.Good}
		if len(fails) > 0 {
			figure.Hint, figure.Tone = strings.Join(fails, ", ")+" do not", report.Plain
			if len(fails) == 1 {
				figure.Hint = fails[0] + " does not"
			}
		}
		p.Figures = append(p.Figures, figure)
		s := report.Section{
			Name: slugOf(r.Experiment.ID) + "-" + r.slug(), Title: fmt.Sprintf("%s %s: %s", r.Experiment.ID, r.Experiment.Title, r.jobs()),
			Texts:  append([]string{"Source: " + r.Experiment.Source + ".", r.Report.Workload + "."}, r.Report.Remarks...),
			Tables: append([]report.Table{r.statements()}, r.Report.Tables...), Plots: r.Report.Plots,
		}
		p.Sections = append(p.Sections, s)
	}
	return p
}

// commands are the command lines of runs.
func commands(runs []Run) []string {
	var list []string
	for i := range runs {
		list = append(list, runs[i].Command)
	}
	return list
}

// statements is the table of findings.
func (r *Run) statements() report.Table {
	t := report.Table{Name: "statements", Title: "Statements", Columns: []report.Column{
		{Title: ""}, {Title: "statement"}, {Title: "the source says"}, {Title: "band"}, {Title: "measured"}, {Title: "result"},
	}}
	for i := range r.Report.Findings {
		f := &r.Report.Findings[i]
		band, measured := f.Band, f.Measured
		if !f.Enforced {
			band += " (not enforced)"
		}
		for _, text := range []string{f.Differs, f.Note} {
			if text != "" {
				measured = strings.TrimSuffix(measured, ".") + ". " + text
			}
		}
		t.AddCells(
			report.Cell{Text: f.ID}, report.Cell{Text: f.Text}, report.Cell{Text: f.Source}, report.Cell{Text: band},
			report.Cell{Text: measured}, report.Cell{Text: string(f.Result), Tone: f.Result.Tone()})
	}
	return t
}
