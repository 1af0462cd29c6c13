package main

import (
	"testing"

	"google.golang.org/protobuf/types/known/timestamppb"

	kithv1 "kith/proto/gen/kith/v1"
)

// What is wrong with starting jobs stands beside the site: why, where that is known.
func TestSitesTellOfStartTrouble(t *testing.T) {
	t.Parallel()
	now := timestamppb.Now()
	for want, s := range map[string]*kithv1.Site{
		"":                         {LoadTime: now},
		"starts no jobs for now":   {LoadTime: now, NotStarting: true},
		"starts no jobs: no shim":  {LoadTime: now, NotStarting: true, StartTrouble: "starts no jobs: no shim"},
		"starts one job at a time": {LoadTime: now, StartTrouble: "starts one job at a time"},
	} {
		if got := siteNote(s); got != want {
			t.Errorf("%q, expected %q", got, want)
		}
	}
}
