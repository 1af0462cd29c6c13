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
// copies than anybody has room for. Each kind of message has its turn from a relation
// that gives no right to it. It tells bundles, its own and others', later and earlier
// ones, empty and endless ones. Of bags it does the like ([run.taskStroke]). It goes on where
// it was revoked.
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
		x.strokes++
		x.w.Inject(f.Site, other, x.trespass(f.Site, other, x.strokes%allKinds))
		x.w.Inject(f.Site, other, x.anyBundle(f.Site, other))
		if len(x.s.Bags) > 0 {
			for _, m := range x.taskStroke(f.Site, other) {
				x.w.Inject(f.Site, other, m)
			}
		}
	}
	x.in(max(f.By, time.Millisecond), func() { x.attack(f, until) })
}

// trespass is the n-th message, each in its turn, from a site that has no right to it: it
// is not the origin of the job, holds neither copy nor claim, or was not asked.
func (x *run) trespass(site, to job.SiteID, n int) meta.Message {
	var m meta.Message
	for range 20 { // jobs of all relations are about; if they are not, any will do
		a := x.anyAttempt(site, to)
		m = x.anyMessage(site, to, a, n)
		if d, ok := m.(meta.LoadDigest); ok {
			d.Digest.Site = a.Job.Origin
			m = d
		}
		if b, ok := m.(meta.SiteBundle); ok {
			b.Site = a.Job.Origin
			m = b
		}
		if !x.related(meta.RightOf(m).Served, a, site, to) {
			break
		}
	}
	return m
}

// related reports whether a site is to an attempt what a row of meta.Rights asks for.
func (x *run) related(r meta.Relation, a job.AttemptID, site, to job.SiteID) bool {
	switch r {
	case meta.ItsOwn, meta.Origin:
		return a.Job.Origin == site
	case meta.OurHost:
		return a.Job.Origin == to
	case meta.CopyHolder, meta.ClaimHolder:
		s := x.w.Site(a.Job.Origin)
		return a.Job.Origin == to && s != nil && s.Up() && holds(s.State().Job(a.Job), a, site)
	}
	return false
}

// allure is a load that draws copies: the best that a site may say of itself, configured anew and with
// processors that came free each time.
func (x *run) allure(site job.SiteID) meta.Message {
	return meta.LoadDigest{Digest: cluster.Digest{
		Site: site, Incarnation: math.MaxUint64 - uint64(x.rng.IntN(3)), Sequence: uint64(x.since()), Processors: job.MaxProcessors, MemoryBytes: job.MaxMemoryBytes,
		Speed: 1e6, Load: job.Load{Free: job.MaxProcessors}, Time: x.w.Now(), Settings: uint64(x.since()), TimesFreed: uint64(x.since()),
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
