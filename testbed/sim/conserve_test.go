package sim

import (
	"testing"
	"time"

	"kith/internal/job"
	"kith/meta"
	"kith/sitesched"
)

// conserving is a federation of sites that is held to L4.
func conserving(t *testing.T, widths ...int32) *World {
	t.Helper()
	return watched(t, func(c *Config) {
		c.Conserve = &Conserve{Bound: 10 * time.Second, Settle: 20 * time.Second, Patience: time.Minute, Lack: 10 * time.Second}
		for i := range c.Sites {
			c.Sites[i].Meta.Placement.Conserve = false
		}
	}, widths...)
}

// home submits a job that gets one copy, at its origin.
func home(w *World, at time.Duration, origin job.SiteID, processors int32, run, wall time.Duration) {
	w.Submit(Start.Add(at), origin, Submission{
		Request: job.Request{Name: "test", User: "ada", Processors: processors, Copies: 1, Walltime: wall}, RunTime: run,
	})
}

// With one copy each, jobs wait where they are although another site is idle:
// it shows only from the outside.
func TestIdleSitesBesideWork(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*World)
		want   string
	}{
		"nothing is wrong":       {func(*World) {}, "L4"},
		"the other site drains":  {func(w *World) { w.Ask("s1", drain, func(meta.Reply) {}) }, ""},
		"it is down":             {func(w *World) { w.Site("s1").Crash() }, ""},
		"its disk is full":       {func(w *World) { w.Site("s1").FillDisk(true) }, ""},
		"it cannot start":        {func(w *World) { w.Site("s1").Unstartable(true) }, ""},
		"its disk is low":        {func(w *World) { w.Site("s1").LowDisk(true, 0) }, ""},
		"the stream is cut":      {func(w *World) { w.Cut("s0", "s1") }, ""},
		"the origin is frozen":   {func(w *World) { w.Site("s0").Freeze(false) }, ""},
		"the sites do not trust": {func(w *World) { w.Distrust("s1") }, ""},
	} {
		w := conserving(t, 1, 2)
		home(w, 0, "s1", 1, time.Hour, time.Hour) // so that the origin is the better place
		home(w, time.Second, "s0", 1, 30*time.Second, time.Minute)
		w.At(Start.Add(1500*time.Millisecond), func() { c.change(w) })
		w.Submit(Start.Add(2*time.Second), "s0", Submission{
			Request: job.Request{Name: "test", User: "ada", Processors: 1, Copies: 1, Walltime: time.Minute}, RunTime: time.Second,
		})
		if got := broken(w, 20*time.Second); got != c.want {
			t.Errorf("%s: %q is broken, expected %q", name, got, c.want)
		}
	}
}

func drain(token uint64) meta.Event { return meta.SetDrain{Token: token, On: true, Reason: "a test"} }

// A site is not idle if a start would move a guarantee.
func TestNoStartIsAskedForThatMovesAGuarantee(t *testing.T) {
	w := conserving(t, 2)
	home(w, 0, "s0", 1, 5*time.Minute, 5*time.Minute)
	home(w, time.Second, "s0", 2, time.Minute, time.Minute)      // blocked
	home(w, 2*time.Second, "s0", 1, 20*time.Minute, time.Hour)   // would delay it
	home(w, 3*time.Second, "s0", 1, time.Minute, 90*time.Second) // goes
	if got := broken(w, 4*time.Minute); got != "" {
		t.Errorf("%s is broken", got)
	}
}

// What another site has waiting here keeps its place while that site is not yet
// settled: its copy waits as all do, and a start that would move it is not asked for.
// Wide schedules 1260 and 1482 showed it.
func TestCopiesOfAnUnsettledOriginKeepTheirPlace(t *testing.T) {
	w := watched(t, func(c *Config) {
		c.Conserve = &Conserve{Bound: 10 * time.Second, Settle: 30 * time.Second, Patience: time.Minute, Lack: 10 * time.Second}
		c.Sites[1].Scheduler.Queues = sitesched.Single
	}, 1, 2, 1)
	for i, s := range []job.SiteID{"s0", "s1", "s2"} {
		home(w, time.Duration(i)*time.Millisecond, s, 1, 50*time.Second, time.Minute)
	}
	home(w, time.Second, "s2", 2, time.Second, time.Minute) // fits s1 only, and heads its queue
	w.At(Start.Add(2*time.Second), func() { w.Break("s1", "s2") })
	w.Submit(Start.Add(4*time.Second), "s0", Submission{
		Request: job.Request{Name: "test", User: "ada", Processors: 1, Copies: 3, Walltime: time.Hour}, RunTime: time.Second,
	})
	if err := w.Run(Start.Add(3500 * time.Millisecond)); err != nil {
		t.Fatal(err)
	}
	if n := w.Site("s1").Load().Queued; n != 1 {
		t.Fatalf("%d copies wait at s1", n)
	}
	if got := broken(w, 30*time.Second); got != "" {
		t.Errorf("%s is broken", got)
	}
	if n := w.Site("s1").Load().Queued; n != 2 {
		t.Errorf("%d copies wait at s1", n)
	}
}

