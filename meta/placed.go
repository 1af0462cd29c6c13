package meta

import (
	"fmt"
	"slices"

	"kith/internal/job"
	"kith/store"
)

func (or *origin) onCopyAnswer(now job.Time, from job.SiteID, m CopyAnswer) {
	l := or.peers.link(from)
	awaited := l.waits(outKey{placement, m.Attempt}) || l.waits(outKey{withdrawal, m.Attempt})
	l.answered(outKey{placement, m.Attempt})
	switch {
	case !awaited: // a repeated answer tells nothing of how the site stands now
	case !or.noteAnswered(from) && ofCount(m.Reason): // there may be room since
	case m.Accepted, forGood(m.Reason): // it had room, if not for this one
		or.noteAccepted(now, from)
	default:
		or.noteRefused(now, from, m.Reason)
	}
	o := or.open.Get(m.Attempt.Job)
	if o == nil || o.rec.State != job.Queued || o.rec.Attempt != m.Attempt.Number || !slices.Contains(o.rec.Sites, from) {
		or.acceptedStray(from, &m)
		return
	}
	i := slices.Index(o.rec.Sites, from)
	if !m.Accepted {
		or.copyReturnedFinally(now, o, i, m.Reason, m.Final)
		return
	}
	o.at[i] = queued
	o.failures = 0
	or.offerTaken(now, o, from)
	if or.seer != nil {
		or.seer.accepted(now, o, from)
	}
}

// acceptedStray has a host give up a copy that it took and should not have, if it has not been
// asked to: it may have refused it first, and taken it when it was sent again.
func (or *origin) acceptedStray(from job.SiteID, m *CopyAnswer) {
	a := m.Attempt
	if o := or.open.Get(a.Job); !m.Accepted || o != nil && o.rec.Attempt == a.Number && o.rec.Holder == from {
		return // or it has the claim already
	}
	if !or.peers.link(from).waits(outKey{withdrawal, a}) {
		or.peers.send(from, Withdraw{Attempt: a})
	}
}

// onGiveBack learns that a host does not hold a copy.
func (or *origin) onGiveBack(now job.Time, from job.SiteID, m GiveBack) {
	if or.st.Bag(m.Attempt.Job) != nil {
		or.bags.onGiveBack(now, from, m)
		return
	}
	l := or.peers.link(from)
	l.answered(outKey{placement, m.Attempt})
	l.settle(outKey{withdrawal, m.Attempt})
	l.settle(outKey{stop, m.Attempt})
	l.settle(outKey{demotion, m.Attempt})
	or.noteRefused(now, from, m.Reason)
	o := or.open.Get(m.Attempt.Job)
	if o == nil || o.rec.Attempt != m.Attempt.Number {
		return
	}
	if o.rec.State == job.Queued {
		if i := slices.Index(o.rec.Sites, from); i >= 0 {
			or.copyReturnedFinally(now, o, i, m.Reason, m.Final)
		}
		return
	}
	if o.rec.Holder == from && (m.Stamp == 0 || or.isNews(o, m.Stamp)) {
		or.holderLacks(now, o, m.Reason)
	}
}

// givenBack learns that this very site could not start an attempt.
func (or *origin) givenBack(now job.Time, a job.AttemptID, reason job.Reason) {
	if o := or.open.Get(a.Job); o != nil && o.rec.Attempt == a.Number && o.rec.Holder == or.self {
		or.holderLacks(now, o, reason)
	}
}

// isNews reports whether what a holder said of the attempt at its step stamp is
// later than its claim. Steps before and after the loss of a disk cannot be
// compared; but then the claim is the earlier one.
func (or *origin) isNews(o *openJob, stamp uint64) bool {
	return stamp > o.rec.HolderStamp || o.rec.HolderGeneration != or.peers.generationOf(o.rec.Holder)
}

