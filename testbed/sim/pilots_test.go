package sim

import (
	"testing"
	"time"

	"kith/internal/job"
	"kith/sitesched"
)

// A pilot at the head of a queue keeps others waiting while there are tasks for it, as a job
// would; one that nothing waits for does not. Wide schedule 10070845 and eleven more showed it.
func TestPilotsKeepTheirPlaceWhileTasksWait(t *testing.T) {
	for name, c := range map[string]struct {
		tasks uint32
		queue func(*World)
		want  string
	}{
		"a task waits": {2, func(*World) {}, ""},
		"none does": {1, func(w *World) {
			s := w.Site("s1")
			s.scheduler.Enqueue(s.now(), job.Copy{ID: job.AttemptID{Job: job.ID{Origin: "s1", Seq: 1 << 63}, Number: 99}, Request: job.Request{Processors: 2, Walltime: time.Hour}})
		}, "L4"},
	} {
		w := watched(t, func(c *Config) {
			c.Conserve = &Conserve{Bound: 10 * time.Second, Settle: 20 * time.Second, Patience: time.Minute, Lack: 10 * time.Second}
			c.Sites[1].Scheduler.Queues, c.Sites[1].Scheduler.Backfill = sitesched.Single, sitesched.NoBackfill
		}, 1, 3)
		w.SubmitBag(Start, "s1", BagSubmission{
			Request: job.Request{Name: "bag", User: "ada", Processors: 2, Walltime: 2 * time.Hour}, Indices: job.FirstIndices(c.tasks), RequestID: "bag",
			RunTime: func(uint32) time.Duration { return time.Hour },
		})
		w.At(Start.Add(time.Second), func() { c.queue(w) })
		home(w, 2*time.Second, "s0", 1, time.Hour, time.Hour)
		w.Submit(Start.Add(3*time.Second), "s0", Submission{
			Request: job.Request{Name: "test", User: "ada", Processors: 1, Copies: 2, Walltime: time.Minute}, RunTime: time.Second,
		})
		if got := broken(w, 20*time.Second); got != c.want {
			t.Errorf("%s: %q is broken, expected %q", name, got, c.want)
		}
		if n := w.Site("s1").Load().Queued; n != 2 {
			t.Errorf("%s: %d copies wait at s1", name, n)
		}
	}
}

// What goes wrong between two looks ends a peace, too. Wide schedule 10081979 showed it.
func TestPeaceEndsBetweenTwoLooks(t *testing.T) {
	for name, c := range map[string]func(s *Site, on bool){
		"it freezes": func(s *Site, on bool) {
			if on {
				s.Freeze(false)
			} else {
				s.Thaw()
			}
		},
		"its disk is slow": func(s *Site, on bool) {
			if on {
				s.SlowDisk(time.Hour)
			} else {
				s.SlowDisk(0)
			}
		},
		"its disk is full": (*Site).FillDisk,
		"it cannot start":  (*Site).Unstartable,
		"its disk is low":  func(s *Site, on bool) { s.LowDisk(on, 0) },
		"its shims die":    (*Site).KillShims,
	} {
		w := conserving(t, 1)
		s := w.Site("s0")
		w.At(Start.Add(1200*time.Millisecond), func() { c(s, true) })
		w.At(Start.Add(1400*time.Millisecond), func() { c(s, false) })
		if err := w.Run(Start.Add(10 * time.Second)); err != nil {
			t.Fatal(err)
		}
		if since := w.keeper.sites[0].since; since < Start.Add(2*time.Second) {
			t.Errorf("%s: at peace since %v", name, since.Sub(Start))
		}
	}
}
