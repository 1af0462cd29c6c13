package meta

import (
	"slices"

	"kith/internal/job"
	"kith/store"
)

// runsAgain reports whether losing its host means the next attempt for a job.
func runsAgain(o *openJob) bool {
	return o.rec.Request.OnSiteLost != job.Wait && o.rec.Begun()+1 < job.MaxAttempts
}

// revoke takes the claim back from its holder and looks for other sites.
// mayRun says that the attempt may go on there, see [job.Race].
func (or *origin) revoke(now job.Time, o *openJob, reason job.Reason, mayRun bool) {
	holder, a := o.rec.Holder, o.rec.AttemptID()
	or.dropComing(o)
	record(or.st, store.RevokeClaim{Attempt: a, Site: holder, Reason: reason, MayRun: mayRun, Time: now})
	or.counters.ClaimsRevoked++
	or.peers.link(holder).settle(outKey{stop, a})
	or.peers.link(holder).settle(outKey{demotion, a})
	o.at, o.lease = nil, 0
	if o.rec.State.Terminal() {
		or.removeOpen(o)
	} else if o.decision = nil; now < o.retryAt {
		or.addUnplaced(o)
	} else {
		or.place(now, o)
	}
	or.changed(o.rec.ID)
}

// race lets jobs of a site that vanished run elsewhere beside it.
func (or *origin) race(now job.Time, site job.SiteID) {
	for _, o := range or.jobs {
		if o.ended || o.rec.Holder != site || o.rec.Request.OnSiteLost != job.Race || !runsAgain(o) {
			continue
		}
		if o.rec.State == job.Claimed || o.rec.State == job.Running {
			or.revoke(now, o, job.Vanished, true)
		}
	}
}

// outrace lets the result of an earlier attempt win, and reports whether it did.
func (or *origin) outrace(now job.Time, o *openJob, from job.SiteID, m Result) bool {
	if o == nil || o.rec.Outcome != nil || o.rec.CancelRequested || m.Outcome.Kind == job.Loss || m.Outcome.Kind == job.Demoted || !earlier(o.rec, m.Attempt.Number, from) {
		return false
	}
	if o.rec.State == job.Queued {
		or.withdraw(now, o, "")
	}
	or.dropQuery(o)
	record(or.st, store.OutraceAttempt{Attempt: m.Attempt, Site: from, Outcome: m.Outcome, Time: now})
	o.at, o.decision = nil, nil
	or.addAway(o)
	or.bringHome(now, o)
	return true
}

// earlier reports whether a site may still run an earlier attempt of a job.
func earlier(j *store.Job, attempt uint32, site job.SiteID) bool {
	return slices.Contains(j.Earlier, store.Holding{Attempt: attempt, Site: site})
}

// stale reports whether no result of an attempt that runs at a site would count any more,
// whatever it is. Once true, that stays so.
func stale(j *store.Job, attempt uint32, site job.SiteID) bool {
	if j == nil || j.State.Terminal() || j.Outcome != nil && (j.Attempt == attempt || j.Outcome.Kind != job.Demoted) {
		return true
	}
	return j.Attempt != attempt && (j.CancelRequested || !earlier(j, attempt, site))
}

// stopEarlier stops the attempts that did not win, where they can be reached;
// elsewhere comparing copies finds them.
func (or *origin) stopEarlier(now job.Time, j *store.Job) {
	for _, h := range j.Earlier {
		a := job.AttemptID{Job: j.ID, Number: h.Attempt}
		switch h.Site {
		case "": // no site had its claim
		case or.self:
			or.host.stop(a, Kill{Early: j.CancelRequested, Stale: true})
		default:
			or.peers.request(now, h.Site, outKey{stop, a})
		}
	}
}
