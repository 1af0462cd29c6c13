package meta

import (
	"kith/internal/job"
	"kith/store"
)

// onStarted learns that the holder's command runs, or that it has run.
func (or *origin) onStarted(now job.Time, from job.SiteID, m Started) {
	o := or.open.Get(m.Attempt.Job)
	if o == nil || o.rec.Attempt != m.Attempt.Number || o.rec.Holder != from {
		return
	}
	if state := o.rec.State; o.rec.Started == 0 && m.At != 0 && (state == job.Claimed || state == job.Cancelling) {
		record(or.st, store.RecordStart{Attempt: m.Attempt, Site: from, Started: m.At})
		if or.seer != nil {
			or.seer.started(now, o)
		}
		or.changed(o.rec.ID)
	}
	or.hearBound(o, m.Bound)
	if !m.Over {
		or.askHolder(now, o)
	}
	if m.Over && o.over != m.Attempt.Number {
		o.over = m.Attempt.Number
		or.changed(o.rec.ID)
	}
}

// onResult learns how an attempt ended. It is acknowledged when its output is
// home too, or when it is not wanted.
func (or *origin) onResult(now job.Time, from job.SiteID, m Result) {
	j := or.st.Job(m.Attempt.Job)
	if j == nil {
		or.acknowledge(now, from, ResultAck{Attempt: m.Attempt})
		return
	}
	or.peers.link(from).settle(outKey{stop, m.Attempt})
	or.peers.link(from).settle(outKey{demotion, m.Attempt})
	m.Outcome = or.endOf(now, j, m.Outcome)
	if j.Attempt != m.Attempt.Number || j.Holder != from {
		if or.outrace(now, or.open.Get(j.ID), from, m) {
			return
		}
		if !j.State.Terminal() {
			record(or.st, store.NoteClaim{Job: j.ID, Event: store.ClaimEvent{
				Time: now, Attempt: m.Attempt.Number, Kind: store.ClaimSuperseded, Site: from, Reason: job.StaleAttempt,
			}})
		}
		or.acknowledge(now, from, ResultAck{Attempt: m.Attempt})
		return
	}
	if j.State.Terminal() {
		or.acknowledge(now, from, ResultAck{Attempt: m.Attempt, Accepted: true})
		return
	}
	if j.Outcome == nil {
		or.recordOutcome(now, or.open.Get(j.ID), m.Outcome)
	}
}

// acknowledge lets a host forget an attempt that has ended there.
func (or *origin) acknowledge(now job.Time, host job.SiteID, m ResultAck) {
	or.peers.send(host, m)
	or.noteLeft(now, host)
}

// recordOutcome records how the holder's attempt ended and brings its output home.
func (or *origin) recordOutcome(now job.Time, o *openJob, outcome job.Outcome) {
	if outcome.Kind == job.Loss && runsAgain(o) {
		a, holder := o.rec.AttemptID(), o.rec.Holder
		if o.lost == nil {
			o.lost = &losses{}
		}
		o.retryAt = o.lost.note(now, holder, or.cfg.Timing.Retry)
		or.revoke(now, o, job.AttemptLost, false)
		if holder == or.self {
			or.host.forget(a)
		} else {
			or.acknowledge(now, holder, ResultAck{Attempt: a, Accepted: true})
		}
		return
	}
	or.settleOutcome(now, o, outcome)
}

// settleOutcome records the holder's outcome as the job's.
func (or *origin) settleOutcome(now job.Time, o *openJob, outcome job.Outcome) {
	or.dropComing(o)
	record(or.st, store.RecordOutcome{Attempt: o.rec.AttemptID(), Site: o.rec.Holder, Outcome: outcome, Time: now})
	or.learn(now, o, outcome.Kind)
	or.bringHome(now, o)
}

// bringHome fetches the output of a job whose outcome is recorded, and closes it.
func (or *origin) bringHome(now job.Time, o *openJob) {
	or.changed(o.rec.ID)
	if o.rec.Outcome.Kind != job.Demoted { // which ends no race
		or.stopEarlier(now, o.rec)
	}
	if outcome := o.rec.Outcome; outcome.FilesRemain && o.rec.Holder != or.self {
		or.fetch(now, o)
		return
	}
	or.finish(now, o, "")
}

func (or *origin) filesHome(now job.Time, ev FilesHome) {
	o := or.open.Get(ev.Attempt.Job)
	if o == nil || o.rec.State != job.Returning || o.rec.Attempt != ev.Attempt.Number {
		return
	}
	or.finish(now, o, ev.Error)
}

// filesWait keeps in mind why output cannot come home.
func (or *origin) filesWait(ev FilesWait) {
	o := or.open.Get(ev.Attempt.Job)
	if o == nil || o.rec.Attempt != ev.Attempt.Number || o.rec.State != job.Returning && o.rec.Holder != or.self {
		return
	}
	if reason := job.ClipReason(ev.Reason); o.filesWait != reason {
		o.filesWait = reason
		or.changed(o.rec.ID)
	}
}

// speedOf returns how fast a request gets on at a site, 0 if that is not known: the speed of a
// processor, less what an owner of the machine takes.
func (or *origin) speedOf(site job.SiteID, r *job.Request) float64 {
	if site == or.self {
		return or.host.speed(r)
	}
	if p := or.peers.view.Get(site); p != nil && p.Known {
		return p.Digest.Speed * p.Digest.Owner.Left(r.Processors, p.Digest.Processors)
	}
	return 0
}

// closeJob ends a job whose outcome is recorded, and lets the holder forget it.
func (or *origin) closeJob(now job.Time, o *openJob, filesError string) {
	speed := or.speedOf(o.rec.Holder, &o.rec.Request)
	if or.seer != nil {
		or.seer.ran(o.rec, speed)
	}
	record(or.st, store.CloseJob{Job: o.rec.ID, FilesError: filesError, Speed: speed, Time: now})
	or.removeOpen(o)
	or.changed(o.rec.ID)
	if o.rec.Holder == or.self {
		or.host.forget(o.rec.AttemptID())
	} else {
		or.acknowledge(now, o.rec.Holder, ResultAck{Attempt: o.rec.AttemptID(), Accepted: true})
	}
}

// tooManyClosed reports whether more ended jobs are remembered than allowed.
func (or *origin) tooManyClosed() bool { return or.closed.Len() > or.cfg.Limits.ClosedJobs }

// purge forgets ended jobs beyond the bounds.
func (or *origin) purge(now job.Time) {
	for {
		id, ok := or.closed.First()
		if !ok {
			return
		}
		j := or.st.Job(id)
		if j != nil {
			if or.closed.Len() <= or.cfg.Limits.ClosedJobs && j.Closed.Add(or.cfg.Limits.ClosedFor) > now {
				return
			}
			if or.deps.holds(id) {
				return
			}
			record(or.st, store.PurgeJob{Job: id})
			or.emit(Changed{Job: id, Purged: true})
		}
		or.closed.Pop()
	}
}
