package meta

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"kith/internal/job"
)

// A job under [job.Rerun] runs at another site than its origin only as long as
// that site holds a lease. The host's lease (hostlease.go) counts from when it
// sent the claim or the renewal, the origin's (here) from when it received it,
// each by a clock that does not step; so the host's ends first, however long
// messages travel. The host has killed the job by then. Only after its own end,
// which comes later by what clocks may differ and by a margin, the origin opens
// the next attempt. Nothing of a lease is on disk: a restarted origin grants a
// full one to every host, a restarted host asks for a new one at once, and
// meanwhile the job's shim knows when the old one ends.

// leased reports whether a request runs under a lease where it is remote.
func leased(r *job.Request) bool { return r.OnSiteLost == job.Rerun }

// maxLease bounds what an origin may grant, so that times cannot overflow.
const maxLease = 30 * 24 * time.Hour

// grantLease starts or prolongs the lease of a job's holder and returns its
// term, 0 if the job has none.
func (or *origin) grantLease(now job.Time, o *openJob) time.Duration {
	if o == nil || !leased(&o.rec.Request) || o.rec.Holder == or.self {
		return 0
	}
	term := cmp.Or(o.rec.Lease, or.cfg.Timing.Lease) // earlier versions did not record it
	if !o.leased {
		o.leased, or.leased = true, append(or.leased, o)
	}
	o.lease = now.Add(or.cfg.Timing.heldFor(term))
	or.nextLease = min(or.nextLease, o.lease)
	return term
}

// heldFor is how long after a claim or a renewal came a lease of a term has ended for sure.
func (t *Timing) heldFor(term time.Duration) time.Duration {
	drift := time.Duration(float64(term) * 2 * t.ClockRate)
	return term + drift + t.LeaseMargin
}

func (or *origin) onRenew(now job.Time, from job.SiteID, m Renew) {
	if or.st.Bag(m.Attempt.Job) != nil {
		or.bags.onRenew(now, from, m)
		return
	}
	answer := Renewed{Attempt: m.Attempt, Sent: m.Sent}
	if o := or.holding(m.Attempt, from); o != nil && o.rec.State != job.Cancelling && (now < or.givesUpAt(o) || !runsAgain(o)) {
		answer.Lease = or.grantLease(now, o)
	}
	or.peers.send(from, answer)
}

// holding returns the job of an attempt that a site holds the claim of and
// has not ended, nil if it does not.
func (or *origin) holding(a job.AttemptID, site job.SiteID) *openJob {
	o := or.open.Get(a.Job)
	if o == nil || o.rec.Attempt != a.Number || o.rec.Holder != site || o.rec.Outcome != nil {
		return nil
	}
	return o
}

// expireLeases takes the claims back that were not renewed. All leases are
// looked at, which is about once a term, as renewals put the end of each off;
// while many end one after another, at most 64 times a term.
func (or *origin) expireLeases(now job.Time) {
	if now < or.nextLease {
		return
	}
	next := job.Never
	or.leased = slices.DeleteFunc(or.leased, func(o *openJob) bool {
		if !o.ended && o.rec.State == job.Returning && o.lease != 0 {
			if or.awaitOutput(now, o) {
				next = min(next, o.lease)
				return false
			}
			o.leased = false
			return true
		}
		held := !o.ended && o.lease != 0 && o.rec.State.Claim() == job.ClaimTaken && o.rec.Holder != or.self && o.rec.Outcome == nil
		if held && o.lease > now {
			next = min(next, o.lease)
			return false
		}
		o.leased = false
		// With its attempts used up, what the host says when it is back is the end.
		switch {
		case !held:
		case runsAgain(o) || o.rec.State == job.Cancelling:
			reason := job.LeaseExpired
			if now >= or.givesUpAt(o) {
				or.noteGivenUp(now, o)
				reason = job.Overdue
			}
			or.revoke(now, o, reason, false)
		case or.revoked(o.rec.Holder): // it will never say
			or.settleOutcome(now, o, job.Outcome{Kind: job.Loss, End: now, Reason: fmt.Sprintf("site %s, which had its claim, is trusted no more", o.rec.Holder)})
		}
		return true
	})
	or.nextLease = max(next, now.Add(or.cfg.Timing.Lease/64))
	if len(or.leased) == 0 {
		or.nextLease = job.Never
	}
}
