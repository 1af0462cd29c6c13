package peer

import "kith/internal/job"

// Leave ends the stream to a site that is no longer admitted, if one is up,
// and dials it no longer.
func (l *Links) Leave(site job.SiteID) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if d := l.dialers[site]; d != nil {
		d.stop()
		delete(l.dialers, site)
	}
	if s := l.streams[site]; s != nil {
		s.cancel(ErrNotAdmitted)
	}
}
