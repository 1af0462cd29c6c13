package sim

import (
	"time"

	"kith/internal/job"
	"kith/sitesched"
)

// transferSite is a local scheduler that plans remote copies with the transfer
// of their input, which holds their processors before they run (spec 001
// section 2.6). Only a copy that is there has a known transfer: what a site
// answers when it is asked about a job to come leaves it out.
type transferSite struct {
	*sitesched.Scheduler
	w *World
}

// Enqueue implements meta.Site.
func (s transferSite) Enqueue(now job.Time, c job.Copy) {
	s.Scheduler.Enqueue(now, s.longer(c))
}

// Adopt implements meta.Site.
func (s transferSite) Adopt(now job.Time, c job.Copy, since job.Time) {
	s.Scheduler.Adopt(now, s.longer(c), since)
}

func (s transferSite) longer(c job.Copy) job.Copy {
	if c.Remote {
		c.Request.Walltime = min(c.Request.Walltime+s.transfer(c.ID.Job), job.MaxWalltime)
	}
	return c
}

func (s transferSite) transfer(id job.ID) time.Duration { return s.w.entry(id).transfer }
