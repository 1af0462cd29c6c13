package main

import (
	"testing"

	kithv1 "kith/proto/gen/kith/v1"
)

// A task that succeeded and lost its output is not one that did well.
func TestTaskThatLostItsOutput(t *testing.T) {
	task := &kithv1.Task{Index: 7, State: kithv1.Task_STATE_COMPLETED, Ending: kithv1.Task_ENDING_SUCCESS, SiteId: "uni-b", OutputLost: true}
	if got := taskLine("uni-a.2.1", task); got != "uni-a.2.1_7 COMPLETED (exit code 0, output lost) at uni-b\n" {
		t.Errorf("%q", got)
	}
	if got := taskExitCode(task); got != exitOutputLost {
		t.Errorf("exit code %d, want %d", got, exitOutputLost)
	}
	task.OutputLost = false
	if got := taskExitCode(task); got != 0 {
		t.Errorf("exit code %d, want 0", got)
	}
}
