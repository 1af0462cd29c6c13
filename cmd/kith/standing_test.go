package main

import (
	"testing"

	"google.golang.org/protobuf/types/known/timestamppb"

	kithv1 "kith/proto/gen/kith/v1"
)

// A host that is held back is shown with what is known of it; others are not.
func TestSitesTellOfHeldBackHosts(t *testing.T) {
	t.Parallel()
	now := timestamppb.Now()
	site := func(h *kithv1.HostStanding) *kithv1.Site {
		return &kithv1.Site{LoadTime: now, Hosts: []*kithv1.HostStanding{h, {Node: "n2", ErrorRate: 0.1}}}
	}
	for want, h := range map[string]*kithv1.HostStanding{
		"": {ErrorRate: 0.9},
		"held back: error rate 0.94, 3 done and 21 failed of late, gets a task now and then": {HeldBack: true, ErrorRate: 0.94, RecentDone: 3, RecentFailed: 20.6, Quota: 0.2, NextProbeTime: now},
		"n1 is held back: error rate 0.40, 30 done and 9 failed of late, gets 2 at once":     {Node: "n1", HeldBack: true, ErrorRate: 0.4, RecentDone: 30, RecentFailed: 9, Quota: 2},
	} {
		if got := siteNote(site(h)); got != want {
			t.Errorf("%q, expected %q", got, want)
		}
	}
}
