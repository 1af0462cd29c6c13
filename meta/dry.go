package meta

import (
	"time"

	"kith/cluster"
	"kith/internal/job"
)

// A site that has run dry says so at once, so that origins can give it work:
// they would else learn of it up to Timing.Load later.

// dryness is what a host has told of its running dry.
type dryness struct {
	said job.Time // when the latest digest was made
	dry  bool     // what it said
}

// dryPause and dryPausePerSite are how long after one digest the next may follow:
// the more sites are told, the longer. Timing.Load bounds it.
const (
	dryPause        = time.Second
	dryPausePerSite = 50 * time.Millisecond
)

// isDry reports whether a site has processors free and nothing in its queue.
func isDry(d *cluster.Digest) bool {
	return d.Load.Free > 0 && d.Load.Queued == 0 && !d.Draining && !d.NotStarting
}

// told remembers what others have been told.
func (y *dryness) told(now job.Time, d *cluster.Digest) { y.said, y.dry = now, isDry(d) }

// noteDry has a digest leave soon if the site has run dry since the latest one.
func (h *host) noteDry(now job.Time) {
	if !h.cfg.Placement.Conserve || h.dry.dry || len(h.peers.linked) == 0 {
		return
	}
	if d := h.describe(now); isDry(&d) {
		pause := max(dryPause, time.Duration(len(h.peers.linked))*dryPausePerSite)
		h.nextLoad = min(h.nextLoad, max(now, h.dry.said.Add(pause)))
	}
}
