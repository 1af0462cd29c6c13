package meta_test

import (
	"testing"
	"time"

	"kith/internal/job"
	"kith/meta"
	"kith/meta/bags"
)

// bagOf submits a bag of n tasks to the first site.
func (w *world) bagOf(n uint32, tune func(*meta.SubmitBag)) job.ID {
	ev := meta.SubmitBag{Token: 1, Request: job.Request{User: "ada", Processors: 1, Walltime: time.Minute}, Indices: tasks(n)}
	if tune != nil {
		tune(&ev)
	}
	return w.sites[0].submit(ev)
}

func (w *world) mustEnd(d time.Duration) {
	w.t.Helper()
	if !w.run(d) || len(w.twice) > 0 {
		w.story()
		w.t.Fatalf("the bags have not ended: %v", w.twice)
	}
	w.settle()
	if w.t.Failed() {
		w.story()
	}
}

// A cancelled bag ends as soon as its sites have stopped what runs, also with messages lost.
func TestBagCancelled(t *testing.T) {
	w := newWorld(t, 1, nil, 4, 8, 3)
	w.lost = 0.3
	w.takes = func(job.TaskID) outcome { return outcome{run: 50 * time.Second} }
	id := w.bagOf(1000, nil)
	w.run(2 * time.Minute)
	w.sites[0].feed(meta.CancelBag{Token: 2, Bag: id, Reason: "no more"})
	before := w.now
	w.mustEnd(time.Hour)
	b := w.sites[0].state.Bag(id)
	if b.State != job.BagCancelled || b.Cancelled.Count() == 0 || b.Done.Count() == 0 {
		t.Errorf("%v with %d done, %d cancelled", b.State, b.Done.Count(), b.Cancelled.Count())
	}
	if took := b.Closed.Sub(before); took > time.Minute { // each of its messages may be lost a few times, and is repeated after 5 s
		t.Errorf("it took %v", took)
	}
}

// Some tasks are cancelled, the others run.
func TestTasksCancelled(t *testing.T) {
	w := newWorld(t, 1, nil, 4, 8)
	w.takes = func(job.TaskID) outcome { return outcome{run: 10 * time.Second} }
	id := w.bagOf(100, nil)
	w.run(15 * time.Second)
	some := job.TaskRange(10, 90)
	w.sites[0].feed(meta.CancelBag{Token: 2, Bag: id, Tasks: &some})
	w.mustEnd(time.Hour)
	b := w.sites[0].state.Bag(id)
	if b.State != job.BagCancelled || b.Done.Count()+b.Cancelled.Count() != 100 || b.Cancelled.Count() < 60 || b.Done.Count() < 20 {
		t.Errorf("%v with %d done, %d cancelled", b.State, b.Done.Count(), b.Cancelled.Count())
	}
}

// Of a bag on hold nothing begins once its sites have heard; what runs ends. Released, it
// goes on.
func TestBagHeld(t *testing.T) {
	w := newWorld(t, 1, nil, 4, 8)
	w.takes = func(job.TaskID) outcome { return outcome{run: 3 * time.Second} }
	id := w.bagOf(200, nil)
	w.run(10 * time.Second)
	w.sites[0].feed(meta.HoldBag{Token: 2, Bag: id})
	w.run(time.Second)
	began := w.began()
	w.run(time.Minute)
	b := w.sites[0].state.Bag(id)
	if b.State != job.BagOnHold || w.began() != began || b.Given() != 0 {
		t.Errorf("%v: %d tasks began, %d are with sites", b.State, w.began()-began, b.Given())
	}
	w.sites[0].feed(meta.ReleaseBag{Token: 3, Bag: id})
	w.mustEnd(time.Hour)
	if b.State != job.BagCompleted {
		t.Errorf("it ended %v", b.State)
	}
}

// began counts the runs.
func (w *world) began() int {
	n := 0
	for _, k := range w.starts {
		n += k
	}
	return n
}

