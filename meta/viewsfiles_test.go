package meta

import (
	"bytes"
	"slices"
	"testing"

	"kith/internal/job"
	"kith/store"
)

// Files are for those who have a part in them: the inputs of a bag for the site that has a
// bundle of it, what a run of a task left for its origin until that has it.
func TestFilesOfTasks(t *testing.T) {
	held := job.AttemptID{Job: job.ID{Origin: "gamma", Generation: 3, Seq: 7}, Number: 2}
	commands := append(someTasks(t, "10-19"),
		store.AcceptBundle{Bundle: held, Request: job.Request{Processors: 1, Walltime: 1}, BootID: "b", Tasks: job.TaskRange(4, 7), Time: 9},
		store.EndTasks{Bundle: held, Results: []job.TaskResult{{Ordinal: 4, Kind: job.Success}, {Ordinal: 5, Kind: job.Success}}, Files: []store.TaskFiles{{Ordinal: 5, Set: []byte("five")}}},
	)
	submit := commands[0].(store.SubmitBag)
	submit.Request.OnSiteLost = job.Race
	commands[0] = submit
	e := bagEngine(t, commands...)
	v := e.Views()
	bundle := job.AttemptID{Job: firstBag, Number: 1}
	for site, has := range map[job.SiteID]bool{"beta": true, "gamma": false, "alpha": false} {
		if v.HeldBy(bundle, site) != has {
			t.Errorf("%s may read the inputs: %v", site, !has)
		}
	}
	if v.HeldBy(job.AttemptID{Job: firstBag, Number: 2}, "beta") || v.HeldBy(job.AttemptID{Job: held.Job, Number: 1}, "beta") {
		t.Error("beta has a bundle that there is not")
	}
	h := e.st.HeldBundles()[0]
	if files, ok := v.EndedFiles(h.RunID(5)); !ok || !bytes.Equal(files, []byte("five")) {
		t.Errorf("task 5 left %q, %v", files, ok)
	}
	for _, task := range []uint32{4, 6, 9} {
		if files, ok := v.EndedFiles(h.RunID(task)); ok {
			t.Errorf("task %d left %q", task, files)
		}
	}
	if _, ok := v.EndedFiles(held); ok {
		t.Error("a bundle left something itself")
	}
	open, _, bags, sets := v.FileHolders()
	if len(open) != 0 || !slices.Contains(bags, firstBag) || len(sets) != 1 {
		t.Errorf("files are held by %v, %v and %d sets", open, bags, len(sets))
	}
	if err := e.st.Apply(store.ForgetTasks{Bundle: held, Batch: 1}); err != nil {
		t.Fatal(err)
	}
	if _, ok := v.EndedFiles(h.RunID(5)); ok {
		t.Error("what its origin has is served on")
	}
	if err := e.st.Apply(store.RevokeBundle{Bundle: bundle, Site: "beta", MayRun: true, Time: 10}); err != nil {
		t.Fatal(err)
	}
	if !v.HeldBy(bundle, "beta") {
		t.Error("what may run on is refused its inputs")
	}
}
