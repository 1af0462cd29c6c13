package policy

import (
	"strings"
	"testing"

	"kith/meta/bags"
	"kith/store"
)

// A text that would take long to compile is refused, with the remedy; one at the bound is taken.
func TestTextsAreBoundedInParts(t *testing.T) {
	c := New()
	list := func(element string, n int) string {
		return "1 in [" + strings.TrimSuffix(strings.Repeat(element+",", n), ",") + "]"
	}
	const parts, lists, nests = "give at most 500", "lists nest too deep: at most 4", "nests too deep: at most 64"
	for _, e := range []struct{ source, want string }{
		{list("1", maxParts-3), ""},
		{list("1", maxParts-2), parts},
		{list("-1", 600), parts},
		{strings.Repeat("1<2&&", 600) + "true", parts},
		{strings.Repeat("[1].exists(x,x>0)||", 100) + "true", parts},
		{"[[[[1]]]] == []", ""},
		{"[[[[[1]]]]] == []", lists},
		{"[true ? [{1: [{1: [1]}]}] : []] == []", lists},
		{"[" + strings.Repeat(strings.Repeat("[", 30)+strings.Repeat("]", 30)+",", 15) + "[]] == []", lists},
		{"0 < " + strings.Repeat("1 + ", 100) + "1", nests},
		{strings.Repeat("(", 100) + "true" + strings.Repeat(")", 100), nests},
		{strings.Repeat("a.", 100) + "a", nests},
	} {
		p, wrong := c.compile(bags.Requirements, e.source)
		switch {
		case e.want == "" && p == nil:
			t.Errorf("%.60s: %v", e.source, wrong)
		case e.want != "" && (len(wrong) != 1 || !strings.Contains(wrong[0].What, e.want)):
			t.Errorf("%.60s: %v, want %q", e.source, wrong, e.want)
		case p != nil && partsOf(p.checked) > 2*maxParts:
			t.Errorf("%.60s: %d parts", e.source, partsOf(p.checked))
		}
	}
}

// Texts that are full of mistakes are not all looked at.
func TestMistakesAreBounded(t *testing.T) {
	p := &store.BagPolicies{}
	for i := range p.Texts {
		p.Texts[i] = "[" + strings.Repeat("a,", 400) + "1] == []"
	}
	_, err := New().Compile(p)
	if err == nil || strings.Count(err.Error(), "undeclared reference") != maxMistakes {
		t.Error(err)
	}
}
