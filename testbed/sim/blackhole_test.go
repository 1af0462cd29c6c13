package sim

import (
	"testing"
	"time"

	"kith/internal/job"
)

// A host that fails everything in a second gets fewer than 1 % of the tasks after its first 20
// (spec 002, acceptance 9). It begins before any task has ended elsewhere.
func TestBlackHoleAmongFiftyHosts(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		n      int
		run    time.Duration
		places int32
	}{{2500, 2 * time.Minute, 1}, {1500, time.Minute, 8}} {
		widths := make([]int32, 51)
		for i := range widths {
			widths[i] = 2
		}
		widths[50] = c.places
		w := watched(t, func(c *Config) { c.Check = false }, widths...)
		spoilt := 0
		w.SubmitBag(Start, "s0", BagSubmission{
			Request: job.Request{Name: "bag", User: "ada", Processors: 1, Walltime: time.Hour}, Indices: job.FirstIndices(uint32(c.n)), RequestID: "bag", Retries: 20,
			RunTime: func(uint32) time.Duration { return c.run },
			At: func(site job.SiteID, _ uint32) (time.Duration, bool, bool) {
				if site == "s50" {
					spoilt++
					return time.Second, true, true
				}
				return 0, false, false
			},
		})
		if err := w.Run(Start.Add(time.Duration(c.n) / 100 * c.run * 2)); err != nil {
			t.Fatal(err)
		}
		if after := spoilt - 20; after*100 >= c.n {
			t.Errorf("tasks of %v, %d places: the black hole got %d of %d tasks", c.run, c.places, spoilt, c.n)
		}
		t.Logf("tasks of %v, %d places: the black hole got %d of %d tasks", c.run, c.places, spoilt, c.n)
		if err := w.CheckEnded(); err != nil {
			t.Error(err)
		}
	}
}

// A host that has done many fast tasks well has a stock of seconds when it begins to spoil
// them: what it has not begun is taken back from it as soon as its origin hears of the first
// failures. It spoils 800 tasks a second until then; it spoilt 1,606 of them.
func TestBlackHoleWithAStock(t *testing.T) {
	t.Parallel()
	w := watched(t, func(c *Config) { c.Check = false }, 4, 4, 4, 4)
	fast := BagSubmission{
		Request: job.Request{Name: "fast", User: "ada", Processors: 1, Walltime: time.Hour}, Indices: job.FirstIndices(4000), RequestID: "fast",
		RunTime: func(uint32) time.Duration { return 10 * time.Millisecond },
	}
	w.SubmitBag(Start, "s0", fast)
	spoilt := 0
	bad := fast
	bad.Request.Name, bad.RequestID, bad.Indices = "bad", "bad", job.FirstIndices(2000)
	bad.RunTime = func(uint32) time.Duration { return 300 * time.Millisecond }
	bad.At = func(site job.SiteID, _ uint32) (time.Duration, bool, bool) {
		if site == "s3" {
			spoilt++
			return 5 * time.Millisecond, true, true
		}
		return 0, false, false
	}
	w.SubmitBag(Start.Add(5*time.Second), "s0", bad)
	if err := w.Run(Start.Add(5 * time.Minute)); err != nil {
		t.Fatal(err)
	}
	if spoilt > 200 {
		t.Errorf("the black hole spoilt %d of 2000 tasks", spoilt)
	}
	t.Logf("the black hole spoilt %d of 2000 tasks", spoilt)
	if err := w.CheckEnded(); err != nil {
		t.Error(err)
	}
}
