package meta

import (
	"slices"

	"kith/internal/job"
	"kith/meta/place"
	"kith/store"
)

// hostCopy is what a host keeps in mind of a copy beside the facts.
type hostCopy struct {
	rec    *store.Copy
	status hostStatus
	// stamp tells this claim from an earlier one of the same copy.
	stamp uint64
	// claimed is when this daemon first claimed for this copy, 0 for not yet.
	claimed job.Time
	// granted says that a grant came after the claim had been given up; the
	// copy starts without a further claim when its turn comes. payload came with it.
	granted bool
	payload []byte
	lease   attemptLease
	// postponed says that the copy waits for its origin to be in reach.
	postponed bool
	// adopted says that it was begun before a restart, returned that it was
	// begun once and is back in the queue.
	adopted, returned bool
	// killed says that the driver was told to stop it.
	killed  bool
	started job.Time
}

type hostStatus uint8

const (
	waiting  hostStatus = iota // in the queue
	claiming                   // processors reserved, claim sent
	launched                   // begun; the driver stages and starts it
)

// claimDue is a claim that must be answered by a time.
type claimDue struct {
	at      job.Time
	attempt job.AttemptID
	stamp   uint64
}

func (e *Engine) onPlaceCopy(now job.Time, from job.SiteID, m PlaceCopy) {
	answer := CopyAnswer{Attempt: m.Attempt}
	if e.copies.Get(m.Attempt) == nil || m.Attempt.Job.Origin != from {
		if answer.Reason = e.refusal(from, m.Attempt, &m.Request); answer.Reason == job.NoReason {
			e.dropCopies(now, previous(m.Attempt)) // a newer attempt says that older ones are over
			e.accept(now, from, m.Attempt, &m.Request)
		} else {
			e.counters.CopiesRefused++
		}
	}
	answer.Accepted = answer.Reason == job.NoReason
	e.send(from, answer)
}

// previous names the attempt before a; number 0, which no copy has, for the first.
func previous(a job.AttemptID) job.AttemptID {
	a.Number--
	return a
}

// refusal says why a copy is not taken.
func (e *Engine) refusal(from job.SiteID, a job.AttemptID, r *job.Request) job.Reason {
	switch {
	case a.Job.Origin != from:
		return job.NotOrigin
	case a.Number == 0 || r.Validate() != nil:
		return job.BadRequest
	case e.st.Site().Draining:
		return job.Draining
	case r.Directory != "" && (e.cfg.AllowDirectory == nil || !e.cfg.AllowDirectory(r.Directory)):
		return job.Directory
	case e.remote[from] >= e.cfg.Limits.CopiesPerOrigin:
		return job.Full
	case e.foreign >= e.cfg.Limits.Copies:
		return job.TooManyCopies
	}
	return e.site.Refuse(r)
}

// accept commits a copy and queues it.
func (e *Engine) accept(now job.Time, origin job.SiteID, a job.AttemptID, r *job.Request) {
	record(e, store.AcceptCopy{Attempt: a, Request: *r, Time: now})
	c := e.addCopy(e.st.Copy(a))
	e.site.Enqueue(now, job.Copy{ID: a, Request: e.here(&c.rec.Request), Arrival: now, Remote: origin != e.self})
	e.passing = true
	e.counters.CopiesQueued++
}

// here returns a request as it counts at this site: users give walltimes for a
// processor of speed 1 (spec 004 section 4).
func (e *Engine) here(r *job.Request) job.Request {
	local := *r
	local.Walltime = place.Scaled(r.Walltime, e.cfg.Self.Speed)
	return local
}

func (e *Engine) addCopy(rec *store.Copy) *hostCopy {
	c := &hostCopy{rec: rec}
	e.copies.Put(rec.ID, c)
	if origin := rec.ID.Job.Origin; origin != e.self {
		e.remote[origin]++
		e.foreign++
	}
	return c
}

func (e *Engine) removeCopy(c *hostCopy) {
	e.copies.Delete(c.rec.ID)
	if origin := c.rec.ID.Job.Origin; origin != e.self {
		e.foreign--
		if e.remote[origin]--; e.remote[origin] == 0 {
			delete(e.remote, origin)
		}
	}
}

