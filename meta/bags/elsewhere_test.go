package bags

import (
	"math/rand/v2"
	"testing"
	"time"

	"kith/internal/job"
	"kith/store"
)

// A task that failed is kept from the site for one to two minutes, until it is given to
// another one.
func TestFailedTasksGoElsewhereFirst(t *testing.T) {
	rng := rand.New(rand.NewPCG(4, 4))
	w := workOf(1, "ann", 0)
	var e Elsewhere
	since := map[job.SiteID]map[uint32]job.Time{"beta": {}, "gamma": {}}
	now := job.Time(1e18)
	kept, back := 0, 0
	for range 5000 {
		now = now.Add(time.Duration(rng.Int64N(int64(2 * time.Second))))
		site := w.Sites[rng.IntN(2)]
		switch task := uint32(rng.IntN(40)); rng.IntN(8) {
		case 0:
			gone := job.TaskRange(task, task+5)
			e.Leave(w.Bag, &gone)
			for task := range gone.All {
				delete(since["beta"], task)
				delete(since["gamma"], task)
			}
		default:
			e.Failed(w.Bag, task, site, now)
			since[site][task] = now
		}
		tasks := e.Tasks(&w, site, now)
		if tasks.Count() != e.Count(&w, site, now) {
			t.Fatalf("%d tasks, %d are counted", tasks.Count(), e.Count(&w, site, now))
		}
		for task := range uint32(45) {
			at, failed := since[site][task]
			switch past := now.Sub(at); {
			case tasks.Has(task) && (!failed || past >= 2*ElsewhereFirst):
				t.Fatalf("task %d is kept from %s; it failed there %v, %v ago", task, site, failed, past)
			case !tasks.Has(task) && failed && past < ElsewhereFirst:
				t.Fatalf("task %d failed at %s %v ago and is not kept from it", task, site, past)
			case tasks.Has(task):
				kept++
			case failed:
				back++
			}
		}
	}
	if kept < 1000 || back < 1000 {
		t.Errorf("%d tasks were kept from sites, %d not any more: the test has become too easy", kept, back)
	}
	gone := job.TaskRange(0, 50)
	if e.Leave(w.Bag, &gone); len(e.bags) != 0 {
		t.Errorf("of nothing %v is left", e.bags)
	}
}

// After a pause in which nobody asked, what failed before it is kept from no site; what is
// kept from a site is in none of its bundles, and in the next one of another site.
func TestFailedTasksInBundles(t *testing.T) {
	s := store.NewState("alpha", 1)
	b := submit(t, s, 10, func(c *store.SubmitBag) { c.Retries = 3 })
	d, sites := newDesk(), []job.SiteID{"beta", "gamma"}
	end(t, s, give(t, s, b, "beta", 4), job.Failure)
	d.Elsewhere.Failed(b.ID, 1, "beta", 0)
	d.Elsewhere.Failed(b.ID, 2, "beta", 0)
	w := WorkOf(b, 0, sites)
	for _, c := range []struct {
		site job.SiteID
		now  time.Duration
		want string
	}{{"beta", 0, "0,3-5"}, {"gamma", 0, "0-3"}, {"beta", ElsewhereFirst - 1, "0,3-5"}, {"beta", 2 * ElsewhereFirst, "0-3"}} {
		if got := d.Grant(b, &w, c.site, 4, job.Time(c.now)); got.String() != c.want {
			t.Errorf("%s after %v gets %v, want %v", c.site, c.now, got.String(), c.want)
		}
	}
}