// What a site has set aside of an origin that does not answer keeps no place: a job that
// would start beside it, but not beside what is first without it, waits. Wide schedule
// 15006197 showed it.
func TestCopiesSetAsideKeepNoPlace(t *testing.T) {
	w := watched(t, func(c *Config) {
		c.Conserve = &Conserve{Bound: 10 * time.Second, Settle: 20 * time.Second, Patience: time.Minute, Lack: 10 * time.Second}
		c.Sites[1].Scheduler.Queues = sitesched.Single
	}, 2, 5)
	home(w, 0, "s1", 3, 5*time.Minute, 5*time.Minute)
	home(w, 0, "s0", 2, 10*time.Minute, 10*time.Minute)
	home(w, time.Second, "s0", 3, time.Minute, 2*time.Minute) // fits s1 only, and heads its queue
	w.At(Start.Add(2*time.Second), func() { w.SetLink("s1", "s0", &LinkConfig{Latency: time.Hour}) })
	w.Submit(Start.Add(3*time.Second), "s0", Submission{ // is claimed at s1, in vain
		Request: job.Request{Name: "test", User: "ada", Processors: 1, Copies: 2, Walltime: 30 * time.Second}, RunTime: time.Second,
	})
	home(w, 4*time.Second, "s1", 5, time.Minute, time.Minute)        // is first without them
	home(w, 20*time.Second, "s1", 2, 20*time.Minute, 20*time.Minute) // would delay it
	if err := w.Run(Start.Add(19 * time.Second)); err != nil {
		t.Fatal(err)
	}
	if l := w.Site("s1").Load(); l.Queued != 1 {
		t.Fatalf("%d jobs wait at s1, and are not set aside", l.Queued)
	}
	if got := broken(w, 2*time.Minute); got != "" {
		t.Errorf("%s is broken", got)
	}
}

// A daemon takes the time from the wall when it starts, but never an earlier one
// than before, and leases do not step.
func TestWallClockSteps(t *testing.T) {
	w := watched(t, nil, 1)
	submit(w, 0, "s0", 1, 0, time.Hour)
	if err := w.Run(Start.Add(2 * time.Minute)); err != nil {
		t.Fatal(err)
	}
	s := w.Site("s0")
	for _, c := range []struct{ step, least, most time.Duration }{
		{24 * time.Hour, 24 * time.Hour, 25 * time.Hour},
		{-24 * time.Hour, 24*time.Hour - 2*time.Minute, 25 * time.Hour}, // within [store.Late] of the latest
	} {
		s.Crash()
		s.StepClock(c.step)
		if err := s.Restart(); err != nil {
			t.Fatal(err)
		}
		submit(w, w.Now().Sub(Start)+time.Second, "s0", 1, 0, time.Second) // a fact
		if err := w.Run(w.Now().Add(2 * time.Minute)); err != nil {
			t.Fatal(err)
		}
		if shown := s.Clock().Sub(Start); shown < c.least || shown > c.most {
			t.Errorf("after a step of %v the clock shows %v, expected %v to %v", c.step, shown, c.least, c.most)
		}
	}
}

// A remote copy that waits while a site's own jobs, or copies that came later, follow each
// other there without a gap is overtaken. What a site does for itself is no fault: wide
// schedules 42023, 43970 and 49431 showed it.
func TestLocalJobsGoFirst(t *testing.T) {
	for name, c := range map[string]struct {
		others job.SiteID // whose jobs follow each other
		want   string
	}{
		"the site's own jobs": {"s1", ""},
		"those of a third":    {"s2", "L4"},
	} {
		w := conserving(t, 1, 6, 1)
		for _, s := range []job.SiteID{"s0", "s2"} {
			home(w, 0, s, 1, time.Hour, time.Hour)
		}
		for at := time.Second; at < 5*time.Minute; at += 9 * time.Second {
			home(w, at, "s1", 1, 9100*time.Millisecond, 10*time.Second)
			home(w, at, c.others, 2, 9100*time.Millisecond, 10*time.Second)
		}
		home(w, 5*time.Second, "s0", 4, time.Second, 10*time.Second)
		if got := broken(w, 4*time.Minute); got != c.want {
			t.Errorf("%s: %q is broken, expected %q", name, got, c.want)
		}
	}
}
