package executor

import (
	"kith/sitesched/executor/shim"
	"kith/sitesched/work"
)

// unable reports that this host cannot start an attempt, for a reason that is not
// the job's. See finish for the worker.
//
// Of an attempt that an earlier daemon may have told a shim of this can not be said:
// that shim may wake up yet. It is tried again until it is known to have started here.
func (x *Executor) unable(a *attempt, reason string, free *worker) (kept bool) {
	x.mu.Lock()
	retry := a.boot != "" && a.phase != ended && !x.closed
	if retry {
		a.phase, a.worker = adopting, nil
		a.tries--
		kept = x.takeBack(free)
		x.ungate(a)
		x.dispatch()
	}
	x.mu.Unlock()
	if retry {
		x.log.Debug("adopted attempt cannot be started for now", "attempt_id", a.id.String(), "reason", reason)
		x.watcher.recheck(a)
		return kept
	}
	return x.report(a, work.StartFailed{Attempt: a.id, Reason: shim.ClipReason(reason)}, free)
}
