package meta

import (
	"fmt"

	"kith/internal/job"
)

// A job whose command has ended waits for its output. With [job.Wait] it waits as
// long as its user likes, who may cancel it; else for as long as a lease lasts after
// the site that has the output went out of reach. Then one that succeeded runs again,
// as it would if the site had been lost a moment before its end: for its user, a result
// without its output is none. One that failed ends as it failed, and one that was demoted goes
// on from the checkpoint before.

// fetch brings the output of a job home whose outcome is recorded.
func (or *origin) fetch(now job.Time, o *openJob) {
	or.emit(Fetch{Attempt: o.rec.AttemptID(), From: o.rec.Holder, Files: o.rec.Outcome.Files})
	if o.rec.Request.OnSiteLost == job.Wait {
		return
	}
	o.lease = now.Add(or.cfg.Timing.Lease)
	if !o.leased {
		o.leased, or.leased = true, append(or.leased, o)
	}
	or.nextLease = min(or.nextLease, o.lease)
}

// awaitOutput reports whether a job still waits for its output, until its lease,
// and does without if its holder is away for too long.
func (or *origin) awaitOutput(now job.Time, o *openJob) bool {
	away := now
	if p := or.peers.view.Get(o.rec.Holder); p != nil && !p.Connected {
		away = min(now, p.Since)
	}
	if o.lease = max(o.lease, away.Add(or.cfg.Timing.Lease)); o.lease > now {
		return true
	}
	holder := o.rec.Holder
	if o.rec.Outcome.Kind != job.Success || o.rec.CancelRequested || !runsAgain(o) {
		or.closeWithout(now, o, fmt.Sprintf("site %s, which has its output, is out of reach", holder))
		return false
	}
	or.emit(Unfetch{Attempt: o.rec.AttemptID()})
	// A job that may run twice may end twice: the output may yet be the first to come.
	or.revoke(now, o, job.Vanished, o.rec.Request.OnSiteLost == job.Race)
	return false
}

// closeWithout ends a job whose output is not waited for any more.
func (or *origin) closeWithout(now job.Time, o *openJob, why string) {
	or.emit(Unfetch{Attempt: o.rec.AttemptID()})
	or.finish(now, o, why)
}
