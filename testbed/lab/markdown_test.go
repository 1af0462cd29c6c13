package lab

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"kith/testbed/report"
)

// sampleRuns are an experiment with generated jobs and with a log.
func sampleRuns() []Run {
	e := Experiment{ID: "x", Title: "A title", Source: "A source", Claims: []Claim{
		{ID: "X1", Statement: "One holds.", Source: "1 < 2", Band: "a | b", Enforced: true}, {ID: "X2", Statement: "Two fails.", Source: "*", Band: "c"},
	}}
	r := func(v Verdict) *Report {
		return &Report{Workload: "some jobs", Remarks: []string{"A remark."}, Findings: []Finding{
			{Claim: e.Claims[0], Measured: "1.5", Verdict: v, Note: "For a reason.", Differs: "It differs."}, {Claim: e.Claims[1], Measured: "7", Verdict: Fails},
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

// docs/reproduction.md is of these experiments: their claims in these words,
// a verdict for each with generated jobs, and the plots that it shows. Its
// numbers are those of the run that wrote it.
func TestReproductionPage(t *testing.T) {
	const docs = "../../docs"
	text, err := os.ReadFile(filepath.Join(docs, "reproduction.md"))
	if err != nil {
		t.Fatal(err)
	}
	page := string(text)
	for _, e := range Experiments() {
		if !strings.Contains(page, "\n## "+e.ID+": "+e.Title+"\n") {
			t.Errorf("there is no section on experiment %s %q; run kith-lab run --markdown again", e.ID, e.Title)
			continue
		}
		for _, c := range e.Claims {
			d := &document{}
			d.claim(&c, []Run{{Report: &Report{Findings: []Finding{{Claim: c}}}}})
			line, _, _ := strings.Cut(d.b.String(), "\n")
			_, rest, found := strings.Cut(page, "\n"+line+"\n")
			if !found {
				t.Errorf("claim %s is not on the page in these words: %s", c.ID, line)
				continue
			}
			if !regexp.MustCompile(`^  - [^\n]*: \*\*(holds|fails|informational)\*\* – [^\n]+\.`).MatchString(rest) {
				t.Errorf("claim %s has no verdict on the page", c.ID)
			}
		}
	}
	shown := regexp.MustCompile(`\]\(images/lab/([^)]*)\)`).FindAllStringSubmatch(page, -1)
	var names []string
	for _, m := range shown {
		names = append(names, m[1])
		if _, err := os.Stat(filepath.Join(docs, "images", "lab", m[1])); err != nil {
			t.Errorf("the page shows %s, which is not there", m[1])
		}
	}
	files, err := filepath.Glob(filepath.Join(docs, "images", "lab", "*.svg"))
	if err != nil || len(files) == 0 {
		t.Fatalf("no plots: %v", err)
	}
	for _, f := range files {
		if !slices.Contains(names, filepath.Base(f)) {
			t.Errorf("%s is on no page", f)
		}
	}
}
