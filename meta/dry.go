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
	dry  bool     // it said that the site has run dry, and no work has come from others since
	// free is how many processors it said are free, claiming that some were held by a claim.
	free     int32
	claiming bool
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
func (y *dryness) told(now job.Time, d *cluster.Digest, claiming bool) {
	*y = dryness{said: now, dry: isDry(d), free: d.Load.Free, claiming: claiming}
}

// noteDry has a digest leave soon if the site has run dry since the latest one, or had
// already, and processors are free again that claims held then.
func (h *host) noteDry(now job.Time) {
	if !h.cfg.Placement.Conserve || len(h.peers.linked) == 0 {
		return
	}
	switch d := h.describe(now); {
	case !isDry(&d):
		h.dry.dry = false
	case !h.dry.dry, h.dry.claiming && d.Load.Free > h.dry.free && !h.claiming():
		pause := max(dryPause, time.Duration(len(h.peers.linked))*dryPausePerSite)
		h.nextLoad = min(h.nextLoad, max(now, h.dry.said.Add(pause)))
	}
}
