package report

import (
	"bytes"
	"errors"
	"regexp"
	"strings"
	"testing"
)

func samplePage() *Page {
	t := Table{Name: "t", Title: "A table", Columns: []Column{{Title: "name"}, {Title: "value (s)", Right: true}}}
	t.Add("plain", "1")
	t.AddCells(Cell{Text: "<script>alert(1)</script> | *x*", Tone: Bad}, Cell{Text: "2", Tone: Good})
	return &Page{
		Title: "A <b>page</b>", Lead: []string{"Lead."}, Figures: []Figure{{Label: "hold", Value: "3", Hint: "of 4", Tone: Good}},
		Sections: []Section{{Name: "one", Title: "One", Tables: []Table{t}, Plots: samples()}, {Name: "two", Title: "Two", Plots: samples()[:1]}},
		Foot:     "foot",
	}
}

// A page needs nothing from elsewhere, escapes what it is given and gives no
// name twice.
func TestWriteHTML(t *testing.T) {
	var b bytes.Buffer
	if err := samplePage().WriteHTML(&b); err != nil {
		t.Fatal(err)
	}
	page := b.String()
	for _, m := range regexp.MustCompile(`(?:href|src)="([^"]*)"|url\(([^)]*)\)|@import`).FindAllStringSubmatch(page, -1) {
		if target := m[1] + m[2]; !strings.HasPrefix(target, "#") {
			t.Errorf("the page refers to %q", m[0])
		}
	}
	if strings.Contains(page, "<script") || strings.Contains(page, "<b>page") {
		t.Error("texts are taken for markup")
	}
	seen := make(map[string]bool)
	for _, m := range regexp.MustCompile(` id="([^"]*)"`).FindAllStringSubmatch(page, -1) {
		if seen[m[1]] {
			t.Errorf("the name %s is given twice", m[1])
		}
		seen[m[1]] = true
	}
	for _, m := range regexp.MustCompile(`(?:href="#|url\(#)([^")]*)`).FindAllStringSubmatch(page, -1) {
		if !seen[m[1]] {
			t.Errorf("#%s leads nowhere", m[1])
		}
	}
	for _, want := range []string{"prefers-color-scheme:dark", "✗ &lt;script&gt;", `class="right good"`, "of 4", "foot"} {
		if !strings.Contains(page, want) {
			t.Errorf("the page lacks %q", want)
		}
	}
}

func TestWriteHTMLBadPlot(t *testing.T) {
	p := samplePage()
	p.Sections[1].Plots[0].Bars = nil
	var b bytes.Buffer
	if err := p.WriteHTML(&b); !errors.Is(err, ErrPlot) || b.Len() > 0 {
		t.Errorf("error %v after %d bytes", err, b.Len())
	}
}

func TestMarkdown(t *testing.T) {
	table := samplePage().Sections[0].Tables[0]
	want := "| name | value (s) |\n|---|---:|\n| plain | 1 |\n" + `| **&lt;script&gt;alert(1)&lt;/script&gt; \| \*x\*** | 2 |` + "\n"
	if got := table.Markdown(); got != want {
		t.Errorf("got\n%swant\n%s", got, want)
	}
}
