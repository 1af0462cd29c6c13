package sim

import "kith/internal/job"

// The scheduler of a guarded site is checked from scratch after each step that has
// changed it. Each call below may.

// Enqueue implements meta.Site.
func (g guardedSite) Enqueue(now job.Time, c job.Copy) {
	g.s.unchecked = true
	g.drivenSite.Enqueue(now, c)
}

// Withdraw implements meta.Site.
func (g guardedSite) Withdraw(now job.Time, id job.AttemptID) {
	g.s.unchecked = true
	g.drivenSite.Withdraw(now, id)
}

// Confirm implements meta.Site.
func (g guardedSite) Confirm(now job.Time, id job.AttemptID, since job.Time) {
	g.s.unchecked = true
	g.drivenSite.Confirm(now, id, since)
}

// Postpone implements meta.Site.
func (g guardedSite) Postpone(now job.Time, id job.AttemptID, until job.Time) {
	g.s.unchecked = true
	g.drivenSite.Postpone(now, id, until)
}

// SetAside implements meta.Site.
func (g guardedSite) SetAside(now job.Time, origin job.SiteID) {
	g.s.unchecked = true
	g.drivenSite.SetAside(now, origin)
}

// BringBack implements meta.Site.
func (g guardedSite) BringBack(now job.Time, origin job.SiteID) {
	g.s.unchecked = true
	g.drivenSite.BringBack(now, origin)
}

// Probe implements meta.Site.
func (g guardedSite) Probe(now job.Time, id job.AttemptID) {
	g.s.unchecked = true
	g.drivenSite.Probe(now, id)
}

// Finish implements meta.Site.
func (g guardedSite) Finish(now job.Time, id job.AttemptID) {
	g.s.unchecked = true
	g.drivenSite.Finish(now, id)
}

// Adopt implements meta.Site.
func (g guardedSite) Adopt(now job.Time, c job.Copy, begun job.Time) {
	g.s.unchecked = true
	g.drivenSite.Adopt(now, c, begun)
}

// Drain implements meta.Site.
func (g guardedSite) Drain(now job.Time, on bool) {
	g.s.unchecked = true
	g.drivenSite.Drain(now, on)
}