// holderLacks deals with a holder that says it does not hold the attempt: it
// never began, and another attempt may; or it began and lost it. A holder that
// has forgotten cannot know, so the attempt counts as begun.
func (or *origin) holderLacks(now job.Time, o *openJob, reason job.Reason) {
	holder, a := o.rec.Holder, o.rec.AttemptID()
	switch o.rec.State {
	case job.Claimed, job.Cancelling:
		if o.rec.Started != 0 || or.peers.hasForgotten(holder, o.rec.HolderGeneration, o.rec.HolderStamp) {
			break
		}
		record(or.st, store.ReturnClaim{Attempt: a, Site: holder, Reason: reason, Time: now})
		o.at, o.lease = nil, 0
		if holder != or.self && (reason == job.MadeWay || reason == job.CannotStart) {
			// Its own jobs may come without an end, or its disk stay full; another site may be idle.
			o.avoid(holder, now.Add(or.cfg.Timing.Retry), reason)
		}
		if o.rec.State.Terminal() {
			or.removeOpen(o)
		} else {
			or.place(now, o)
		}
		or.changed(o.rec.ID)
		return
	case job.Running:
	default:
		return // the outcome is known already
	}
	if leased(&o.rec.Request) {
		return // what it knows nothing of may still run; the lease's end will tell
	}
	or.recordOutcome(now, o, job.Outcome{
		Kind: job.Loss, End: now, Reason: fmt.Sprintf("site %s no longer knows the attempt that it had started", holder),
	})
}

// copyReturned replaces the i-th copy of an open attempt with one at the next
// best site, or does without it.
func (or *origin) copyReturned(now job.Time, o *openJob, i int, kind store.ClaimEventKind, reason job.Reason) {
	or.copyGone(now, o, i, kind, refusal{reason: reason})
}

// copyReturnedFinally is copyReturned for a site that may have said that the job is not to go to
// a lower level of its hierarchy.
func (or *origin) copyReturnedFinally(now job.Time, o *openJob, i int, reason job.Reason, final bool) {
	or.copyGone(now, o, i, store.CopyReturned, refusal{reason: reason, final: final && ofLevel(reason)})
}

func (or *origin) copyGone(now job.Time, o *openJob, i int, kind store.ClaimEventKind, why refusal) {
	reason := why.reason
	from := o.rec.Sites[i]
	if or.seer != nil {
		or.seer.silent(now, o, from)
	}
	or.noteWithdrawn(now, o, from)
	why.site, why.until = from, or.refusedUntil(now, reason)
	if reason == job.NotSooner { // it is no reason not to wait there
		why.until, why.moved = now.Add(or.cfg.Level.sharePeriod()), true
		why.early = why.until
	}
	o.refuse(why)
	to := job.SiteID("")
	if !or.push.endOffer(o) { // else the job has another copy
		to = or.nextSite(now, o)
	}
	if to == "" && len(o.rec.Sites) == 1 {
		full := or.metFull() // before the next decision
		record(or.st, store.NoteClaim{Job: o.rec.ID, Event: store.ClaimEvent{
			Time: now, Attempt: o.rec.Attempt, Kind: kind, Site: from, Reason: reason,
		}})
		record(or.st, store.UnplaceJob{Attempt: o.rec.AttemptID()})
		o.at = nil
		o.decision = or.decide(now, o, nil)
		for i := range o.decision.Sites {
			v := &o.decision.Sites[i]
			if why := o.refusedBy(v.Site); why != job.NoReason {
				v.Chosen, v.Reason = false, why
			}
		}
		// Sites that want nothing of the job are not asked every few seconds.
		o.crowded = full || slices.ContainsFunc(o.refused, func(r refusal) bool { return ofCount(r.reason) })
		if now < o.retryAt {
			or.addUnplaced(o)
			or.sink(now, o)
			or.changed(o.rec.ID)
			return
		}
		o.retryAt = now.Add(or.cfg.Timing.Retry << o.failures)
		if !or.conserving() || slices.ContainsFunc(o.refused, func(r refusal) bool { return !ofState(r.reason) }) {
			o.failures = min(o.failures+1, mostDoublings)
		} // else that is kept for the sites, whatever waits (dealings.go)
		or.addUnplaced(o)
		or.sink(now, o)
		or.changed(o.rec.ID)
		return
	}
	record(or.st, store.MoveCopy{Attempt: o.rec.AttemptID(), From: from, To: to, Kind: kind, Reason: reason, Time: now})
	o.at = slices.Delete(o.at, i, i+1)
	if to != "" {
		o.at = append(o.at, unsent)
		or.settleIn(now, o, len(o.at)-1)
	} else {
		or.addShort(now, o)
	}
	or.changed(o.rec.ID)
}