// copiesOf returns the copies of an origin in the order of jobs.
func (e *Engine) copiesOf(origin job.SiteID) []*hostCopy {
	if e.remote[origin] == 0 && origin != e.self {
		return nil
	}
	list := make([]*hostCopy, 0, e.remote[origin])
	for id, c := range e.copies.All {
		if id.Job.Origin == origin {
			list = append(list, c)
		}
	}
	slices.SortFunc(list, func(a, b *hostCopy) int { return a.rec.ID.Compare(b.rec.ID) })
	return list
}

// drop forgets a copy that has not begun and frees what was reserved for it.
func (e *Engine) drop(now job.Time, c *hostCopy) {
	record(e, store.DropCopy{Attempt: c.rec.ID})
	e.site.Withdraw(now, c.rec.ID)
	e.removeCopy(c)
	e.passing = true
	if c.returned {
		e.emit(Clear{Attempt: c.rec.ID}) // what was prepared for it
	}
}

// dropCopies drops all copies of a job up to attempt a that have not begun.
// Attempts of one job at one site are few: they are looked for from a downward.
func (e *Engine) dropCopies(now job.Time, a job.AttemptID) {
	const lookBack = 16 // an older stray is found by comparing copies
	for n := a.Number; n > 0 && a.Number-n < lookBack; n-- {
		if c := e.copies.Get(job.AttemptID{Job: a.Job, Number: n}); c != nil && c.rec.Phase == store.CopyQueued {
			e.drop(now, c)
		}
	}
}

// propose asks for the right to start a copy whose turn has come.
func (e *Engine) propose(now job.Time, id job.AttemptID) {
	c := e.copies.Get(id)
	origin := id.Job.Origin
	switch {
	case c.granted && e.startsLeased(now, c):
		e.begin(now, c, c.payload)
	case origin == e.self:
		reason, _ := e.claim(now, e.self, id, e.nextStamp(now))
		if reason == job.NoReason {
			e.begin(now, c, nil)
		} else {
			e.drop(now, c)
		}
	case e.links[origin] == nil || !e.links[origin].up:
		c.postponed = true
		e.site.Postpone(now, id, now.Add(e.cfg.Timing.Backoff))
		e.passing = true
	default:
		c.status, c.granted = claiming, false
		e.sendClaim(now, c)
	}
}

func (e *Engine) sendClaim(now job.Time, c *hostCopy) {
	c.stamp = e.nextStamp(now)
	// No two claims are sent at the same time, so that their answers differ.
	e.claimed = max(now, e.claimed+1)
	if c.claimed == 0 {
		c.claimed = e.claimed
	}
	e.claims.push(claimDue{at: now.Add(e.cfg.Timing.Claim), attempt: c.rec.ID, stamp: c.stamp})
	e.send(c.rec.ID.Job.Origin, Claim{Attempt: c.rec.ID, Stamp: c.stamp, Sent: e.claimed})
}

// asked reports whether a verdict answers a claim of this copy. One that was
// under way for long may answer another copy of the same attempt, which ran and
// was forgotten since. An earlier version of the origin does not say when the
// claim was sent.
func (c *hostCopy) asked(m *Verdict) bool {
	return c.claimed != 0 && (m.Sent == 0 || m.Sent >= c.claimed)
}

// over reports whether nobody waits for the answer to a claim any more.
func (e *Engine) over(d *claimDue) bool {
	c := e.copies.Get(d.attempt)
	return c == nil || c.stamp != d.stamp || c.status != claiming
}

// nextClaimDue returns when the first unanswered claim runs out, and forgets
// those ahead of it.
func (e *Engine) nextClaimDue() job.Time {
	for {
		d, ok := e.claims.first()
		if !ok {
			return job.Never
		}
		if !e.over(&d) {
			return d.at
		}
		e.claims.pop()
	}
}

// expireClaims frees the processors of claims that were not answered, so that
// an origin out of reach cannot pin them.
func (e *Engine) expireClaims(now job.Time) {
	for {
		d, ok := e.claims.first()
		if !ok || d.at > now {
			return
		}
		e.claims.pop()
		c := e.copies.Get(d.attempt)
		if c == nil || c.stamp != d.stamp {
			continue
		}
		if c.status != claiming {
			continue
		}
		c.status, c.postponed = waiting, true
		e.site.Postpone(now, d.attempt, now.Add(e.cfg.Timing.Backoff))
		e.counters.ClaimsTimedOut++
		e.passing = true
	}
}

