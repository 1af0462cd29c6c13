package meta

import (
	"strings"

	"kith/internal/job"
	"kith/store"
)

// begin commits to the start of a granted copy and launches it.
func (e *Engine) begin(now job.Time, c *hostCopy, payload []byte) {
	record(e, store.BeginAttempt{Attempt: c.rec.ID, BootID: e.cfg.BootID, Time: now})
	e.counters.AttemptsStarted++
	since := c.rec.Arrived
	if c.rec.ID.Job.Origin != e.self {
		e.counters.AttemptsStartedRemote++
	} else if j := e.st.Job(c.rec.ID.Job); j != nil {
		since = j.Submitted
	}
	e.counters.WaitSeconds += now.Sub(since).Seconds()
	e.keepLease(now, c)
	e.launch(c, payload)
}

func (e *Engine) launch(c *hostCopy, payload []byte) {
	c.status, c.granted, c.payload = launched, false, nil
	e.emit(Launch{Attempt: c.rec.ID, Request: e.here(&c.rec.Request), Payload: payload, Lease: c.lease.until})
}

func (e *Engine) attemptStarted(now job.Time, ev AttemptStarted) {
	c := e.copies.Get(ev.Attempt)
	if c == nil || c.rec.Phase != store.CopyBegun || c.started != 0 {
		return
	}
	c.started = ev.At
	since := now
	if c.adopted { // by the clock of an earlier life of the daemon, which may have been another
		since = min(max(ev.At, c.rec.Begun), now)
	}
	e.site.Confirm(now, ev.Attempt, since)
	started := Started(ev)
	if origin := ev.Attempt.Job.Origin; origin != e.self {
		e.send(origin, started)
	} else {
		e.onStarted(now, e.self, started)
	}
}

func (e *Engine) attemptEnded(now job.Time, ev AttemptEnded) {
	if c := e.copies.Get(ev.Attempt); c != nil && c.rec.Phase == store.CopyBegun {
		e.end(now, c, ev.Outcome)
	}
}

// end records how an attempt ended here and reports it.
func (e *Engine) end(now job.Time, c *hostCopy, outcome job.Outcome) {
	outcome.Reason = clipReason(outcome.Reason)
	record(e, store.EndAttempt{Attempt: c.rec.ID, Outcome: outcome})
	c.status = launched // nothing is launched any more
	e.site.Finish(now, c.rec.ID)
	e.passing = true
	e.report(now, c)
}

// clipReason keeps a text from outside within the bounds of a record.
func clipReason(s string) string {
	return strings.ToValidUTF8(s[:min(len(s), job.MaxReasonLength)], "")
}

// report tells the origin how an attempt ended.
func (e *Engine) report(now job.Time, c *hostCopy) {
	a := c.rec.ID
	if a.Job.Origin != e.self {
		e.request(now, a.Job.Origin, outKey{result, a})
		return
	}
	o := e.open.Get(a.Job)
	if o == nil || o.rec.Attempt != a.Number || o.rec.Holder != e.self {
		e.forget(a)
		return
	}
	if o.rec.Outcome == nil {
		e.recordOutcome(now, o, *c.rec.Outcome)
	}
}

func (e *Engine) onResultAck(_ job.Time, from job.SiteID, m ResultAck) {
	if m.Attempt.Job.Origin != from {
		return
	}
	e.link(from).settle(outKey{result, m.Attempt})
	e.forget(m.Attempt)
}

// forget forgets an ended attempt whose outcome the origin has.
func (e *Engine) forget(a job.AttemptID) {
	c := e.copies.Get(a)
	if c == nil || c.rec.Phase != store.CopyEnded {
		return
	}
	record(e, store.ForgetAttempt{Attempt: a})
	e.removeCopy(c)
	e.emit(Clear{Attempt: a})
}

// kill has the driver stop an attempt.
func (e *Engine) kill(c *hostCopy, lease bool) {
	c.killed = true
	e.emit(Kill{Attempt: c.rec.ID, Lease: lease})
}

// attemptMissing deals with an attempt that was begun and never started. A local
// one is launched at once. A remote one goes back to its place in the queue and
// claims again when its turn comes: its origin may want it no more, or be out of
// reach for long, and must not pin processors; and its payload comes with the
// grant.
func (e *Engine) attemptMissing(now job.Time, a job.AttemptID) {
	c := e.copies.Get(a)
	if c == nil || c.rec.Phase != store.CopyBegun {
		return
	}
	if a.Job.Origin == e.self {
		if o := e.open.Get(a.Job); o != nil && o.rec.CancelRequested {
			e.end(now, c, job.Outcome{Kind: job.Cancel, End: now, Reason: "cancelled before it was started"})
			return
		}
		e.launch(c, nil)
		return
	}
	if c.killed { // the driver knows it no more: its end would never be told
		o := job.Outcome{Kind: job.Cancel, End: now, Reason: "cancelled before it was started"}
		if c.lease.lapsed {
			o.Kind, o.Reason = job.Loss, "its lease ended before it was started"
		}
		e.end(now, c, o)
		return
	}
	record(e, store.RequeueCopy{Attempt: a})
	e.site.Finish(now, a)
	e.site.Enqueue(now, job.Copy{ID: a, Request: e.here(&c.rec.Request), Arrival: c.rec.Arrived, Remote: true})
	if !c.adopted { // its inputs could not be had: others first
		e.site.Postpone(now, a, now.Add(e.cfg.Timing.Backoff))
		c.postponed = true
	}
	c.status, c.returned, c.adopted, c.lease = waiting, true, false, attemptLease{}
	e.passing = true
	if l := e.links[a.Job.Origin]; l != nil && l.up && e.st.Site().Draining {
		e.giveBack(now, c, job.Draining)
	}
}
