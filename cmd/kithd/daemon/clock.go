package daemon

import (
	"time"

	bootclock "kith/internal/clock"
	"kith/internal/job"
)

// clock tells the time that the engines see: the wall's when the daemon
// started, and since then by the clock of leases, which is never set and goes on
// while the machine sleeps.
type clock struct {
	wall job.Time
	boot time.Duration
}

// newClock returns a clock that does not show an earlier time than an earlier
// life of the daemon did: the wall's clock may have been set back since.
func newClock(latest job.Time) clock {
	return clock{max(job.Instant(time.Now()), latest), bootclock.SinceBoot()}
}

func (c clock) now() job.Time { return c.wall.Add(bootclock.SinceBoot() - c.boot) }

// sinceBoot is what the clock of leases shows at an instant.
func (c clock) sinceBoot(at job.Time) time.Duration { return c.boot + at.Sub(c.wall) }
