package daemon

import (
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/durationpb"

	"kith/cmd/kithd/config"
	"kith/internal/job"
	kithv1 "kith/proto/gen/kith/v1"
)

// A limit is time on the clock: a faster site gives a job no less of it.
func TestWalltimeIsTheSameAtAFastSite(t *testing.T) {
	t.Parallel()
	c := testConfig(t, "alpha")
	c.Scheduler.Speed = 2
	a := startSite(t, c)
	j := shell("echo $KITH_WALLTIME_SECONDS")
	j.Walltime = durationpb.New(100 * time.Second)
	id := a.submit(j)
	a.waitState(id, completed)
	if got := a.output(id, "stdout"); got != "100\n" {
		t.Errorf("a job that asked for 100 s may run for %q seconds", got)
	}
	r, err := a.sites.GetSite(a.ctx(), &kithv1.GetSiteRequest{})
	if err != nil || r.GetSite().GetSpeed() != 2 {
		t.Errorf("the site says that its speed is %v, %v", r.GetSite().GetSpeed(), err)
	}
}

// Where a site's memory is not configured it is the machine's, and what no site
// could ever have is refused at submission.
func TestMemoryBeyondAllMachinesIsRefused(t *testing.T) {
	t.Parallel()
	a := federation(t, func(c *config.Config) { c.Scheduler.MemoryBytes = 0 }, "alpha", "beta")[0]
	j := shell("true")
	j.MemoryBytes = job.MaxMemoryBytes
	_, err := a.jobs.SubmitJob(a.ctx(), &kithv1.SubmitJobRequest{Job: j})
	if status.Code(err) != codes.FailedPrecondition || !strings.Contains(err.Error(), "largest known site of sufficient width, alpha, has") {
		t.Errorf("%v", err)
	}
	list, err := a.sites.ListSites(a.ctx(), &kithv1.ListSitesRequest{})
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range list.GetSites() {
		if s.GetMemoryBytes() <= 0 {
			t.Errorf("site %s has %d bytes of memory", s.GetId(), s.GetMemoryBytes())
		}
	}
	j.MemoryBytes = list.GetSites()[0].GetMemoryBytes() / 2
	a.waitState(a.submit(j), completed)
}
