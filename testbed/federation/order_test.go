package federation_test

import (
	"testing"
	"time"

	"kith/internal/job"
	"kith/meta"
	"kith/sitesched"
	"kith/testbed/federation"
	"kith/testbed/workload"
)

func jobs(list ...workload.Job) *workload.Workload {
	for i := range list {
		list[i].ID, list[i].Estimate = int64(i+1), list[i].Run
	}
	return &workload.Workload{Jobs: list}
}

const second = job.Time(time.Second)

// Spec 001 section 2.5: of several sites that could start a job at once, its
// origin does, then the one of the better rank, whatever their names.
func TestSimultaneousStartsGoByRank(t *testing.T) {
	long := workload.Job{Run: time.Hour, Procs: 4}
	load := func(procs int32) workload.Job { return workload.Job{Run: time.Hour, Procs: procs} }
	last := workload.Job{Submit: 10 * second, Run: time.Minute, Procs: 1}
	for name, c := range map[string]struct {
		ws   []*workload.Workload
		want job.SiteID
	}{
		"the origin":      {[]*workload.Workload{jobs(load(2), last), jobs(), jobs()}, "site-000"},
		"the best rank":   {[]*workload.Workload{jobs(long, last), jobs(load(2)), jobs(load(1))}, "site-002"},
		"the lowest name": {[]*workload.Workload{jobs(long, last), jobs(), jobs()}, "site-001"},
	} {
		t.Run(name, func(t *testing.T) {
			for _, s := range []meta.Scheme{meta.KDistributed, meta.KDual} {
				cfg := federation.Config{Sites: sites(3, 4, sitesched.DualBackfill), Placement: meta.Placement{Scheme: s, Copies: 3}, Invariants: true}
				if r := run(t, cfg, c.ws).Records[1]; r.Site != c.want || r.Start != 10*second {
					t.Errorf("%s: it ran at %s from %v, want %s at once", s, r.Site, time.Duration(r.Start), c.want)
				}
			}
		})
	}
}

// Spec 001 section 2.3: with a load period of 0 a decision sees the copies of
// all decisions before it, also of the same instant and of other origins.
func TestDecisionsOfOneInstantSeeEachOther(t *testing.T) {
	full := workload.Job{Run: time.Hour, Procs: 4}
	next := workload.Job{Submit: 10 * second, Run: time.Minute, Procs: 4}
	ws := []*workload.Workload{jobs(full, next, next), jobs(full, next), jobs(), jobs(), jobs()}
	cfg := federation.Config{Sites: sites(5, 4, sitesched.Single), Placement: meta.Placement{Scheme: meta.Distributed}, Invariants: true}
	want := []job.SiteID{"site-000", "site-002", "site-003", "site-001", "site-004"}
	for i, r := range run(t, cfg, ws).Records {
		if r.Site != want[i] || r.Wait() != 0 {
			t.Errorf("job %d of %s ran at %s after %v, want %s at once", r.Job, r.Origin, r.Site, r.Wait(), want[i])
		}
	}
	// By the loads of the beginning, when all was idle, the first other site looks best.
	cfg.LoadPeriod = 30 * time.Minute
	want = []job.SiteID{"site-000", "site-001", "site-001", "site-001", "site-000"}
	for i, r := range run(t, cfg, ws).Records {
		if r.Site != want[i] {
			t.Errorf("with old loads job %d of %s ran at %s, want %s", r.Job, r.Origin, r.Site, want[i])
		}
	}
}

// What is submitted at an instant waits for what ends then, and starts then.
func TestEndsComeBeforeSubmissions(t *testing.T) {
	ws := []*workload.Workload{jobs(
		workload.Job{Run: 10 * time.Second, Procs: 4},
		workload.Job{Submit: 10 * second, Run: 5 * time.Second, Procs: 4},
	)}
	cfg := federation.Config{Sites: sites(1, 4, sitesched.Single), Placement: meta.Placement{Scheme: meta.Independent}, Invariants: true}
	if r := run(t, cfg, ws).Records[1]; r.Start != 10*second || r.End != 15*second {
		t.Errorf("it ran from %v to %v, want 10 s to 15 s", time.Duration(r.Start), time.Duration(r.End))
	}
}
