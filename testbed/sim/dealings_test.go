package sim_test

import (
	"fmt"
	"maps"
	"testing"
	"time"

	"kith/internal/job"
	"kith/meta"
	"kith/store"
	"kith/testbed/sim"
)

// What sites hold of each other is kept as a list of few jobs and a count; here it is
// compared, each second of a run with crashes, a lost disk and a site that is away for
// long, with what all records say.
func TestDealingsAgainstTheRecords(t *testing.T) {
	most := meta.Dealings{}
	for seed := range uint64(4) {
		cfg := kept(seed, 2, 3, 40)
		w := newWorld(t, cfg)
		const n = 300
		for i := range n {
			run := time.Duration(1+w.Rand().IntN(40)) * time.Second
			r := request(1+w.Rand().Int32N(2), run+time.Duration(w.Rand().IntN(60))*time.Second)
			r.OnSiteLost = []job.OnSiteLost{job.Wait, job.Rerun, job.Race}[w.Rand().IntN(3)]
			w.Submit(sim.Start.Add(time.Duration(i)*200*time.Millisecond), job.SiteID(fmt.Sprint("s", w.Rand().IntN(3))), sim.Submission{Request: r, RunTime: run})
		}
		at := func(after time.Duration, do func()) { w.At(sim.Start.Add(after), do) }
		back := func(site job.SiteID) func() {
			return func() {
				if err := w.Site(site).Restart(); err != nil {
					t.Fatal(err)
				}
			}
		}
		at(20*time.Second, func() { w.Site("s0").Crash() })
		at(25*time.Second, back("s0"))
		at(30*time.Second, func() { w.Site("s2").PowerLoss() })
		at(60*time.Second, back("s2"))
		// Attempts that others race with are under way when it heals; then claims grow old.
		for _, cut := range []struct{ from, to time.Duration }{{90 * time.Second, 155 * time.Second}, {170 * time.Second, 10 * time.Minute}} {
			at(cut.from, func() { w.Cut("s1", "s2"); w.Cut("s2", "s1") })
			at(cut.to, func() { w.Heal("s1", "s2") })
		}
		for after := time.Second; after < 20*time.Minute; after += time.Second {
			if err := w.Run(sim.Start.Add(after)); err != nil {
				t.Fatal(err)
			}
			for i := range 3 {
				s := w.Site(job.SiteID(fmt.Sprint("s", i)))
				if !s.Up() {
					continue
				}
				got, want := s.Engine().Views().Dealings(s.Clock()), dealings(s)
				if !maps.Equal(got, want) {
					t.Fatalf("seed %d, %v: site %s has %v of others, its records say %v", seed, after, s.ID(), got, want)
				}
				for _, d := range got {
					most = meta.Dealings{Held: max(most.Held, d.Held), Overdue: max(most.Overdue, d.Overdue), Copies: max(most.Copies, d.Copies)}
				}
			}
		}
	}
	if most.Held == 0 || most.Overdue == 0 || most.Copies == 0 {
		t.Errorf("not all of it came up: %+v", most)
	}
}

// dealings is the slow way: all records are looked at.
func dealings(s *sim.Site) map[job.SiteID]meta.Dealings {
	all := make(map[job.SiteID]meta.Dealings)
	for j := range s.State().Jobs(job.ID{}) {
		if j.State.Terminal() || j.Holder == "" || j.Holder == s.ID() {
			continue
		}
		d := all[j.Holder]
		d.Held++
		var granted job.Time
		for _, e := range j.Events {
			if e.Kind == store.ClaimGranted && e.Attempt == j.Attempt {
				granted = e.Time
			}
		}
		if granted != 0 && (d.Oldest == 0 || granted < d.Oldest) {
			d.Oldest = granted
		}
		if granted != 0 && j.Outcome == nil && s.Clock() > granted.Add(j.Request.Walltime+5*time.Minute) {
			d.Overdue++
		}
		all[j.Holder] = d
	}
	for c := range s.State().Copies() {
		if from := c.ID.Job.Origin; from != s.ID() {
			d := all[from]
			d.Copies++
			all[from] = d
		}
	}
	return all
}
