package lab

import (
	"context"
	"errors"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// Every claim has all that a reader needs, and a name of its own.
func TestClaimsAreComplete(t *testing.T) {
	name := regexp.MustCompile(`^[A-Z][0-9]+$`)
	seen := make(map[string]bool)
	for _, e := range Experiments() {
		if e.ID == "" || e.Title == "" || e.Source == "" || e.Seeds < 1 || e.Run == nil || len(e.Claims) == 0 {
			t.Errorf("experiment %q lacks something", e.ID)
		}
		for _, c := range e.Claims {
			if !name.MatchString(c.ID) || seen[c.ID] || c.ID == e.ID {
				t.Errorf("experiment %s: claim %q is no name or not the only one", e.ID, c.ID)
			}
			seen[c.ID] = true
			if c.Statement == "" || c.Source == "" || c.Band == "" || c.Kind == "" {
				t.Errorf("claim %s lacks something: %+v", c.ID, c)
			}
		}
	}
}

func TestSelect(t *testing.T) {
	describe := func(list []Selection) string {
		var words []string
		for _, s := range list {
			words = append(words, s.Experiment.ID+":"+strings.Join(s.Claims, "+"))
		}
		return strings.Join(words, " ")
	}
	for _, c := range []struct{ words, want string }{
		{"001", "001:"}, {"C6", "001:C6"}, {"c6 C7 C6", "001:C6+C7"}, {"C6 001", "001:"}, {"001 C6", "001:"},
	} {
		got, err := Select(strings.Fields(c.words))
		if err != nil || describe(got) != c.want {
			t.Errorf("%s: %s (%v), want %s", c.words, describe(got), err, c.want)
		}
	}
	if all, err := Select(nil); err != nil || len(all) != len(Experiments()) {
		t.Errorf("without words: %s, %v", describe(all), err)
	}
	for _, word := range []string{"C99", "1", "", "claim"} {
		if _, err := Select([]string{word}); !errors.Is(err, ErrUnknown) || !strings.Contains(err.Error(), "001") {
			t.Errorf("%q: %v", word, err)
		}
	}
}

// Execute returns what was wanted in the order of the claims, with their texts,
// and does not let an experiment pass over one.
func TestExecute(t *testing.T) {
	claims := []Claim{{ID: "A1", Statement: "one", Enforced: true}, {ID: "A2", Statement: "two"}, {ID: "A3", Statement: "three"}}
	e := Experiment{ID: "x", Seeds: 2, Claims: claims, Run: func(_ context.Context, env *Env) (*Report, error) {
		r := &Report{}
		r.Find(Finding{Claim: Claim{ID: "A3"}, Verdict: Holds})
		r.Find(Finding{Claim: Claim{ID: "A1", Enforced: false}, Verdict: Fails})
		return r, nil
	}}
	r, err := Execute(t.Context(), Selection{Experiment: e, Claims: []string{"A3", "A1"}}, Env{FirstSeed: 5})
	if err != nil {
		t.Fatal(err)
	}
	if len(r.Findings) != 2 || r.Findings[0].Statement != "one" || r.Findings[1].Statement != "three" || !slices.Equal(r.Seeds, []uint64{5, 6}) {
		t.Errorf("%+v", r)
	}
	if !r.Failed() || r.Count(Holds) != 1 || !r.Findings[0].Failed() || r.Findings[1].Failed() {
		t.Errorf("failed %t, %d hold", r.Failed(), r.Count(Holds))
	}
	if _, err := Execute(t.Context(), Selection{Experiment: e}, Env{}); err == nil || !strings.Contains(err.Error(), "A2") {
		t.Errorf("a claim was passed over: %v", err)
	}
}
