package meta_test

import (
	"testing"
	"time"

	"kith/internal/job"
	"kith/meta"
	"kith/meta/bags"
)

// An operator who gives up a lost site has its tasks run again, also of a bag that waits for
// lost sites; it counts as one, however many bundles the site had.
func TestForgetSiteRequeuesTasks(t *testing.T) {
	for _, requeue := range []bool{true, false} {
		w := newWorld(t, 1, nil, 1, 4)
		w.takes = func(job.TaskID) outcome { return outcome{run: 30 * time.Second} }
		id := w.bagOf(8, func(ev *meta.SubmitBag) { ev.Request.OnSiteLost = job.Wait })
		w.run(5 * time.Second)
		alpha, beta := w.sites[0], w.sites[1]
		b := alpha.state.Bag(id)
		bundles := 0
		for x := range b.Bundles {
			if x.Site == beta.id {
				bundles++
			}
		}
		if bundles < 2 {
			t.Fatalf("%d bundles are at beta; the test needs two", bundles)
		}
		beta.stop(true, 1000*time.Hour)
		w.run(time.Second)
		var revoked int
		for _, f := range alpha.engine.Step(w.now, meta.ForgetSite{Site: beta.id, Requeue: requeue}) {
			if r, is := f.(meta.Reply); is {
				revoked = r.Forgotten.Revoked
			}
		}
		w.run(20 * time.Minute)
		want := map[bool]job.BagState{true: job.BagCompleted, false: job.BagFailed}[requeue]
		if b.State != want || revoked != 1 || (b.Failed.Count() == 0) != requeue {
			t.Errorf("requeue %v: %v, %d failed, %d given up", requeue, b.State, b.Failed.Count(), revoked)
		}
	}
}

// How a site runs tasks is taken up with its configuration.
func TestReconfigureBags(t *testing.T) {
	w := newWorld(t, 1, nil, 1, 4)
	w.takes = func(job.TaskID) outcome { return outcome{run: 10 * time.Second} }
	w.bagOf(1000, nil)
	w.run(time.Second)
	beta := w.sites[1]
	cfg := beta.cfg
	cfg.Bags = meta.Bags{Turn: time.Second, Yield: bags.YieldNow, Share: 0.5}
	beta.feed(meta.Reconfigure{Placement: cfg.Placement, Limits: cfg.Limits, Timing: cfg.Timing, Bags: cfg.Bags})
	w.run(25 * time.Minute) // pilots of before have had their turn, those that waited included
	for q := range beta.site.Running {
		if q.Copy.Request.Walltime > 3*time.Minute {
			t.Errorf("a pilot still has a turn of %v", q.Copy.Request.Walltime)
		}
	}
	w.mustEnd(time.Hour)
}
