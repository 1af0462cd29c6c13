package meta

import (
	"fmt"

	"kith/internal/job"
	"kith/meta/bags"
	"kith/store"
)

// What clients ask of bags.

// bagStep takes up what clients and the driver say of bags.
func (e *Engine) bagStep(now job.Time, ev Event) {
	switch ev := ev.(type) {
	case SubmitBag:
		e.bags.submit(now, ev)
	case CancelBag:
		e.bags.cancel(now, ev)
	case HoldBag:
		e.bags.hold(now, ev)
	case ReleaseBag:
		e.bags.release(now, ev)
	case RetryTasks:
		e.bags.retry(now, ev)
	case TasksHome:
		e.bags.tasksHome(now, ev)
	}
}

// submit takes on a new bag.
func (bo *bagOrigin) submit(now job.Time, ev SubmitBag) {
	if known, ok := bo.repeated(&ev); ok {
		bo.emit(known)
		return
	}
	if err := bo.admit(&ev); err != nil {
		bo.reply(ev.Token, job.ID{}, 0, err)
		return
	}
	id := bo.st.NextID()
	err := store.Record(bo.st, store.SubmitBag{
		ID: id, Request: ev.Request, Indices: ev.Indices, RequestID: ev.RequestID, BodyHash: ev.BodyHash, Priority: ev.Priority,
		MaxRunning: ev.MaxRunning, Retries: ev.Retries, Payload: ev.Payload, Actor: ev.Actor, Time: now,
	})
	if err != nil {
		bo.reply(ev.Token, job.ID{}, 0, fmt.Errorf("%w: %w", ErrInvalid, err))
		return
	}
	o := bo.addOpen(bo.st.Bag(id))
	if ev.Hold {
		record(bo.st, store.HoldBag{Bag: id, Actor: ev.Actor, Time: now})
	}
	bo.place(now, o)
	bo.nextPlace = min(bo.nextPlace, now.Add(bo.cfg.Timing.Retry))
	bo.changed(o)
	bo.reply(ev.Token, id, 0, nil)
}

// repeated answers a submission under a request id that is taken.
func (bo *bagOrigin) repeated(ev *SubmitBag) (Reply, bool) {
	reused := func(id job.ID) Reply {
		return Reply{Token: ev.Token, Job: id, Err: fmt.Errorf("request_id %q, bag %v: %w", ev.RequestID, id, ErrRequestReused)}
	}
	if b := bo.st.BagOfRequest(ev.RequestID); b != nil {
		if b.BodyHash != ev.BodyHash {
			return reused(b.ID), true
		}
		return Reply{Token: ev.Token, Job: b.ID}, true
	}
	if j := bo.st.JobOfRequest(ev.RequestID); j != nil {
		return reused(j.ID), true
	}
	return Reply{}, false
}

// admit checks a bag against what this site and the known others can do.
func (bo *bagOrigin) admit(ev *SubmitBag) error {
	if err := ev.Request.Validate(); err != nil {
		return fmt.Errorf("%w: %w", ErrInvalid, err)
	}
	switch n := ev.Indices.Count(); {
	case n == 0 || n > job.MaxTasks:
		return fmt.Errorf("%w: bag of %d tasks: give 1 to %d", ErrInvalid, n, job.MaxTasks)
	case ev.Retries > store.MaxRetries:
		return fmt.Errorf("%w: retries %d: give at most %d", ErrInvalid, ev.Retries, store.MaxRetries)
	case ev.Request.Walltime > bags.MaxTaskWalltime:
		return fmt.Errorf("%w: walltime %v of a task: give at most %v", ErrInvalid, ev.Request.Walltime, bags.MaxTaskWalltime)
	}
	if most := bo.cfg.Limits.bags(); len(bo.open) >= most {
		return &FullError{Bags: len(bo.open), RetryAfter: bo.cfg.Timing.Retry}
	}
	return bo.jobs.largeEnough(&ev.Request)
}

// find returns a bag submitted here, or answers the client and returns nil.
func (bo *bagOrigin) find(token uint64, id job.ID) *store.Bag {
	b := bo.st.Bag(id)
	switch {
	case b != nil:
		return b
	case id.Origin != bo.self:
		bo.reply(token, id, 0, fmt.Errorf("bag %v: %w: ask site %s", id, ErrForeignJob, id.Origin))
	default:
		bo.reply(token, id, 0, fmt.Errorf("bag %v: %w at site %s", id, ErrUnknownBag, bo.self))
	}
	return nil
}

