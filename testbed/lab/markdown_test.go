package lab

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"kith/testbed/report"
)

// sampleRuns are an experiment with generated jobs and with a log.
func sampleRuns() []Run {
	e := Experiment{ID: "x", Title: "A title", Source: "A source", Statements: []Statement{
		{ID: "X1", Text: "One holds.", Source: "1 < 2", Band: "a | b", Enforced: true}, {ID: "X2", Text: "Two fails.", Source: "*", Band: "c"},
	}}
	r := func(v Result) *Report {
		return &Report{Workload: "some jobs", Remarks: []string{"A remark."}, Findings: []Finding{
			{Statement: e.Statements[0], Measured: "1.5", Result: v, Note: "For a reason.", Differs: "It differs."}, {Statement: e.Statements[1], Measured: "7", Result: Fails},
		}, Plots: []report.Plot{{Name: "x-plot", Title: "A plot", Caption: "To look at.", Series: []report.Series{{Style: report.Line, X: []float64{1}, Y: []float64{2}}}}}}
	}
	return []Run{{Experiment: e, Command: "kith-lab run x", Report: r(Holds)}, {Experiment: e, Trace: "My LOG.swf.gz", Report: r(Fails)}}
}

func TestMarkdownPage(t *testing.T) {
	var b strings.Builder
	if err := Markdown(&b, sampleRuns(), "images/lab"); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"- *generated jobs* (`kith-lab run x`): some jobs.", "| x A title | My LOG.swf.gz | 0 | 2 | 0 | X1, X2 |", "- **X1**, My LOG.swf.gz: One holds. Band: a | b. Measured: 1.5. It differs. For a reason.",
		"## Within the band, but not as the source has it", "- **X1**, generated jobs: It differs.\n",
		"- **X2** Two fails. The source: \\*. Band: c (not enforced).", "  - generated jobs: **holds** – 1.5. For a reason.",
		"![A plot, generated jobs](images/lab/x-plot-generated.svg)", "![A plot, My LOG.swf.gz](images/lab/x-plot-my-log.svg)",
	} {
		if !strings.Contains(b.String(), want) {
			t.Errorf("the page lacks %q:\n%s", want, b.String())
		}
	}
	if n := strings.Count(b.String(), "A remark."); n != 1 {
		t.Errorf("one remark of two runs is written %d times", n)
	}
}

func TestPageOfRuns(t *testing.T) {
	runs := sampleRuns()
	p := Page(runs)
	if len(p.Sections) != 2 || p.Sections[0].Name == p.Sections[1].Name || p.Figures[0].Value != "1 of 2 hold" || p.Figures[1].Hint != "X1, X2 do not" {
		t.Errorf("%+v", p.Figures)
	}
	var b strings.Builder
	if err := p.WriteHTML(&b); err != nil || !strings.Contains(b.String(), "One holds.") {
		t.Errorf("%v", err)
	}
	if failed := Failed(runs); !slices.Equal(failed, []string{"X1 (My LOG.swf.gz)"}) {
		t.Errorf("failed %v", failed)
	}
}

// What an earlier run found is shown only if it is about the statement of today.
func TestRefresh(t *testing.T) {
	for _, c := range []struct {
		name   string
		change func(f *Finding)
		want   error
	}{
		{"the same", func(*Finding) {}, nil},
		{"other words", func(f *Finding) { f.Text = "Old words." }, nil},
		{"another band", func(f *Finding) { f.Band = "b" }, ErrStale},
		{"another weight", func(f *Finding) { f.Enforced = false }, ErrStale},
		{"no result", func(f *Finding) { f.Result = "" }, ErrStale},
		{"no such statement", func(f *Finding) { f.ID = "X9" }, ErrUnknown},
	} {
		r := sampleRuns()[0]
		c.change(&r.Report.Findings[0])
		if err := r.Refresh(); !errors.Is(err, c.want) {
			t.Errorf("%s: %v, want %v", c.name, err, c.want)
		}
		if c.want == nil && r.Report.Findings[0].Text != "One holds." {
			t.Errorf("%s: keeps the words %q", c.name, r.Report.Findings[0].Text)
		}
	}
}
