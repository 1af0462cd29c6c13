package meta

import (
	"fmt"

	"kith/internal/forecast"
	"kith/internal/job"
	"kith/store"
)

// openJobFor finds the open job that a client wants to change. Without one it
// answers the client and returns nil.
func (or *origin) openJobFor(token uint64, id job.ID) *openJob {
	j, err := or.find(id)
	if err == nil && j.State.Terminal() {
		err = fmt.Errorf("job %v is %v: %w", id, j.State, ErrJobEnded)
	}
	if err != nil {
		or.reply(token, id, 0, err)
		return nil
	}
	return or.open.Get(id)
}

// cancel ends a job that no site runs, and has the holder of another one end it. One
// whose output is on its way ends as it ended, without that.
func (or *origin) cancel(now job.Time, ev Cancel) {
	if j := or.st.Job(ev.Job); j != nil && j.State == job.Cancelled && j.CancelRequested {
		or.reply(ev.Token, j.ID, j.State, nil) // repeated
		return
	}
	o := or.openJobFor(ev.Token, ev.Job)
	if o == nil {
		return
	}
	if o.rec.State == job.Returning {
		record(or.st, store.CancelJob{Job: ev.Job, Actor: ev.Actor, Reason: ev.Reason, Time: now})
		or.closeWithout(now, o, fmt.Sprintf("cancelled while its output was on its way from site %s", o.rec.Holder))
		or.reply(ev.Token, ev.Job, o.rec.State, nil)
		return
	}
	if o.rec.State == job.Queued {
		or.withdraw(now, o, "")
	}
	record(or.st, store.CancelJob{Job: ev.Job, Actor: ev.Actor, Reason: ev.Reason, Time: now})
	or.stopEarlier(now, o.rec)
	if o.rec.State.Terminal() {
		or.removeOpen(o)
	} else {
		or.stopHolder(now, o)
	}
	or.changed(ev.Job)
	or.reply(ev.Token, ev.Job, o.rec.State, nil)
}

// stopHolder has the holder of the claim stop its attempt, as the user asked.
func (or *origin) stopHolder(now job.Time, o *openJob) {
	a := o.rec.AttemptID()
	if o.rec.Holder != or.self {
		or.peers.request(now, o.rec.Holder, outKey{stop, a})
		return
	}
	or.host.stop(a, Kill{Early: true})
}

func (or *origin) hold(now job.Time, ev Hold) {
	o := or.openJobFor(ev.Token, ev.Job)
	if o == nil {
		return
	}
	switch o.rec.State {
	case job.OnHold:
	case job.Queued, job.Pending, job.Blocked:
		if o.rec.State == job.Queued {
			or.withdraw(now, o, "")
		}
		or.dropQuery(o)
		if or.seer != nil {
			or.seer.unscored(o, forecast.Held)
		}
		record(or.st, store.HoldJob{Job: ev.Job, Actor: ev.Actor, Time: now})
		or.changed(ev.Job)
	default:
		or.reply(ev.Token, ev.Job, 0, fmt.Errorf("job %v is %v at site %s: %w", ev.Job, o.rec.State, o.rec.Holder, ErrJobStarted))
		return
	}
	or.reply(ev.Token, ev.Job, o.rec.State, nil)
}

func (or *origin) release(now job.Time, ev Release) {
	o := or.openJobFor(ev.Token, ev.Job)
	if o == nil {
		return
	}
	if o.rec.State != job.OnHold {
		or.reply(ev.Token, ev.Job, 0, fmt.Errorf("job %v is %v: %w", ev.Job, o.rec.State, ErrNotHeld))
		return
	}
	record(or.st, store.ReleaseJob{Job: ev.Job, Actor: ev.Actor, Time: now})
	or.place(now, o)
	or.changed(ev.Job)
	or.reply(ev.Token, ev.Job, o.rec.State, nil)
}

// cancels reports whether the user has cancelled a job that has not ended.
func (or *origin) cancels(id job.ID) bool {
	o := or.open.Get(id)
	return o != nil && o.rec.CancelRequested
}
