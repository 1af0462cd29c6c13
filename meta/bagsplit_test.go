package meta_test

import (
	"container/heap"
	"testing"
	"time"

	"kith/internal/job"
	"kith/meta"
	"kith/meta/bags"
)

// slowBeta has one site's processors be a tenth as fast as the others'.
func slowBeta(c *meta.Config) {
	withPolicies(c)
	if c.Self.Processors == 8 {
		c.Self.Speed = 0.1
	}
}

// meet lets a minute pass, in which sites get to know each other.
func (w *world) meet() {
	for end := w.now.Add(time.Minute); len(w.next) > 0 && w.next[0].at <= end; {
		x := heap.Pop(&w.next).(deed)
		w.now = max(w.now, x.at)
		x.do()
	}
}

// A bag that says so is offered to those sites only among which its tasks would end first: a few
// stay away from a slow site, many do not; without it they go wherever there is room.
func TestSplitAheadOfPlacement(t *testing.T) {
	split := map[bags.Text]string{bags.Sites: "site.split"}
	for name, c := range map[string]struct {
		tasks  uint32
		texts  map[bags.Text]string
		atBeta bool
	}{
		"few":           {8, split, false},
		"few, anywhere": {8, nil, true},
		"many":          {800, split, true},
		"and more":      {8, map[bags.Text]string{bags.Sites: "site.split || site.name == 'beta'"}, true},
	} {
		w := newWorld(t, 8, slowBeta, 4, 8)
		w.takes = func(job.TaskID) outcome { return outcome{run: 20 * time.Second} }
		w.meet()
		id := w.stating(c.tasks, "x", c.texts)
		w.run(5 * time.Second)
		w.sites[0].stop(false, time.Second)
		if !w.run(3 * time.Hour) {
			w.story()
			t.Fatalf("%s: the bag has not ended: %v", name, w.twice)
		}
		if at := w.doneAt(id); (at["beta"] > 0) != c.atBeta || at["alpha"] == 0 {
			t.Errorf("%s: ran at %v", name, at)
		}
	}
}

// What a split would be is told for a bag that is not submitted, and a site that drains is none of it.
func TestSplitIsExplained(t *testing.T) {
	w := newWorld(t, 9, slowBeta, 4, 8)
	w.meet()
	p := texts(map[bags.Text]string{bags.Sites: "site.split"})
	offered := func() map[job.SiteID]bool {
		views, _, err := w.sites[0].engine.Views().CheckPolicies(w.now, job.ID{}, &p)
		if err != nil || len(views) != 2 {
			t.Fatal(views, err)
		}
		at := map[job.SiteID]bool{}
		for _, v := range views {
			at[v.Site] = v.Offered
		}
		return at
	}
	if at := offered(); !at["alpha"] || at["beta"] {
		t.Errorf("one task is split among %v", at)
	}
	if err := w.sites[0].ask(meta.SetDrain{Token: 1, On: true}); err != nil {
		t.Fatal(err)
	}
	if at := offered(); at["alpha"] || !at["beta"] {
		t.Errorf("while alpha drains, one task is split among %v", at)
	}
}
