package meta_test

import (
	"errors"
	"testing"
	"time"

	"kith/internal/job"
	"kith/meta"
)

// spoiling is a world in which everything fails at beta at once, and a bag of alpha's.
func spoiling(t *testing.T, n uint32) (*world, job.ID) {
	w := newWorld(t, 3, nil, 4, 2, 4)
	w.takesAt = func(site job.SiteID, _ job.TaskID) outcome {
		if site == "beta" {
			return outcome{run: time.Second, code: 1}
		}
		return outcome{run: 20 * time.Second}
	}
	return w, w.sites[0].submit(meta.SubmitBag{
		Token: 1, Request: job.Request{User: "ada", Name: "x", Processors: 1, Walltime: time.Minute}, Indices: tasks(n), Retries: 20,
	})
}

func (w *world) failedAt(id job.ID, site job.SiteID) uint64 {
	for _, s := range w.sites[0].state.Bag(id).Sums.Sites {
		if s.Site == site {
			return s.Failed
		}
	}
	return 0
}

// A host that is held back is shown, gets few tasks, and as many as before once it is trusted:
// blame goes to the site that failed.
func TestTrustHost(t *testing.T) {
	w, id := spoiling(t, 600)
	w.run(5 * time.Minute)
	alpha := w.sites[0]
	views := alpha.engine.Views()
	held := views.Standings(w.now, 16)
	if n := views.HeldBack(w.now); n != 1 || len(held["beta"]) != 1 || !held["beta"][0].Held || held["gamma"][0].Held || held["alpha"][0].Held {
		t.Fatalf("%d hosts are held back: %+v", n, held)
	}
	before := w.failedAt(id, "beta")
	if before > 30 {
		t.Errorf("beta has spoilt %d tasks", before)
	}
	for _, ev := range []meta.TrustHost{{Token: 2, Site: "nowhere"}, {Token: 2, Site: "beta", Node: "n1"}} {
		if err := alpha.ask(ev); !errors.Is(err, meta.ErrUnknownSite) {
			t.Errorf("%+v: %v", ev, err)
		}
	}
	if err := alpha.ask(meta.TrustHost{Token: 2, Site: "beta"}); err != nil {
		t.Fatal(err)
	}
	if n := alpha.engine.Views().HeldBack(w.now); n != 0 {
		t.Errorf("%d hosts are held back that are trusted", n)
	}
	w.run(2 * time.Minute)
	if after := w.failedAt(id, "beta"); after < before+4 {
		t.Errorf("beta is trusted, and has got %d tasks since", after-before)
	}
	if n := alpha.engine.Views().HeldBack(w.now); n != 1 {
		t.Error("beta still fails and is not held back again")
	}
	if !w.run(time.Hour) {
		t.Error("the bag has not ended")
	}
	w.settle()
}

// After a restart of the origin a host is judged anew, and held back again.
func TestStandingsAfterRestart(t *testing.T) {
	w, id := spoiling(t, 600)
	w.run(3 * time.Minute)
	before := w.failedAt(id, "beta")
	w.sites[0].stop(false, time.Second)
	w.run(3 * time.Minute)
	if n := w.sites[0].engine.Views().HeldBack(w.now); n != 1 {
		t.Errorf("%d hosts are held back", n)
	}
	if again := w.failedAt(id, "beta") - before; again > 30 {
		t.Errorf("beta has spoilt %d more tasks", again)
	}
}

// A site that asks for tasks of two shapes is one host: a bag that fails everywhere and has no
// other site holds nobody back, so its user learns of it at once.
func TestOneSiteIsOneHost(t *testing.T) {
	w := newWorld(t, 1, nil, 4)
	w.takesAt = func(_ job.SiteID, task job.TaskID) outcome {
		if task.Bag.Seq == 1 {
			return outcome{run: time.Second, code: 1}
		}
		return outcome{run: 10 * time.Second}
	}
	for i, procs := range []int32{1, 2} {
		w.sites[0].submit(meta.SubmitBag{
			Token: uint64(i + 1), Request: job.Request{User: "ada", Name: "x", Processors: procs, Walltime: time.Minute}, Indices: tasks(16), MaxRunning: 2, Retries: 2,
		})
	}
	if !w.run(20 * time.Minute) {
		t.Errorf("not ended: %d hosts are held back", w.sites[0].engine.Views().HeldBack(w.now))
	}
}

// A task that fails everywhere, again and again, is no reason to hold its hosts back: they are
// compared by its first failure. So a bag whose last tasks are wrong ends as soon as they have failed.
func TestWhatFailsAgainTellsOfItsTask(t *testing.T) {
	w := newWorld(t, 3, nil, 2, 2, 2)
	w.takesAt = func(site job.SiteID, task job.TaskID) outcome {
		switch {
		case task.Ordinal%20 == 19:
			return outcome{run: 10 * time.Second, code: 1}
		case site == "alpha":
			return outcome{run: time.Second}
		}
		return outcome{run: time.Minute}
	}
	w.sites[0].submit(meta.SubmitBag{
		Token: 1, Request: job.Request{User: "ada", Name: "x", Processors: 1, Walltime: 2 * time.Minute}, Indices: tasks(200), Retries: 10,
	})
	if !w.run(10*time.Minute) || w.sites[0].engine.Views().HeldBack(w.now) > 0 {
		t.Errorf("after %v %d hosts are held back", w.now.Sub(job.Time(time.Hour)), w.sites[0].engine.Views().HeldBack(w.now))
		w.story()
	}
}
