package meta

import (
	"kith/internal/job"
	"kith/store"
)

// begin commits to the start of a granted copy and launches it.
func (h *host) begin(now job.Time, c *hostCopy, payload []byte) {
	h.leavesQueue(now, c)
	record(h.st, store.BeginAttempt{Attempt: c.rec.ID, BootID: h.cfg.BootID, Time: now, GoesOn: h.goesOn(now, c.rec)})
	h.counters.AttemptsStarted++
	since := c.rec.Arrived
	if c.rec.ID.Job.Origin != h.self {
		h.counters.AttemptsStartedRemote++
	} else if j := h.st.Job(c.rec.ID.Job); j != nil {
		since = j.Submitted
	}
	h.counters.WaitSeconds += now.Sub(since).Seconds()
	h.keepLease(now, c)
	h.launch(now, c, payload)
}

func (h *host) launch(now job.Time, c *hostCopy, payload []byte) {
	c.status, c.granted, c.bringing = launched, nil, false
	f := Launch{Attempt: c.rec.ID, Request: h.limitedRequest(c.rec), Payload: payload, Lease: c.lease.until, Ending: h.ending(c.rec), Estimate: h.estimate(now, c.rec)}
	if j := h.st.Job(c.rec.ID.Job); j != nil {
		f.Resume = j.Resume()
	}
	h.emit(f)
}

func (h *host) attemptStarted(now job.Time, ev AttemptStarted) {
	c := h.copies.Get(ev.Attempt)
	if c == nil {
		h.tasks.started(now, ev)
		return
	}
	if c.rec.Phase != store.CopyBegun || c.started != 0 {
		return
	}
	c.started, c.since = ev.At, now
	h.startSucceeded(now, c)
	if c.adopted { // by the clock of an earlier life of the daemon, which may have been another
		c.since = min(max(ev.At, c.rec.Begun), now)
	}
	h.site.Confirm(now, ev.Attempt, c.since)
	h.keepTime(now, c)
	h.keepSaving(now, c)
	if c.evicted { // before it was known that it runs
		h.evictCopy(now, c)
	}
	h.levelNews(c)
	h.startTook(now, c)
	started := Started{Attempt: ev.Attempt, At: ev.At}
	if origin := ev.Attempt.Job.Origin; origin != h.self {
		h.peers.send(origin, started)
	} else {
		h.origin.onStarted(now, h.self, started)
	}
}

// attemptOver frees the processors of an attempt whose processes are gone. After a
// restart it holds them again until the driver has said so once more.
func (h *host) attemptOver(now job.Time, a job.AttemptID) {
	c := h.copies.Get(a)
	if c == nil {
		h.tasks.over(now, a)
		return
	}
	if c.rec.Phase == store.CopyBegun {
		h.free(now, a)
		if !c.over {
			c.over = true
			h.tellOver(now, c)
		}
	}
}

// tellOver tells the origin that an attempt only waits for its output to be collected,
// which takes as long as the disk has no room.
func (h *host) tellOver(now job.Time, c *hostCopy) {
	m := Started{Attempt: c.rec.ID, At: c.started, Over: true}
	if origin := m.Attempt.Job.Origin; origin != h.self {
		h.peers.send(origin, m)
	} else {
		h.origin.onStarted(now, h.self, m)
	}
}

func (h *host) attemptEnded(now job.Time, ev AttemptEnded) {
	c := h.copies.Get(ev.Attempt)
	if c == nil {
		h.tasks.ended(now, ev)
		return
	}
	if c.rec.Phase == store.CopyBegun {
		if ev.Outcome.Start != 0 {
			h.startSucceeded(now, c)
		}
		h.end(now, c, ev.Outcome)
	}
}

// free frees the processors of an attempt.
func (h *host) free(now job.Time, a job.AttemptID) {
	h.site.Finish(now, a)
	h.passing, h.tasks.news = true, now
}

// end records how an attempt ended here and reports it.
func (h *host) end(now job.Time, c *hostCopy, outcome job.Outcome) {
	h.judgeEstimate(now, c.rec, &outcome)
	outcome.Reason = job.ClipReason(outcome.Reason)
	if h.seer != nil {
		h.seer.left(c, &outcome)
	}
	record(h.st, store.EndAttempt{Attempt: c.rec.ID, Outcome: outcome})
	c.status = launched // nothing is launched any more
	h.free(now, c.rec.ID)
	if c.forgotten && !h.peers.reachable(c.rec.ID.Job.Origin) {
		h.forget(c.rec.ID)
		return
	}
	h.report(now, c)
}

// report tells the origin how an attempt ended.
func (h *host) report(now job.Time, c *hostCopy) {
	a := c.rec.ID
	if a.Job.Origin != h.self {
		h.peers.request(now, a.Job.Origin, outKey{result, a})
		return
	}
	h.origin.endedHere(now, a, c.rec.Outcome)
}

func (h *host) onResultAck(_ job.Time, from job.SiteID, m ResultAck) {
	h.peers.link(from).settle(outKey{result, m.Attempt})
	h.forget(m.Attempt)
}

// forget forgets an ended attempt whose outcome the origin has.
func (h *host) forget(a job.AttemptID) {
	c := h.copies.Get(a)
	if c == nil || c.rec.Phase != store.CopyEnded {
		return
	}
	record(h.st, store.ForgetAttempt{Attempt: a, Speed: h.speed(c.rec.Request)})
	h.removeCopy(c)
	h.emit(Clear{Attempt: a})
}

// stop stops an attempt of this site's own job, in the way of k. It may be done early,
// before the facts that speak for it are durable, if the user wants the job ended. An
// attempt that is stopped because another one has ended waits for that outcome to
// be durable: a crash could take it back, and its own end would count.
func (h *host) stop(a job.AttemptID, k Kill) {
	if c := h.copies.Get(a); c != nil && c.rec.Phase == store.CopyBegun {
		h.kill(c, k)
	}
}

// kill has the driver stop an attempt, in the way of k.
func (h *host) kill(c *hostCopy, k Kill) {
	c.killed = true
	k.Attempt = c.rec.ID
	h.emit(k)
}
