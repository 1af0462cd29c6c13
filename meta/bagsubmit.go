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
	case SetPolicies:
		e.bags.setPolicies(now, ev)
	case SetBudget:
		e.bags.setBudget(now, ev)
	case RetryTasks:
		e.bags.retry(now, ev)
	case TrustHost:
		e.bags.trustHost(ev)
	case TasksHome:
		e.bags.tasksHome(now, ev)
	}
}

// submit takes on a new bag.
func (bo *bagOrigin) submit(now job.Time, ev SubmitBag) {
	if known, err := bo.submitted(ev.RequestID, ev.BodyHash, true); known != (job.ID{}) {
		bo.reply(ev.Token, known, 0, err)
		return
	}
	if err := bo.admit(now, &ev); err != nil {
		bo.reply(ev.Token, job.ID{}, 0, err)
		return
	}
	after, err := bo.deps.ask(&ev.Request, ev.After)
	if err != nil {
		bo.reply(ev.Token, job.ID{}, 0, err)
		return
	}
	id := bo.st.NextID()
	err = store.Record(bo.st, store.SubmitBag{
		ID: id, Request: ev.Request, Indices: ev.Indices, RequestID: ev.RequestID, BodyHash: ev.BodyHash, Priority: ev.Priority,
		Policies: ev.Policies, MaxRunning: ev.MaxRunning, Budget: ev.Budget, Retries: ev.Retries, MaxReplicas: ev.MaxReplicas, TailAt: ev.TailAt, After: after, Payload: ev.Payload, Actor: ev.Actor, Time: now,
	})
	if err != nil {
		bo.reply(ev.Token, job.ID{}, 0, fmt.Errorf("%w: %w", ErrInvalid, err))
		return
	}
	o := bo.addOpen(bo.st.Bag(id))
	bo.deps.added(id, &o.rec.Request)
	if ev.Hold && !o.rec.State.Resolved() {
		record(bo.st, store.HoldBag{Bag: id, Actor: ev.Actor, Time: now})
	}
	bo.place(now, o)
	bo.nextPlace = min(bo.nextPlace, now.Add(bo.cfg.Timing.Retry))
	bo.changed(o)
	bo.close(now, o) // it can never start
	bo.reply(ev.Token, id, 0, nil)
}

// admit checks a bag against what this site and the known others can do.
func (bo *bagOrigin) admit(now job.Time, ev *SubmitBag) error {
	if err := ev.Request.Validate(); err != nil {
		return fmt.Errorf("%w: %w", ErrInvalid, err)
	}
	switch n := ev.Indices.Count(); {
	case n == 0 || n > job.MaxTasks:
		return fmt.Errorf("%w: bag of %d tasks: give 1 to %d", ErrInvalid, n, job.MaxTasks)
	case ev.Retries > store.MaxRetries:
		return fmt.Errorf("%w: retries %d: give at most %d", ErrInvalid, ev.Retries, store.MaxRetries)
	case ev.MaxReplicas > store.MaxReplicas:
		return fmt.Errorf("%w: replicas %d: give at most %d", ErrInvalid, ev.MaxReplicas, store.MaxReplicas)
	case ev.MaxReplicas > 0 && ev.Request.Level > 0:
		return fmt.Errorf("%w: replicas %d: tasks of a bag of a hierarchy run once; leave out the replicas, or the level", ErrInvalid, ev.MaxReplicas)
	case ev.Request.Walltime > bags.MaxTaskWalltime && !ev.Request.Unknown:
		return fmt.Errorf("%w: walltime %v of a task: give at most %v", ErrInvalid, ev.Request.Walltime, bags.MaxTaskWalltime)
	}
	if most := bo.cfg.Limits.bags(); len(bo.open) >= most {
		return &FullError{Bags: len(bo.open), RetryAfter: bo.cfg.Timing.Retry}
	}
	judge, err := bo.compile(&ev.Policies)
	if err != nil {
		return fmt.Errorf("%w: %w", ErrInvalid, err)
	}
	if err := bo.roomFor(judge, &openPolicies{}); err != nil {
		return err
	}
	if err := bo.jobs.largeEnough(&ev.Request); err != nil {
		return err
	}
	return bo.leastLevel(now, &ev.Request)
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
	tasks := job.TaskRange(0, o.rec.Tasks())
	if ev.Tasks != nil {
		tasks = *ev.Tasks
	}
	late := lateWith(o.rec, &tasks)
	err := store.Record(bo.st, store.CancelBag{Bag: ev.Bag, Tasks: ev.Tasks, Actor: ev.Actor, Reason: ev.Reason, Time: now})
	if err != nil {
		bo.reply(ev.Token, ev.Bag, 0, fmt.Errorf("%w: %w", ErrInvalid, err))
		return
	}
	bo.beginTail(now, o)
	bo.changed(o)
	bo.stopAt(now, o, "")
	bo.stopBeaten(now, o, late)
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
	bo.beginTail(now, o)
	bo.changed(o)
	bo.reply(ev.Token, ev.Bag, 0, nil)
}

// whyNotAgain says why tasks cannot run again, which err refuses.
func whyNotAgain(b *store.Bag, tasks *job.TaskSet, err error) error {
	if b.State == job.BagCancelling {
		return fmt.Errorf("%w: %w", ErrBagCancelling, err)
	}
	for task := range tasks.All {
		if !b.Done.Has(task) && !b.Failed.Has(task) && !b.Cancelled.Has(task) {
			return fmt.Errorf("%w: that with index %d has not; wait for it, or name others", ErrTasksNotEnded, b.Indices.Index(task))
		}
	}
	return fmt.Errorf("%w: %w", ErrTasksNotEnded, err)
}

// retry has tasks that have ended run again.
func (bo *bagOrigin) retry(now job.Time, ev RetryTasks) {
	b := bo.find(ev.Token, ev.Bag)
	if b == nil {
		return
	}
	if _, done := b.RetryOf(ev.RequestID); done {
		bo.reply(ev.Token, ev.Bag, 0, nil)
		return
	}
	if b.State.Terminal() {
		if other := bo.deps.beside(b); other != (job.ID{}) {
			bo.reply(ev.Token, ev.Bag, 0, fmt.Errorf("bag %v: %w: %v has not ended; run the tasks again when it has", ev.Bag, ErrSingletonRuns, other))
			return
		}
	}
	if err := store.Record(bo.st, store.RetryTasks{Bag: ev.Bag, Tasks: ev.Tasks, RequestID: ev.RequestID, Actor: ev.Actor, Time: now}); err != nil {
		bo.reply(ev.Token, ev.Bag, 0, whyNotAgain(b, &ev.Tasks, err))
		return
	}
	o := bo.byID[ev.Bag]
	if o == nil {
		o = bo.addOpen(b)
		o.cpu = b.Used()
		bo.deps.again(b.ID, &b.Request)
		bo.place(now, o)
		bo.nextPlace = min(bo.nextPlace, now.Add(bo.cfg.Timing.Retry))
	}
	bo.changed(o)
	bo.reply(ev.Token, ev.Bag, 0, nil)
}
