package sim_test

import (
	"testing"
	"time"

	"kith/internal/job"
	"kith/testbed/sim"
)

// TestGoesOnFromWhatCameHome loses the host of a job again and again: each attempt goes on from what had come
// home of those before, which the watch of the world checks, and the time that they ran for it counts.
func TestGoesOnFromWhatCameHome(t *testing.T) {
	for _, output := range []time.Duration{0, 3 * time.Second} {
		cfg := spread(1, 1, 2, 2)
		cfg.Check = true
		cfg.Output = func(int) time.Duration { return output }
		w := newWorld(t, cfg)
		r := request(2, time.Hour)
		r.OnSiteLost, r.Checkpoint, r.SaveSeconds = job.Rerun, true, 10
		submitAt(w, time.Second, "s0", sim.Submission{Request: r, RunTime: 20 * time.Minute, Pieces: 1, Tag: 1})
		for lost := range 3 {
			w.At(sim.Start.Add(time.Duration(5*lost+3)*time.Minute), func() {
				for _, name := range []job.SiteID{"s1", "s2"} {
					if s := w.Site(name); s.Load().Running > 0 {
						s.PowerLoss()
						w.At(w.Now().Add(90*time.Second), func() {
							if err := s.Restart(); err != nil {
								t.Error(err)
							}
						})
						return
					}
				}
				t.Errorf("loss %d: it does not run", lost)
			})
		}
		finish(t, w)
		for j := range w.Site("s0").State().Jobs(job.ID{}) {
			if j.State != job.Completed || len(j.Demotions) != 3 || j.Begun() != 3 {
				t.Fatalf("it is %+v", j)
			}
			last := uint64(0)
			for i, d := range j.Demotions {
				if ran := d.End.Sub(d.Start); d.Cause != job.HostLost || d.Sequence <= last || ran < time.Minute || ran > 5*time.Minute {
					t.Errorf("loss %d: %+v", i, d)
				}
				last = d.Sequence
			}
		}
	}
}
