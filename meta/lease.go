package meta

import (
	"cmp"
	"slices"
	"time"

	"kith/internal/job"
	"kith/store"
)

// A job under [job.Rerun] runs at another site than its origin only as long as
// that site holds a lease. The host's lease counts from when it sent the claim
// or the renewal, the origin's from when it received it, each by a clock that
// does not step; so the host's ends first, however long messages travel. The
// host has killed the job by then. Only after its own end, which comes later
// by what clocks may differ and by a margin, the origin opens the next attempt.
// Nothing of a lease is on disk: a restarted origin grants a full one to
// everybody, a restarted host asks for a new one at once, and meanwhile the
// job's shim knows when the old one ends.

// leased reports whether a request runs under a lease where it is remote.
func leased(r *job.Request) bool { return r.OnSiteLost == job.Rerun }

// ---- at the host ----

// attemptLease is what a host keeps in mind of a lease.
type attemptLease struct {
	// until is when all processes of the attempt must be gone; 0 if unknown
	// because the daemon was restarted.
	until job.Time
	// renewAt is when the next renewal is due, every a third of the term.
	renewAt job.Time
	every   time.Duration
	// lapsed says that the attempt was told to stop for want of a lease.
	lapsed bool
}

// maxLease bounds what an origin may grant, so that times cannot overflow.
const maxLease = 30 * 24 * time.Hour

// startsLeased reports whether a granted copy may begin now. If its lease has
// meanwhile come near its end, it must claim again.
func (e *Engine) startsLeased(now job.Time, c *hostCopy) bool {
	if !leased(&c.rec.Request) || c.rec.ID.Job.Origin == e.self {
		return true
	}
	return c.lease.until > now && c.lease.until.Sub(now) > c.lease.every
}

// takeLease notes what a grant or a renewal allows: a term from when the claim
// or the renewal was sent. It reports whether that prolongs the lease. An answer
// to something that this daemon never sent counts for nothing.
func (e *Engine) takeLease(now job.Time, c *hostCopy, sent job.Time, term time.Duration) bool {
	if sent < e.began || sent > max(now, e.claimed) || term <= 0 {
		return false
	}
	term = min(term, maxLease)
	until := sent.Add(term)
	if until <= c.lease.until || until <= now {
		return false
	}
	c.lease.until = until
	c.lease.every = max(term/3, time.Millisecond)
	c.lease.renewAt = max(sent.Add(c.lease.every), now)
	return true
}

// keepLease makes renewals go on for as long as the attempt is under way.
func (e *Engine) keepLease(now job.Time, c *hostCopy) {
	if !leased(&c.rec.Request) || c.rec.ID.Job.Origin == e.self {
		return
	}
	e.leases = append(e.leases, c)
	e.nextRenew = min(e.nextRenew, max(c.lease.renewAt, now))
}

// renewLeases asks for what is due, and stops what has no lease any more.
func (e *Engine) renewLeases(now job.Time) {
	next := job.Never
	e.leases = slices.DeleteFunc(e.leases, func(c *hostCopy) bool {
		return e.copies.Get(c.rec.ID) != c || c.rec.Phase != store.CopyBegun || c.lease.lapsed
	})
	for _, c := range e.leases {
		if c.lease.until != 0 && c.lease.until <= now {
			e.lapse(now, c)
			continue
		}
		if c.lease.renewAt <= now {
			e.send(c.rec.ID.Job.Origin, Renew{Attempt: c.rec.ID, Sent: now})
			c.lease.renewAt = now.Add(max(c.lease.every, e.cfg.Timing.Lease/16))
		}
		next = min(next, c.lease.renewAt)
		if c.lease.until != 0 {
			next = min(next, c.lease.until)
		}
	}
	e.nextRenew = next
}

// lapse stops an attempt that has no lease. Its shim does the same by itself.
func (e *Engine) lapse(now job.Time, c *hostCopy) {
	c.lease.lapsed = true
	e.kill(c, true)
}

// renewSoon has the leases of an origin renewed as soon as a stream is up.
func (e *Engine) renewSoon(now job.Time, origin job.SiteID) {
	for _, c := range e.leases {
		if c.rec.ID.Job.Origin == origin && !c.lease.lapsed {
			c.lease.renewAt, e.nextRenew = now, now
		}
	}
}

func (e *Engine) onRenewed(now job.Time, from job.SiteID, m Renewed) {
	c := e.copies.Get(m.Attempt)
	if m.Attempt.Job.Origin != from || c == nil || c.rec.Phase != store.CopyBegun || !leased(&c.rec.Request) || c.lease.lapsed {
		return
	}
	if m.Lease <= 0 {
		e.lapse(now, c) // the origin has gone on without us
		return
	}
	if e.takeLease(now, c, m.Sent, m.Lease) {
		e.nextRenew = min(e.nextRenew, c.lease.renewAt)
		e.emit(Extend{Attempt: m.Attempt, Until: c.lease.until})
	}
}

// ---- at the origin ----

