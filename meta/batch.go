package meta

import (
	"cmp"
	"slices"

	"kith/internal/job"
	"kith/store"
)

// Batch is a [Site] whose queue is kept by a batch system outside of the daemon.
// The site itself is the plan in memory of what is queued there. For such a site
// the engine also returns [Queue], [Dequeue] and [Restored], and takes [TurnCame].
//
// A copy's way through a batch system, as the driver sees it:
//
//	accepted     Queue: submit something that calls back when it is started
//	its turn     TurnCame, repeated until something follows; the engine claims
//	granted      Launch: the copy's command runs in what called
//	denied       Dequeue: what called leaves
//	no answer    Dequeue, then Queue with a time before which it must not start
//	withdrawn    Dequeue: cancel what waits there
//	drain        Dequeue for all that wait; Queue again when the drain ends
//	restart      Queue and Adopt for all there is, then Restored: the rest is stray
type Batch interface {
	Site
	// Turn takes up that the batch system has started what waits there for a
	// queued copy. The next Pass that may start it proposes it. A Postpone of a
	// reserved copy and a drain make it void: what was started leaves.
	// It is a no-op for any other copy, and the second time.
	Turn(now job.Time, id job.AttemptID)
}

// entry returns a copy as the site queues it.
func (h *host) entry(rec *store.Copy) job.Copy {
	r := h.limited(rec.Request, rec.LimitSeconds)
	r.Walltime = h.levelEnd(rec, r.Walltime)
	return job.Copy{
		ID: rec.ID, Request: r, Arrival: rec.Arrived, Remote: rec.ID.Job.Origin != h.self, Elder: rec.OriginTooSmall,
		Level: r.Level, Stays: rec.Stays || !r.Movable(),
	}
}

// enqueue queues a copy: in the plan at once, in a batch system once the copy is
// durable.
func (h *host) enqueue(now job.Time, rec *store.Copy) {
	entry := h.entry(rec)
	h.site.Enqueue(now, entry)
	h.tasks.news = now
	if h.batch != nil {
		h.queueOutside(entry, 0)
	}
}

// queueOutside has a batch system queue a copy. While the site drains it holds
// nothing that waits.
func (h *host) queueOutside(entry job.Copy, notBefore job.Time) {
	if !h.st.Site().Draining {
		h.emit(Queue{Copy: entry, NotBefore: notBefore})
	}
}

// dequeueOutside has a batch system forget a copy.
func (h *host) dequeueOutside(a job.AttemptID) {
	if h.batch != nil {
		h.emit(Dequeue{Attempt: a})
	}
}

// postpone puts a copy back into its place, not to be proposed again before a
// time. What a batch system started for it would keep processors until then, and
// leaves.
func (h *host) postpone(now job.Time, c *hostCopy, until job.Time) {
	h.site.Postpone(now, c.rec.ID, until)
	h.passing = true
	if h.aside[c.rec.ID.Job.Origin] == c.rec.ID {
		h.aside[c.rec.ID.Job.Origin] = job.AttemptID{} // its claim was not answered
	}
	if h.batch == nil {
		return
	}
	if until <= now {
		h.queueOutside(h.entry(c.rec), 0)
		return
	}
	h.dequeueOutside(c.rec.ID)
	h.queueOutside(h.entry(c.rec), until)
}

// turnCame takes up that a batch system has started what waits for a copy. What
// comes for a copy that does not wait any more leaves; an attempt that has begun
// is the driver's, which has been told to launch it or will be.
func (h *host) turnCame(now job.Time, a job.AttemptID) {
	if h.batch == nil {
		return
	}
	c := h.copies.Get(a)
	switch {
	case c == nil || c.rec.Phase == store.CopyEnded, c.status == waiting && (h.st.Site().Draining || h.waitsAside(a)):
		h.dequeueOutside(a)
	case c.status == waiting:
		h.batch.Turn(now, a)
		h.passing = true
	}
}

// drainOutside has a batch system hold nothing that waits, or all of it again.
func (h *host) drainOutside(on bool) {
	if h.batch == nil {
		return
	}
	for _, rec := range h.records() {
		switch c := h.copies.Get(rec.ID); {
		case c == nil || c.rec.Phase != store.CopyQueued || c.status != waiting || c.outgrown != job.NoReason:
		case on:
			h.dequeueOutside(rec.ID)
		default:
			h.queueOutside(h.entry(rec), 0)
		}
	}
}

// restoredOutside says that a batch system has been told of all copies.
func (h *host) restoredOutside() {
	if h.batch != nil {
		h.emit(Restored{})
	}
}

// records returns all copies in the order of their arrival.
func (h *host) records() []*store.Copy {
	return slices.SortedFunc(h.st.Copies(), func(a, b *store.Copy) int {
		return cmp.Or(cmp.Compare(a.Arrived, b.Arrived), a.ID.Compare(b.ID))
	})
}
