package experiments

import (
	"errors"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"kith/testbed/lab"
)

// Every statement has all that a reader needs, and a name of its own.
func TestStatementsAreComplete(t *testing.T) {
	name := regexp.MustCompile(`^[A-Z][0-9]+$`)
	seen := make(map[string]bool)
	for _, e := range All() {
		if e.ID == "" || e.Title == "" || e.Source == "" || e.Seeds < 1 || e.Run == nil || len(e.Statements) == 0 {
			t.Errorf("experiment %q lacks something", e.ID)
		}
		for _, c := range e.Statements {
			if !name.MatchString(c.ID) || seen[c.ID] || c.ID == e.ID {
				t.Errorf("experiment %s: statement %q is no name or not the only one", e.ID, c.ID)
			}
			seen[c.ID] = true
			if c.Text == "" || c.Source == "" || c.Band == "" || c.Kind == "" {
				t.Errorf("statement %s lacks something: %+v", c.ID, c)
			}
		}
	}
}

func TestSelect(t *testing.T) {
	describe := func(list []lab.Selection) string {
		var words []string
		for _, s := range list {
			words = append(words, s.Experiment.ID+":"+strings.Join(s.Statements, "+"))
		}
		return strings.Join(words, " ")
	}
	for _, c := range []struct{ words, want string }{
		{"001", "001:"}, {"C6", "001:C6"}, {"c6 C7 C6", "001:C6+C7"}, {"C6 001", "001:"}, {"001 C6", "001:"},
	} {
		got, err := lab.Select(All(), strings.Fields(c.words))
		if err != nil || describe(got) != c.want {
			t.Errorf("%s: %s (%v), want %s", c.words, describe(got), err, c.want)
		}
	}
	if all, err := lab.Select(All(), nil); err != nil || len(all) != len(All()) {
		t.Errorf("without words: %s, %v", describe(all), err)
	}
	for _, word := range []string{"C99", "1", "", "claim"} {
		if _, err := lab.Select(All(), []string{word}); !errors.Is(err, lab.ErrUnknown) || !strings.Contains(err.Error(), "001") {
			t.Errorf("%q: %v", word, err)
		}
	}
}

// docs/reproduction.md is of these experiments: their statements in these words,
// a result for each with generated jobs, and the plots that it shows. Its
// numbers are those of the run that wrote it.
func TestReproductionPage(t *testing.T) {
	const docs = "../../../docs"
	text, err := os.ReadFile(filepath.Join(docs, "reproduction.md"))
	if err != nil {
		t.Fatal(err)
	}
	page := string(text)
	for _, e := range All() {
		if !strings.Contains(page, "\n## "+e.ID+": "+e.Title+"\n") {
			t.Errorf("there is no section on experiment %s %q; run kith-lab run --markdown again", e.ID, e.Title)
			continue
		}
		r := &lab.Report{}
		for _, x := range e.Statements {
			r.Find(lab.Finding{Statement: x})
		}
		var written strings.Builder
		if err := lab.Markdown(&written, []lab.Run{{Experiment: e, Report: r}}, ""); err != nil {
			t.Fatal(err)
		}
		for _, x := range e.Statements {
			line := regexp.MustCompile(`(?m)^- \*\*` + x.ID + `\*\* .*$`).FindString(written.String())
			_, rest, found := strings.Cut(page, "\n"+line+"\n")
			if line == "" || !found {
				t.Errorf("statement %s is not on the page in these words: %s", x.ID, line)
				continue
			}
			if !regexp.MustCompile(`^  - [^\n]*: \*\*(holds|fails|informational)\*\* – [^\n]+\.`).MatchString(rest) {
				t.Errorf("statement %s has no result on the page", x.ID)
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
