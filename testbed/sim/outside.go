package sim

import (
	"kith/internal/job"
	"kith/meta"
)

// Sites that are not of the world: the caller plays them. So a thousand hosts that only ask
// for tasks need no daemon each. Messages to them go to [Config.Outside], those from them
// come in here; neither takes time.

// Meet tells a site that there is a stream to an outsider from now on.
func (w *World) Meet(at job.SiteID, up meta.PeerUp) { w.come(at, up) }

// Hear gives a site a message of an outsider that it has met.
func (w *World) Hear(at, from job.SiteID, m meta.Message) {
	w.come(at, meta.Receive{From: from, Message: m})
}

// come gives a site an event from outside in this instant, behind what came before.
func (w *World) come(at job.SiteID, ev meta.Event) {
	w.agenda.add(w.now, message, 0, call(func() { w.byID[at].feed(ev) }))
}
