package meta

import (
	"time"

	"kith/internal/job"
)

// An origin of a version that compares a host's steps with its own clock denies every
// claim of a host whose clock was once far ahead ([job.ClockAhead]), and would
// place a copy here again at once. Nothing that this site can say changes that
// before that clock has caught up, so it takes none of its copies for a while.

// mostAheadPause bounds how long that is; it begins with Timing.Backoff.
const mostAheadPause = time.Hour

// ahead is an origin that takes this site's steps for those of a wrong clock.
type ahead struct {
	until job.Time
	pause time.Duration
}

// deniedAhead notes that an origin has denied a claim for the clock.
func (h *host) deniedAhead(now job.Time, origin job.SiteID) {
	a := h.ahead[origin]
	a.pause = min(max(2*a.pause, h.cfg.Timing.Backoff), mostAheadPause)
	a.until = now.Add(a.pause)
	if h.ahead == nil {
		h.ahead = make(map[job.SiteID]ahead)
	}
	h.ahead[origin] = a
}

// isAhead reports whether copies of an origin are not taken for that reason.
func (h *host) isAhead(now job.Time, origin job.SiteID) bool { return now < h.ahead[origin].until }
