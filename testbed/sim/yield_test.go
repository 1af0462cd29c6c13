package sim

import (
	"testing"
	"time"

	"kith/internal/job"
)

// A job does not wait a turn behind tasks of its own site's bag: it begins when a task ends.
func TestJobBesideABagOfItsOwnSite(t *testing.T) {
	w := watched(t, nil, 2)
	w.SubmitBag(Start, "s0", BagSubmission{
		Request: job.Request{Name: "bag", User: "ada", Processors: 1, Walltime: time.Minute}, Indices: job.FirstIndices(200),
		RunTime: func(uint32) time.Duration { return 5 * time.Second }, RequestID: "bag",
	})
	began := job.Time(0)
	w.cfg.Began = func(_ job.SiteID, a job.AttemptID, _ int) {
		if a.Job.Generation != 0 {
			began = w.Now()
		}
	}
	submit(w, 30*time.Second, "s0", 1, 0, time.Second)
	if err := w.Run(Start.Add(time.Minute)); err != nil {
		t.Fatal(err)
	}
	if began == 0 || began.Sub(Start) > 36*time.Second {
		t.Errorf("the job came after 30 s and began after %v; tasks take 5 s", began.Sub(Start))
	}
	if err := w.Run(Start.Add(time.Hour)); err != nil {
		t.Fatal(err)
	}
	if err := w.CheckEnded(); err != nil {
		t.Error(err)
	}
}
