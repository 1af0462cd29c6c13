package meta

import "kith/internal/job"

// Reconfigure changes how the site places its jobs, what it takes on, how it runs tasks and
// when it gives up waiting. The driver has checked it with [Config.Check]. A shorter
// time holds for what begins after it.
type Reconfigure struct {
	Placement Placement
	Limits    Limits
	Timing    Timing
	Bags      Bags
	NoHarm    NoHarm
	Level     LevelPolicy
	// Peers are the sites that the configuration names now. Those that it no
	// longer names stay known until the next start.
	Peers []job.SiteID
}

func (Reconfigure) event() {}

// reconfigure takes a new configuration up.
func (e *Engine) reconfigure(now job.Time, ev Reconfigure) {
	ev.Limits.DecisionSites = e.cfg.Limits.DecisionSites // no knob
	e.cfg.Placement, e.cfg.Limits, e.cfg.Timing, e.cfg.Bags = ev.Placement, ev.Limits, ev.Timing, ev.Bags
	ev.NoHarm.Measure, ev.NoHarm.Mode = e.cfg.NoHarm.Measure, e.cfg.NoHarm.Mode // none that reloads
	e.cfg.NoHarm = ev.NoHarm
	e.host.settings++
	e.host.relevel(now, ev.Level)
	e.host.tasks.reconfigured()
	e.origin.policy = e.cfg.Placement.Policy()
	e.origin.policy.Kept = e.cfg.Limits.DecisionSites
	e.origin.reconsider(now)
	e.origin.pushSoon(now)
	for _, p := range ev.Peers {
		if p != e.self {
			e.peers.view.Expect(now, p)
		}
	}
	e.tellUnlisted(now, ev.Peers)
	// What is done every so often is done anew after the new time, if that is sooner.
	e.host.advertise(now)
	e.host.nextCheck = min(e.host.nextCheck, now.Add(ev.Timing.AntiEntropy))
	e.origin.overdue.next = min(e.origin.overdue.next, now.Add(min(ev.Timing.Overdue, overdueEvery)))
	e.origin.nextRetry = min(e.origin.nextRetry, now.Add(ev.Timing.Retry))
	e.origin.nextCrowded = min(e.origin.nextCrowded, now.Add(ev.Timing.Retry))
}
