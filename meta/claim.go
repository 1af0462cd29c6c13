package meta

import (
	"errors"
	"slices"

	"kith/internal/job"
	"kith/store"
)

// onClaim answers a host that wants to start its copy.
func (or *origin) onClaim(now job.Time, from job.SiteID, m Claim) {
	or.counters.ClaimMessagesWire++
	switch o := or.open.Get(m.Attempt.Job); {
	case o == nil:
	case m.Sent == 0 && leased(&o.rec.Request):
		// An earlier version, which knows no leases and would not stop at the end of one.
		or.refuseClaim(now, from, o, m.Attempt, job.NoLease)
		return
	default:
		// An earlier version, since it took the copy.
		if why := or.peers.knowsTooLittle(from, &o.rec.Request); why != job.NoReason {
			or.refuseClaim(now, from, o, m.Attempt, why)
			return
		}
	}
	reason, winner := or.claim(now, from, m.Attempt, m.Stamp)
	if reason != job.NoReason {
		or.peers.send(from, Verdict{Attempt: m.Attempt, Reason: reason, Winner: winner, Sent: m.Sent})
		return
	}
	lease := or.grantLease(now, or.open.Get(m.Attempt.Job))
	if or.peers.reachable(from) {
		or.emit(Grant{To: from, Attempt: m.Attempt, Lease: lease, Sent: m.Sent, Resume: or.st.Job(m.Attempt.Job).Resume()})
	}
}

// remind grants the holder of a claim again what it was granted: the answer may have been lost,
// with the stream or with the daemon before this one, and the holder may be busy for ever. A
// lease runs out, and a holder that has lost its disk since may have started.
func (or *origin) remind(o *openJob) {
	if leased(&o.rec.Request) || o.rec.HolderGeneration != or.peers.generationOf(o.rec.Holder) {
		return
	}
	or.emit(Grant{To: o.rec.Holder, Attempt: o.rec.AttemptID(), Stamp: o.rec.HolderStamp, Resume: o.rec.Resume()})
}

// refuseClaim refuses the claim of a host that could not hold it well, and has
// its copy go elsewhere.
func (or *origin) refuseClaim(now job.Time, from job.SiteID, o *openJob, a job.AttemptID, reason job.Reason) {
	or.peers.send(from, Verdict{Attempt: a, Reason: or.deny(now, o.rec, from, a, reason)})
	if o.rec.State != job.Queued || o.rec.Attempt != a.Number {
		return
	}
	if i := slices.Index(o.rec.Sites, from); i >= 0 {
		or.copyReturned(now, o, i, store.CopyReturned, reason)
	}
}

// claim is the semaphore: the first site that asks for an open attempt gets
// it, gets it again if it asks again, and every other site is told which one won
// (spec 001 section 2.5). It returns NoReason for a grant.
func (or *origin) claim(now job.Time, site job.SiteID, a job.AttemptID, stamp uint64) (job.Reason, job.SiteID) {
	j := or.st.Job(a.Job)
	if j == nil {
		return job.UnknownJob, ""
	}
	if j.CancelRequested {
		return or.deny(now, j, site, a, job.UserCancel), ""
	}
	first := j.State == job.Queued
	grant := store.GrantClaim{Attempt: a, Site: site, Stamp: stamp, Generation: or.peers.generationOf(site), Time: now}
	if leased(&j.Request) && site != or.self {
		grant.Lease = or.cfg.Timing.Lease
	}
	err := store.Record(or.st, grant)
	switch {
	case err == nil && first:
		or.granted(now, or.open.Get(a.Job))
		return job.NoReason, ""
	case err == nil:
		return job.NoReason, ""
	case errors.Is(err, store.ErrTaken):
		return or.deny(now, j, site, a, job.HeldByOther), j.Holder
	case errors.Is(err, store.ErrNoCopy):
		return or.deny(now, j, site, a, job.UnknownCopy), ""
	case errors.Is(err, store.ErrStale) && a.Number > j.Attempt:
		return or.deny(now, j, site, a, job.UnknownCopy), ""
	case errors.Is(err, store.ErrStale):
		return or.deny(now, j, site, a, job.StaleAttempt), ""
	case j.State == job.OnHold:
		return or.deny(now, j, site, a, job.UserHold), ""
	case j.State.Terminal():
		return or.deny(now, j, site, a, job.Ended), j.Holder
	default: // pending: the attempt was closed
		return or.deny(now, j, site, a, job.Withdrawn), ""
	}
}

// deny notes a denial. The history of a job that has ended is not touched any more.
func (or *origin) deny(now job.Time, j *store.Job, site job.SiteID, a job.AttemptID, reason job.Reason) job.Reason {
	or.counters.ClaimsDenied++
	if !j.State.Terminal() {
		record(or.st, store.NoteClaim{Job: j.ID, Event: store.ClaimEvent{
			Time: now, Attempt: a.Number, Kind: store.ClaimDenied, Site: site, Reason: reason,
		}})
		or.changed(j.ID)
	}
	return reason
}

// granted withdraws the other copies. The paper's count of messages is one
// claim and K-1 cancels, whether or not they had to cross between sites.
func (or *origin) granted(now job.Time, o *openJob) {
	or.counters.ClaimsGranted++
	or.addAway(o)
	or.expectEnd(o)
	or.counters.ClaimMessagesLogical += int64(len(o.rec.Sites))
	or.withdraw(now, o, o.rec.Holder)
	or.changed(o.rec.ID)
}

// withdraw asks all sites of the latest attempt but one to drop their copies.
func (or *origin) withdraw(now job.Time, o *openJob, but job.SiteID) {
	for i, site := range o.rec.Sites {
		if site != but {
			or.withdrawFrom(now, o, site, i < len(o.at) && o.at[i] != unsent)
		}
	}
	o.at = nil
}

// withdrawFrom asks one site to drop its copy of the latest attempt. sent says
// that the copy has left for it.
func (or *origin) withdrawFrom(now job.Time, o *openJob, site job.SiteID, sent bool) {
	a := o.rec.AttemptID()
	or.counters.Withdrawals++
	if site == or.self {
		or.host.dropCopies(now, a)
		return
	}
	or.noteWithdrawn(now, o, site)
	or.peers.link(site).settle(outKey{placement, a})
	switch {
	case !sent:
		or.noteUnsent(now, site)
	case or.peers.request(now, site, outKey{withdrawal, a}):
		or.counters.ClaimMessagesWire++
		or.noteLeft(now, site)
	}
}

// onWithdrawAck learns that a site has no copy of an attempt any more. Where none was to go it is
// placed again. A job that was refused where it was moved meanwhile may have its place back.
func (or *origin) onWithdrawAck(now job.Time, from job.SiteID, m WithdrawAck) {
	key := outKey{withdrawal, m.Attempt}
	l := or.peers.link(from)
	awaited := l.waits(key)
	l.answered(key)
	o := or.open.Get(m.Attempt.Job)
	if o == nil || o.rec.Attempt != m.Attempt.Number {
		return
	}
	switch i := slices.Index(o.rec.Sites, from); {
	case o.rec.State == job.Pending && awaited && or.conserving() && !o.lost.holds(now):
		or.place(now, o) // it alone: each is a decision
	case o.rec.State == job.Queued && !awaited && i >= 0 && o.at[i] == queued:
		or.sendCopy(now, o, i)
	}
}

// sendCopy asks a host to take the i-th copy of an open attempt.
func (or *origin) sendCopy(now job.Time, o *openJob, i int) {
	o.at[i] = placing
	or.peers.request(now, o.rec.Sites[i], outKey{placement, o.rec.AttemptID()})
}
