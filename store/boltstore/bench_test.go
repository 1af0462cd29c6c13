package boltstore_test

import (
	"path/filepath"
	"testing"
	"time"

	"kith/internal/job"
	"kith/store"
	"kith/store/boltstore"
)

// BenchmarkBagOnDisk grants and records the tasks of a bag durably: 32 results a message, 8
// messages a commit.
func BenchmarkBagOnDisk(b *testing.B) {
	backend, err := boltstore.Open(filepath.Join(b.TempDir(), boltstore.FileName), "alpha")
	if err != nil {
		b.Fatal(err)
	}
	s, err := backend.Load()
	if err != nil {
		b.Fatal(err)
	}
	apply := func(c store.Command) {
		if err := s.Apply(c); err != nil {
			b.Fatalf("%T: %v", c, err)
		}
	}
	id := s.NextID()
	apply(store.SubmitBag{ID: id, Indices: job.FirstIndices(job.MaxTasks), Request: job.Request{Processors: 1, Walltime: time.Hour}})
	bag := s.Bag(id)
	at := job.Time(1_800_000_000_000_000_000)
	b.ReportAllocs()
	tasks := 0
	for b.Loop() {
		bundle := job.AttemptID{Job: id, Number: bag.Number + 1}
		apply(store.GrantBundle{Bundle: bundle, Site: "beta", Stamp: uint64(bundle.Number), Tasks: bag.NextTasks(256)})
		t := s.TaskBundle(bundle)
		for range 8 {
			c := store.RecordResults{Bundle: bundle, Site: "beta", Batch: t.Batch + 1}
			for task := range t.Tasks.All {
				at = at.Add(time.Millisecond)
				c.Results = append(c.Results, job.TaskResult{Ordinal: task, Kind: job.Success, Start: at, Run: time.Second, CPUTime: time.Second, MaxRSSBytes: 10 << 20})
				if len(c.Results) == 32 {
					break
				}
			}
			tasks += len(c.Results)
			apply(c)
		}
		if err := backend.Seal(s).Commit(); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(tasks)/b.Elapsed().Seconds(), "tasks/s")
	if err := backend.Close(); err != nil {
		b.Fatal(err)
	}
}
