package runner

import (
	"context"
	"log/slog"
	"testing"
	"time"

	"kith/internal/job"
	"kith/meta"
	"kith/meta/transfer"
	"kith/sitesched/batch"
	"kith/store"
	"kith/store/blobstore"
	"kith/store/memstore"
)

// What tasks left is needed: at their host until the origin has it, and at the origin as long
// as the bag is there.
func TestFilesOfTasksAreNotSwept(t *testing.T) {
	var disk memstore.Disk
	backend, err := memstore.Open(&disk, "alpha", 1)
	if err != nil {
		t.Fatal(err)
	}
	s, err := backend.Load()
	if err != nil {
		t.Fatal(err)
	}
	left := func(task uint32, what string) []store.TaskFiles {
		set, err := transfer.Set{Files: []transfer.File{{Path: "out", Size: 5000, Chunks: []blobstore.Sum{blobstore.SumOf([]byte(what))}}}}.Encode()
		if err != nil {
			t.Fatal(err)
		}
		return []store.TaskFiles{{Ordinal: task, Set: set}}
	}
	bag := s.NextID()
	given, held := job.AttemptID{Job: bag, Number: 1}, job.AttemptID{Job: job.ID{Origin: "beta", Generation: 1, Seq: 1}, Number: 1}
	ended := []job.TaskResult{{Ordinal: 3, Kind: job.Success}}
	for _, c := range []store.Command{
		store.SubmitBag{ID: bag, Indices: job.FirstIndices(4), Request: job.Request{Processors: 1, Walltime: time.Hour}},
		store.GrantBundle{Bundle: given, Site: "beta", Tasks: job.TaskRange(0, 4)},
		store.RecordResults{Bundle: given, Site: "beta", Batch: 1, Results: ended, Files: left(3, "at the origin")},
		store.AcceptBundle{Bundle: held, Request: job.Request{Processors: 1, Walltime: time.Hour}, Tasks: job.TaskRange(0, 4)},
		store.EndTasks{Bundle: held, Results: ended, Files: left(3, "at the host")},
	} {
		if err := s.Apply(c); err != nil {
			t.Fatal(err)
		}
	}
	if err := backend.Seal(s).Commit(); err != nil {
		t.Fatal(err)
	}
	cfg := meta.Default()
	cfg.Self = meta.Self{Processors: 4, Speed: 1}
	e, err := meta.New(cfg, s, batch.New(4))
	if err != nil {
		t.Fatal(err)
	}
	f := &Files{cfg: FilesConfig{Backend: backend, Log: slog.New(slog.DiscardHandler), Look: func(_ context.Context, see func(job.Time, meta.Views)) error {
		see(1, e.Views())
		return nil
	}}}
	live := map[blobstore.Sum]bool{}
	for sum, err := range f.liveChunks(t.Context()) {
		if err != nil {
			t.Fatal(err)
		}
		live[sum] = true
	}
	for _, what := range []string{"at the origin", "at the host"} {
		if !live[blobstore.SumOf([]byte(what))] {
			t.Errorf("what a task left %s would be swept", what)
		}
	}
}
