package meta

import "kith/internal/job"

// A site whose disk has less room than is to stay free takes no work of others: an attempt
// would hold processors only to wait for room, beside sites that have it. It says so in its
// loads. Its own jobs keep their places; one that finds no room is a start that failed,
// see [StartFailed].

// diskSeen takes up whether there is room on the disk.
func (e *Engine) diskSeen(now job.Time, ev DiskSeen) {
	h := e.host
	was := h.starting.low
	h.starting.low = job.ClipReason(ev.Low)
	if (was == "") == (ev.Low == "") {
		return
	}
	if ev.Low == "" && h.starting.pausing {
		h.starting.until = now // what could not start may have lacked room
		h.resumeStarts(now)
	}
	h.advertise(now) // ahead of what goes back, so that it does not return
	h.passing = true
	h.tasks.lookAll()
	if ev.Low != "" {
		h.returnCopies(now, job.DiskLow)
	}
}

// shuns reports whether this site begins nothing of an origin.
func (h *host) shuns(origin job.SiteID) bool { return h.starting.low != "" && origin != h.self }
