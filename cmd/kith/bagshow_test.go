package main

import (
	"fmt"
	"strings"
	"testing"

	kithv1 "kith/proto/gen/kith/v1"
	"kith/store"
)

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
