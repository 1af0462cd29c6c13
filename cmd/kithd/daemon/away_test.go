package daemon

import (
	"strings"
	"testing"

	kithv1 "kith/proto/gen/kith/v1"
)

// A job whose host cannot be reached says so, and since when, wherever its origin
// is asked about it; once the host is back it no longer does.
func TestHostOutOfReachIsTold(t *testing.T) {
	t.Parallel()
	sites := federation(t, nil, "alpha", "beta")
	a, b := sites[0], sites[1]
	release := a.busy()
	defer release()
	id := a.submit(shell("sleep 600"))
	if got := a.waitState(id, kithv1.JobStatus_STATE_RUNNING).GetStatus(); got.GetHostSiteId() != "beta" || got.GetHostUnreachableSince() != nil {
		t.Fatalf("%v", got)
	}
	if err := b.d.Close(); err != nil {
		t.Fatal(err)
	}
	var got *kithv1.JobStatus
	a.eventually("the origin says that the host is out of reach", func() bool {
		got = a.get(id).GetStatus()
		return got.GetHostUnreachableSince() != nil
	})
	if away := got.GetHostUnreachableSince().AsTime(); away.Before(got.GetStartTime().AsTime()) {
		t.Errorf("out of reach since %v, started %v", away, got.GetStartTime().AsTime())
	}
	if !strings.Contains(got.GetReason(), "site beta cannot be reached") {
		t.Errorf("reason %q", got.GetReason())
	}
	list, err := a.jobs.ListJobs(a.ctx(), &kithv1.ListJobsRequest{})
	if err != nil {
		t.Fatal(err)
	}
	for _, j := range list.GetJobs() {
		away := j.GetStatus().GetHostUnreachableSince() != nil
		if away != (j.GetId() == id) {
			t.Errorf("job %s at %s is listed with %v", j.GetId(), j.GetStatus().GetHostSiteId(), j.GetStatus().GetHostUnreachableSince())
		}
	}
	b.open()
	a.eventually("the host is back", func() bool { return a.get(id).GetStatus().GetHostUnreachableSince() == nil })
	if _, err := a.jobs.CancelJob(a.ctx(), &kithv1.CancelJobRequest{JobId: id}); err != nil {
		t.Fatal(err)
	}
	a.waitState(id, kithv1.JobStatus_STATE_CANCELLED)
}
