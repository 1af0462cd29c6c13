package daemon

import (
	"log/slog"
	"time"

	bootclock "kith/internal/clock"
	"kith/internal/job"
	"kith/store"
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

// warn says that the wall's clock is behind what it showed in an earlier life: one of
// the two is wrong. Nothing but the times that are shown rests on it.
func (c clock) warn(latest job.Time, log *slog.Logger) {
	behind := latest.Sub(job.Instant(time.Now()))
	if behind <= store.Late {
		return
	}
	log.Warn("the clock was set back while kithd was down", "by", behind.Round(time.Second).String(),
		"meaning", "times go on from "+latest.Wall().Format(time.RFC3339)+" until the clock has caught up; nothing else rests on them",
		"remedy", "none is needed if the clock is right now; otherwise set it")
}

func (c clock) now() job.Time { return c.wall.Add(bootclock.SinceBoot() - c.boot) }

// sinceBoot is what the clock of leases shows at an instant.
func (c clock) sinceBoot(at job.Time) time.Duration { return c.boot + at.Sub(c.wall) }