// findOpen is find for a bag that has not ended.
func (bo *bagOrigin) findOpen(token uint64, id job.ID) *openBag {
	b := bo.find(token, id)
	if b == nil {
		return nil
	}
	if b.State.Terminal() {
		bo.reply(token, id, 0, fmt.Errorf("bag %v is %v: %w", id, b.State, ErrBagEnded))
		return nil
	}
	return bo.byID[id]
}

// cancel ends tasks that wait, and has those stopped that are with sites.
func (bo *bagOrigin) cancel(now job.Time, ev CancelBag) {
	if b := bo.st.Bag(ev.Bag); b != nil && b.State == job.BagCancelled && b.CancelRequested && ev.Tasks == nil {
		bo.reply(ev.Token, ev.Bag, 0, nil) // repeated
		return
	}
	o := bo.findOpen(ev.Token, ev.Bag)
	if o == nil {
		return
	}
	err := store.Record(bo.st, store.CancelBag{Bag: ev.Bag, Tasks: ev.Tasks, Actor: ev.Actor, Reason: ev.Reason, Time: now})
	if err != nil {
		bo.reply(ev.Token, ev.Bag, 0, fmt.Errorf("%w: %w", ErrInvalid, err))
		return
	}
	bo.changed(o)
	bo.stopAt(now, o, "")
	bo.close(now, o)
	bo.reply(ev.Token, ev.Bag, 0, nil)
}

// hold keeps tasks from being given out, and asks for those back that have not begun.
func (bo *bagOrigin) hold(now job.Time, ev HoldBag) {
	o := bo.findOpen(ev.Token, ev.Bag)
	if o == nil {
		return
	}
	if o.rec.State != job.BagOnHold {
		if _, ok := o.rec.State.Next(job.BagHold); !ok {
			bo.reply(ev.Token, ev.Bag, 0, fmt.Errorf("bag %v is %v: %w", ev.Bag, o.rec.State, ErrBagCancelling))
			return
		}
		record(bo.st, store.HoldBag{Bag: ev.Bag, Actor: ev.Actor, Reason: ev.Reason, Time: now})
		bo.held(now, o)
	}
	bo.reply(ev.Token, ev.Bag, 0, nil)
}

// held takes up that a bag is on hold.
func (bo *bagOrigin) held(now job.Time, o *openBag) {
	bo.changed(o)
	bo.stopAt(now, o, "")
}

func (bo *bagOrigin) release(now job.Time, ev ReleaseBag) {
	o := bo.findOpen(ev.Token, ev.Bag)
	if o == nil {
		return
	}
	if o.rec.State != job.BagOnHold {
		bo.reply(ev.Token, ev.Bag, 0, fmt.Errorf("bag %v is %v: %w", ev.Bag, o.rec.State, ErrBagNotHeld))
		return
	}
	record(bo.st, store.ReleaseBag{Bag: ev.Bag, Actor: ev.Actor, Time: now})
	bo.changed(o)
	bo.reply(ev.Token, ev.Bag, 0, nil)
}

// retry has tasks that have ended run again.
func (bo *bagOrigin) retry(now job.Time, ev RetryTasks) {
	b := bo.find(ev.Token, ev.Bag)
	if b == nil {
		return
	}
	if err := store.Record(bo.st, store.RetryTasks{Bag: ev.Bag, Tasks: ev.Tasks, Actor: ev.Actor, Time: now}); err != nil {
		why := ErrTasksNotEnded
		if b.State == job.BagCancelling {
			why = ErrBagCancelling
		}
		bo.reply(ev.Token, ev.Bag, 0, fmt.Errorf("%w: %w", why, err))
		return
	}
	o := bo.byID[ev.Bag]
	if o == nil {
		o = bo.addOpen(b)
		o.cpu = usedBy(b)
		bo.place(now, o)
		bo.nextPlace = min(bo.nextPlace, now.Add(bo.cfg.Timing.Retry))
	}
	bo.changed(o)
	bo.reply(ev.Token, ev.Bag, 0, nil)
}
