package meta

import (
	"fmt"

	"kith/internal/job"
	"kith/store"
)

// An attempt of a job that writes checkpoints may end as [job.Demoted]. That is never the end
// of the job. The order keeps it from running twice, and from running without what it saved:
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
// writes checkpoints, has attempts left, and is not to be cancelled.
func (or *origin) endOf(j *store.Job, o job.Outcome) job.Outcome {
	if o.Kind == job.Demoted {
		switch {
		case j.CancelRequested:
			o.Kind = job.Cancel
		case !j.Request.Checkpoint:
			o.Kind, o.Reason = job.Failure, "its host says that it goes on, but it writes no checkpoints"
		case j.Begun()+1 >= job.MaxAttempts:
			o.Kind, o.Reason = job.Failure, fmt.Sprintf("it asked to be run again in its last attempt, of %d", job.MaxAttempts)
		default:
			return o
		}
	}
	o.Checkpoint = 0
	return o
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
