package store_test

import (
	"testing"

	"kith/internal/job"
	"kith/store"
)

// BenchmarkReplicaResults is a task that two sites have and one has done, by batches of 16, in
// a bag with so many bundles at sites.
func BenchmarkReplicaResults(b *testing.B) {
	const each = 16
	for name, bundles := range map[string]int{"16 bundles": 16, "4096 bundles": 4096} {
		b.Run(name, func(b *testing.B) {
			var s *store.State
			var id job.ID
			var at uint32 // the next bundle to be beaten
			fill := func() {
				b.StopTimer()
				s = store.NewState("alpha", 1)
				id = s.NextID()
				x, _, err := job.ParseIndices("0-131071")
				if err != nil {
					b.Fatal(err)
				}
				apply(b, s, store.SubmitBag{ID: id, Request: job.Request{Processors: 1, Walltime: 1e9}, Indices: x, MaxReplicas: 1})
				for i := range bundles {
					apply(b, s, store.GrantBundle{
						Bundle: job.AttemptID{Job: id, Number: uint32(i) + 1}, Site: "beta", Stamp: uint64(i), Generation: 1, Tasks: s.Bag(id).NextTasks(each),
					})
				}
				apply(b, s, store.BeginTail{Bag: id, Time: 1})
				s.DropChanges()
				at = 1
				b.StartTimer()
			}
			fill()
			tasks := 0
			for b.Loop() {
				bag := s.Bag(id)
				if bag.Bundle(at) == nil {
					fill()
					bag = s.Bag(id)
				}
				given := bag.Bundle(at).Tasks.Clone()
				g := job.AttemptID{Job: id, Number: bag.Number + 1}
				apply(b, s, store.GrantBundle{Bundle: g, Site: "gamma", Stamp: uint64(g.Number), Generation: 1, Tasks: given, Replica: true})
				r := store.RecordResults{Bundle: g, Site: "gamma", Batch: 1}
				for task := range given.All {
					r.Results = append(r.Results, job.TaskResult{Ordinal: task, Kind: job.Success})
				}
				apply(b, s, r)
				s.DropChanges()
				at++
				tasks += len(r.Results)
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(tasks), "ns/task")
		})
	}
}

func apply(b *testing.B, s *store.State, c store.Command) {
	b.Helper()
	if err := s.Apply(c); err != nil {
		b.Fatal(err)
	}
}
