package store_test

import (
	"bytes"
	"errors"
	"slices"
	"testing"

	"kith/internal/job"
	"kith/store"
	"kith/store/codec"
	"kith/store/memstore"
)

func files(task uint32, set string) store.TaskFiles {
	return store.TaskFiles{Ordinal: task, Set: []byte(set)}
}

// What tasks left has bounds, at the host as at the origin, and belongs to results.
func TestFilesOfTasksAreBounded(t *testing.T) {
	s, b := bagOf(t, 10, nil)
	id := grant(t, s, b, "alpha", 10)
	must(t, s, store.AcceptBundle{Bundle: id, Tasks: set(t, "0-9")})
	long := func(task uint32, n int) store.TaskFiles { return store.TaskFiles{Ordinal: task, Set: make([]byte, n)} }
	for name, wrong := range map[string][]store.TaskFiles{
		"of no result": {files(3, "x")},
		"twice":        {files(1, "x"), files(1, "y")},
		"empty":        {files(1, "")},
		"too long":     {long(1, store.MaxTaskFiles+1)},
		"too much":     {long(0, store.MaxTaskFiles), long(1, store.MaxTaskFiles), long(2, 1)},
	} {
		for _, c := range []store.Command{
			store.EndTasks{Bundle: id, Results: results(job.Success, 0, 1, 2), Files: wrong},
			store.RecordResults{Bundle: id, Site: "alpha", Batch: 1, Results: results(job.Success, 0, 1, 2), Files: wrong},
		} {
			if err := s.Apply(c); !errors.Is(err, store.ErrBounds) {
				t.Errorf("%s: %T: %v, want ErrBounds", name, c, err)
			}
		}
	}
	most := []store.TaskFiles{long(0, store.MaxTaskFiles), long(1, store.MaxTaskFiles)}
	must(t, s, store.EndTasks{Bundle: id, Results: results(job.Success, 0, 1, 2), Files: most},
		store.RecordResults{Bundle: id, Site: "alpha", Batch: 1, Results: results(job.Success, 0, 1, 2), Files: most})
	if h := s.Held(id); len(h.Unacked) != 1 || len(h.Unacked[0].Files) != 2 {
		t.Error("the host does not have what its tasks left")
	}
}

// At the origin what a task left is on disk only, that of its latest result.
func TestFilesOfTasksAreOfTheLatestResult(t *testing.T) {
	var disk memstore.Disk
	backend, err := memstore.Open(&disk, "alpha", 9)
	if err != nil {
		t.Fatal(err)
	}
	s, b := bagOf(t, 10, func(c *store.SubmitBag) { c.Retries = 1 })
	run := func(kind job.OutcomeKind, tasks job.TaskSet, left ...store.TaskFiles) {
		t.Helper()
		id := job.AttemptID{Job: b.ID, Number: b.Number + 1}
		must(t, s, store.GrantBundle{Bundle: id, Site: "beta", Tasks: tasks},
			store.RecordResults{Bundle: id, Site: "beta", Batch: 1, Results: results(kind, slices.Collect(tasks.All)...), Files: left})
		if err := backend.Seal(s).Commit(); err != nil {
			t.Fatal(err)
		}
	}
	want := func(what string, texts ...string) {
		t.Helper()
		var got []string
		for f, err := range store.AllTaskFiles(backend, b.ID) {
			if err != nil {
				t.Fatal(err)
			}
			one, err := backend.TaskFiles(b.ID, f.Ordinal)
			if err != nil || !bytes.Equal(one, f.Set) {
				t.Errorf("%s: task %d left %q, %v; in the list %q", what, f.Ordinal, one, err, f.Set)
			}
			got = append(got, string(f.Set))
		}
		if !slices.Equal(got, texts) {
			t.Errorf("%s: the tasks left %q, want %q", what, got, texts)
		}
	}
	run(job.Success, set(t, "0-3"), files(1, "one"), files(3, "three"))
	want("two tasks left something", "one", "three")
	run(job.Failure, set(t, "4"), files(4, "in vain"))
	want("a failed task that runs again", "one", "three")
	run(job.Failure, set(t, "4"), files(4, "why"))
	want("it failed for good", "one", "three", "why")
	must(t, s, store.RetryTasks{Bag: b.ID, Tasks: set(t, "1,3")})
	run(job.Success, set(t, "1,3"), files(1, "anew"))
	want("tasks that ran again, one without files", "anew", "why")
	must(t, s, store.CancelBag{Bag: b.ID}, store.CloseBag{Bag: b.ID}, store.PurgeBag{Bag: b.ID})
	if err := backend.Seal(s).Commit(); err != nil {
		t.Fatal(err)
	}
	want("the bag is purged")
}

// Results without files are written as they were when there were no files.
func TestTasksWithoutFilesCostNothing(t *testing.T) {
	s, b := bagOf(t, 300, nil)
	id := grant(t, s, b, "beta", 256)
	codec.Writes(s)
	must(t, s, store.RecordResults{Bundle: id, Site: "beta", Batch: 1, Results: results(job.Success, slices.Collect(s.TaskBundle(id).Tasks.All)...)})
	for _, w := range codec.Writes(s) {
		if w.Table == codec.TaskFiles {
			t.Errorf("a write to %s of %d bytes", w.Table, len(w.Value))
		}
	}
}

// A host that the origin does not answer keeps so many batches and no more; with the next
// acknowledgement it goes on. What goes back is told whatever waits.
func TestUnackedResultsAreBounded(t *testing.T) {
	s := store.NewState("alpha", 9)
	id := job.AttemptID{Job: job.ID{Origin: "beta", Generation: 4, Seq: 5}, Number: 6}
	must(t, s, store.AcceptBundle{Bundle: id, Tasks: job.TaskRange(0, 100)}, store.DropTasks{Bundle: id, Tasks: set(t, "99")})
	h := s.Held(id)
	for task := range uint32(store.MaxUnacked) {
		if h.Full() {
			t.Fatalf("it is full with %d batches", task)
		}
		must(t, s, store.EndTasks{Bundle: id, Results: results(job.Success, task)})
	}
	if !h.Full() {
		t.Error("it is not full")
	}
	refused(t, s, store.EndTasks{Bundle: id, Results: results(job.Success, 50)}, store.ErrFull)
	must(t, s, store.DropTasks{Bundle: id, Tasks: set(t, "98")}, store.ForgetTasks{Bundle: id, Batch: 2}, store.EndTasks{Bundle: id, Results: results(job.Success, 50)})
	if len(h.Unacked) != store.MaxUnacked+1 || !h.Full() || h.UnackedBatch(2) != nil || h.UnackedBatch(3) == nil {
		t.Errorf("%d batches wait, full: %v", len(h.Unacked), h.Full())
	}
}
