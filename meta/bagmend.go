package meta

import (
	"slices"

	"kith/internal/job"
	"kith/store"
)

// What an origin does when a host lacks a bundle, or is gone.

// onGiveBack learns that a host does not hold a bundle, which it was given, and why.
func (bo *bagOrigin) onGiveBack(now job.Time, from job.SiteID, m GiveBack) {
	o, t := bo.live(m.Attempt, from)
	if t == nil || t.Late || !bo.isNews(t, m.Stamp) {
		return
	}
	if m.Reason != job.LateGrant && m.Reason != job.UnknownCopy { // it would not take the next one either
		o.refused[from] = now.Add(bo.cfg.Timing.Retry)
		switch o.outgrown[from] = ofLevel(m.Reason); {
		case o.rec.Leaving(t): // it said so of another level
			delete(o.refused, from)
			delete(o.outgrown, from)
		case o.outgrown[from] || m.Reason == job.Level: // it may be another level now, or have room
			bo.levelSoon(now)
		case !ofState(m.Reason):
			o.refused[from] = job.Never
		}
		bo.place(now, o)
	}
	bo.lacks(now, o, t)
}

// isNews reports whether what a host said at its step stamp is later than its claim.
func (bo *bagOrigin) isNews(t *store.TaskBundle, stamp uint64) bool {
	return stamp > t.Stamp || t.Generation != bo.peers.generationOf(t.Site)
}

// lacks deals with a bundle that its host does not hold. It commits a bundle before the
// first task of it begins, and keeps it until all is acknowledged: nothing of it has begun,
// unless it has forgotten.
func (bo *bagOrigin) lacks(now job.Time, o *openBag, t *store.TaskBundle) {
	if bo.peers.hasForgotten(t.Site, t.Generation, t.Stamp) {
		bo.lost(now, o, t)
		return
	}
	late := lateWith(o.rec, &t.Tasks)
	record(bo.st, store.ReturnTasks{Bundle: job.AttemptID{Job: o.rec.ID, Number: t.Number}, Site: t.Site, Tasks: t.Tasks.Clone(), Time: now})
	bo.forgetBundle(o, t.Number)
	bo.changed(o)
	bo.stopBeaten(now, o, late)
	bo.close(now, o)
}

// lost deals with a bundle whose host has lost the disk on which it was, or given it up, and
// cannot know what has begun. What runs there under a lease ends with that.
func (bo *bagOrigin) lost(now job.Time, o *openBag, t *store.TaskBundle) {
	if !leased(&o.rec.Request) {
		bo.revoke(now, o, t, store.RevokeBundle{MayRun: o.rec.Request.OnSiteLost == job.Race})
	}
}

// race lets tasks of a site that vanished run elsewhere beside it.
func (bo *bagOrigin) race(now job.Time, site job.SiteID) {
	bo.eachAt(site, func(o *openBag, t *store.TaskBundle) {
		if o.rec.Request.OnSiteLost == job.Race && !t.Late {
			bo.revoke(now, o, t, store.RevokeBundle{MayRun: true})
		}
	})
}

// eachAt calls f for the live bundles of open bags that are at a site.
func (bo *bagOrigin) eachAt(site job.SiteID, f func(*openBag, *store.TaskBundle)) {
	for _, o := range slices.Clone(bo.open) {
		for t := range o.rec.Bundles {
			if t.Site == site {
				f(o, t)
			}
		}
	}
}

// forgetHost does without a site. With leases it waits for the end of leases; with requeue
// tasks run again also where their bag waits for lost sites. It returns of how many bags the
// site had tasks that were taken back, and of how many those that it has until leases end.
func (bo *bagOrigin) forgetHost(now job.Time, site job.SiteID, leases, requeue bool) (revoked, left int) {
	var last job.ID
	bo.eachAt(site, func(o *openBag, t *store.TaskBundle) {
		stays, count := leases && leased(&o.rec.Request) && !t.Late, &revoked
		if stays {
			count = &left
		}
		if !t.Late && o.rec.ID != last { // all bundles of a bag are leased, or none
			last = o.rec.ID
			*count++
		}
		if stays {
			return
		}
		bo.revoke(now, o, t, store.RevokeBundle{Requeue: requeue})
	})
	bo.answers.Forget(site)
	bo.down(site)
	return revoked, left
}

// keeps reports whether a site may still run a task of an open bag.
func (bo *bagOrigin) keeps(site job.SiteID) bool {
	found := false
	bo.eachAt(site, func(*openBag, *store.TaskBundle) { found = true })
	return found
}

// addTo puts the bundles that a site should hold into a fingerprint.
func (bo *bagOrigin) addTo(s *summary, site job.SiteID) {
	for _, o := range bo.open {
		for t := range o.rec.Bundles {
			if t.Site == site && !t.Late {
				s.add(job.AttemptID{Job: o.rec.ID, Number: t.Number}, false)
			}
		}
	}
}

// mendListed deals with a bundle that a host holds, and reports whether it is one.
func (bo *bagOrigin) mendListed(now job.Time, from job.SiteID, entry *DigestEntry) bool {
	if bo.st.Bag(entry.Attempt.Job) == nil || !entry.Begun { // bundles are listed as begun: this is a copy
		return false
	}
	if _, t := bo.live(entry.Attempt, from); t == nil {
		bo.peers.send(from, TaskResultsAck{Bundle: entry.Attempt, Unknown: true})
	}
	return true
}

// mendMissing deals with the bundles that a page of a host's list should have and has not.
func (bo *bagOrigin) mendMissing(now job.Time, from job.SiteID, m *CopyDigest, listed map[job.AttemptID]struct{}) {
	bo.eachAt(from, func(o *openBag, t *store.TaskBundle) {
		id := o.rec.ID
		if t.Late || !m.After.IsZero() && id.Compare(m.After) <= 0 || !m.Through.IsZero() && id.Compare(m.Through) > 0 {
			return
		}
		if _, ok := listed[job.AttemptID{Job: id, Number: t.Number}]; !ok && bo.isNews(t, afterStep(m.Stamp)) {
			bo.lacks(now, o, t)
		}
	})
}
