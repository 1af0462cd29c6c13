package faults

import (
	"math/rand/v2"
	"slices"
	"time"

	"kith/internal/job"
	"kith/meta"
	"kith/sitesched"
)

// evictGrace is how long guests may take to leave in schedules where some have to.
const evictGrace = 10 * time.Second

// evicting reports whether a wide schedule of a seed has guests leave. No seed that a test or a
// mutant names is one.
func evicting(seed uint64) bool { return seed%20 == 0 || seed%20 == 6 || seed%20 == 7 }

// evictGuests lets sites of a schedule have guests leave, and makes more of its jobs such as can.
// At least one of the widest sites has none leave, so that there is one that takes every job. It
// has draws of its own, so that the schedule is else what it was.
func (s *Schedule) evictGuests() {
	d := rand.New(rand.NewPCG(s.Seed, 0x6576696374))
	widest := slices.MaxFunc(s.Sites, func(a, b Site) int { return int(a.Processors) - int(b.Processors) }).Name
	for i := range s.Sites {
		x := &s.Sites[i]
		switch {
		case x.Name == widest:
		case d.IntN(3) > 0:
			x.Queues = sitesched.DualPreempt
		case d.IntN(2) == 0:
			x.Queues, x.Bound = sitesched.DualBackfill, evictGrace+time.Duration(d.IntN(20))*time.Second
		}
	}
	for i := range s.Jobs {
		switch j := &s.Jobs[i]; d.IntN(4) {
		case 0:
			if j.OnSiteLost != job.Race && j.Pieces == 0 {
				j.Pieces = 1
			}
		case 1:
			if j.Pieces == 0 {
				j.OnSiteLost = job.Rerun
			}
		}
	}
	if len(s.Jobs) > 0 && d.IntN(2) == 0 { // home jobs that come faster than guests can leave, and one to be evicted for each
		long := &s.Jobs[d.IntN(len(s.Jobs))]
		long.Run, long.Walltime = 3*time.Minute, 10*time.Minute
		if long.OnSiteLost == job.Race {
			long.OnSiteLost = job.Rerun
		}
		if long.Pieces == 0 {
			long.Pieces = 1
		}
		for i := range s.Sites {
			if x := &s.Sites[i]; x.Queues == sitesched.DualPreempt && x.Name != long.From {
				s.Streams = append(s.Streams, Stream{
					At: long.At, Every: 14 * time.Second, From: x.Name, Processors: x.Processors, Copies: 1, Run: 2 * time.Second, Walltime: 5 * time.Second,
				})
				break
			}
		}
	}
}

// evicts reports whether a site has guests leave.
func (s *Schedule) evicts() bool {
	return slices.ContainsFunc(s.Sites, func(x Site) bool { return x.Bound > 0 || x.Queues == sitesched.DualPreempt })
}

// evict sets what sites do about guests.
func (s *Schedule) evict(x *Site, m *meta.Config) {
	if !s.evicts() {
		return
	}
	m.MaxGrace = evictGrace
	if x.Bound > 0 {
		m.NoHarm.Mode, m.NoHarm.Bound = meta.HarmBounded, x.Bound
	}
}
