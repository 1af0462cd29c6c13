package sim

import (
	"testing"
	"time"

	"kith/internal/job"
)

// Ten thousand copies of an origin that is dead cost its host nothing while its
// own jobs come and go: a figure, not a time.
func TestManyCopiesOfADeadOrigin(t *testing.T) {
	const copies = 10_000
	w := watched(t, func(c *Config) {
		c.Check, c.Disk, c.Count = false, DiskConfig{}, true
		c.Sites[1].Meta.Limits.CopiesPerOrigin = 2 * copies
	}, 1, 2)
	submit(w, 0, "s1", 2, 0, 10*time.Minute) // so that all wait
	for i := range copies {
		w.Submit(Start.Add(time.Second+time.Duration(i)*time.Millisecond), "s0", Submission{
			Request: job.Request{Name: "test", User: "ada", Processors: 1, Copies: 2, Walltime: 2 * time.Hour}, RunTime: time.Hour,
		})
	}
	w.At(Start.Add(time.Minute), func() { w.Site("s0").Crash() })
	for i := range 20 {
		submit(w, 11*time.Minute+time.Duration(i)*10*time.Second, "s1", 1, 0, time.Second)
	}
	if err := w.Run(Start.Add(9 * time.Minute)); err != nil {
		t.Fatal(err)
	}
	s := w.Site("s1")
	if n := s.State().CopyCount(); n < copies/2 {
		t.Fatalf("s1 holds %d copies", n)
	}
	before := s.Calls()
	if err := w.Run(Start.Add(15 * time.Minute)); err != nil {
		t.Fatal(err)
	}
	if n := s.Calls() - before; n > 500 {
		t.Errorf("in 6 minutes with 20 jobs of its own, %d passes, proposals and postponements", n)
	}
}
