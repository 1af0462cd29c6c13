package meta

import (
	"time"

	"kith/cluster"
	"kith/internal/job"
)

// A site that has run dry, or has more processors free than others know, says so at once,
// so that origins can give it work: they would else learn of it up to Timing.Load later,
// and of processors that jobs as long as that leave idle in between never.

// dryness is what a host has told of its free processors.
type dryness struct {
	said job.Time // when the latest digest for all was made
	dry  bool     // it said that the site has run dry, and no work has come from others since
	// free is how many processors it said are free for copies of others, less those that
	// copies which came from others since may have taken.
	free int32
	// more says that more than that were free since, times in how many digests it was told.
	more  bool
	times uint64
}

// dryPause and dryPausePerSite are how long after one digest the next may follow:
// the more sites are told, the longer. Timing.Load bounds it.
const (
	dryPause        = 500 * time.Millisecond
	dryPausePerSite = 50 * time.Millisecond
)

// isDry reports whether a site has processors free and nothing in its queue.
func isDry(d *cluster.Digest) bool {
	return d.Load.Free > 0 && d.Load.Queued == 0 && !d.Draining && !d.NotStarting
}

// told remembers what others have been told.
func (y *dryness) told(now job.Time, d *cluster.Digest) {
	*y = dryness{said: now, dry: isDry(d), free: d.Startable(), times: y.times}
}

// count makes the next digest say that more processors were free than others know, even if they
// are not any more.
func (y *dryness) count() {
	if y.more {
		y.times, y.more = y.times+1, false
	}
}

// came notes that a copy has come from another site, which counts its processors as taken.
func (y *dryness) came(r *job.Request) {
	y.dry, y.free = false, max(0, y.free-r.Processors)
}

// noteFree has a digest leave soon if the site has run dry since the latest one, or has
// more processors free than others know.
func (h *host) noteFree(now job.Time) {
	if !h.cfg.Placement.Conserve || len(h.peers.linked) == 0 || h.starting.low != "" {
		return
	}
	d := h.describe(now)
	dry := isDry(&d)
	more := d.Startable() > h.dry.free && !d.Draining && !d.NotStarting
	h.dry.more = h.dry.more || more
	if dry && !h.dry.dry || more {
		pause := max(dryPause, time.Duration(len(h.peers.linked))*dryPausePerSite)
		h.nextLoad = min(h.nextLoad, max(now, h.dry.said.Add(pause)))
	}
	h.dry.dry = h.dry.dry && dry
}
