package meta

import (
	"math"

	"kith/internal/job"
	"kith/store"
)

// claimDue is a claim that must be answered by a time.
type claimDue struct {
	at      job.Time
	attempt job.AttemptID
	stamp   uint64
}

// propose asks for the right to start a copy whose turn has come.
func (h *host) propose(now job.Time, c *hostCopy) {
	id := c.rec.ID
	origin := id.Job.Origin
	switch {
	case c.granted != nil && h.startsLeased(now, c):
		h.begin(now, c, c.granted.payload)
	case origin == h.self:
		reason, _ := h.origin.claim(now, h.self, id, h.nextStamp())
		if reason == job.NoReason {
			h.begin(now, c, nil)
		} else {
			h.drop(now, c)
		}
	case !h.peers.reachable(origin):
		h.outOfReach(now, origin)
		h.putBack(now, c)
	default:
		c.status, c.granted = claiming, nil
		h.sendClaim(now, c)
	}
}

func (h *host) sendClaim(now job.Time, c *hostCopy) {
	before := c.stamp
	c.stamp = h.nextStamp()
	// No two claims are sent at the same time, so that their answers differ.
	h.claimed = max(now, h.claimed+1)
	if c.claimed == 0 {
		c.claimed = h.claimed
	} else {
		c.reclaimed = uint16(min(uint64(c.reclaimed)+c.stamp-before, math.MaxUint16)) //nolint:gosec // It fits.
	}
	h.claims.Push(claimDue{at: now.Add(h.cfg.Timing.Claim), attempt: c.rec.ID, stamp: c.stamp})
	h.peers.send(c.rec.ID.Job.Origin, Claim{Attempt: c.rec.ID, Stamp: c.stamp, Sent: h.claimed})
}

// nextStamp counts the protocol steps of this site as a host. It grows for ever:
// each life begins above what the lives before it said (store.Site.Steps).
func (h *host) nextStamp() uint64 {
	h.stamp++
	if h.stamp >= h.st.Site().Steps+store.LifeSteps {
		record(h.st, store.MoreSteps{})
	}
	return h.stamp
}

// asked reports whether a verdict answers a claim of this copy, or reminds it of one. One
// that was under way for long may be about another copy of the same attempt, which ran and
// was forgotten since, or was withdrawn before this one was placed. An earlier version of the
// origin says neither when the claim was sent nor which one a reminder is of.
func (c *hostCopy) asked(m *Verdict) bool {
	switch {
	case c.claimed == 0:
		return false
	case m.Sent != 0:
		return m.Sent >= c.claimed
	}
	return m.Stamp == 0 || m.Stamp+uint64(c.reclaimed) >= c.stamp
}

// over reports whether a claim no longer waits for its answer.
func (h *host) over(d *claimDue) bool {
	c := h.copies.Get(d.attempt)
	return c == nil || c.stamp != d.stamp || c.status != claiming
}

// nextClaimDue returns when the first unanswered claim runs out, and forgets
// those ahead of it.
func (h *host) nextClaimDue() job.Time {
	for {
		d, ok := h.claims.First()
		if !ok {
			return job.Never
		}
		if !h.over(&d) {
			return d.at
		}
		h.claims.Pop()
	}
}

// expireClaims frees the processors of claims that were not answered, so that
// an origin out of reach cannot pin them.
func (h *host) expireClaims(now job.Time) {
	for {
		d, ok := h.claims.First()
		if !ok || d.at > now {
			return
		}
		h.claims.Pop()
		if h.over(&d) {
			continue
		}
		c := h.copies.Get(d.attempt)
		c.status = waiting
		h.unanswered(now, c)
		h.putBack(now, c)
		h.counters.ClaimsTimedOut++
	}
}

func (h *host) onVerdict(now job.Time, from job.SiteID, m Verdict) {
	c := h.copies.Get(m.Attempt)
	h.answered(now, from, c, &m)
	if c == nil {
		if m.Granted { // the origin would wait for us for ever
			h.peers.send(from, GiveBack{Attempt: m.Attempt, Reason: job.UnknownCopy, Stamp: h.nextStamp()})
		}
		return
	}
	switch {
	case m.Granted && m.Sent == 0 && !c.asked(&m) && c.rec.Phase == store.CopyQueued && (c.claimed == 0 || c.doubts()):
		// The origin reminds us of a claim that this daemon knows nothing of, or that another
		// copy made. This one waits here, perhaps for long; elsewhere it may start sooner.
		h.giveBack(now, c, job.LateGrant)
	case m.Granted && !c.asked(&m): // if we are entitled, our own claim is granted, too
	case m.Granted && m.Lease <= 0 && leased(c.rec.Request) && c.rec.Phase == store.CopyQueued:
		// The job at its origin is not the one that this copy was made of: the
		// copy could never start, and would claim for ever.
		h.giveBack(now, c, job.BadRequest)
	case m.Granted:
		delete(h.ahead, from)
		h.takeLease(now, c, m.Sent, m.Lease)
		h.onGrant(now, c, &m)
	case c.rec.Phase == store.CopyQueued:
		if m.Reason == job.ClockAhead {
			h.deniedAhead(now, from)
		}
		h.drop(now, c)
	}
}

func (h *host) onGrant(now job.Time, c *hostCopy, m *Verdict) {
	switch c.status {
	case claiming:
		if !h.startsLeased(now, c) {
			return // the answer was too long on its way; the claim is made again
		}
		h.begin(now, c, m.Payload)
	case waiting:
		if c.bringing || c.returned && m.Sent == 0 {
			return // it was begun before: its turn comes again
		}
		// The claim had run out. The attempt is ours now: it starts at once or, as
		// other sites might start it sooner, goes back.
		if h.batch != nil { // what it had started for the claim has left
			h.giveBack(now, c, job.LateGrant)
			return
		}
		c.granted, c.postponed = &lateGrant{m.Payload}, false
		h.late = append(h.late, c)
		h.postpone(now, c, now)
		h.site.Probe(now, c.rec.ID) // its origin may be set aside
	}
}

// returnLate gives the copies back whose grant came late and that could not
// start in this instant.
func (h *host) returnLate(now job.Time) {
	for i, c := range h.late {
		h.late[i] = nil
		if c.granted != nil && c.status == waiting && h.copies.Get(c.rec.ID) == c {
			h.giveBack(now, c, job.LateGrant)
		}
	}
	h.late = h.late[:0]
}

// doubts reports whether a copy waits whose claim has run out without an answer: it may have
// been granted, so that no other site may start the job, while this one is busy for any time.
func (c *hostCopy) doubts() bool {
	return c.status == waiting && c.rec.Phase == store.CopyQueued && !c.returned && c.claimed != 0
}
