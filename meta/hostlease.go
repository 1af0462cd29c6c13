package meta

import (
	"slices"
	"time"

	"kith/internal/job"
	"kith/store"
)

// attemptLease is what a host keeps in mind of a lease.
type attemptLease struct {
	// until is when all processes of the attempt must be gone; 0 if unknown
	// because the daemon was restarted.
	until job.Time
	// renewAt is when the next renewal is due, every a third of the term.
	renewAt job.Time
	every   time.Duration
}

// startsLeased reports whether a granted copy may begin now. If its lease has
// meanwhile come near its end, it must claim again.
func (h *host) startsLeased(now job.Time, c *hostCopy) bool {
	if !leased(c.rec.Request) || c.rec.ID.Job.Origin == h.self {
		return true
	}
	return c.lease.until > now && c.lease.until.Sub(now) > c.lease.every
}

// takeLease notes what a grant or a renewal allows: a term from when the claim
// or the renewal was sent. It reports whether that prolongs the lease. An answer
// to something that this daemon never sent counts for nothing.
func (h *host) takeLease(now job.Time, c *hostCopy, sent job.Time, term time.Duration) bool {
	return c.lease.take(now, sent, term, h.began, max(now, h.claimed))
}

// take is takeLease for what was sent from first to last.
func (l *attemptLease) take(now, sent job.Time, term time.Duration, first, last job.Time) bool {
	if sent < first || sent > last || term <= 0 {
		return false
	}
	term = min(term, maxLease)
	until := sent.Add(term)
	if until <= l.until || until <= now {
		return false
	}
	l.until = until
	l.every = max(term/3, time.Millisecond)
	l.renewAt = max(sent.Add(l.every), now)
	return true
}

// keepLease makes renewals go on for as long as the attempt is under way.
func (h *host) keepLease(now job.Time, c *hostCopy) {
	if !leased(c.rec.Request) || c.rec.ID.Job.Origin == h.self {
		return
	}
	h.leases = append(h.leases, c)
	h.nextRenew = min(h.nextRenew, max(c.lease.renewAt, now))
}

// renewLeases asks for what is due, and stops what has no lease any more.
func (h *host) renewLeases(now job.Time) {
	if now < h.nextRenew {
		return
	}
	next := job.Never
	h.leases = slices.DeleteFunc(h.leases, func(c *hostCopy) bool {
		return h.copies.Get(c.rec.ID) != c || c.rec.Phase != store.CopyBegun || c.lapsed
	})
	for _, c := range h.leases {
		if c.lease.until != 0 && c.lease.until <= now {
			h.lapse(now, c)
			continue
		}
		if c.lease.renewAt <= now {
			h.peers.send(c.rec.ID.Job.Origin, Renew{Attempt: c.rec.ID, Sent: now})
			c.lease.renewAt = now.Add(max(c.lease.every, h.cfg.Timing.Lease/16))
		}
		next = min(next, c.lease.renewAt)
		if c.lease.until != 0 {
			next = min(next, c.lease.until)
		}
	}
	h.nextRenew = next
}

// lapse stops an attempt that has no lease. Its shim does the same by itself.
func (h *host) lapse(now job.Time, c *hostCopy) {
	c.lapsed = true
	h.kill(c, Kill{Lease: true, Early: true})
}

// renewSoon has the leases of an origin renewed as soon as a stream is up.
func (h *host) renewSoon(now job.Time, origin job.SiteID) {
	for _, c := range h.leases {
		if c.rec.ID.Job.Origin == origin && !c.lapsed {
			c.lease.renewAt, h.nextRenew = now, now
		}
	}
}

func (h *host) onRenewed(now job.Time, m Renewed) {
	c := h.copies.Get(m.Attempt)
	if c == nil {
		h.tasks.renewed(now, m)
		return
	}
	if c.rec.Phase != store.CopyBegun || !leased(c.rec.Request) || c.lapsed {
		return
	}
	if m.Lease <= 0 {
		h.lapse(now, c) // the origin has gone on without us
		return
	}
	if h.takeLease(now, c, m.Sent, m.Lease) {
		h.nextRenew = min(h.nextRenew, c.lease.renewAt)
		h.emit(Extend{Attempt: m.Attempt, Until: c.lease.until})
	}
}
