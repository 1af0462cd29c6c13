package meta_test

import (
	"fmt"
	"testing"
	"time"

	"kith/internal/job"
	"kith/meta"
	"kith/meta/bags"
)

// aBag is a bag of so many tasks of a minute, which waits for its release if hold is set.
func aBag(tasks uint32, hold bool) meta.SubmitBag {
	return meta.SubmitBag{
		Request: job.Request{Processors: 1, Walltime: time.Minute, OnSiteLost: job.Rerun}, Indices: job.FirstIndices(tasks), Payload: []byte("a bag"), Hold: hold,
	}
}

// BenchmarkSubmitBag is what the engine does for a submission. It must not hang on the
// number of tasks.
func BenchmarkSubmitBag(b *testing.B) {
	for _, tasks := range []uint32{1000, 1_000_000} {
		b.Run(fmt.Sprint(tasks), func(b *testing.B) {
			m := newManyJobs(b, 0, 1)
			b.ReportAllocs()
			for bags := 1; b.Loop(); bags++ {
				if bags%5000 == 0 { // a site has no more than twice as many
					b.StopTimer()
					m = newManyJobs(b, 0, 1)
					b.StartTimer()
				}
				m.engine.Step(m.now, aBag(tasks, true))
				m.engine.Step(m.now, meta.Pass{})
				m.state.DropChanges()
			}
		})
	}
}

// BenchmarkTasksAtOrigin is what the engine does for a task that a site gets by a claim for
// 4,096 and returns with 255 others.
func BenchmarkTasksAtOrigin(b *testing.B) {
	m := newManyJobs(b, 0, 1)
	site := name(0)
	stamp, tasks := uint64(0), 0
	step := func(ev meta.Event) []meta.Effect { return m.engine.Step(m.now, ev) }
	var shape bags.Shape
	fill := func() {
		bag := aBag(job.MaxTasks, false)
		shape = bags.ShapeOf(&bag.Request)
		step(bag)
		step(meta.Pass{})
	}
	fill()
	b.ReportAllocs()
	for b.Loop() {
		stamp++
		m.now = m.now.Add(10 * time.Millisecond)
		var got []meta.GivenBundle
		for _, f := range step(meta.Receive{From: site, Message: meta.TaskClaim{Stamp: stamp, Sent: m.now, Ask: bags.Ask{
			Shape: shape, Places: 1024, Mean: 5 * time.Millisecond, Want: bags.MaxAsk,
		}}}) {
			if g, ok := f.(meta.GrantTasks); ok {
				got = g.Verdict.Bundles
			}
		}
		if len(got) == 0 {
			fill()
		}
		for i := range got {
			results := meta.TaskResults{Bundle: got[i].Bundle, Batch: 1, Run: stamp}
			for task := range got[i].Tasks.All {
				results.Results = append(results.Results, job.TaskResult{Ordinal: task, Kind: job.Success, Start: m.now, Run: 5 * time.Millisecond})
			}
			step(meta.Receive{From: site, Message: results})
			tasks += len(results.Results)
		}
		step(meta.Pass{})
		m.state.DropChanges()
	}
	b.ReportMetric(float64(tasks)/b.Elapsed().Seconds(), "tasks/s")
}
