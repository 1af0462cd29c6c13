package peer

import (
	"sync"
	"time"

	"golang.org/x/time/rate"

	"kith/internal/job"
)

// Bounds of lines about streams that begin and end: a site that comes and goes as fast as
// it can would fill the log with them.
const (
	comingsAtOnce = 8
	comingsEvery  = 2 * time.Second
	mostComers    = 1024
)

// comings lets lines about the streams of each site pass at a rate. The zero comings is
// ready; it is safe for use by several goroutines.
type comings struct {
	mu sync.Mutex
	of map[job.SiteID]*comer
}

type comer struct {
	lines *rate.Limiter
	held  int
}

// pass reports whether a line about a site may pass, and how many were held back since
// the last one.
func (c *comings) pass(site job.SiteID, now time.Time) (held int, ok bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	one := c.of[site]
	if one == nil {
		if c.of == nil || len(c.of) >= mostComers {
			c.of = make(map[job.SiteID]*comer)
		}
		one = &comer{lines: rate.NewLimiter(rate.Every(comingsEvery), comingsAtOnce)}
		c.of[site] = one
	}
	if !one.lines.AllowN(now, 1) {
		one.held++
		return 0, false
	}
	held, one.held = one.held, 0
	return held, true
}
