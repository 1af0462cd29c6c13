package executor

import (
	"time"

	"kith/internal/job"
)

// An Event tells what became of an attempt: [Started] or [Finished].
type Event interface{ event() }

// Started says that the attempt's program was executed. It comes at most once
// per [Executor.Start] or [Executor.Adopt], before Finished; not at all if the
// program never ran or ended before Adopt.
type Started struct {
	Attempt job.AttemptID
	// At is by this machine's clock.
	At job.Time
}

// Finished says that the attempt is over and all its processes are gone. It
// comes exactly once per [Executor.Start] or [Executor.Adopt].
type Finished struct {
	Attempt job.AttemptID
	Exit    Exit
}

func (Started) event()  {}
func (Finished) event() {}

// Exit is how an attempt ended.
type Exit struct {
	// Code and Signal are what wait(2) told of the job's first process; 127 and
	// 126 also mean, as in a shell, that there was no program or that it could
	// not be executed.
	Code, Signal int
	// Reason explains, in at most job.MaxReasonLength bytes, every end that is
	// not the program's own.
	Reason string
	// TimedOut says that the executor stopped the job at its walltime, Stopped
	// that it did so because of [Executor.Stop], for StopReason.
	TimedOut, Stopped bool
	StopReason        StopReason
	// NotStarted says that the program was certainly never executed.
	NotStarted bool
	// Lost says that nobody knows how far the job came. No process of it lives.
	Lost bool
	// OutOfMemory says that the job was killed for using more memory than it may.
	OutOfMemory bool
	// Start and End are by this machine's clock; Start is zero if the program never ran.
	Start, End job.Time
	// CPUTime is user and system time of all processes of the job.
	CPUTime time.Duration
	// MaxRSSBytes is the largest resident set of any one of them.
	MaxRSSBytes int64
}

// StopReason says why an attempt is stopped; at most 128 bytes. It is kept on
// disk with the attempt.
type StopReason string

// The usual reasons.
const (
	StopCancel StopReason = "cancelled"           // the user wished it
	StopLease  StopReason = "the lease ended"     // the origin runs the job elsewhere; it ends as a loss
	StopSite   StopReason = "stopped by the site" // its operator wished it
)

// Kind returns the outcome that the exit amounts to.
func (e *Exit) Kind() job.OutcomeKind {
	switch {
	case e.Lost, e.Stopped && e.StopReason == StopLease:
		return job.Loss
	case e.Stopped:
		return job.Cancel
	case e.TimedOut:
		return job.Timeout
	case e.Code == 0 && e.Signal == 0 && !e.NotStarted && !e.OutOfMemory:
		return job.Success
	default:
		return job.Failure
	}
}