// A bag that only fails is held with the reason; released, it is not held again. Tasks that
// failed run again if their user wants.
func TestBagThatOnlyFails(t *testing.T) {
	w := newWorld(t, 1, nil, 4, 8)
	code := int32(1)
	w.takes = func(job.TaskID) outcome { return outcome{time.Second, code} }
	id := w.bagOf(500, nil)
	w.run(time.Minute)
	b := w.sites[0].state.Bag(id)
	if b.State != job.BagOnHold || len(b.Acts) == 0 || b.Acts[0].Reason == "" {
		t.Fatalf("%v, %+v", b.State, b.Acts)
	}
	w.sites[0].feed(meta.ReleaseBag{Token: 2, Bag: id})
	w.mustEnd(time.Hour)
	if b.State != job.BagFailed || b.Failed.Count() != 500 {
		t.Fatalf("%v, %d failed", b.State, b.Failed.Count())
	}
	code = 0
	again := meta.RetryTasks{Token: 3, Bag: id, Tasks: b.Failed.Clone(), RequestID: "r"}
	w.sites[0].feed(again)
	w.mustEnd(time.Hour)
	w.sites[0].feed(again) // its answer was lost
	if b.State != job.BagCompleted || b.Done.Count() != 500 {
		t.Errorf("%v, %d done", b.State, b.Done.Count())
	}
}

// A site that drains gives back what has not begun, and the others go on.
func TestBagWhileASiteDrains(t *testing.T) {
	w := newWorld(t, 1, nil, 2, 8, 4)
	w.takes = func(job.TaskID) outcome { return outcome{run: 100 * time.Millisecond} }
	id := w.bagOf(3000, nil)
	w.run(3 * time.Second)
	beta := w.sites[1]
	beta.feed(meta.SetDrain{Token: 1, On: true})
	w.run(time.Second)
	if held := beta.state.HeldBundles(); len(held) > 0 || beta.busy > 0 {
		t.Errorf("it still holds %d bundles, and runs on %d processors", len(held), beta.busy)
	}
	w.mustEnd(time.Hour)
	if b := w.sites[0].state.Bag(id); b.Sums.Runs != 3000 {
		t.Errorf("%d runs", b.Sums.Runs)
	}
}

// Guests that were let go ahead of a home job yield at once to the next one, which gets the
// processors of all of them together.
func TestGuestsThatWentAheadYield(t *testing.T) {
	w := newWorld(t, 1, func(c *meta.Config) { c.Bags.Yield = bags.YieldNow }, 1, 8)
	w.takes = func(job.TaskID) outcome { return outcome{run: 20 * time.Second} }
	w.bagOf(200, nil)
	beta := w.sites[1]
	for _, width := range []int32{4, 8} { // the second waits for the first
		beta.feed(meta.Submit{Token: 1, Request: job.Request{Processors: width, Copies: 1, Walltime: time.Hour}})
	}
	w.run(5 * time.Second)
	if beta.busy < 3 {
		t.Fatalf("tasks run on %d processors beside the job", beta.busy)
	}
	home := beta.state.NextID()
	beta.feed(meta.Submit{Token: 2, Request: job.Request{Processors: 4, Copies: 1, Walltime: time.Minute}})
	before := w.now
	for beta.state.Job(home).State == job.Queued && w.now < before.Add(10*time.Minute) {
		w.run(100 * time.Millisecond)
	}
	if waited := w.now.Sub(before); waited > time.Second {
		t.Errorf("the home job waited %v", waited)
	}
}

