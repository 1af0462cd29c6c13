package faults

import (
	"math"
	"time"

	"kith/cluster"
	"kith/internal/job"
	"kith/meta"
)

// flood is how many messages a stroke of a hostile site has for each other one.
const flood = 8

// attack makes a site do, until a time, what an enemy would who knows the
// protocol: it calls itself idle and huge to be given copies, claims each copy
// of each job as soon as there is one, also those that it was never given,
// takes and gives back in turn, withdraws and stops others' jobs, reports
// results of what it does not run, grants what it does not own, and sends more
// copies than anybody has room for.
func (x *run) attack(f *Fault, until time.Duration) {
	if x.over || x.since() >= until {
		return
	}
	for i := range x.s.Sites {
		other := x.s.Sites[i].Name
		if other == f.Site {
			continue
		}
		x.w.Inject(f.Site, other, x.allure(f.Site))
		for n := range flood {
			x.w.Inject(f.Site, other, x.stroke(f.Site, other, n))
		}
	}
	x.in(max(f.By, time.Millisecond), func() { x.attack(f, until) })
}

// allure is a load that draws copies.
func (x *run) allure(site job.SiteID) meta.Message {
	return meta.LoadDigest{Digest: cluster.Digest{
		Site: site, Incarnation: math.MaxUint64 - uint64(x.rng.IntN(3)), Sequence: uint64(x.since()), Processors: math.MaxInt32, MemoryBytes: math.MaxInt64,
		Speed: 1e9, Load: job.Load{Free: math.MaxInt32}, Time: x.w.Now(),
	}}
}

// stroke is the n-th message of a stroke.
func (x *run) stroke(site, to job.SiteID, n int) meta.Message {
	a := x.anyAttempt(site, to)
	now := x.w.Site(to).Clock()
	switch n {
	case 0:
		return meta.Claim{Attempt: a, Stamp: uint64(now), Sent: now}
	case 1:
		return meta.PlaceCopy{Attempt: job.AttemptID{Job: job.ID{Origin: site, Generation: 1, Seq: 1 + uint64(x.rng.IntN(10_000))}, Number: 1}, Request: x.anyRequest()}
	case 2:
		return meta.CopyAnswer{Attempt: a, Accepted: true}
	case 3:
		return meta.Verdict{Attempt: a, Granted: true, Lease: time.Minute, Sent: now}
	case 4:
		return meta.Result{Attempt: a, Outcome: job.Outcome{Kind: job.Success, Start: now, End: now}}
	case 5:
		return meta.GiveBack{Attempt: a, Reason: job.Draining, Stamp: uint64(now)}
	case 6:
		return meta.Withdraw{Attempt: a}
	}
	return x.nonsense(site, to)
}
