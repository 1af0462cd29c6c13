package api

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"kith/internal/job"
	"kith/meta"
	kithv1 "kith/proto/gen/kith/v1"
	"kith/store"
)

// Policies are part of a bag, are replaced by those who know what they replace, and can be
// tried.
func TestPoliciesOfABag(t *testing.T) {
	s, b := serveBags(t)
	ctx := context.Background()
	bag := goodBag()
	bag.Policies = &kithv1.BagPolicies{Requirements: "host.site == 'nowhere' && bag.tasks > 1", Rank: "bag.age"}
	r, err := s.SubmitBag(ctx, &kithv1.SubmitBagRequest{Bag: bag})
	if err != nil {
		t.Fatal(err)
	}
	get := func() *kithv1.BagPolicies {
		t.Helper()
		got, err := s.GetBag(ctx, &kithv1.GetBagRequest{BagId: r.GetBagId()})
		if err != nil {
			t.Fatal(err)
		}
		return got.GetBag().GetPolicies()
	}
	first := get()
	if first.GetRequirements() != bag.GetPolicies().GetRequirements() || first.GetRank() != "bag.age" || first.GetEtag() != "0" {
		t.Errorf("%v", first)
	}
	tried, err := s.CheckPolicies(ctx, &kithv1.CheckPoliciesRequest{BagId: r.GetBagId()})
	if err != nil || len(tried.GetHosts()) != 1 {
		t.Fatal(tried, err)
	}
	if v := tried.GetHosts()[0].GetValues(); len(v) != 2 || v[0].GetPolicy() != "requirements" || v[0].GetValue() != "false" || v[0].GetPart() != `host.site == "nowhere"` {
		t.Errorf("%v", v)
	}
	set, err := s.SetBagPolicies(ctx, &kithv1.SetBagPoliciesRequest{BagId: r.GetBagId(), Policies: &kithv1.BagPolicies{Sites: "true", Etag: "0"}})
	if err != nil || set.GetEtag() != "1" {
		t.Fatal(set, err)
	}
	if p := get(); p.GetSites() != "true" || p.GetRank() != "" || p.GetEtag() != "1" {
		t.Errorf("%v", p)
	}
	if _, err := s.SetBagPolicies(ctx, &kithv1.SetBagPoliciesRequest{BagId: r.GetBagId(), Policies: first}); !errors.Is(err, meta.ErrStalePolicies) {
		t.Errorf("stale: %v", err)
	}
	_ = b
}

// The budget of a bag is told, replaced, and refused where it can be none.
func TestBudgets(t *testing.T) {
	s, b := serveBags(t)
	ctx := context.Background()
	bag := goodBag()
	bag.BudgetProcessorSeconds = 7200
	r, err := s.SubmitBag(ctx, &kithv1.SubmitBagRequest{Bag: bag})
	if err != nil {
		t.Fatal(err)
	}
	got, err := s.GetBag(ctx, &kithv1.GetBagRequest{BagId: r.GetBagId()})
	if err != nil || got.GetBag().GetBudgetProcessorSeconds() != 7200 || got.GetBag().GetStatus().GetUsedProcessorSeconds() != 0 {
		t.Errorf("%v, %v", got, err)
	}
	set, err := s.SetBagBudget(ctx, &kithv1.SetBagBudgetRequest{BagId: r.GetBagId(), BudgetProcessorSeconds: 60})
	if err != nil || set.GetBag().GetBudgetProcessorSeconds() != 60 {
		t.Errorf("%v, %v", set, err)
	}
	if acts := set.GetBag().GetStatus().GetActs(); len(acts) == 0 || acts[len(acts)-1].GetKind() != kithv1.JobAct_KIND_BUDGET {
		t.Errorf("acts %v", acts)
	}
	for _, n := range []int64{-1, store.MaxBudget + 1} {
		_, err := s.SetBagBudget(ctx, &kithv1.SetBagBudgetRequest{BagId: r.GetBagId(), BudgetProcessorSeconds: n})
		if want := fmt.Sprintf("budget_processor_seconds: %d: must be 1 to 9007199254740992 processor-seconds, or 0 for no bound", n); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%d: %v", n, err)
		}
	}
	for _, id := range []string{"nothing", "alpha.1.99"} {
		if _, err := s.SetBagBudget(ctx, &kithv1.SetBagBudgetRequest{BagId: id, BudgetProcessorSeconds: 60}); err == nil {
			t.Errorf("%q: no error", id)
		}
	}
	_ = b
}

// A bag that its budget keeps from giving tasks says so.
func TestWhyABudgetKeepsABag(t *testing.T) {
	st := store.NewState("alpha", 1)
	id := st.NextID()
	do := func(c store.Command) {
		t.Helper()
		if err := st.Apply(c); err != nil {
			t.Fatal(err)
		}
	}
	expect := func(waiting int, want string) {
		t.Helper()
		if got := explainBag(&meta.BagView{Record: *st.Bag(id), Waiting: waiting, AtSites: 1}); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
	do(store.SubmitBag{ID: id, Indices: job.FirstIndices(9), Budget: 3600, Request: job.Request{Processors: 2, Walltime: time.Hour, OnSiteLost: job.Rerun}})
	expect(9, "")
	bundle := job.AttemptID{Job: id, Number: 1}
	do(store.GrantBundle{Bundle: bundle, Site: "beta", Stamp: 1, Generation: 1, Tasks: job.TaskRange(0, 1)})
	expect(8, "its tasks at sites may use up what is left of its budget of 1 processor-hours")
	do(store.RecordResults{Bundle: bundle, Site: "beta", Batch: 1, Results: []job.TaskResult{{Kind: job.Success, Run: 30 * time.Minute}}})
	expect(8, "its budget of 1 processor-hours is used up; no task is given to a site before it is raised")
	expect(0, "")
}

// What is wrong with policies is told by field, line and column, before anything is made.
func TestPoliciesThatAreWrong(t *testing.T) {
	s, b := serveBags(t)
	for _, c := range []struct {
		p    *kithv1.BagPolicies
		want string
	}{
		{&kithv1.BagPolicies{Requirements: "host.error_rat < 1"}, "bag.policies.requirements: line 1 column 5: undeclared reference to 'host.error_rat'"},
		{&kithv1.BagPolicies{Rank: "bag.tail"}, "bag.policies.rank: line 1 column 4: this is a bool"},
		{&kithv1.BagPolicies{Deadline: "task.index"}, "bag.policies.deadline: line 1 column 5: deadline does not know task.index"},
		{&kithv1.BagPolicies{Sites: strings.Repeat("x", 64<<10)}, "bag.policies.sites: "},
		{&kithv1.BagPolicies{Sites: strings.Repeat("(", 1000) + "true" + strings.Repeat(")", 1000)}, "bag.policies.sites: the text nests too deep"},
		{&kithv1.BagPolicies{Etag: "0"}, "bag.policies.etag: is set by Kith"},
	} {
		bag := goodBag()
		bag.Policies = c.p
		for _, only := range []bool{true, false} {
			_, err := s.SubmitBag(context.Background(), &kithv1.SubmitBagRequest{Bag: bag, ValidateOnly: only})
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("%v, want %q", err, c.want)
			}
		}
	}
	if len(b.events) > 0 {
		t.Errorf("the engine heard of %d of them", len(b.events))
	}
	if _, err := s.SetBagPolicies(context.Background(), &kithv1.SetBagPoliciesRequest{BagId: "alpha.1.1", Policies: &kithv1.BagPolicies{}}); err == nil || !strings.Contains(err.Error(), "policies.etag") {
		t.Error(err)
	}
}
