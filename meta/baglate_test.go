package meta_test

import (
	"testing"
	"time"

	"kith/internal/job"
	"kith/meta"
	"kith/meta/bags"
	"kith/store"
)

// alone is a site of so many processors with a bag that races, whose tasks are to take no
// more than a minute. The first runs of each task take very long, the one after them 10 s.
func alone(t *testing.T, procs int32, long int, n uint32) (*world, job.ID) {
	w := newWorld(t, 7, withPolicies, procs)
	w.mayRace = true
	w.takes = func(id job.TaskID) outcome {
		if w.starts[id] <= long {
			return outcome{run: 50 * time.Minute}
		}
		return outcome{run: 10 * time.Second}
	}
	return w, w.sites[0].submit(meta.SubmitBag{
		Token: 1, Request: job.Request{User: "ada", Name: "x", Processors: 1, Walltime: time.Hour, OnSiteLost: job.Race}, Indices: tasks(n),
		Policies: texts(map[bags.Text]string{bags.Deadline: "60"}),
	})
}

// What still runs of a task in a bundle that was taken back stops when the task has ended:
// by another run, by its user, or as it was lost too often. The own site is told, too.
func TestLateRunsAreStopped(t *testing.T) {
	for name, c := range map[string]struct {
		procs int32
		long  int
		tasks uint32
		act   func(*world, job.ID)
		state job.BagState
	}{
		"the second run is first": {4, 1, 2, nil, job.BagCompleted},
		"it waits and is cancelled": {1, 1, 1, func(w *world, id job.ID) {
			w.run(2 * time.Minute)
			w.sites[0].feed(meta.CancelBag{Token: 2, Bag: id})
		}, job.BagCancelled},
		"some of it are cancelled": {2, 1, 2, func(w *world, id job.ID) {
			w.run(2 * time.Minute)
			some := job.TaskRange(0, 2)
			w.sites[0].feed(meta.CancelBag{Token: 2, Bag: id, Tasks: &some})
		}, job.BagCancelled},
		"it is lost too often": {20, store.MaxTaskLosses, 1, nil, job.BagFailed},
	} {
		t.Run(name, func(t *testing.T) {
			w, id := alone(t, c.procs, c.long, c.tasks)
			if c.act != nil {
				c.act(w, id)
			}
			if !w.run(30 * time.Minute) {
				w.story()
				t.Fatal("the bag has not ended")
			}
			if b := w.sites[0].state.Bag(id); b.State != c.state {
				t.Errorf("%v with %d done, %d failed", b.State, b.Done.Count(), b.Failed.Count())
			}
			w.settle()
		})
	}
}

// With itself a site compares nothing: after a restart it asks its own bags at once, and runs
// nothing of a bundle that they do not know.
func TestOwnBundleThatIsUnknown(t *testing.T) {
	w, id := alone(t, 2, 0, 1)
	if !w.run(time.Hour) {
		t.Fatal("the bag has not ended")
	}
	alpha := w.sites[0]
	b := alpha.state.Bag(id)
	started := w.starts[job.TaskID{Bag: id}]
	unknown := store.AcceptBundle{Bundle: job.AttemptID{Job: id, Number: b.Number + 1}, Request: b.Request, BootID: "boot-1", Tasks: job.TaskRange(0, 1), Time: w.now}
	if err := store.Record(alpha.state, unknown); err != nil {
		t.Fatal(err)
	}
	w.takes = func(job.TaskID) outcome { return outcome{run: 50 * time.Minute} }
	alpha.stop(false, time.Second)
	w.settle()
	if n := w.starts[job.TaskID{Bag: id}]; n != started {
		t.Errorf("a task of a bundle that nobody knows has begun")
	}
}
