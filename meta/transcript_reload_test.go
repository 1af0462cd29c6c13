package meta_test

import (
	"kith/internal/job"
	"kith/meta"
)

// reload has the site take up another configuration.
func (s *stage) reload(a arguments) {
	c := &s.cfg
	c.Limits.CopiesPerOrigin = int(s.number(a, "copies-per-origin", float64(c.Limits.CopiesPerOrigin)))
	c.NoHarm.GuestWalltime = s.duration(a.named["guest-walltime"], 0)
	s.feed(meta.Reconfigure{Placement: c.Placement, Limits: c.Limits, Timing: c.Timing, Bags: c.Bags, NoHarm: c.NoHarm, Level: c.Level, Peers: []job.SiteID{"beta", "gamma"}})
}
