package main

import (
	"strings"
	"testing"
	"time"

	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/timestamppb"

	kithv1 "kith/proto/gen/kith/v1"
)

// What is told of a job whose host is out of reach does not go on counting, and
// never exceeds the limit.
func TestRunTimeOfAHostOutOfReach(t *testing.T) {
	t.Parallel()
	c := still(0)
	for away, want := range map[time.Duration]string{
		4 * time.Second:  "RUNNING at hpc-c, ran at least 00:00:04 of 00:00:10",
		25 * time.Second: "RUNNING at hpc-c, ran at least 00:00:10 of 00:00:10",
		-time.Second:     "RUNNING at hpc-c, ran at least 00:00:00 of 00:00:10",
	} {
		start := c.Now().Add(-time.Hour)
		j := &kithv1.Job{Walltime: durationpb.New(10 * time.Second), Status: &kithv1.JobStatus{
			State: kithv1.JobStatus_STATE_RUNNING, HostSiteId: "hpc-c", Reason: "site hpc-c cannot be reached",
			StartTime: timestamppb.New(start), HostUnreachableSince: timestamppb.New(start.Add(away)),
		}}
		if got := c.stateText(j); got != want {
			t.Errorf("%v: %q, want %q", away, got, want)
		}
		if why := c.whyText(j); !strings.Contains(why, want+": site hpc-c cannot be reached.") {
			t.Errorf("why: %q", why)
		}
		if show := c.showText(j); !strings.Contains(show, "Out of reach  hpc-c since 2026-11-21") {
			t.Errorf("show: %q", show)
		}
	}
}
