package sim

import (
	"testing"
	"time"

	"kith/internal/job"
	"kith/meta"
)

// A job that waits gets as many copies as there were sites at its time, where copies are
// not topped up: that there could be more shows only from the outside.
func TestJobsThatLackCopies(t *testing.T) {
	leave := func(*World) {}
	reconfigure := func(change func(*SiteConfig)) func(*World) {
		return func(w *World) { w.Site("s1").Reconfigure(change) }
	}
	for name, c := range map[string]struct {
		change func(*World) // right after the other site has resumed
		want   string
	}{
		"nothing is wrong":      {leave, "L5"},
		"nothing is promised":   {func(w *World) { promise(w, false) }, ""},
		"one copy is enough":    {func(w *World) { w.Site("s0").Reconfigure(func(c *SiteConfig) { c.Meta.Placement.Copies = 1 }) }, ""},
		"the other site drains": {func(w *World) { w.Ask("s1", drain, func(meta.Reply) {}) }, ""},
		"it is down":            {func(w *World) { w.Site("s1").Crash() }, ""},
		"its disk is full":      {func(w *World) { w.Site("s1").FillDisk(true) }, ""},
		"its disk hangs":        {func(w *World) { w.Site("s1").SlowDisk(time.Hour) }, ""},
		"it cannot start":       {func(w *World) { w.Site("s1").Unstartable(true) }, ""},
		"its disk is low":       {func(w *World) { w.Site("s1").LowDisk(true, 0) }, ""},
		"it has no room":        {reconfigure(func(c *SiteConfig) { c.Meta.Limits.CopiesPerOrigin = 0 }), ""},
		"it has none for all":   {reconfigure(func(c *SiteConfig) { c.Meta.Limits.Copies = 0 }), ""},
		"the stream is cut":     {func(w *World) { w.Cut("s0", "s1") }, ""},
		"the origin is frozen":  {func(w *World) { w.Site("s0").Freeze(false) }, ""},
		"it is not trusted":     {func(w *World) { w.Distrust("s1") }, ""},
	} {
		w := conserving(t, 1, 1)
		promise(w, true)
		home(w, 0, "s0", 1, time.Hour, time.Hour)
		home(w, 0, "s1", 1, time.Hour, time.Hour) // so that no site is idle
		w.At(Start.Add(time.Second), func() { w.Ask("s1", drain, func(meta.Reply) {}) })
		w.Submit(Start.Add(2*time.Second), "s0", Submission{
			Request: job.Request{Name: "test", User: "ada", Processors: 1, Walltime: time.Minute}, RunTime: time.Second,
		})
		w.At(Start.Add(3*time.Second), func() {
			w.Ask("s1", func(token uint64) meta.Event { return meta.SetDrain{Token: token} }, func(meta.Reply) {})
		})
		w.At(Start.Add(3500*time.Millisecond), func() { c.change(w) })
		if got := broken(w, 20*time.Second); got != c.want {
			t.Errorf("%s: %q is broken, expected %q", name, got, c.want)
		}
	}
}

// promise has the watch hold all sites to what they would promise if they conserved work,
// or not. The daemons that run do not learn of it.
func promise(w *World, on bool) {
	for _, s := range w.sites {
		s.Reconfigure(func(c *SiteConfig) { c.Meta.Placement.Conserve = on })
	}
}

// A job without any copy lacks them all, and a site that drains could not take one.
func TestJobsWithoutACopy(t *testing.T) {
	w := conserving(t, 1, 2)
	promise(w, true)
	home(w, 0, "s1", 2, time.Hour, time.Hour)
	w.At(Start.Add(time.Second), func() { w.Ask("s1", drain, func(meta.Reply) {}) })
	var id job.ID
	w.Submit(Start.Add(2*time.Second), "s0", Submission{
		Request: job.Request{Name: "test", User: "ada", Processors: 2, Copies: 1, Walltime: time.Minute}, RunTime: time.Second, // fits s1 only
		Done: func(x job.ID, _ error) { id = x },
	})
	for _, takes := range []bool{false, true} {
		if err := w.Run(w.Now().Add(3 * time.Second)); err != nil {
			t.Fatal(err)
		}
		o, k := w.Site("s0"), &w.keeper
		j := o.state.Job(id)
		if x := k.numbered[o.index].jobs[id.Seq]; j.State != job.Pending || !k.short(x, o, j) {
			t.Fatalf("the job is %v, short of copies %v", j.State, k.short(x, o, j))
		}
		if got := k.wouldTake(new(waiting), w.Site("s1"), o, j); got != takes {
			t.Errorf("s1 would take it: %v, expected %v", got, takes)
		}
		w.Ask("s1", func(token uint64) meta.Event { return meta.SetDrain{Token: token} }, func(meta.Reply) {})
		w.Cut("s1", "s0") // the origin does not hear of it
	}
}

// What counts as a live copy: one that the site has, or one of a site in trouble, until
// that has been out of reach for as long as it takes to vanish.
func TestLiveCopies(t *testing.T) {
	w := conserving(t, 1, 1, 1)
	promise(w, true)
	for _, s := range []job.SiteID{"s0", "s1", "s2"} {
		home(w, 0, s, 1, time.Hour, time.Hour)
	}
	var id job.ID
	w.Submit(Start.Add(2*time.Second), "s0", Submission{
		Request: job.Request{Name: "test", User: "ada", Processors: 1, Copies: 3, Walltime: time.Minute}, RunTime: time.Second,
		Done: func(x job.ID, _ error) { id = x },
	})
	o := w.Site("s0")
	live := func(after time.Duration, want int) {
		t.Helper()
		if err := w.Run(Start.Add(after)); err != nil {
			t.Fatal(err)
		}
		k := &w.keeper
		k.lookForCopies()
		if n := k.live(k.numbered[o.index].jobs[id.Seq], o, o.state.Job(id)); n != want {
			t.Errorf("%v: %d copies are live, expected %d", after, n, want)
		}
	}
	live(5*time.Second, 3)
	w.Site("s2").Crash()
	live(30*time.Second, 3) // it may come back at once
	live(70*time.Second, 2)

	// A stream that comes and goes between two looks begins that time anew.
	w.At(Start.Add(70300*time.Millisecond), func() {
		if err := w.Site("s2").Restart(); err != nil {
			t.Error(err)
		}
	})
	w.At(Start.Add(71600*time.Millisecond), func() { w.Site("s2").Crash() })
	live(80*time.Second, 3)
}
