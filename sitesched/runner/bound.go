package runner

import (
	"time"

	"kith/meta"
	"kith/sitesched/work"
)

const (
	// boundLook is how often it is looked what bound an estimator has given.
	boundLook = 2 * time.Second
	// boundRest is for how long after the time that an estimator has: it may begin late, and what it
	// left is killed first.
	boundRest = 2 * time.Minute
)

// watchBound tells the engine what bounds the estimator of an attempt gives that was handed to the
// system, for people who ask while it runs. After a restart that is told once more.
func (s *Runner) watchBound(r *run) {
	system, able := s.system.(work.Bounds)
	if !able {
		return
	}
	s.wg.Go(func() {
		look := time.NewTicker(boundLook)
		defer look.Stop()
		told := 0.0
		for until := time.Now().Add(r.estimate.Limit + boundRest); time.Now().Before(until); {
			if bound := system.Bound(r.attempt); bound != told {
				told = bound
				s.cfg.Tell(meta.EstimateTold{Attempt: r.attempt, Bound: bound})
			}
			select {
			case <-look.C:
			case <-r.ended:
				return
			case <-s.ctx.Done():
				return
			}
		}
	})
}
