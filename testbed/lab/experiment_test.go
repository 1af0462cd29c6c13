package lab

import (
	"context"
	"slices"
	"strings"
	"testing"
)

// Execute returns what was wanted in the order of the statements, with their texts,
// and does not let an experiment pass over one.
func TestExecute(t *testing.T) {
	claims := []Statement{{ID: "A1", Text: "one", Enforced: true}, {ID: "A2", Text: "two"}, {ID: "A3", Text: "three"}}
	e := Experiment{ID: "x", Seeds: 2, Statements: claims, Run: func(_ context.Context, env *Env) (*Report, error) {
		r := &Report{}
		r.Find(Finding{Statement: Statement{ID: "A3"}, Result: Holds})
		r.Find(Finding{Statement: Statement{ID: "A1", Enforced: false}, Result: Fails})
		return r, nil
	}}
	r, err := Execute(t.Context(), Selection{Experiment: e, Statements: []string{"A3", "A1"}}, Env{FirstSeed: 5})
	if err != nil {
		t.Fatal(err)
	}
	if len(r.Findings) != 2 || r.Findings[0].Text != "one" || r.Findings[1].Text != "three" || !slices.Equal(r.Seeds, []uint64{5, 6}) {
		t.Errorf("%+v", r)
	}
	if !r.Failed() || r.Count(Holds) != 1 || !r.Findings[0].Failed() || r.Findings[1].Failed() {
		t.Errorf("failed %t, %d hold", r.Failed(), r.Count(Holds))
	}
	if _, err := Execute(t.Context(), Selection{Experiment: e}, Env{}); err == nil || !strings.Contains(err.Error(), "A2") {
		t.Errorf("a claim was passed over: %v", err)
	}
}
