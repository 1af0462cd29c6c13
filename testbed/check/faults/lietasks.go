package faults

import (
	"time"

	"kith/internal/job"
	"kith/meta"
	"kith/meta/bags"
	"kith/store"
)

// taskNonsense makes up a message of a liar about bags, as far as such a message gets past
// the border of a site (package meta/peer).
func (x *run) taskNonsense(liar, to job.SiteID) meta.Message {
	b := x.anyTaskBundle(liar, to)
	now := x.w.Site(to).Clock()
	someTime := now + job.Time(x.rng.Int64N(int64(2*time.Minute))) - job.Time(time.Minute)
	switch x.rng.IntN(10) {
	case 0:
		return meta.Offer{Shape: x.anyShape(), Tasks: int(min(x.anyNumber(), job.MaxTasks))}
	case 1, 2:
		return meta.TaskClaim{Stamp: x.anyNumber(), Sent: someTime, Ask: bags.Ask{
			Shape: x.anyShape(), Places: x.rng.IntN(100), Running: x.rng.IntN(100), Stock: x.rng.IntN(10), Mean: time.Duration(x.rng.Int64N(int64(time.Minute))), Want: x.rng.IntN(300),
		}.Bounded()}
	case 3:
		v := meta.TaskVerdict{Stamp: x.anyNumber(), Sent: someTime}
		for range x.rng.IntN(3) {
			v.Bundles = append(v.Bundles, meta.GivenBundle{
				Bundle: x.anyTaskBundle(liar, to), Request: x.anyRequest(), Tasks: x.anyTasks(), Lease: time.Duration(x.rng.Int64N(int64(time.Hour))),
			})
		}
		return v
	case 4, 5:
		return x.anyResults(b, someTime)
	case 6:
		return meta.TaskResultsAck{Bundle: b, Batch: uint32(x.rng.IntN(5)), Unknown: x.rng.IntN(2) == 0}
	case 7:
		return meta.Recall{Bundle: b, Most: x.rng.IntN(store.MaxBundleTasks + 1)}
	case 8:
		return meta.GiveBack{Attempt: b, Reason: job.Reason(x.rng.IntN(40)), Stamp: x.anyNumber()}
	}
	m := meta.StopTasks{Bundle: b, Waiting: x.rng.IntN(2) == 0}
	if x.rng.IntN(2) == 0 {
		tasks := x.anyTasks()
		m.Tasks = &tasks
	}
	return m
}

// anyResults makes up how some tasks of a bundle ended.
func (x *run) anyResults(b job.AttemptID, start job.Time) meta.TaskResults {
	m := meta.TaskResults{Bundle: b, Batch: 1 + uint32(x.rng.IntN(4)), Run: uint64(x.rng.IntN(20))}
	ended := x.anyTasks()
	for task := range ended.All {
		r := job.TaskResult{Ordinal: task, Kind: job.Success + job.OutcomeKind(x.rng.IntN(5)), Start: max(1, start), Run: time.Second}
		if r.Kind == job.Failure {
			r.ExitCode = 1
		}
		m.Results = append(m.Results, r)
	}
	if x.rng.IntN(3) == 0 {
		m.Returned = x.anyTasks()
	}
	return m
}

// anyTaskBundle names a bundle that exists or could.
func (x *run) anyTaskBundle(liar, to job.SiteID) job.AttemptID {
	id := x.bags[x.s.Bags[x.rng.IntN(len(x.s.Bags))].Number]
	if id.IsZero() || x.rng.IntN(6) == 0 {
		id = job.ID{Origin: []job.SiteID{liar, to, "nowhere"}[x.rng.IntN(3)], Generation: 1, Seq: 1 + uint64(x.rng.IntN(10))}
	}
	number := uint32(1 + x.rng.IntN(3))
	if s := x.w.Site(id.Origin); s != nil && s.Up() {
		if b := s.State().Bag(id); b != nil {
			number = 1 + uint32(x.rng.IntN(int(b.Number)+2))
		}
	}
	return job.AttemptID{Job: id, Number: number}
}

func (x *run) anyTasks() job.TaskSet {
	lo := uint32(x.rng.IntN(100))
	return job.TaskRange(lo, lo+1+uint32(x.rng.IntN(20)))
}

func (x *run) anyShape() bags.Shape {
	r := job.Request{Processors: 1 + int32(x.rng.IntN(4)), Walltime: time.Second + time.Duration(x.rng.Int64N(int64(10*time.Minute)))}
	return bags.ShapeOf(&r)
}
