package faults

import (
	"math"
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

// taskStroke is what an enemy says of bags in a stroke: it claims tasks without an offer and
// as many as there are numbers, with stamps of the future, returns tasks that it does not
// have, says twice and in two ways how tasks have ended that it was given, and names sets of
// tasks that no bag has.
func (x *run) taskStroke(site, to job.SiteID) []meta.Message {
	const many = 1_000_000_000
	b, now := x.givenTo(site, to), x.w.Site(to).Clock()
	all := func() job.TaskSet { return job.TaskRange(0, job.MaxTasks) } // a large set, made where it is said only
	far := job.TaskRange(job.MaxTasks-uint32(1+x.rng.IntN(300)), job.MaxTasks)
	results := x.anyResults(b, now.Add(24*time.Hour))
	switch x.rng.IntN(6) {
	case 0:
		claim := meta.TaskClaim{Stamp: math.MaxUint64 - uint64(x.rng.IntN(3)), Sent: now.Add(24 * time.Hour), Ask: bags.Ask{
			Shape: x.shapeOfABag(), Places: many, Running: -many, Stock: -many, Mean: -time.Hour, Want: many,
		}}
		if x.rng.IntN(2) == 0 { // one that the next ones may follow
			claim.Stamp = x.anyNumber()
		}
		return []meta.Message{claim, claim}
	case 1:
		return []meta.Message{results, results, x.anyResults(b, now)}
	case 2:
		return []meta.Message{meta.TaskResults{Bundle: b, Batch: results.Batch, Returned: all()}}
	case 3:
		results.Returned = far
		for i := range results.Results {
			results.Results[i].Ordinal = job.MaxTasks - 1 - uint32(x.rng.IntN(1000))
		}
		return []meta.Message{results}
	case 4:
		v := meta.TaskVerdict{Stamp: x.anyNumber(), Sent: now.Add(time.Hour)}
		v.Bundles = append(v.Bundles, meta.GivenBundle{Bundle: x.anyTaskBundle(site, to), Request: x.anyRequest(), Tasks: all(), Lease: -time.Hour})
		return []meta.Message{v, meta.StopTasks{Bundle: x.anyTaskBundle(site, to), Tasks: &far}}
	}
	return []meta.Message{
		meta.Offer{Shape: x.shapeOfABag(), Tasks: many}, meta.Recall{Bundle: b, Most: many}, meta.TaskResultsAck{Bundle: b, Batch: math.MaxUint32},
	}
}

// givenTo names a bundle that an origin has given to a site, any if there is none.
func (x *run) givenTo(site, origin job.SiteID) job.AttemptID {
	if s := x.w.Site(origin); s != nil && s.Up() {
		for b := range s.State().Bags {
			for t := range b.Bundles {
				if t.Site == site && x.rng.IntN(2) == 0 {
					return job.AttemptID{Job: b.ID, Number: t.Number}
				}
			}
		}
	}
	return x.anyTaskBundle(site, origin)
}

// shapeOfABag is a shape that is offered, or was.
func (x *run) shapeOfABag() bags.Shape {
	b := &x.s.Bags[x.rng.IntN(len(x.s.Bags))]
	r := job.Request{Processors: b.Processors, Walltime: b.Walltime}
	return bags.ShapeOf(&r)
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
