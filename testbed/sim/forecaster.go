package sim

import (
	"kith/internal/forecast"
	"kith/internal/job"
	"kith/meta"
	"kith/sitesched"
)

// forecaster returns what plays the site forward.
func (s *Site) forecaster() meta.Forecaster {
	if most := s.cfg.ForecastSteps; most > 0 {
		return hurried{s.scheduler, most}
	}
	return s.scheduler
}

// hurried is a scheduler whose forecasts take at most that many steps.
type hurried struct {
	*sitesched.Scheduler
	most int64
}

// Foresee is that of the scheduler, with fewer steps.
func (h hurried) Foresee(now job.Time, c *job.Copy, steps int64, used forecast.Scene) (forecast.Scene, error) {
	return h.Scheduler.Foresee(now, c, min(steps, h.most), used)
}
