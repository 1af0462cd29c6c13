package sitesched

import (
	"time"

	"kith/internal/job"
)

// Copy is one queued request for an attempt at this site (spec 001 section 1).
type Copy struct {
	// ID names the attempt; a site holds at most one copy of it.
	ID job.AttemptID
	// Processors is the width, at least 1.
	Processors int32
	// MemoryBytes is the memory of the whole job; zero means no limit of its own.
	MemoryBytes int64
	// Walltime is the user's estimate and limit. Zero or less counts as one
	// second (spec 001 section 2.1), more than [job.MaxWalltime] as that.
	Walltime time.Duration
	// Arrival is when the copy arrived at this site. Queues are in the order
	// of (Arrival, ID).
	Arrival job.Time
	// Remote says that the copy was placed here by another site.
	Remote bool
}

// before is the queue order (spec 001 section 2.1).
func (c *Copy) before(d *Copy) bool {
	if c.Arrival != d.Arrival {
		return c.Arrival < d.Arrival
	}
	return c.ID.Compare(d.ID) < 0
}

// EventKind says what happened.
type EventKind uint8

// The events of a site. All events of one instant are fed first, completions
// before cancellations before arrivals, then one Pass (spec 001 section 2.1).
const (
	// Enqueue adds Copy to its queue. A known id is ignored, and so is a copy
	// that can never run here: ask [Scheduler.Has] and [Scheduler.Fits] first.
	Enqueue EventKind = iota
	// Withdraw removes the queued or reserved copy ID. A running one stays.
	Withdraw
	// Confirm says that the reserved or adopted copy ID has really started: its
	// walltime counts from At, or from now if that is 0.
	Confirm
	// Drop says that the claim of ID was denied: the copy is removed like by Withdraw.
	Drop
	// Postpone says that the claim of ID was not answered: its processors are
	// freed and the copy returns to its old place in its queue, but until At
	// it is passed over as if it were not there. A queued copy can be
	// postponed, too.
	Postpone
	// Finish says that the attempt ID, running or reserved, has ended.
	Finish
	// Adopt tells of Copy that it already runs since At, as found after a
	// restart. It holds its processors even if that over-commits the site.
	Adopt
	// Drain makes every Pass start nothing, until Resume.
	Drain
	// Resume ends a Drain.
	Resume
	// Pass runs one scheduling pass. It is the only event that returns effects.
	Pass

	eventKinds
)

var eventNames = []string{
	"enqueue", "withdraw", "confirm", "drop", "postpone", "finish", "adopt", "drain", "resume", "pass",
}

// String returns the name in lower case.
func (k EventKind) String() string { return word(eventNames, k) }

// Event is one fact told to the scheduler. Which fields matter depends on Kind.
type Event struct {
	Kind EventKind
	// ID is the attempt, for all kinds but Enqueue, Adopt, Drain, Resume and Pass.
	ID job.AttemptID
	// Copy is for Enqueue and Adopt.
	Copy Copy
	// At is for Postpone (not eligible before), Confirm and Adopt (running since).
	At job.Time
}

// Effect is what the caller must do.
type Effect struct {
	// Start is a copy that should start now. Its processors are reserved from
	// now on, until Confirm, Drop, Postpone, Withdraw or Finish.
	Start Copy
}
