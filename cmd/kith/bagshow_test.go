package main

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/timestamppb"

	"kith/internal/cli"
	kithv1 "kith/proto/gen/kith/v1"
	"kith/store"
)

// What is told of a bag has the level that it is at, and why it left others.
func TestLevelsOfBags(t *testing.T) {
	at := func(seconds int64) *timestamppb.Timestamp { return &timestamppb.Timestamp{Seconds: seconds} }
	c := &client{Program: &cli.Program{Zone: time.UTC}}
	b := &kithv1.Bag{Id: "uni-a.2.1", Job: &kithv1.Job{WalltimeUnknown: true, Processors: 1}, Status: &kithv1.BagStatus{}}
	if text := c.bagWhy(b) + c.bagText(b); strings.Contains(text, "evel") {
		t.Errorf("a bag of no hierarchy:\n%s", text)
	}
	b.Status.Level = &kithv1.BagLevel{
		Level: 2, ArriveTime: at(60), BeginTime: at(70), QueueLimit: durationpb.New(2 * 60e9), RunLimit: durationpb.New(60e9),
		Demotions: []*kithv1.BagDemotion{{Time: at(60), Level: 1, ToLevel: 2, Reason: "it may wait no longer", SiteId: "beta", UsedTime: durationpb.New(30e9)}},
	}
	for _, text := range []string{c.bagWhy(b), c.bagText(b)} {
		for _, want := range []string{
			"2 since ", "stays of at most 00:02:00, of which 00:01:00 from the first task, which began ",
			"from level 1 to 2, 00:00:30 after its first task there: it may wait no longer, says site beta",
		} {
			if !strings.Contains(text, want) {
				t.Errorf("it does not say %q:\n%s", want, text)
			}
		}
	}
	if text := c.bagText(b); !strings.Contains(text, "unknown time a task, on 1 processor") {
		t.Errorf("its limit:\n%s", text)
	}
}

// Runs whose lines are beyond those that a site keeps are not told as runs that wrote none.
func TestFailuresWithMoreLinesThanAreKept(t *testing.T) {
	silent := func(code int32) *kithv1.TaskFailures {
		return &kithv1.TaskFailures{Ending: kithv1.Task_ENDING_FAILURE, ExitCode: code, Count: 5, Indices: []int32{9}}
	}
	b := &kithv1.Bag{Id: "uni-a.2.1", Status: &kithv1.BagStatus{}}
	for i := range store.MaxFailureLines {
		const others = "5  exit code 3  (others, or none)"
		b.Status.Failures = append(b.Status.Failures[:i], &kithv1.TaskFailures{
			Ending: kithv1.Task_ENDING_FAILURE, ExitCode: 3, Count: 1, ErrorLine: fmt.Sprint("line ", i),
		}, silent(3), silent(4))
		text := failureTable(b).Render(200)
		if all := i+1 == store.MaxFailureLines; strings.Contains(text, others) != all {
			t.Errorf("with %d lines:\n%s", i+1, text)
		}
		if !strings.Contains(text, "5  exit code 4  -") {
			t.Errorf("what wrote nothing:\n%s", text)
		}
	}
}
