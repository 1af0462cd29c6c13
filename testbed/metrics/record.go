package metrics

import (
	"time"

	"kith/internal/job"
)

// Record is one job that has ended.
type Record struct {
	// Job is its number at its origin.
	Job int64
	// Origin is where it was submitted, Site where it ran.
	Origin, Site job.SiteID
	// User and Group are the submitter's, "" if unknown.
	User, Group string
	// Submit, Start and End are its instants.
	Submit, Start, End job.Time
	// Run is what the job itself took where it ran, without data transfers. It is
	// at most End − Start.
	Run time.Duration
	// Reference is what the job takes at its origin; zero means Run. By it
	// slowdowns are measured and jobs are short or long: a job that moved to a
	// faster site is the same job, and not slowed down because it ran less long.
	Reference time.Duration
	// Estimate is the user's.
	Estimate time.Duration
	// Procs is the width.
	Procs int32
	// Blocked is how long guests alone kept it waiting in the queue of its origin, and Moved
	// how often they moved back what it was promised there; zero where it was not measured.
	Blocked time.Duration
	Moved   uint32
	// Evicted is how often it had to leave for a home job of its host. Start is then that of the
	// first attempt, and Run what all attempts took together.
	Evicted int
	// Demoted is how often an attempt of it ended for it to go on in another one, whatever for, and
	// Stopped says that its time limit ended it.
	Demoted int
	Stopped bool
	// Pushed is how often it was moved inside its level while it waited, Lowered how often it went to a
	// lower one from its queue.
	Pushed, Lowered int
}

// Wait returns the time from submission to start.
func (r *Record) Wait() time.Duration { return r.Start.Sub(r.Submit) }

// Turnaround returns the time from submission to end, also called response or
// completion time.
func (r *Record) Turnaround() time.Duration { return r.End.Sub(r.Submit) }

// reference returns the run time that slowdowns divide by. No time counts as a
// second (spec 001 section 2.1).
func (r *Record) reference() time.Duration {
	switch {
	case r.Reference > 0:
		return r.Reference
	case r.Run > 0:
		return r.Run
	}
	return time.Second
}

// Slowdown returns turnaround ÷ reference. It is below 1 only where a faster
// site made up for the wait.
func (r *Record) Slowdown() float64 { return float64(r.Turnaround()) / float64(r.reference()) }

// BoundedSlowdown returns max(1, turnaround ÷ max(reference, floor)). The usual
// floor is [Floor].
func (r *Record) BoundedSlowdown(floor time.Duration) float64 {
	return max(1, float64(r.Turnaround())/float64(max(r.reference(), floor)))
}

// Waited returns how long the job did not run until it had ended: [Record.Wait], and what it waited
// after it was evicted.
func (r *Record) Waited() time.Duration { return r.Turnaround() - r.Run }

// Work returns the processor-seconds that the job held.
func (r *Record) Work() float64 { return float64(r.Procs) * r.End.Sub(r.Start).Seconds() }