// Jobs of a site's own users wait for the present tasks of other sites at most, or not even
// for those, but not for the turns of their pilots.
func TestGuestsYield(t *testing.T) {
	for yield, most := range map[bags.Yield]time.Duration{bags.YieldTask: 21 * time.Second, bags.YieldNow: time.Second} {
		w := newWorld(t, 1, func(c *meta.Config) { c.Bags.Yield = yield }, 1, 8)
		w.takes = func(job.TaskID) outcome { return outcome{run: 20 * time.Second} }
		id := w.bagOf(100, nil)
		w.run(50 * time.Second)
		beta := w.sites[1]
		if beta.busy != 8 {
			t.Fatalf("tasks run on %d processors", beta.busy)
		}
		home := beta.state.NextID()
		beta.feed(meta.Submit{Token: 1, Request: job.Request{Processors: 8, Copies: 1, Walltime: time.Minute}})
		before := w.now
		for beta.state.Job(home).State == job.Queued && w.now < before.Add(time.Hour) {
			w.run(100 * time.Millisecond)
		}
		if waited := w.now.Sub(before); waited > most {
			t.Errorf("yield %d: the home job waited %v", yield, waited)
		}
		w.mustEnd(time.Hour)
		if b := w.sites[0].state.Bag(id); b.State != job.BagCompleted || len(b.Tries) > 0 {
			t.Errorf("yield %d: %v", yield, b.State)
		}
	}
}

// What idle sites could run is recalled from those that have it in stock.
func TestRecall(t *testing.T) {
	w := newWorld(t, 1, nil, 1, 2, 16)
	w.takes = func(id job.TaskID) outcome {
		if id.Ordinal < 2000 {
			return outcome{run: time.Millisecond}
		}
		return outcome{run: 40 * time.Second} // whoever has these in stock has far too many
	}
	id := w.bagOf(2100, nil)
	w.mustEnd(time.Hour)
	b := w.sites[0].state.Bag(id)
	if took := b.Closed.Sub(b.Submitted); took > 7*time.Minute {
		t.Errorf("100 tasks of 40 s on 19 processors took %v", took)
	}
}

// Under "race" the tasks of a site that is out of reach run elsewhere beside it, and the
// first result counts.
func TestBagRaces(t *testing.T) {
	w := newWorld(t, 1, nil, 2, 4, 4)
	w.mayRace = true
	w.takes = func(job.TaskID) outcome { return outcome{run: 50 * time.Second} }
	id := w.bagOf(60, func(ev *meta.SubmitBag) { ev.Request.OnSiteLost = job.Race })
	w.run(55 * time.Second)
	alpha, beta := w.sites[0], w.sites[1]
	w.cut(alpha, beta)
	w.run(80 * time.Second)
	b := alpha.state.Bag(id)
	late := 0
	for tb := range b.Bundles {
		if tb.Late {
			late++
		}
	}
	if late == 0 {
		t.Error("no bundle was taken back")
	}
	w.connect(alpha, beta)
	w.mustEnd(time.Hour)
	if b.State != job.BagCompleted || b.Done.Count() != 60 {
		t.Errorf("%v with %d done", b.State, b.Done.Count())
	}
}

// A site that is given up loses its tasks; what they were is run again where that is wanted.
func TestBagOfASiteThatIsGivenUp(t *testing.T) {
	for _, lost := range []job.OnSiteLost{job.Wait, job.Rerun} {
		w := newWorld(t, 1, nil, 2, 4)
		w.takes = func(job.TaskID) outcome { return outcome{run: 30 * time.Second} }
		id := w.bagOf(40, func(ev *meta.SubmitBag) { ev.Request.OnSiteLost = lost })
		w.run(45 * time.Second)
		alpha, beta := w.sites[0], w.sites[1]
		w.cut(alpha, beta)
		alpha.feed(meta.ForgetSite{Token: 9, Site: "beta"})
		w.mayRace = true // the operator has said that it is gone
		if !w.run(time.Hour) {
			w.story()
			t.Fatal("the bag has not ended")
		}
		b := alpha.state.Bag(id)
		if want := map[job.OnSiteLost]job.BagState{job.Wait: job.BagFailed, job.Rerun: job.BagCompleted}[lost]; b.State != want {
			t.Errorf("%v: %v with %d done, %d failed", lost, b.State, b.Done.Count(), b.Failed.Count())
		}
	}
}