// replaceVanished gives up copies of open attempts at sites that have been
// out of reach for too long, where another site can take them.
func (or *origin) replaceVanished(now job.Time) {
	for {
		gone := or.peers.nextVanished(now)
		if gone == "" {
			return
		}
		for _, o := range or.jobs {
			if o.ended || o.rec.State != job.Queued {
				continue
			}
			switch i := slices.Index(o.rec.Sites, gone); {
			case i < 0:
			case or.nextSite(now, o) != "":
				or.copyReturned(now, o, i, store.CopyReplaced, job.Vanished)
			default:
				or.addShort(now, o)
			}
		}
		or.race(now, gone)
		or.bags.race(now, gone)
	}
}

// moveOwn lets jobs that queue nowhere but at this site, which starts nothing for
// long, queue at another one. Where there is none they keep their place here.
func (or *origin) moveOwn(now job.Time, reason job.Reason) {
	for _, o := range or.jobs {
		if o.ended || o.rec.State != job.Queued || len(o.rec.Sites) != 1 || o.rec.Sites[0] != or.self || or.nextSite(now, o) == "" {
			continue
		}
		a := o.rec.AttemptID()
		or.copyReturned(now, o, 0, store.CopyReturned, reason)
		or.host.dropCopies(now, a)
	}
}

// takeBack lets a job have a copy again at a site that was given up, and is back, or that
// refused one before its daemon was started anew, perhaps with another configuration.
func (or *origin) takeBack(now job.Time, o *openJob, site job.SiteID, anew bool) {
	n := len(o.refused)
	o.refused = slices.DeleteFunc(o.refused, func(r refusal) bool { return r.site == site && (anew && !r.moved || r.reason == job.Forgotten) })
	if anew || len(o.refused) < n {
		o.barren = 0
		or.addIfShort(now, o)
	}
}

// askAgain forgets what a site refused, as it has taken up another configuration.
func (or *origin) askAgain(now job.Time, site job.SiteID) {
	for _, o := range or.jobs {
		or.forgive(now, o, site, true)
	}
}

// forgive has a site asked again about a job that waits. anew says that its configuration may be
// another one.
func (or *origin) forgive(now job.Time, o *openJob, site job.SiteID, anew bool) {
	switch {
	case o.ended:
	case o.rec.State == job.Pending: // what the site offers may be more by now
		o.refused = slices.DeleteFunc(o.refused, func(r refusal) bool { return r.site == site })
	case o.rec.State == job.Queued:
		or.takeBack(now, o, site, anew)
	}
}

// revive asks again what the old stream may have swallowed. anew says that the site's daemon
// is another one than at the end of that.
func (or *origin) revive(now job.Time, site job.SiteID, anew bool) {
	for _, o := range or.jobs {
		or.forgive(now, o, site, anew)
		switch {
		case o.ended:
		case o.rec.State == job.Queued:
			if i := slices.Index(o.rec.Sites, site); i >= 0 && o.at[i] == placing {
				or.peers.request(now, site, outKey{placement, o.rec.AttemptID()})
			}
		case o.rec.State == job.Claimed && o.rec.Holder == site:
			or.remind(o)
		case o.rec.State == job.Cancelling && o.rec.Holder == site:
			or.peers.request(now, site, outKey{stop, o.rec.AttemptID()})
		case o.rec.State == job.Running && o.rec.Holder == site:
			or.askHolder(now, o)
		}
	}
}
