package sim

import (
	"testing"
	"time"

	"kith/internal/job"
)

// A site whose disk is low on room takes no jobs and no tasks of others while that lasts, and
// is used again soon after. Its own jobs run.
func TestLowDiskTakesNothingOfOthers(t *testing.T) {
	t.Parallel()
	const low, room = 20 * time.Second, 2 * time.Minute
	var w *World
	guests, own, again := 0, 0, time.Duration(0)
	w = watched(t, func(c *Config) {
		c.Conserve = &Conserve{Bound: 10 * time.Second, Settle: 20 * time.Second, Patience: time.Minute, Lack: 10 * time.Second}
		c.Began = func(at job.SiteID, a job.AttemptID, _ int) {
			switch since := w.Now().Sub(Start); {
			case at != "s1" || since < low+2*lookAtDisk:
			case a.Job.Origin == "s1":
				own++
			case since < room:
				guests++
			case again == 0:
				again = since - room
			}
		}
	}, 1, 2, 1)
	for i := range 200 {
		w.Submit(Start.Add(time.Duration(i)*time.Second), "s0", Submission{
			Request: job.Request{Name: "job", User: "ada", Processors: 1, Copies: 2, Walltime: 5 * time.Second}, RunTime: 2 * time.Second,
		})
	}
	for i := range 10 {
		home(w, time.Duration(i)*10*time.Second, "s1", 1, time.Second, time.Minute)
	}
	w.SubmitBag(Start, "s2", BagSubmission{
		Request: job.Request{Name: "bag", User: "ada", Processors: 1, Walltime: time.Minute}, Indices: job.FirstIndices(200), RequestID: "bag",
		RunTime: func(uint32) time.Duration { return 2 * time.Second },
	})
	w.At(Start.Add(low), func() { w.Site("s1").LowDisk(true, 0) })
	w.At(Start.Add(room), func() { w.Site("s1").LowDisk(false, 0) })
	if err := w.Run(Start.Add(30 * time.Minute)); err != nil {
		t.Fatal(err)
	}
	if err := w.CheckEnded(); err != nil {
		t.Error(err)
	}
	if guests > 0 {
		t.Errorf("%d jobs and tasks of others began there", guests)
	}
	if own < 7 {
		t.Errorf("%d jobs of its own began, want all 7 or 8 that came", own)
	}
	if again == 0 || again > 10*time.Second {
		t.Errorf("it was used again %v after there was room", again)
	}
	t.Logf("used again %v after there was room", again)
}
