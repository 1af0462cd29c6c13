package meta_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"kith/internal/job"
	"kith/meta"
	"kith/store"
)

// levelWorld is a world whose first site is of no level and has the bags; the others are levels 1, 2,
// ... in their order, with T_e of one, two, ... minutes and T_q of twice that.
func levelWorld(t *testing.T, seed uint64, procs ...int32) *world {
	at := 0
	return newWorld(t, seed, func(c *meta.Config) {
		if at > 0 {
			run := time.Duration(at) * time.Minute
			c.Level = meta.LevelPolicy{Rank: at, Queue: 2 * run, Run: run, Beta: 1}
		}
		at++
	}, procs...)
}

func unknownTasks(n uint32) meta.SubmitBag {
	return meta.SubmitBag{Token: 1, Indices: tasks(n), Request: job.Request{
		User: "ada", Processors: 1, Walltime: job.MaxWalltime, Unknown: true, Level: 1, OnSiteLost: job.Rerun,
	}}
}

// A bag of which some tasks are too long for its level goes down: what has ended stays so, what ran runs
// once more, at the next level, and no site runs a task that is of another level.
func TestBagGoesDown(t *testing.T) {
	w := levelWorld(t, 1, 4, 4, 8, 8)
	var ran []string
	w.takesAt = func(site job.SiteID, id job.TaskID) outcome {
		ran = append(ran, string(site))
		if id.Ordinal%5 == 4 {
			return outcome{run: 100 * time.Second}
		}
		return outcome{run: time.Second}
	}
	id := w.sites[0].submit(unknownTasks(20))
	if !w.run(time.Hour) {
		w.story()
		t.Fatalf("the bag has not ended: %v", w.twice)
	}
	b := w.sites[0].state.Bag(id)
	if b.State != job.BagCompleted || b.Done.Count() != 20 || b.Level != 2 || len(b.Demotions) != 1 {
		t.Errorf("%v at level %d with %d done, %+v", b.State, b.Level, b.Done.Count(), b.Demotions)
	}
	if slices.Contains(ran, "alpha") || slices.Contains(ran, "delta") || !slices.Contains(ran, "beta") || !slices.Contains(ran, "gamma") {
		t.Errorf("tasks ran at %v", ran)
	}
	if d := b.Demotions[0]; d.From != 1 || d.To != 2 || d.Reason != job.LevelOverdue || d.Used < time.Minute || d.Used > 62*time.Second {
		t.Errorf("it went down: %+v", d)
	}
	for n := range uint32(20) {
		task := job.TaskID{Bag: id, Ordinal: n}
		if want := map[bool]int{true: 2, false: 1}[n%5 == 4]; w.starts[task] != want {
			t.Errorf("task %d began %d times, not %d", n, w.starts[task], want)
		}
	}
	if b.Sums.Failures != nil {
		t.Errorf("what a level stops has failed: %+v", b.Sums.Failures)
	}
	w.settle()
}

// At the last level what has not ended is cancelled with the reason, and results stay.
func TestBagEndsAtLastLevel(t *testing.T) {
	w := levelWorld(t, 2, 4, 4, 4)
	w.takes = func(id job.TaskID) outcome {
		if id.Ordinal%2 == 1 {
			return outcome{run: time.Hour}
		}
		return outcome{run: time.Second}
	}
	id := w.sites[0].submit(unknownTasks(6))
	if !w.run(time.Hour) {
		w.story()
		t.Fatalf("the bag has not ended: %v", w.twice)
	}
	b := w.sites[0].state.Bag(id)
	act, _ := b.LastAct(store.ActCancel)
	if b.State != job.BagCancelled || b.Level != 2 || b.Done.Count() != 3 || b.Cancelled.Count() != 3 || !strings.Contains(act.Reason, "level 2") {
		t.Errorf("%v at level %d with %d done, %d cancelled: %q", b.State, b.Level, b.Done.Count(), b.Cancelled.Count(), act.Reason)
	}
	for n := range uint32(6) {
		if want := 1 + int(n%2); w.starts[job.TaskID{Bag: id, Ordinal: n}] != want {
			t.Errorf("task %d began %d times, not %d", n, w.starts[job.TaskID{Bag: id, Ordinal: n}], want)
		}
	}
	w.settle()
}

// A level without a site is passed over, and one whose sites have all gone is once that is certain. An
// origin that is restarted goes on at the level where it was, with the time that was used there.
func TestBagPassesOverLevels(t *testing.T) {
	at := 0
	w := newWorld(t, 3, func(c *meta.Config) {
		if at > 0 { // beta is level 2, gamma level 5
			c.Level = meta.LevelPolicy{Rank: 3*at - 1, Queue: time.Hour, Run: time.Duration(at) * 2 * time.Minute, Beta: 1}
		}
		at++
	}, 2, 2, 8)
	w.takes = func(id job.TaskID) outcome { return outcome{run: time.Duration(1+90*(id.Ordinal%2)) * time.Second} }
	id := w.sites[0].submit(unknownTasks(8))
	bag := func() *store.Bag { return w.sites[0].state.Bag(id) }
	w.run(100 * time.Second)
	if b := bag(); b.Level != 2 || b.Begun == 0 || len(b.Demotions) != 1 || b.Demotions[0].Reason != job.Level || b.Demotions[0].Used != 0 {
		t.Fatalf("level 1 has no site: %+v", b.BagLevel)
	}
	before := bag().BagLevel
	w.sites[0].stop(true, 5*time.Second)
	w.run(10 * time.Second)
	if b := bag(); b.Begun != before.Begun || b.Level != 2 {
		t.Errorf("after a restart: %+v, before %+v", b.BagLevel, before)
	}
	if !w.run(time.Hour) {
		w.story()
		t.Fatalf("the bag has not ended: %v", w.twice)
	}
	b := bag()
	if d := b.Demotions; b.State != job.BagCompleted || b.Level != 5 || len(d) != 3 || d[1].Used < 2*time.Minute || d[1].Used > 125*time.Second || d[1].To != 3 || d[2].To != 5 {
		t.Errorf("%v at %+v", b.State, b.BagLevel)
	}
	w.settle()
}
