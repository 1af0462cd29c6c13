package sim

import (
	"kith/internal/job"
)

// countedSite is a local scheduler whose work for the engine is counted: what a
// site does for copies that cannot run is a number, whatever the machine.
type countedSite struct {
	drivenSite
	n *int64
}

// Pass implements meta.Site.
func (c countedSite) Pass(now job.Time) []job.AttemptID {
	starts := c.drivenSite.Pass(now)
	*c.n += 1 + int64(len(starts))
	return starts
}

// Postpone implements meta.Site.
func (c countedSite) Postpone(now job.Time, id job.AttemptID, until job.Time) {
	*c.n++
	c.drivenSite.Postpone(now, id, until)
}

// Calls returns how many passes the site's scheduler made, how many starts it
// proposed and how many copies it put back, if [Config.Count] is set.
func (s *Site) Calls() int64 { return s.calls }
