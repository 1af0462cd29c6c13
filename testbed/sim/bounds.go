package sim

import (
	"time"

	"kith/internal/job"
	"kith/meta"
	"kith/sitesched"
)

// boundWatch checks for how long guests alone keep the jobs of a site waiting that has guests leave
// (E3): for no longer than its bound, and no longer than they take to leave where home jobs do not
// see them. A site of which that was changed is left out: guests may stay there. It measures by itself, from what a pass of the local scheduler says is blocked. It does
// so while nothing goes wrong at the site, it does not drain and has no guests of a site that has
// left for good, which stay to their end, and anew from when that has ended.
type boundWatch struct {
	x     *watch
	sites map[job.SiteID]*keptWaiting
}

// keptWaiting are home jobs that guests have kept waiting.
type keptWaiting struct {
	life   int
	upsets int // of the site
	jobs   map[job.AttemptID]*wait
	pass   int
	looked job.Time
}

type wait struct {
	total time.Duration
	pass  int // after which it was blocked
}

// withinBounds looks at a site after a pass.
func (c *boundWatch) withinBounds(s *Site) {
	limit, evicts := s.longestWait()
	if !evicts || s.deposed || s.mixed {
		return
	}
	at := c.sites[s.cfg.ID]
	if at == nil || at.life != s.life || at.upsets != s.upsets || !s.calm() || s.state.Site().Draining || s.hasOrphans() {
		c.sites[s.cfg.ID] = &keptWaiting{life: s.life, upsets: s.upsets, jobs: make(map[job.AttemptID]*wait), looked: c.x.w.now}
		return
	}
	since, before := c.x.w.now.Sub(at.looked), at.pass
	at.looked, at.pass = c.x.w.now, at.pass+1
	for _, id := range s.scheduler.Blocked(s.now(), nil) {
		if isPilot(id) && s.cfg.Scheduler.Queues != sitesched.DualPreempt {
			continue // a bound is one of jobs: no guest leaves for a task of a bag
		}
		b := at.jobs[id]
		if b == nil {
			b = &wait{}
			at.jobs[id] = b
		}
		if b.pass == before && before > 0 { // between two passes nothing changes
			b.total += since
		}
		if b.pass = at.pass; b.total > limit {
			c.x.violate("E3: guests alone have kept %v waiting at %s for %v, and have to leave within %v", id, s.cfg.ID, b.total, limit)
		}
	}
}

// hasOrphans reports whether guests run at a site whose origin has left for good.
func (s *Site) hasOrphans() bool {
	for _, o := range s.w.sites {
		if !o.gone {
			continue
		}
		for r := range s.scheduler.Running {
			if r.Copy.ID.Job.Origin == o.cfg.ID {
				return true
			}
		}
	}
	return false
}

// harmMode returns what guests of a site may do to its jobs. A mode works with certain queues
// only, which a site may change: kithd does not start with others.
func (s *Site) harmMode() meta.HarmMode {
	switch mode := s.cfg.Meta.NoHarm.Mode; {
	case s.cfg.Scheduler.Queues == sitesched.DualPreempt:
		return meta.HarmInvisible
	case mode == meta.HarmBounded && s.cfg.Scheduler.Queues != sitesched.DualBackfill:
		return meta.HarmPromise
	default:
		return mode
	}
}

// longestWait returns for how long guests may keep a job of a site waiting, and whether they leave at
// all. It allows for clocks that run wrong, and for commits.
func (s *Site) longestWait() (limit time.Duration, evicts bool) {
	cfg := &s.cfg.Meta
	grace := cfg.MaxGrace
	if grace == 0 {
		grace = 5 * time.Minute
	}
	switch s.harmMode() {
	case meta.HarmInvisible:
		limit = grace
	case meta.HarmBounded:
		limit = cfg.NoHarm.Bound
	default:
		return 0, false
	}
	return limit + limit/10 + 2*time.Second, true
}
