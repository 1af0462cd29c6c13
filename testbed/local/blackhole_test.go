package local_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"google.golang.org/protobuf/types/known/durationpb"

	kithv1 "kith/proto/gen/kith/v1"
	"kith/testbed/local"
)

// The policies of the source's Figure 3 on real sites, of which one fails every task at once
// (GridBot): the bag is done by the others, the black hole is held back with its numbers, and
// an explanation says for each site what each policy gave and which part of it decided.
func TestBlackHoleUnderPolicies(t *testing.T) {
	const tasks, hole = 120, "c"
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
	defer cancel()
	fed := oneEach(ctx, t, 2, "a", "b", hole)
	home := fed.Nodes()[0]
	policies := &kithv1.BagPolicies{
		Requirements: `!bag.tail ? true : host.site.matches("^[ab]$") && host.error_rate < 0.1`,
		Rank:         "!bag.tail ? 1 : host.recent_done",
		Concurrency:  "2 * host.places",
		Deadline:     "2 * host.places * 2000",
		Replicate:    "task.replicas < 3 && replicas[0].error_rate > 0.1",
	}
	if r, err := home.Bags.CheckPolicies(ctx, &kithv1.CheckPoliciesRequest{Policies: policies}); err != nil || value(r, hole, "requirements") != "true !bag.tail" {
		t.Errorf("before it is submitted: %v, %v", r, err)
	}
	submitted, err := home.Bags.SubmitBag(ctx, &kithv1.SubmitBagRequest{Bag: &kithv1.Bag{
		Indices: "1-120", Retries: 5, MaxReplicas: 2, TailAt: 20, Policies: policies,
		Job: &kithv1.Job{
			Command: []string{"/bin/sh", "-c", `[ "$KITH_SITE" != ` + hole + ` ] || { echo no such library >&2; exit 127; }; sleep 0.5`}, Processors: 1, Walltime: durationpb.New(time.Minute),
		},
	}})
	if err != nil {
		t.Fatal(err)
	}
	id := submitted.GetBagId()
	held := false
	var status *kithv1.BagStatus
	for status.GetState() != kithv1.BagStatus_STATE_COMPLETED {
		if ctx.Err() != nil || status.GetState() == kithv1.BagStatus_STATE_FAILED {
			t.Fatalf("%v", status)
		}
		time.Sleep(100 * time.Millisecond)
		r, err := home.Bags.GetBag(ctx, &kithv1.GetBagRequest{BagId: id})
		if err != nil {
			t.Fatal(err)
		}
		status = r.GetBag().GetStatus()
		held = held || standing(ctx, t, home, hole).GetHeldBack()
	}
	if s := standing(ctx, t, home, hole); !held || s.GetErrorRate() < 0.3 || s.GetRecentFailed() == 0 || s.GetRecentFailed() > tasks/3 {
		t.Errorf("the black hole was held back: %v; it stands as %v", held, s)
	}
	r, err := home.Bags.CheckPolicies(ctx, &kithv1.CheckPoliciesRequest{BagId: id})
	if err != nil {
		t.Fatal(err)
	}
	for site, want := range map[string]string{"b": "true ", hole: `false host.site.matches("^[ab]$")`} {
		if got := value(r, site, "requirements"); !strings.HasPrefix(got, want) {
			t.Errorf("in the tail %s gets %q, want %q", site, got, want)
		}
	}
}

// value is what a policy gave for a site, and the part that decided.
func value(r *kithv1.CheckPoliciesResponse, site, policy string) string {
	for _, h := range r.GetHosts() {
		for _, v := range h.GetValues() {
			if h.GetSiteId() == site && v.GetPolicy() == policy {
				return v.GetValue() + " " + v.GetPart()
			}
		}
	}
	return ""
}

// standing is how the only host of a site stands with another one.
func standing(ctx context.Context, t *testing.T, at *local.Node, site string) *kithv1.HostStanding {
	t.Helper()
	r, err := at.Sites.ListSites(ctx, &kithv1.ListSitesRequest{})
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range r.GetSites() {
		if s.GetId() == site && len(s.GetHosts()) > 0 {
			return s.GetHosts()[0]
		}
	}
	return nil
}
