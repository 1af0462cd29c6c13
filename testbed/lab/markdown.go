package lab

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"kith/testbed/report"
)

// Markdown writes the page docs/reproduction.md: all statements of the runs, those
// of one experiment together, with the results side by side. images is the
// folder of the plots as seen from the page, which are files of the names that
// [Run.PlotFile] returns.
func Markdown(w io.Writer, runs []Run, images string) error {
	d := &document{images: images}
	d.printf("# What holds of the papers\n\n")
	d.printf("This page is written by `kith-lab run --markdown`; do not edit it. Every claim of the sources is measured with the engines that\n" +
		"`kithd` runs, in virtual time. A claim holds if what was measured lies in the band of its specification. Bands are not moved to fit:\n" +
		"what does not hold is listed first, with what we think is the reason. Logs of jobs are those of the\n" +
		"[Parallel Workloads Archive](https://www.cs.huji.ac.il/labs/parallel/workload/), under its file names.\n\n")
	d.summary(runs)
	d.failures(runs)
	for _, group := range byExperiment(runs) {
		d.experiment(group)
	}
	_, err := io.WriteString(w, d.b.String())
	return err
}

// byExperiment puts runs of one experiment together, in order.
func byExperiment(runs []Run) [][]Run {
	var groups [][]Run
	for _, r := range runs {
		i := slices.IndexFunc(groups, func(g []Run) bool { return g[0].Experiment.ID == r.Experiment.ID })
		if i < 0 {
			groups = append(groups, nil)
			i = len(groups) - 1
		}
		groups[i] = append(groups[i], r)
	}
	return groups
}

// document is a page under way.
type document struct {
	b      strings.Builder
	images string
}

func (d *document) printf(format string, args ...any) { fmt.Fprintf(&d.b, format, args...) }

// summary counts results.
func (d *document) summary(runs []Run) {
	t := report.Table{Columns: []report.Column{
		{Title: "experiment"}, {Title: "jobs"}, {Title: "hold", Right: true}, {Title: "do not", Right: true}, {Title: "only measured", Right: true}, {Title: "which do not"},
	}}
	for i := range runs {
		r := &runs[i]
		t.Add(r.Experiment.ID+" "+r.Experiment.Title, r.jobs(), fmt.Sprint(r.Report.Count(Holds)), fmt.Sprint(r.Report.Count(Fails)),
			fmt.Sprint(r.Report.Count(Informational)), strings.Join(r.having(Fails), ", "))
	}
	d.printf("%s\n", t.Markdown())
}

// failures lists what does not hold.
func (d *document) failures(runs []Run) {
	d.printf("## What does not hold\n\n")
	any := false
	for i := range runs {
		for k := range runs[i].Report.Findings {
			f := &runs[i].Report.Findings[k]
			if f.Result != Fails {
				continue
			}
			any = true
			d.printf("- **%s**, %s: %s Band: %s. Measured: %s.", f.ID, plain(runs[i].jobs()), plain(f.Text), plain(f.Band), plain(f.Measured))
			for _, text := range []string{f.Differs, f.Note} {
				if text != "" {
					d.printf(" %s", plain(text))
				}
			}
			d.printf("\n")
		}
	}
	if !any {
		d.printf("Everything holds.\n")
	}
	d.printf("\n")
	d.differences(runs)
}

// differences lists where the source says something else although the band is met.
func (d *document) differences(runs []Run) {
	any := false
	for i := range runs {
		for k := range runs[i].Report.Findings {
			f := &runs[i].Report.Findings[k]
			if f.Differs == "" || f.Result == Fails {
				continue
			}
			if !any {
				any = true
				d.printf("## Within the band, but not as the source has it\n\nBands allow for other workloads than the source's, which is not to be had. These claims hold by their bands, and still:\n\n")
			}
			d.printf("- **%s**, %s: %s\n", f.ID, plain(runs[i].jobs()), plain(f.Differs))
		}
	}
	if any {
		d.printf("\n")
	}
}

// experiment writes all statements of one experiment.
func (d *document) experiment(runs []Run) {
	e := &runs[0].Experiment
	d.printf("## %s: %s\n\nSource: %s.\n\n", e.ID, e.Title, plain(e.Source))
	for i := range runs {
		d.printf("- *%s* (`%s`): %s.\n", plain(runs[i].jobs()), runs[i].Command, plain(runs[i].Report.Workload))
	}
	d.printf("\n")
	var remarks []string
	for i := range runs {
		for _, text := range runs[i].Report.Remarks {
			if !slices.Contains(remarks, text) {
				remarks = append(remarks, text)
			}
		}
	}
	for _, text := range remarks {
		d.printf("%s\n\n", plain(text))
	}
	d.printf("### Claims of %s\n\n", e.ID)
	for _, c := range e.Statements {
		d.statement(&c, runs)
	}
	d.printf("\n")
	d.figures(runs)
}

// statement writes a statement with what each run found, if any looked.
func (d *document) statement(c *Statement, runs []Run) {
	first := true
	for i := range runs {
		k := slices.IndexFunc(runs[i].Report.Findings, func(f Finding) bool { return f.ID == c.ID })
		if k < 0 {
			continue
		}
		if first {
			first = false
			enforced := ""
			if !c.Enforced {
				enforced = " (not enforced)"
			}
			d.printf("- **%s** %s The source: %s. Band: %s%s.\n", c.ID, plain(c.Text), plain(c.Source), plain(c.Band), enforced)
		}
		f := &runs[i].Report.Findings[k]
		d.printf("  - %s: **%s** – %s.", plain(runs[i].jobs()), f.Result, plain(f.Measured))
		if f.Note != "" && f.Result != Fails { // else it stands above
			d.printf(" %s", plain(f.Note))
		}
		d.printf("\n")
	}
}

// figures writes tables and plots, those of the same name together.
func (d *document) figures(runs []Run) {
	for i := range runs {
		for k := range runs[i].Report.Tables {
			t := &runs[i].Report.Tables[k]
			d.printf("### %s: %s\n\n", plain(t.Title), plain(runs[i].jobs()))
			if t.Caption != "" {
				d.printf("%s\n\n", plain(t.Caption))
			}
			d.printf("%s\n", t.Markdown())
		}
	}
	var done []string
	for i := range runs {
		for k := range runs[i].Report.Plots {
			p := &runs[i].Report.Plots[k]
			if slices.Contains(done, p.Name) {
				continue
			}
			done = append(done, p.Name)
			d.printf("### %s\n\n", plain(p.Title))
			if p.Caption != "" {
				d.printf("%s\n\n", plain(p.Caption))
			}
			for n := i; n < len(runs); n++ {
				for m := range runs[n].Report.Plots {
					if q := &runs[n].Report.Plots[m]; q.Name == p.Name {
						d.printf("![%s, %s](%s/%s)\n\n", plain(q.Title), plain(runs[n].jobs()), d.images, runs[n].PlotFile(q))
					}
				}
			}
		}
	}
}

// plain keeps a text from being taken for markup.
func plain(s string) string {
	return strings.NewReplacer("<", "&lt;", ">", "&gt;", "*", `\*`, "_", `\_`, "[", `\[`, "]", `\]`, "\n", " ").Replace(s)
}
