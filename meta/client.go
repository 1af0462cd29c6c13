package meta

import (
	"fmt"

	"kith/internal/job"
	"kith/store"
)

func (e *Engine) reply(token uint64, id job.ID, state job.State, err error) {
	e.emit(Reply{Token: token, Job: id, State: state, Err: err})
}

// Find returns the record of a job submitted here, or an error that wraps
// [ErrUnknownJob] or [ErrForeignJob].
func (e *Engine) Find(id job.ID) (*store.Job, error) {
	if j := e.st.Job(id); j != nil {
		return j, nil
	}
	if id.Origin != e.self {
		return nil, fmt.Errorf("job %v: %w: ask site %s", id, ErrForeignJob, id.Origin)
	}
	return nil, fmt.Errorf("job %v: %w at site %s", id, ErrUnknownJob, e.self)
}

// wish finds the open job that a client wants something of, or answers.
func (e *Engine) wish(token uint64, id job.ID) *openJob {
	j, err := e.Find(id)
	if err == nil && j.State.Terminal() {
		err = fmt.Errorf("job %v is %v: %w", id, j.State, ErrJobEnded)
	}
	if err != nil {
		e.reply(token, id, 0, err)
		return nil
	}
	return e.open.Get(id)
}

// cancel ends a job that nobody runs, and has the holder end the others.
func (e *Engine) cancel(now job.Time, ev Cancel) {
	if j := e.st.Job(ev.Job); j != nil && j.State == job.Cancelled && j.CancelRequested {
		e.reply(ev.Token, j.ID, j.State, nil) // repeated
		return
	}
	o := e.wish(ev.Token, ev.Job)
	if o == nil {
		return
	}
	if o.rec.State == job.Returning {
		e.reply(ev.Token, ev.Job, 0, fmt.Errorf("job %v, its output is on its way home: %w", ev.Job, ErrJobEnded))
		return
	}
	if o.rec.State == job.Queued {
		e.withdraw(now, o, "")
	}
	record(e, store.CancelJob{Job: ev.Job, Time: now})
	e.stopEarlier(now, o.rec)
	if o.rec.State.Terminal() {
		e.removeOpen(o)
	} else {
		e.stopHolder(now, o)
	}
	e.changed(ev.Job)
	e.reply(ev.Token, ev.Job, o.rec.State, nil)
}

// stopHolder has the holder of the claim stop its attempt.
func (e *Engine) stopHolder(now job.Time, o *openJob) {
	a := o.rec.AttemptID()
	if o.rec.Holder != e.self {
		e.request(now, o.rec.Holder, outKey{stop, a})
		return
	}
	if c := e.copies.Get(a); c != nil && c.rec.Phase == store.CopyBegun {
		e.kill(c, false)
	}
}

func (e *Engine) hold(now job.Time, ev Hold) {
	o := e.wish(ev.Token, ev.Job)
	if o == nil {
		return
	}
	switch o.rec.State {
	case job.OnHold:
	case job.Queued, job.Pending:
		if o.rec.State == job.Queued {
			e.withdraw(now, o, "")
		}
		e.dropQuery(o)
		record(e, store.HoldJob{Job: ev.Job, Time: now})
		e.changed(ev.Job)
	default:
		e.reply(ev.Token, ev.Job, 0, fmt.Errorf("job %v is %v at site %s: %w", ev.Job, o.rec.State, o.rec.Holder, ErrJobStarted))
		return
	}
	e.reply(ev.Token, ev.Job, o.rec.State, nil)
}

func (e *Engine) release(now job.Time, ev Release) {
	o := e.wish(ev.Token, ev.Job)
	if o == nil {
		return
	}
	if o.rec.State != job.OnHold {
		e.reply(ev.Token, ev.Job, 0, fmt.Errorf("job %v is %v: %w", ev.Job, o.rec.State, ErrNotHeld))
		return
	}
	record(e, store.ReleaseJob{Job: ev.Job})
	e.place(now, o)
	e.changed(ev.Job)
	e.reply(ev.Token, ev.Job, o.rec.State, nil)
}
