package api

import (
	"context"
	"errors"
	"strings"
	"testing"

	"kith/meta"
	kithv1 "kith/proto/gen/kith/v1"
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
