package main

import (
	"fmt"
	"strings"
	"testing"

	kithv1 "kith/proto/gen/kith/v1"
)

// Files that a job did not declare are named, the first ten of them.
func TestUndeclaredText(t *testing.T) {
	j := &kithv1.Job{
		Id: "a.1.1", Outputs: []*kithv1.OutputFile{{Path: "out"}},
		Status: &kithv1.JobStatus{Outcome: &kithv1.Outcome{Outputs: []*kithv1.OutputInfo{{Path: "stdout"}, {Path: "out/x"}}}},
	}
	if text := undeclaredText(j); text != "" {
		t.Errorf("all are declared: %s", text)
	}
	for i := range 64_000 {
		j.Status.Outcome.Outputs = append(j.Status.Outcome.Outputs, &kithv1.OutputInfo{Path: fmt.Sprintf("other%d", i)})
	}
	text := undeclaredText(j)
	if !strings.HasSuffix(text, `"other9" and 63990 more`) || !strings.Contains(text, `"other0", `) || strings.Contains(text, `"out/x"`) {
		t.Errorf("%.300s", text)
	}
}
