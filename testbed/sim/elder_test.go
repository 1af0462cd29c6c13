package sim_test

import (
	"testing"
	"time"

	"kith/internal/job"
	"kith/testbed/sim"
)

const narrowWalltime = time.Minute

// wideAmongNarrow is a job of two processors of a site that is too small or busy. It
// can run at one other site only, where a third one sends short narrow jobs without end. It
// returns how long the wide one waits within an hour, and how many began meanwhile.
func wideAmongNarrow(t *testing.T, patience time.Duration, origin int32) (wait time.Duration, began int) {
	t.Helper()
	cfg := spread(1, origin, 2, 1)
	for i := range cfg.Sites {
		cfg.Sites[i].Scheduler.Patience = patience
		cfg.Sites[i].Scheduler.StartMargin = cfg.Sites[i].Meta.Timing.Claim
	}
	begin := sim.Start.Add(30 * time.Second)
	var w *sim.World
	cfg.Began = func(_ job.SiteID, a job.AttemptID, _ int) {
		switch {
		case a.Job.Origin == "s0" && a.Job.Seq == 2:
			wait = w.Now().Sub(begin)
		case w.Now() > begin && wait == 0:
			began++
		}
	}
	w = newWorld(t, cfg)
	submit := func(at job.Time, site job.SiteID, processors, copies int32, run time.Duration) {
		r := request(processors, max(run, narrowWalltime))
		r.Copies = copies
		w.Submit(at, site, sim.Submission{Request: r, RunTime: run})
	}
	submit(sim.Start.Add(19*time.Second), "s0", origin, 1, 2*time.Hour)
	submit(sim.Start.Add(19*time.Second), "s2", 1, 1, 2*time.Hour)
	for at := sim.Start.Add(20 * time.Second); at < sim.Start.Add(time.Hour); at = at.Add(1400 * time.Millisecond) {
		submit(at, "s2", 1, 3, 3*time.Second)
	}
	submit(begin, "s0", 2, 3, time.Second)
	if err := w.RunWhile(sim.Start.Add(time.Hour), func() bool { return wait == 0 }); err != nil {
		t.Fatal(err)
	}
	return wait, began
}

// H7: a job wider than its origin starts under an endless stream of narrow ones,
// within twice the longest walltime ahead of it; one whose origin is busy within that
// and the patience.
func TestWideJobStartsAmongNarrowOnes(t *testing.T) {
	const patience = 10 * time.Minute
	for _, c := range []struct {
		origin int32
		bound  time.Duration
	}{{1, 2 * narrowWalltime}, {2, patience + 2*narrowWalltime}} {
		if wait, began := wideAmongNarrow(t, 0, c.origin); wait > 0 {
			t.Errorf("without patience it starts after %v, overtaken by %d: the stream is not what it should be", wait, began)
		}
		wait, began := wideAmongNarrow(t, patience, c.origin)
		t.Logf("from a site of %d it starts after %v, %d others began meanwhile", c.origin, wait, began)
		if wait == 0 || wait > c.bound {
			t.Errorf("from a site of %d it starts after %v (0: not within an hour), overtaken by %d", c.origin, wait, began)
		}
	}
}
