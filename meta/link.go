package meta

import (
	"slices"

	"kith/internal/job"
	"kith/store"
)

// link is a site that a stream was up to since the engine began, with the
// requests to it that wait for an answer. Requests are kept only while the
// stream is up: what a broken stream swallowed is found by comparing copies
// once it is up again (antientropy.go), so a site that is away for a month
// costs nothing.
type link struct {
	site    job.SiteID
	up      bool
	waiting map[outKey]struct{}
	due     fifo[outDue]
	busy    bool // among the engine's busy ones
}

// outKey names a request that is repeated until it is answered.
type outKey struct {
	kind    outKind
	attempt job.AttemptID
}

type outKind uint8

const (
	placement  outKind = iota // answered by CopyAnswer
	withdrawal                // by WithdrawAck
	result                    // by ResultAck
	stop                      // by Result or GiveBack
)

type outDue struct {
	at  job.Time
	key outKey
}

// vanishDue says when a site that is out of reach counts as vanished.
type vanishDue struct {
	at, since job.Time
	site      job.SiteID
}

// link returns the link to a site, nil if there never was one.
func (e *Engine) link(site job.SiteID) *link { return e.links[site] }

// settle says that a request was answered.
func (l *link) settle(key outKey) {
	if l != nil {
		delete(l.waiting, key)
	}
}

func (l *link) waits(key outKey) bool {
	if l == nil {
		return false
	}
	_, ok := l.waiting[key]
	return ok
}

// nextResend returns when the first unanswered request is to be repeated, and
// forgets those ahead of it.
func (l *link) nextResend() job.Time {
	for l.up {
		d, ok := l.due.first()
		if !ok {
			break
		}
		if l.waits(d.key) {
			return d.at
		}
		l.due.pop()
	}
	return job.Never
}

// nextResend returns when the first unanswered request of all links is to be
// repeated. Most links have none: only the busy ones are looked at.
func (e *Engine) nextResend() job.Time {
	wake, busy := job.Never, e.busy[:0]
	for _, l := range e.busy {
		at := l.nextResend()
		if l.busy = at != job.Never; l.busy {
			wake, busy = min(wake, at), append(busy, l)
		}
	}
	clear(e.busy[len(busy):])
	e.busy = busy
	return wake
}

// request sends what key stands for and repeats it until settled. It reports
// whether anything was sent.
func (e *Engine) request(now job.Time, to job.SiteID, key outKey) bool {
	l := e.links[to]
	if l == nil || !l.up {
		return false
	}
	m, ok := e.messageOf(key)
	if !ok {
		return false
	}
	if _, waits := l.waiting[key]; !waits {
		l.waiting[key] = struct{}{}
		l.due.push(outDue{at: now.Add(e.cfg.Timing.Resend), key: key})
		if !l.busy {
			l.busy = true
			e.busy = append(e.busy, l)
		}
	}
	e.emit(Send{To: to, Message: m})
	return true
}

// messageOf makes the message of a request anew from the facts, and false if
// they have moved on and there is nothing to ask any more.
func (e *Engine) messageOf(key outKey) (Message, bool) {
	switch key.kind {
	case placement:
		o := e.open.Get(key.attempt.Job)
		if o == nil || o.rec.State != job.Queued || o.rec.Attempt != key.attempt.Number {
			return nil, false
		}
		return PlaceCopy{Attempt: key.attempt, Request: o.rec.Request}, true
	case withdrawal:
		return Withdraw{Attempt: key.attempt}, true
	case result:
		c := e.copies.Get(key.attempt)
		if c == nil || c.rec.Outcome == nil {
			return nil, false
		}
		return Result{Attempt: key.attempt, Outcome: *c.rec.Outcome}, true
	case stop:
		return Stop{Attempt: key.attempt}, true
	}
	return nil, false
}

// resend repeats the requests that were not answered in time.
func (e *Engine) resend(now job.Time) {
	for _, l := range e.linked {
		if !l.up {
			continue
		}
		for {
			d, ok := l.due.first()
			if !ok || d.at > now {
				break
			}
			l.due.pop()
			if !l.waits(d.key) {
				continue
			}
			m, ok := e.messageOf(d.key)
			if !ok {
				l.settle(d.key)
				continue
			}
			if d.key.kind == withdrawal {
				e.counters.ClaimMessagesWire++
			}
			l.due.push(outDue{at: now.Add(e.cfg.Timing.Resend), key: d.key})
			e.emit(Send{To: l.site, Message: m})
		}
	}
}

func (e *Engine) peerUp(now job.Time, ev PeerUp) {
	if ev.Site == e.self || e.view.Up(now, ev.Site, ev.Generation) == nil {
		return
	}
	l := e.links[ev.Site]
	if l == nil {
		l = &link{site: ev.Site}
		e.links[ev.Site] = l
		i, _ := slices.BinarySearchFunc(e.linked, ev.Site, func(l *link, s job.SiteID) int { return compareSites(l.site, s) })
		e.linked = slices.Insert(e.linked, i, l)
	}
	l.up, l.waiting, l.due = true, make(map[outKey]struct{}), fifo[outDue]{}
	e.send(ev.Site, LoadDigest{Digest: e.digest(now)})
	e.reviveAsOrigin(now, ev.Site)
	e.reviveAsHost(now, ev.Site)
	e.nextRetry = now
}

// reviveAsOrigin asks again what the old stream may have swallowed.
func (e *Engine) reviveAsOrigin(now job.Time, site job.SiteID) {
	for _, o := range e.jobs {
		switch {
		case o.ended:
		case o.rec.State == job.Queued:
			if i := slices.Index(o.rec.Sites, site); i >= 0 && o.at[i] == placing {
				e.request(now, site, outKey{placement, o.rec.AttemptID()})
			}
		case o.rec.State == job.Cancelling && o.rec.Holder == site:
			e.request(now, site, outKey{stop, o.rec.AttemptID()})
		}
	}
}

// reviveAsHost tells the origin what this host holds of it, repeats results
// and claims, and lets copies claim that had to wait because the origin was away.
func (e *Engine) reviveAsHost(now job.Time, site job.SiteID) {
	e.renewSoon(now, site)
	draining := e.st.Site().Draining
	for _, c := range e.copiesOf(site) {
		switch {
		case draining && c.rec.Phase == store.CopyQueued && !c.granted:
			e.giveBack(now, c, job.Draining)
		case c.status == claiming:
			e.send(site, Claim{Attempt: c.rec.ID, Stamp: c.stamp, Sent: max(now, c.claimed)})
		case c.rec.Outcome != nil:
			e.request(now, site, outKey{result, c.rec.ID})
		case c.status == waiting && c.postponed:
			c.postponed = false
			e.site.Postpone(now, c.rec.ID, now)
			e.passing = true
		}
	}
	e.sendSummary(site, e.summaryOf(site))
}

func (e *Engine) peerDown(now job.Time, site job.SiteID) {
	l := e.links[site]
	if l == nil || !l.up {
		return
	}
	l.up, l.waiting, l.due = false, nil, fifo[outDue]{}
	e.view.Down(now, site)
	e.vanished.push(vanishDue{at: now.Add(e.cfg.Timing.Vanish), since: now, site: site})
	e.queriesDown(now, site)
}

func compareSites(a, b job.SiteID) int {
	if a < b {
		return -1
	}
	if a > b {
		return 1
	}
	return 0
}