// grantLease starts or prolongs the lease of a job's holder and returns its
// term, 0 if the job has none.
func (e *Engine) grantLease(now job.Time, o *openJob) time.Duration {
	if o == nil || !leased(&o.rec.Request) || o.rec.Holder == e.self {
		return 0
	}
	term := cmp.Or(o.rec.Lease, e.cfg.Timing.Lease) // earlier versions did not record it
	drift := time.Duration(float64(term) * 2 * e.cfg.Timing.ClockRate)
	if !o.lent {
		o.lent, e.lent = true, append(e.lent, o)
	}
	o.lease = now.Add(term + drift + e.cfg.Timing.LeaseMargin)
	e.nextLease = min(e.nextLease, o.lease)
	return term
}

func (e *Engine) onRenew(now job.Time, from job.SiteID, m Renew) {
	if m.Attempt.Job.Origin != e.self {
		return
	}
	answer := Renewed{Attempt: m.Attempt, Sent: m.Sent}
	if o := e.holding(m.Attempt, from); o != nil && o.rec.State != job.Cancelling {
		answer.Lease = e.grantLease(now, o)
	}
	e.send(from, answer)
}

// holding returns the job of an attempt that a site holds the claim of and
// has not ended, nil if it does not.
func (e *Engine) holding(a job.AttemptID, site job.SiteID) *openJob {
	o := e.open.Get(a.Job)
	if o == nil || o.rec.Attempt != a.Number || o.rec.Holder != site || o.rec.Outcome != nil {
		return nil
	}
	return o
}

// expireLeases takes the claims back that were not renewed. All leases are
// looked at, which is about once a term, as renewals put the end of each off;
// while many end one after another, at most 64 times a term.
func (e *Engine) expireLeases(now job.Time) {
	if now < e.nextLease {
		return
	}
	next := job.Never
	e.lent = slices.DeleteFunc(e.lent, func(o *openJob) bool {
		held := !o.ended && o.lease != 0 && o.rec.State.Claim() == job.ClaimHeld && o.rec.Holder != e.self && o.rec.Outcome == nil
		if held && o.lease > now {
			next = min(next, o.lease)
			return false
		}
		o.lent = false
		// With its attempts used up, what the host says when it is back is the end.
		if held && (runsAgain(o) || o.rec.State == job.Cancelling) {
			e.revoke(now, o, job.LeaseExpired, false)
		}
		return true
	})
	e.nextLease = max(next, now.Add(e.cfg.Timing.Lease/64))
	if len(e.lent) == 0 {
		e.nextLease = job.Never
	}
}

// MaxAttempts is how often a job is run again at most.
const MaxAttempts = 64

// runsAgain reports whether losing its host means the next attempt for a job.
func runsAgain(o *openJob) bool {
	return o.rec.Request.OnSiteLost != job.Wait && o.rec.Attempt < MaxAttempts
}

// revoke takes the claim back from its holder and looks for other sites.
// mayRun says that the attempt may go on there, see [job.Race].
func (e *Engine) revoke(now job.Time, o *openJob, reason job.Reason, mayRun bool) {
	holder, a := o.rec.Holder, o.rec.AttemptID()
	record(e, store.RevokeClaim{Attempt: a, Site: holder, Reason: reason, MayRun: mayRun, Time: now})
	e.counters.ClaimsRevoked++
	e.link(holder).settle(outKey{stop, a})
	o.at, o.lease = nil, 0
	if o.rec.State.Terminal() {
		e.removeOpen(o)
	} else {
		e.place(now, o)
	}
	e.changed(o.rec.ID)
}

// race lets jobs of a site that vanished run elsewhere beside it.
func (e *Engine) race(now job.Time, site job.SiteID) {
	for _, o := range e.jobs {
		if o.ended || o.rec.Holder != site || o.rec.Request.OnSiteLost != job.Race || !runsAgain(o) {
			continue
		}
		if o.rec.State == job.Claimed || o.rec.State == job.Running {
			e.revoke(now, o, job.Vanished, true)
		}
	}
}

// outrace lets the result of an earlier attempt win, and reports whether it did.
func (e *Engine) outrace(now job.Time, o *openJob, from job.SiteID, m Result) bool {
	if o == nil || o.rec.Outcome != nil || o.rec.CancelRequested || m.Outcome.Kind == job.Loss || !earlier(o.rec, m.Attempt.Number, from) {
		return false
	}
	if o.rec.State == job.Queued {
		e.withdraw(now, o, "")
	}
	e.dropQuery(o)
	record(e, store.OutraceAttempt{Attempt: m.Attempt, Site: from, Outcome: m.Outcome, Time: now})
	o.at, o.decision = nil, nil
	e.bringHome(now, o)
	return true
}

// earlier reports whether a site may still run an earlier attempt of a job.
func earlier(j *store.Job, attempt uint32, site job.SiteID) bool {
	return slices.Contains(j.Earlier, store.Holding{Attempt: attempt, Site: site})
}

// stopEarlier stops the attempts that did not win, where they can be reached;
// elsewhere comparing copies finds them.
func (e *Engine) stopEarlier(now job.Time, j *store.Job) {
	for _, h := range j.Earlier {
		a := job.AttemptID{Job: j.ID, Number: h.Attempt}
		if h.Site != e.self {
			e.request(now, h.Site, outKey{stop, a})
		} else if c := e.copies.Get(a); c != nil && c.rec.Phase == store.CopyBegun {
			e.kill(c, false)
		}
	}
}
