package sim

import (
	"fmt"
	"maps"
	"slices"

	"kith/internal/job"
	"kith/sitesched"
)

// guardedSite is a local scheduler that is watched for S4: no start of a
// remote copy moves what the site promises its own jobs. It holds a pass
// against one on a copy of the state that knows of no waiting remote copies.
type guardedSite struct {
	// drivenSite is what the engine would drive without a guard, with scheduler below.
	drivenSite
	scheduler *sitesched.Scheduler
	w         *World
	s         *Site
}

// Pass implements meta.Site.
func (g guardedSite) Pass(now job.Time) []job.AttemptID {
	cfg := g.scheduler.Config()
	g.s.unchecked = true
	g.s.countPass()
	if l := g.scheduler.Load(now); cfg.Queues == sitesched.Single || l.Free <= 0 || l.Queued == 0 {
		return g.drivenSite.Pass(now) // nothing remote can start and move anything
	}
	before := &g.w.before
	g.scheduler.CloneInto(before)
	starts := g.drivenSite.Pass(now)
	if slices.ContainsFunc(starts, func(a job.AttemptID) bool { return a.Job.Origin != g.s.cfg.ID }) {
		g.compare(now, before)
	}
	return starts
}

// mostPasses is how many passes a site may make in one instant: one for each start would be many.
const mostPasses = 20_000

// countPass fails for an engine that makes passes without end, as no time goes by between them.
func (s *Site) countPass() {
	if s.passAt != s.w.now {
		s.passAt, s.passes = s.w.now, 0
	}
	if s.passes++; s.passes > mostPasses {
		panic(fmt.Sprintf("more than %d passes of site %s in one instant", mostPasses, s.cfg.ID))
	}
}

// compare checks that no local job is worse off than without remote copies.
func (g guardedSite) compare(now job.Time, alone *sitesched.Scheduler) {
	remote := g.w.names[:0]
	for q := range alone.Queued {
		if q.Copy.Remote {
			remote = append(remote, q.Copy.ID)
		}
	}
	for _, id := range remote {
		alone.Withdraw(now, id)
	}
	g.w.names = remote
	alone.Pass(now)
	with := &g.w.with
	g.scheduler.CloneInto(with)
	for q := range alone.Queued {
		at, promised := alone.Guarantee(q.Copy.ID)
		got, still := with.Guarantee(q.Copy.ID)
		if promised && still && got > at {
			g.w.watch.violate("S4: site %s promised %v its start at %v, and a remote start moved it to %v", g.s.cfg.ID, q.Copy.ID, at.Sub(Start), got.Sub(Start))
		}
	}
	cfg := with.Config()
	if cfg.Scope != sitesched.ScopeAll || cfg.Queues != sitesched.DualBackfill || cfg.Backfill >= sitesched.Conservative {
		return // under conservative guarantees every job owns its slot
	}
	want, got := plan(now, alone), plan(now, with)
	for _, id := range slices.SortedFunc(maps.Keys(want), job.AttemptID.Compare) {
		at := want[id]
		if later, waits := got[id]; waits && later > at {
			g.w.watch.violate("S4: site %s planned %v for %v, and a remote start moved it to %v", g.s.cfg.ID, id, at.Sub(Start), later.Sub(Start))
		}
	}
}

// plan says when each waiting local job within the guarantee depth would start
// if they were placed in the order of the queue: what the site promises, no
// more. It takes them out of s, last first.
func plan(now job.Time, s *sitesched.Scheduler) map[job.AttemptID]job.Time {
	var local []sitesched.QueuedCopy
	for q := range s.Queued {
		if !q.Copy.Remote && q.NotBefore <= now {
			local = append(local, q)
		}
	}
	starts := make(map[job.AttemptID]job.Time, len(local))
	for _, q := range slices.Backward(local) {
		s.Withdraw(now, q.Copy.ID)
		if q.Within {
			starts[q.Copy.ID], _ = s.EarliestStart(now, q.Copy)
		}
	}
	return starts
}
