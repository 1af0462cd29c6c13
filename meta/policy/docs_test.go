package policy

import (
	"flag"
	"fmt"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/BurntSushi/toml"

	"kith/meta/bags"
	"kith/store"
)

var redraw = flag.Bool("rewrite", false, "draw the table of variables anew")

const page = "../../docs/policies.md"

// The page has all variables that a policy may read on which something acts.
func TestThePageHasTheVariables(t *testing.T) {
	data, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	var table strings.Builder
	table.WriteString("| variable | type | what it is |\n|---|---|---|\n")
	for _, v := range bags.Vars {
		fmt.Fprintf(&table, "| `%s` | %s | %s |\n", v.Name, v.Type, v.Sentence)
	}
	text := string(data)
	if strings.Contains(text, "\n\n"+table.String()+"\n") {
		return
	}
	if !*redraw {
		t.Fatalf("%s has not this table; draw it with -rewrite:\n%s", page, table.String())
	}
	before, after, _ := strings.Cut(text, "## Variables\n")
	if at := strings.Index(after, "\n## "); at >= 0 {
		after = after[at:]
	}
	if err := os.WriteFile(page, []byte(before+"## Variables\n\n"+table.String()+after), 0o644); err != nil {
		t.Fatal(err)
	}
}

var fence = regexp.MustCompile("(?s)```toml\n(.*?)```")

// The examples of the page are taken as they stand, and give a verdict for a host.
func TestExamplesOfThePage(t *testing.T) {
	data, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	examples := fence.FindAllStringSubmatch(string(data), -1)
	if len(examples) < 10 {
		t.Errorf("%d examples, there should be ten", len(examples))
	}
	c := New()
	want := map[int]bags.Verdict{ // of the host and the bag of scene, which is in its tail
		0: {Yes: true, Rank: 0, Most: 16},
		4: {},
	}
	for i, example := range examples {
		var texts map[string]string
		if _, err := toml.Decode(example[1], &texts); err != nil {
			t.Errorf("%s\n%v", example[1], err)
			continue
		}
		p := &store.BagPolicies{}
		for text := range bags.TextCount {
			p.Texts[text] = texts[text.String()]
			delete(texts, text.String())
		}
		j, err := c.Compile(p)
		if err != nil || len(texts) > 0 {
			t.Errorf("%s\n%v, left over %v", example[1], err, texts)
			continue
		}
		s := scene()
		if v, known := want[i]; known && j.Verdict(s) != v {
			t.Errorf("%s\ngives %+v, want %+v", example[1], j.Verdict(s), v)
		}
		for _, g := range j.Explain(s) {
			if g.Value == "" {
				t.Errorf("%s\n%+v", example[1], g)
			}
		}
	}
}
