package federation

import (
	"testing"
	"time"

	"kith/internal/job"
	"kith/meta"
	"kith/sitesched"
	"kith/testbed/metrics"
	"kith/testbed/workload"
)

// What sites measure of harm is what somebody sees who looks at their schedulers after each
// instant in which something changed there: whom a pass would start if no guest were there.
func TestHarmIsWhatIsSeen(t *testing.T) {
	for _, scope := range []sitesched.Scope{sitesched.ScopeHead, sitesched.ScopeAll} {
		cfg := Config{Harm: true, Guard: true, Placement: meta.Placement{Scheme: meta.KDual, Copies: 2}}
		var loads []*workload.Workload
		for i, id := range []job.SiteID{"north", "south"} {
			cfg.Sites = append(cfg.Sites, Site{ID: id, Processors: 64, Backfill: sitesched.EASY, Queues: sitesched.DualBackfill, Scope: scope})
			w, err := workload.CTCLike{Jobs: 400, Processors: 64, Load: 0.9}.Generate(workload.NewRand(uint64(i), 7))
			if err != nil {
				t.Fatal(err)
			}
			loads = append(loads, w)
		}
		seen := make(map[job.ID]time.Duration)
		blocked, last := [2]map[job.ID]bool{{}, {}}, job.Time(0)
		var states [2]string
		cfg.Watch = func(x *Instant) {
			for site := range cfg.Sites {
				for id := range blocked[site] {
					seen[id] += x.Now.Sub(last)
				}
				alone := x.Scheduler(site).Clone()
				var guests []job.AttemptID
				state := ""
				for q := range alone.Queued {
					state += q.Copy.ID.String() + " "
				}
				for r := range alone.Running {
					if state += "," + r.Copy.ID.String(); r.Copy.Remote {
						guests = append(guests, r.Copy.ID)
					}
				}
				if state == states[site] {
					continue
				}
				states[site] = state
				clear(blocked[site])
				for _, id := range guests {
					alone.Finish(x.Now, id)
				}
				for _, id := range alone.Pass(x.Now) {
					if id.Job.Origin == cfg.Sites[site].ID {
						blocked[site][id.Job] = true
					}
				}
			}
			last = x.Now
		}
		sums := make([]time.Duration, 2)
		cfg.Ended = func(site, index int, r *metrics.Record) {
			id := job.ID{Origin: cfg.Sites[site].ID, Generation: 1, Seq: uint64(index) + 1} //nolint:gosec // A place.
			if sums[0] += r.Blocked; r.Blocked != seen[id] || r.Moved != 0 {
				t.Errorf("scope %v: %v was blocked for %v and promises to it moved %d times; seen were %v", scope, id, r.Blocked, r.Moved, seen[id])
			}
		}
		if _, err := Run(t.Context(), cfg, loads); err != nil {
			t.Fatal(err)
		}
		if sums[0] == 0 {
			t.Error("nobody is ever blocked: the test sees nothing")
		}
		t.Logf("scope %v: guests blocked home jobs for %v in all", scope, sums[0])
	}
}
