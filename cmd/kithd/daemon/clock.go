package daemon

import (
	"time"

	"kith/internal/job"
	"kith/sitesched/executor"
)

// clock tells the time that the engines see: the wall's when the daemon
// started, and since then by a clock that nobody sets and that goes on while
// the machine sleeps. Leases are counted by it.
type clock struct {
	wall job.Time
	boot time.Duration
}

// newClock returns a clock that does not show an earlier time than an earlier
// life of the daemon did: somebody may have set the wall's back since.
func newClock(latest job.Time) clock {
	return clock{max(job.Instant(time.Now()), latest), executor.SinceBoot()}
}

func (c clock) now() job.Time { return c.wall.Add(executor.SinceBoot() - c.boot) }

// lease turns the end of a lease into what the executor knows it by. The job
// gets the grace time before that end, or a sixth of what is left if that is less.
func (c clock) lease(gone job.Time, grace time.Duration) executor.Lease {
	l := executor.Lease{Gone: max(0, c.boot+gone.Sub(c.wall))}
	left := max(0, l.Gone-executor.SinceBoot())
	l.Stop = l.Gone - min(grace, left/6)
	return l
}