func (e *Engine) onVerdict(now job.Time, from job.SiteID, m Verdict) {
	if m.Attempt.Job.Origin != from {
		return
	}
	c := e.copies.Get(m.Attempt)
	if c == nil {
		if m.Granted { // the origin would wait for us for ever
			e.send(from, GiveBack{Attempt: m.Attempt, Reason: job.UnknownCopy, Stamp: e.nextStamp(now)})
		}
		return
	}
	switch {
	case m.Granted && !c.asked(&m): // if we are entitled, our own claim is granted, too
	case m.Granted && m.Lease <= 0 && leased(&c.rec.Request) && c.rec.Phase == store.CopyQueued:
		// The job at its origin is not the one that this copy was made of: the
		// copy could never start, and would claim for ever.
		e.giveBack(now, c, job.BadRequest)
	case m.Granted:
		e.takeLease(now, c, m.Sent, m.Lease)
		e.onGrant(now, c, m.Payload)
	case c.rec.Phase == store.CopyQueued:
		e.drop(now, c)
	}
}

func (e *Engine) onGrant(now job.Time, c *hostCopy, payload []byte) {
	switch c.status {
	case claiming:
		if !e.startsLeased(now, c) {
			return // the answer was too long on its way; the claim is made again
		}
		e.begin(now, c, payload)
	case waiting:
		// The claim had been given up. The attempt is ours now, so the copy
		// goes as soon as the schedule lets it.
		c.granted, c.payload, c.postponed = true, payload, false
		e.site.Postpone(now, c.rec.ID, now)
		e.passing = true
	}
}

func (e *Engine) onWithdraw(now job.Time, from job.SiteID, m Withdraw) {
	if m.Attempt.Job.Origin != from {
		return
	}
	e.dropCopies(now, m.Attempt)
	e.send(from, WithdrawAck(m))
}

func (e *Engine) onStop(now job.Time, from job.SiteID, m Stop) {
	if m.Attempt.Job.Origin != from {
		return
	}
	c := e.copies.Get(m.Attempt)
	switch {
	case c == nil:
		e.send(from, GiveBack{Attempt: m.Attempt, Reason: job.UnknownCopy, Stamp: e.nextStamp(now)})
	case c.rec.Phase == store.CopyQueued:
		e.giveBack(now, c, job.UserCancel)
	case c.rec.Phase == store.CopyBegun:
		e.kill(c, false)
	default:
		e.request(now, from, outKey{result, m.Attempt})
	}
}

// giveBack drops a copy and tells its origin.
func (e *Engine) giveBack(now job.Time, c *hostCopy, reason job.Reason) {
	e.drop(now, c)
	e.send(c.rec.ID.Job.Origin, GiveBack{Attempt: c.rec.ID, Reason: reason, Stamp: e.nextStamp(now)})
}

// setDrain stops or resumes taking copies and starting. What other origins
// have queued here goes back to them.
func (e *Engine) setDrain(now job.Time, ev SetDrain) {
	record(e, store.SetDrain{Draining: ev.On, Reason: ev.Reason})
	e.site.Drain(now, ev.On)
	e.passing = true
	if ev.On {
		for _, l := range e.linked {
			for _, c := range e.copiesOf(l.site) {
				if c.rec.Phase == store.CopyQueued && !c.granted && l.up {
					e.giveBack(now, c, job.Draining)
				}
			}
		}
	}
	e.advertise(now)
	if ev.On {
		e.moveOwn(now)
	}
	e.reply(ev.Token, job.ID{}, 0, nil)
}

// moveOwn lets jobs that queue nowhere but at this site, which drains, queue at
// another one. Where there is none they keep their place here.
func (e *Engine) moveOwn(now job.Time) {
	for _, o := range e.jobs {
		if o.ended || o.rec.State != job.Queued || len(o.rec.Sites) != 1 || o.rec.Sites[0] != e.self || e.nextSite(now, o) == "" {
			continue
		}
		a := o.rec.AttemptID()
		e.copyReturned(now, o, 0, store.CopyReturned, job.Draining)
		e.dropCopies(now, a)
	}
}