// A site that cannot start tasks gives them back and tries one now and then; no task fails
// for it, and when it can start again it takes part.
func TestBagAtASiteThatCannotStart(t *testing.T) {
	w := newWorld(t, 1, nil, 2, 8)
	w.takes = func(job.TaskID) outcome { return outcome{run: time.Second} }
	beta := w.sites[1]
	beta.broken = true
	id := w.bagOf(3000, nil)
	w.run(10 * time.Minute)
	if beta.failed > 30 || beta.failed < 8 {
		t.Errorf("%d starts have failed", beta.failed)
	}
	b := w.sites[0].state.Bag(id)
	if n := b.Done.Count(); n < 1100 {
		t.Errorf("%d tasks ended at the other site", n)
	}
	beta.broken = false
	w.run(6 * time.Minute)
	if n := b.Done.Count(); n < 2500 {
		t.Errorf("%d tasks have ended since it can start again", n)
	}
	w.mustEnd(time.Hour)
	if b.State != job.BagCompleted || b.Sums.Runs != 3000 {
		t.Errorf("%v in %d runs", b.State, b.Sums.Runs)
	}
	if len(beta.left) > 0 {
		t.Errorf("what %d of %d starts that failed made is there for good", len(beta.left), beta.failed)
	}
}

// A host whose results are not taken begins no tasks without end.
func TestBagWhoseOriginTakesNoResults(t *testing.T) {
	w := newWorld(t, 1, nil, 1, 64)
	w.takes = func(job.TaskID) outcome { return outcome{run: time.Millisecond} }
	w.sites[0].hung = true
	w.bagOf(40_000, nil)
	w.run(5 * time.Minute)
	if n := w.began(); n > 17_000 {
		t.Errorf("%d tasks began", n)
	}
	w.sites[0].hung = false
	w.run(5 * time.Minute)
	if n := w.began(); n < 40_000 {
		t.Errorf("%d tasks began since it takes results", n)
	}
}

// A site of an earlier version is offered nothing, and does not count as one that could run
// what failed elsewhere.
func TestBagBesideAnOlderSite(t *testing.T) {
	w := newWorld(t, 1, nil, 2, 8)
	w.cut(w.sites[0], w.sites[1])
	w.sites[1].old = true
	w.connect(w.sites[0], w.sites[1])
	w.takes = func(job.TaskID) outcome { return outcome{time.Second, 1} }
	id := w.bagOf(100, func(ev *meta.SubmitBag) { ev.Retries = 1 })
	w.run(40 * time.Second)
	if b := w.sites[0].state.Bag(id); b.State != job.BagOnHold || b.Failed.Count() == 0 {
		t.Errorf("%v with %d failed: what fails at the only site is tried again there", b.State, b.Failed.Count())
	}
}

// A site that renews its leases and ends nothing does not keep its tasks for ever.
func TestBagAtASiteThatOnlyRenews(t *testing.T) {
	w := newWorld(t, 1, func(c *meta.Config) { c.Timing.Overdue = 10 * time.Minute }, 1, 2)
	w.mayRace = true // it runs them nowhere
	stuck := true
	w.takes = func(job.TaskID) outcome {
		if stuck {
			return outcome{run: 24 * time.Hour}
		}
		return outcome{run: time.Second}
	}
	w.sites[0].feed(meta.Submit{Token: 1, Request: job.Request{Processors: 1, Copies: 1, Walltime: time.Hour}})
	id := w.bagOf(2, func(ev *meta.SubmitBag) { ev.Request.OnSiteLost = job.Rerun })
	w.run(10 * time.Second)
	stuck = false
	b := w.sites[0].state.Bag(id)
	w.run(10 * time.Minute)
	if b.State != job.BagOpen {
		t.Errorf("after 10 min it is %v", b.State)
	}
	if !w.run(10 * time.Minute) {
		w.story()
		t.Error("the bag has not ended")
	}
}

// A task whose output did not come home is told from others.
func TestOutputOfTasksThatIsLost(t *testing.T) {
	w := newWorld(t, 1, nil, 4, 8)
	w.loses = func(task uint32) bool { return task%3 == 1 }
	id := w.bagOf(30, nil)
	w.mustEnd(time.Hour)
	if len(w.results) != 30 {
		t.Fatal(id, len(w.results))
	}
	for _, r := range w.results {
		if r.Result.FilesLost != (r.Result.Ordinal%3 == 1) {
			t.Errorf("%+v", r.Result)
		}
	}
}

