package meta

import (
	"iter"

	"kith/internal/job"
)

// Site is the local scheduler as the engine drives it: Kith's own (package
// sitesched), or a batch system behind an adapter, see [Batch]. It belongs to the
// engine's goroutine and does no I/O.
//
// What it is told it keeps in memory only. It is told at once, before the fact
// behind it is durable, so that a copy can be queued, claimed and begun within one
// instant and one commit; a crash takes both back. What leaves the daemon, to a
// batch system, are effects, and they wait for their facts.
//
// A copy is queued, then reserved (Pass proposed its start and its processors
// are set aside), then running.
type Site interface {
	// Refuse says why a request could never start here; NoReason if it could.
	Refuse(r *job.Request) job.Reason
	// Enqueue queues a copy. The caller has asked Refuse.
	Enqueue(now job.Time, c job.Copy)
	// Withdraw forgets a queued or reserved copy; no-op if there is none.
	Withdraw(now job.Time, id job.AttemptID)
	// Pass makes one scheduling pass and returns the copies that should start
	// now, in order; they are reserved. The slice is valid until the next call.
	Pass(now job.Time) []job.AttemptID
	// Confirm says that a reserved or adopted copy runs since a time.
	Confirm(now job.Time, id job.AttemptID, since job.Time)
	// Postpone puts a reserved copy back into its place in the queue, not to
	// be proposed again before until. For a queued copy it sets until anew.
	Postpone(now job.Time, id job.AttemptID, until job.Time)
	// SetAside takes the waiting copies of an origin, and those that will come,
	// out of the queue until BringBack: they are not proposed, cost a pass nothing
	// and are no load. What is reserved or runs stays. A reserved copy that is
	// postponed is set aside, too. To say it twice sets aside what was probed since.
	SetAside(now job.Time, origin job.SiteID)
	// BringBack puts the copies of an origin back into their places.
	BringBack(now job.Time, origin job.SiteID)
	// Probe puts one copy back that was set aside with its origin, until it is
	// postponed. No-op for any other.
	Probe(now job.Time, id job.AttemptID)
	// Finish frees the processors of a reserved or running copy that ended.
	Finish(now job.Time, id job.AttemptID)
	// Adopt takes up a copy that was begun before a restart and runs, or will at
	// once. Confirm tells since when, which may be a while after it was begun.
	Adopt(now job.Time, c job.Copy, begun job.Time)
	// Drain stops or resumes starting.
	Drain(now job.Time, on bool)
	// Predict says when c would start here if nothing else arrived, by running
	// the scheduler on a copy of its state (spec 004 section 2.1); false if it
	// cannot say.
	Predict(now job.Time, c job.Copy) (job.Time, bool)
	// EarliestStart is metric "start" of spec 001 section 2.3; false if it cannot say.
	EarliestStart(now job.Time, c job.Copy) (job.Time, bool)
	// StartsAtOnce reports whether a Pass now would start c, of a job of this site, if it
	// arrived now.
	StartsAtOnce(now job.Time, c job.Copy) bool
	// Starts yields queued copies, the first ones of the local queue and at most
	// that many, each with when it would start by the limits of those ahead of it.
	// Those of which the site knows no time are left out. The site must not change
	// meanwhile.
	Starts(now job.Time, most int) iter.Seq2[job.AttemptID, job.Time]
	// Behind reports whether a copy waits behind those that the site guarantees
	// anything: it has no guarantee until it moves up.
	Behind(id job.AttemptID) bool
	// HomeWaits returns how many copies of this site's own origin wait in the queue.
	HomeWaits(now job.Time) int
	// HomeStarts reports whether one of these would start now if some other copies, queued or
	// holding processors, were not here. It changes nothing.
	HomeStarts(now job.Time, without []job.AttemptID) bool
	// Overfull reports whether what holds processors and memory takes more than there is: the
	// site came back smaller.
	Overfull(now job.Time) bool
	// Load is how loaded the site is.
	Load(now job.Time) job.Load
	// NextWake is when a Pass could start something without a further event.
	NextWake(now job.Time) job.Time
}
