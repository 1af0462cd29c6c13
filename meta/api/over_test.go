package api

import (
	"strings"
	"testing"

	"kith/internal/job"
	"kith/meta"
	"kith/store"
)

// A job whose processes are gone is not said to run, though its state is RUNNING until
// its result comes.
func TestAJobThatIsOverSaysSo(t *testing.T) {
	view := &meta.JobView{Record: store.Job{State: job.Running, Holder: "uni-b"}}
	if got := briefStatus(view).GetReason(); got != "" {
		t.Errorf("a job that runs says %q", got)
	}
	view.Over = true
	for _, state := range []job.State{job.Running, job.Claimed, job.Cancelling} {
		view.Record.State = state
		if got := briefStatus(view).GetReason(); !strings.Contains(got, "its processes have ended; site uni-b collects its output") {
			t.Errorf("%v: it says %q", state, got)
		}
	}
	view.HostAway = 1
	view.Record.State = job.Running
	if got := briefStatus(view).GetReason(); !strings.Contains(got, "cannot be reached") {
		t.Errorf("its host is away, and it says %q", got)
	}
}
