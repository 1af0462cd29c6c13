package storetest

import (
	"bytes"
	"testing"
	"time"

	"kith/internal/job"
	"kith/store"
)

// testTaskFiles checks that what tasks left is read one by one and in stretches, which are
// bounded, and is of one bag.
func testTaskFiles(t *testing.T, open Opener) {
	b := open(t)
	s := load(t, b)
	if f, err := b.TaskFiles(s.NextID(), 0); f != nil || err != nil {
		t.Errorf("files of no bag: %q, %v", f, err)
	}
	if f, err := b.TaskFilesFrom(s.NextID(), 0); len(f) != 0 || err != nil {
		t.Errorf("files of no bag: %v, %v", f, err)
	}
	var bags []job.ID
	content := func(bag int, task uint32) []byte {
		return bytes.Repeat([]byte{byte(bag), byte(task)}, store.MaxTaskFiles/2)
	}
	for bag := range 3 {
		id := s.NextID()
		bags = append(bags, id)
		apply(t, s, store.SubmitBag{ID: id, Indices: job.FirstIndices(9), Request: job.Request{Processors: 1, Walltime: time.Hour}})
		for task := range uint32(9) {
			bundle := job.AttemptID{Job: id, Number: task + 1}
			apply(t, s, store.GrantBundle{Bundle: bundle, Site: "beta", Tasks: job.TaskRange(task, task+1)})
			c := store.RecordResults{Bundle: bundle, Site: "beta", Batch: 1, Results: []job.TaskResult{{Ordinal: task, Kind: job.Success}}}
			if task%2 == 0 {
				c.Files = []store.TaskFiles{{Ordinal: task, Set: content(bag, task)}}
			}
			apply(t, s, c)
			commit(t, b, s)
		}
	}
	closed(t, b)
	b = open(t)
	s = load(t, b)
	for bag, id := range bags {
		var tasks []uint32
		for f, err := range store.AllTaskFiles(b, id) {
			if err != nil || !bytes.Equal(f.Set, content(bag, f.Ordinal)) {
				t.Fatalf("bag %d: task %d left %d bytes, or others, %v", bag, f.Ordinal, len(f.Set), err)
			}
			tasks = append(tasks, f.Ordinal)
		}
		if len(tasks) != 5 || tasks[0] != 0 || tasks[4] != 8 {
			t.Errorf("bag %d: the list is of tasks %v", bag, tasks)
		}
		if first, err := b.TaskFilesFrom(id, 1); err != nil || len(first) != 2 || first[0].Ordinal != 2 {
			t.Errorf("bag %d: %d files from task 1 on, %v; they are of one MiB each", bag, len(first), err)
		}
		if f, err := b.TaskFiles(id, 2); err != nil || !bytes.Equal(f, content(bag, 2)) {
			t.Errorf("bag %d: task 2 left %d bytes, or others, %v", bag, len(f), err)
		}
		if f, err := b.TaskFiles(id, 1); f != nil || err != nil {
			t.Errorf("bag %d: task 1, which left nothing: %d bytes, %v", bag, len(f), err)
		}
	}
	apply(t, s, store.CloseBag{Bag: bags[1]})
	apply(t, s, store.PurgeBag{Bag: bags[1]})
	commit(t, b, s)
	for bag, want := range []int{2, 0, 2} {
		if f, err := b.TaskFilesFrom(bags[bag], 0); err != nil || len(f) != want {
			t.Errorf("after the second bag is purged: %d files of bag %d, %v", len(f), bag, err)
		}
	}
	closed(t, b)
}
