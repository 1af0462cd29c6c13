package meta

import (
	"kith/internal/job"
	"kith/store"
)

// setAside stops proposing the copies of an origin that wait here, and those
// that will come, until bringBack. They cost nothing meanwhile and are not in the
// load. Claims under way stay as they are; a copy whose claim is postponed is set
// aside with the others. It is forgotten by a restart. What a batch system holds
// keeps its place there; what it starts meanwhile leaves.
func (h *host) setAside(now job.Time, origin job.SiteID) {
	if h.isAside(origin) {
		return
	}
	h.aside[origin] = job.AttemptID{}
	h.site.SetAside(now, origin)
	h.passing = true // what they kept others from
}

// bringBack puts the copies of an origin that was set aside back into their places.
func (h *host) bringBack(now job.Time, origin job.SiteID) {
	if !h.isAside(origin) {
		return
	}
	delete(h.aside, origin)
	h.site.BringBack(now, origin)
	h.passing = true
	h.eachWaiting(origin, func(c *hostCopy) {
		h.queueOutside(h.entry(c.rec), 0)
	})
}

// probe lets one copy of an origin that is set aside claim when its turn comes.
// If that claim is postponed, the copy is set aside again.
func (h *host) probe(now job.Time, c *hostCopy) {
	origin := c.rec.ID.Job.Origin
	if !h.isAside(origin) || c.status != waiting || c.rec.Phase != store.CopyQueued {
		return
	}
	h.aside[origin] = c.rec.ID
	h.site.Probe(now, c.rec.ID)
	h.passing = true
	if h.batch != nil {
		h.queueOutside(h.entry(c.rec), 0)
	}
}

// isAside reports whether the copies of an origin are set aside.
func (h *host) isAside(origin job.SiteID) bool {
	_, ok := h.aside[origin]
	return ok
}

// waitsAside reports whether a copy is set aside with its origin.
func (h *host) waitsAside(a job.AttemptID) bool {
	probe, ok := h.aside[a.Job.Origin]
	return ok && probe != a
}

// eachWaiting calls f for the copies of an origin that wait in a batch system.
func (h *host) eachWaiting(origin job.SiteID, f func(*hostCopy)) {
	if h.batch == nil {
		return
	}
	for _, c := range h.copiesOf(origin) {
		if c.status == waiting && c.rec.Phase == store.CopyQueued && c.outgrown == job.NoReason {
			f(c)
		}
	}
}
