package meta_test

import (
	"fmt"
	"testing"
	"time"

	"kith/internal/job"
	"kith/meta"
	"kith/meta/bags"
)

// late is a world with a bag at alpha, of which tasks at beta take so long.
func late(t *testing.T, lost job.OnSiteLost, run time.Duration, deadline string, n uint32) (*world, job.ID) {
	w := newWorld(t, 7, withPolicies, 2, 4, 4)
	w.mayRace = lost == job.Race
	w.takesAt = func(site job.SiteID, _ job.TaskID) outcome {
		if site == "beta" {
			return outcome{run: run}
		}
		return outcome{run: 10 * time.Second}
	}
	return w, w.sites[0].submit(meta.SubmitBag{
		Token: 1, Request: job.Request{User: "ada", Name: "x", Processors: 1, Walltime: time.Hour, OnSiteLost: lost}, Indices: tasks(n),
		Policies: texts(map[bags.Text]string{bags.Deadline: deadline}),
	})
}

// What takes too long is stopped and runs elsewhere, or runs elsewhere beside it, or is lost,
// as its user wants; all of it has ended long before the slow site would have.
func TestMissedDeadline(t *testing.T) {
	for _, c := range []struct {
		lost job.OnSiteLost
		done bool // all of it
	}{{job.Rerun, true}, {job.Race, true}, {job.Wait, false}} {
		for _, restart := range []bool{false, true} {
			t.Run(fmt.Sprint(c.lost, restart), func(t *testing.T) {
				w, id := late(t, c.lost, 50*time.Minute, "60", 40)
				if restart {
					w.run(30 * time.Second)
					w.sites[0].stop(false, 40*time.Second)
				}
				if !w.run(15 * time.Minute) {
					w.story()
					t.Fatalf("the bag has not ended: %v", w.twice)
				}
				b := w.sites[0].state.Bag(id)
				var lost uint64
				for _, s := range b.Sums.Sites {
					if s.Site == "beta" {
						lost = s.Lost
					} else if s.Lost > 0 {
						t.Errorf("%d tasks were lost at %s", s.Lost, s.Site)
					}
				}
				if lost == 0 || b.Done.Count() == 40 != c.done || !c.done && uint64(b.Failed.Count()) != lost {
					t.Errorf("%d done, %d failed, %d runs lost at beta", b.Done.Count(), b.Failed.Count(), lost)
				}
				w.run(time.Hour)
				w.settle()
			})
		}
	}
}

// The site that misses deadlines is held back, as one that fails.
func TestMissedDeadlinesCountAgainstTheHost(t *testing.T) {
	w, _ := late(t, job.Rerun, 50*time.Minute, "60", 400)
	w.run(10 * time.Minute)
	v := w.sites[0].engine.Views()
	if c := v.Counters(); v.HeldBack(w.now) != 1 || !v.Standings(w.now, 9)["beta"][0].Held || c.DeadlinesMissed > 30 || c.DeadlinesMissed < 4 {
		t.Errorf("%d deadlines were missed, %d hosts are held back: %+v", c.DeadlinesMissed, v.HeldBack(w.now), v.Standings(w.now, 9))
	}
}

// A task that never ends by its deadline is lost in the end, and does not begin for ever.
func TestDeadlineThatNoneMeets(t *testing.T) {
	w, id := late(t, job.Rerun, 50*time.Minute, "5", 3)
	w.takesAt = func(job.SiteID, job.TaskID) outcome { return outcome{run: time.Minute} }
	if !w.run(5 * time.Hour) {
		w.story()
		t.Fatal("the bag has not ended")
	}
	if b := w.sites[0].state.Bag(id); b.Failed.Count() != 3 {
		t.Errorf("%d done, %d failed", b.Done.Count(), b.Failed.Count())
	}
	w.settle()
}

// What has ended in time has missed nothing: neither bundles that are gone nor tasks whose
// files are still on their way.
func TestDeadlineOfWhatHasEnded(t *testing.T) {
	for _, hung := range []bool{false, true} {
		w, id := late(t, job.Rerun, 10*time.Second, "30", 60)
		w.sites[0].hung = hung // nothing comes home meanwhile
		w.run(3 * time.Minute)
		w.sites[0].hung = false
		if c := w.sites[0].engine.Views().Counters(); c.DeadlinesMissed != 0 {
			t.Errorf("hung %v: %d deadlines were missed", hung, c.DeadlinesMissed)
		}
		if !hung && !w.ended() {
			t.Error("the bag has not ended")
		}
		for _, s := range w.sites[0].state.Bag(id).Sums.Sites {
			if s.Lost > 0 {
				t.Errorf("hung %v: %d runs were lost at %s", hung, s.Lost, s.Site)
			}
		}
	}
}
