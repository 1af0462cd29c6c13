package meta

import (
	"kith/internal/job"
	"kith/store"
)

// onStarted learns that the holder's command runs.
func (e *Engine) onStarted(now job.Time, from job.SiteID, m Started) {
	o := e.open.Get(m.Attempt.Job)
	if o == nil || o.rec.Attempt != m.Attempt.Number || o.rec.Holder != from || o.rec.Started != 0 || m.At == 0 {
		return
	}
	if o.rec.State != job.Claimed && o.rec.State != job.Cancelling {
		return
	}
	record(e, store.RecordStart{Attempt: m.Attempt, Site: from, Started: m.At})
	e.changed(o.rec.ID)
}

// onResult learns how an attempt ended. It is acknowledged when its output is
// home too, or when nobody wants it.
func (e *Engine) onResult(now job.Time, from job.SiteID, m Result) {
	if m.Attempt.Job.Origin != e.self {
		return
	}
	j := e.st.Job(m.Attempt.Job)
	if j == nil {
		e.send(from, ResultAck{Attempt: m.Attempt})
		return
	}
	e.link(from).settle(outKey{stop, m.Attempt})
	if j.Attempt != m.Attempt.Number || j.Holder != from {
		if e.outrace(now, e.open.Get(j.ID), from, m) {
			return
		}
		if !j.State.Terminal() {
			record(e, store.NoteClaim{Job: j.ID, Event: store.ClaimEvent{
				Time: now, Attempt: m.Attempt.Number, Kind: store.ClaimSuperseded, Site: from, Reason: job.StaleAttempt,
			}})
		}
		e.send(from, ResultAck{Attempt: m.Attempt})
		return
	}
	if j.State.Terminal() {
		e.send(from, ResultAck{Attempt: m.Attempt, Accepted: true})
		return
	}
	if j.Outcome == nil {
		e.recordOutcome(now, e.open.Get(j.ID), m.Outcome)
	}
}

// recordOutcome records how the holder's attempt ended and brings its output home.
func (e *Engine) recordOutcome(now job.Time, o *openJob, outcome job.Outcome) {
	if outcome.Kind == job.Loss && runsAgain(o) {
		a, holder := o.rec.AttemptID(), o.rec.Holder
		e.revoke(now, o, job.AttemptLost, false)
		if holder == e.self {
			e.forget(a)
		} else {
			e.send(holder, ResultAck{Attempt: a, Accepted: true})
		}
		return
	}
	e.settleOutcome(now, o, outcome)
}

// settleOutcome records the holder's outcome as the job's.
func (e *Engine) settleOutcome(now job.Time, o *openJob, outcome job.Outcome) {
	record(e, store.RecordOutcome{Attempt: o.rec.AttemptID(), Site: o.rec.Holder, Outcome: outcome, Time: now})
	e.learn(now, o, outcome.Kind)
	e.bringHome(now, o)
}

// bringHome fetches the output of a job whose outcome is recorded, and closes it.
func (e *Engine) bringHome(now job.Time, o *openJob) {
	e.changed(o.rec.ID)
	e.stopEarlier(now, o.rec)
	if outcome := o.rec.Outcome; outcome.FilesRemain && o.rec.Holder != e.self {
		e.emit(Fetch{Attempt: o.rec.AttemptID(), From: o.rec.Holder, Files: outcome.Files})
		return
	}
	e.closeJob(now, o, "")
}

func (e *Engine) filesHome(now job.Time, ev FilesHome) {
	o := e.open.Get(ev.Attempt.Job)
	if o == nil || o.rec.State != job.Returning || o.rec.Attempt != ev.Attempt.Number {
		return
	}
	e.closeJob(now, o, ev.Error)
}

// closeJob ends a job whose outcome is recorded, and lets the holder forget it.
func (e *Engine) closeJob(now job.Time, o *openJob, filesError string) {
	record(e, store.CloseJob{Job: o.rec.ID, FilesError: filesError, Time: now})
	e.removeOpen(o)
	e.changed(o.rec.ID)
	if o.rec.Holder == e.self {
		e.forget(o.rec.AttemptID())
	} else {
		e.send(o.rec.Holder, ResultAck{Attempt: o.rec.AttemptID(), Accepted: true})
	}
}

// purge forgets ended jobs beyond the bounds.
func (e *Engine) purge(now job.Time) {
	for {
		id, ok := e.closed.first()
		if !ok {
			return
		}
		j := e.st.Job(id)
		if j != nil {
			if e.closed.len() <= e.cfg.Limits.ClosedJobs && j.Closed.Add(e.cfg.Limits.ClosedFor) > now {
				return
			}
			record(e, store.PurgeJob{Job: id})
			e.emit(Changed{Job: id, Purged: true})
		}
		e.closed.pop()
	}
}