// Tasks that are cancelled end soon although their origin, their host or its machine dies
// before any word of it has left or been acted upon; the others of their bundles run on.
func TestTasksCancelledBeforeACrash(t *testing.T) {
	for name, crash := range map[string]func(w *world){
		"origin":                func(w *world) { w.sites[0].stop(false, time.Second) },
		"host":                  func(w *world) { w.sites[1].stop(false, time.Second) },
		"both":                  func(w *world) { w.sites[0].stop(false, time.Second); w.sites[1].stop(false, 2*time.Second) },
		"host that was told":    func(w *world) { w.run(10 * time.Millisecond); w.sites[1].stop(false, time.Second) },
		"machine of the origin": func(w *world) { w.sites[0].stop(true, time.Second) },
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, 1, nil, 2, 8)
			w.takes = func(job.TaskID) outcome { return outcome{run: 50 * time.Minute} }
			id := w.bagOf(10, func(ev *meta.SubmitBag) { ev.Request.Walltime = time.Hour })
			w.run(15 * time.Second)
			some := job.TaskRange(0, 10)
			for _, kept := range []uint32{2, 5, 8} {
				some.Remove(kept)
			}
			w.sites[0].feed(meta.CancelBag{Token: 2, Bag: id, Tasks: &some})
			crash(w)
			w.run(20 * time.Second)
			b := w.sites[0].state.Bag(id)
			if b.Cancelled.Count() != 7 || !b.Stopping.Empty() {
				t.Errorf("%d tasks are cancelled, %v are still to be", b.Cancelled.Count(), &b.Stopping)
			}
			for task, n := range w.running {
				if n > 0 && some.Has(task.Ordinal) {
					t.Errorf("%v runs", task)
				}
			}
			if name != "machine of the origin" && (w.running[job.TaskID{Bag: id, Ordinal: 2}] != 1 || w.running[job.TaskID{Bag: id, Ordinal: 5}] != 1) {
				t.Errorf("of those that were not cancelled %v run", w.running)
			}
			w.mustEnd(4 * time.Hour)
		})
	}
}

// A home job of several processors that stands behind another, and that could go ahead of it,
// waits for the present tasks of guests at most: those that begin one by one do not keep its
// processors for ever.
func TestGuestsMakeRoomBehindTheHead(t *testing.T) {
	w := newWorld(t, 1, func(c *meta.Config) { c.Bags.Yield = bags.YieldTask }, 1, 8)
	w.takes = func(id job.TaskID) outcome {
		return outcome{run: 20*time.Second + time.Duration(id.Ordinal*7919%20_000)*time.Millisecond}
	}
	w.jobs = 3 * time.Hour
	w.bagOf(3000, nil)
	beta := w.sites[1]
	for _, width := range []int32{4, 8} { // the second waits for the first
		beta.feed(meta.Submit{Token: 1, Request: job.Request{Processors: width, Copies: 1, Walltime: 4 * time.Hour}})
	}
	w.run(3 * time.Minute)
	if beta.busy < 3 {
		t.Fatalf("tasks run on %d processors beside the job", beta.busy)
	}
	home := beta.state.NextID()
	beta.feed(meta.Submit{Token: 2, Request: job.Request{Processors: 3, Copies: 1, Walltime: 2 * time.Hour}})
	before := w.now
	for beta.state.Job(home).State == job.Queued && w.now < before.Add(10*time.Minute) {
		w.run(100 * time.Millisecond)
	}
	if waited := w.now.Sub(before); waited > 41*time.Second {
		t.Errorf("the home job waited %v", waited)
	}
	w.run(2 * time.Minute)
	if beta.busy != 1 {
		t.Errorf("tasks run on %d processors beside both jobs", beta.busy)
	}
}
