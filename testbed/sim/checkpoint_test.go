package sim_test

import (
	"testing"
	"time"

	"kith/internal/job"
	"kith/meta"
	"kith/testbed/sim"
)

// Running jobs are asked to save and go on elsewhere: those that do go on from what they saved,
// those that do not from what they had, and those that write no checkpoints from the beginning. The
// daemon may die in between, at once after it has said that it will.
func TestAskCheckpoint(t *testing.T) {
	for _, crash := range []time.Duration{0, 10*time.Minute + 5*time.Millisecond, 10*time.Minute + time.Second, 13 * time.Minute} {
		cfg := kept(4, 4)
		cfg.Check = true
		w := newWorld(t, cfg)
		var ids []job.ID
		for tag := 1; tag <= 4; tag++ {
			r := request(1, time.Hour)
			r.Copies, r.Checkpoint = 1, tag < 4
			s := sim.Submission{Request: r, RunTime: 30 * time.Minute, Tag: tag, Pieces: 2}
			if tag == 4 {
				s.Pieces, s.Request.OnSiteLost = 0, job.Rerun
			}
			submitAt(w, time.Duration(tag)*time.Second, "s0", s)
		}
		w.At(sim.Start.Add(10*time.Minute), func() {
			for j := range w.Site("s0").State().Jobs(job.ID{}) {
				ids = append(ids, j.ID)
			}
			for _, id := range ids {
				w.Ask("s0", func(token uint64) meta.Event { return meta.CheckpointJob{Token: token, Job: id} }, func(r meta.Reply) {
					if r.Err != nil {
						t.Errorf("%v: %v", id, r.Err)
					}
				})
			}
		})
		if crash > 0 {
			w.At(sim.Start.Add(crash), w.Site("s0").Crash)
			w.At(sim.Start.Add(crash+time.Minute), func() {
				if err := w.Site("s0").Restart(); err != nil {
					t.Error(err)
				}
			})
		}
		finish(t, w)
		if len(ids) != 4 {
			t.Fatalf("%d jobs", len(ids))
		}
		for i, id := range ids {
			j := w.Site("s0").State().Job(id)
			if j.State != job.Completed || j.DemotedFor(job.Requested) != 1 {
				t.Errorf("killed after %v, job %d is %v after %+v", crash, i+1, j.State, j.Demotions)
				continue
			}
			saved := j.Demotions[0].Sequence != 0
			if want := i < 3 && (id.Seq+1)%3 != 2; saved != want {
				t.Errorf("killed after %v, job %d saved: %v, %+v", crash, i+1, saved, j.Demotions)
			}
		}
	}
}
