package meta

import (
	"fmt"

	"kith/internal/job"
	"kith/store"
)

// An attempt of a job that writes checkpoints, or may begin again, may end as [job.Demoted]:
// because it asked for it, or because it was asked ([host.demote]). That is never the end of the job. The order keeps it from running twice, and from running without what it saved:
//
//	host                                     origin
//	nothing of the attempt lives (X2)
//	EndAttempt is durable ─── result ──────► RecordOutcome: RETURNING
//	              ◄──── file_request ─────── Fetch: what it left comes home
//	                                         RequeueJob: PENDING, its checkpoint is the job's
//	forgets it ◄──────── result_ack ──────── behind that fact
//	                                         OpenAttempt of the next number
//
// What comes again of the older attempt is fenced by its number and its holder, as of all.

// endOf returns the outcome that counts for a job. A demotion is one only for a job that
// writes checkpoints or may begin again, has attempts left, and is not to be cancelled.
func (or *origin) endOf(now job.Time, j *store.Job, o job.Outcome) job.Outcome {
	if o.Kind == job.Demoted {
		switch {
		case j.CancelRequested:
			o.Kind = job.Cancel
		case !j.Request.Movable():
			o.Kind, o.Reason = job.Failure, "its host says that it goes on, but it writes no checkpoints and may not begin again"
		case j.LastAttempt():
			o.Kind, o.Reason = job.Failure, fmt.Sprintf("it asked to be run again in its last attempt, of %d", job.MaxAttempts)
		case o.ByEstimate() && or.lastLevelOf(now, j):
			rejectByEstimate(&o)
		case o.Cause == job.OutOfLevel && or.lastLevelOf(now, j):
			o.Kind, o.Reason = job.Timeout, fmt.Sprintf("it used what level %d lets a job use, and there is no level below", j.Level)
		default:
			if !o.Cause.Known() || o.Cause == job.HostLost { // which no host can say
				o.Cause = job.OwnAccord
			}
			if !j.Request.Checkpoint {
				o.Checkpoint = 0
			}
			return o
		}
	}
	o.Checkpoint, o.Cause = 0, job.OwnAccord
	return o
}

// checkpoint has a running job go on in another attempt, as its user asked.
func (or *origin) checkpoint(now job.Time, ev CheckpointJob) {
	o := or.openJobFor(ev.Token, ev.Job)
	if o == nil {
		return
	}
	var err error
	switch {
	case o.rec.CancelRequested:
		err = ErrEnding
	case !o.rec.Request.Movable():
		err = ErrNotMovable
	case o.rec.State != job.Running:
		err = ErrNotRunning
	case o.rec.LastAttempt():
		err = ErrLastAttempt
	case o.over == o.rec.Attempt: // its output is being collected
		err = ErrNotRunning
	case or.peers.knowsNoCheckpoints(o.rec.Holder):
		err = fmt.Errorf("site %s runs a version that knows no checkpoints: %w", o.rec.Holder, ErrNotMovable)
	}
	if err != nil {
		or.reply(ev.Token, ev.Job, 0, fmt.Errorf("job %v is %v: %w", ev.Job, o.rec.State, err))
		return
	}
	record(or.st, store.AskJob{Job: ev.Job, Actor: ev.Actor, Time: now})
	or.askHolder(now, o)
	or.changed(ev.Job)
	or.reply(ev.Token, ev.Job, o.rec.State, nil)
}

// askHolder has the holder of a job's claim carry out what its user asked for: to have the attempt
// save and end. That is done again when the holder is back, or has taken the attempt up after a
// restart.
func (or *origin) askHolder(now job.Time, o *openJob) {
	a := o.rec.AttemptID()
	switch {
	case o.rec.State != job.Running || !o.rec.SaveAsked:
	case o.rec.Holder != or.self:
		or.peers.request(now, o.rec.Holder, outKey{demotion, a})
	default:
		_ = or.host.demote(a, job.Requested, 0) // one that does not run yet, or any more, is asked when it does
	}
}

// finish goes on with a job whose outcome is recorded and whose output is home or, with
// filesError, never will be.
func (or *origin) finish(now job.Time, o *openJob, filesError string) {
	if o.rec.Outcome.Kind == job.Demoted {
		or.requeue(now, o, filesError)
		return
	}
	or.closeJob(now, o, filesError)
}

// requeue has a job go on whose attempt was demoted, and lets the holder forget that.
func (or *origin) requeue(now job.Time, o *openJob, filesError string) {
	holder, a := o.rec.Holder, o.rec.AttemptID()
	record(or.st, store.RequeueJob{Attempt: a, Site: holder, FilesError: filesError, Speed: or.speedOf(holder, &o.rec.Request), Time: now})
	o.at, o.lease, o.decision, o.filesWait, o.over = nil, 0, nil, "", 0
	if o.rec.State.Terminal() {
		or.removeOpen(o)
	} else {
		or.place(now, o)
	}
	or.changed(a.Job)
	if holder == or.self {
		or.host.forget(a)
	} else {
		or.acknowledge(now, holder, ResultAck{Attempt: a, Accepted: true})
	}
}
