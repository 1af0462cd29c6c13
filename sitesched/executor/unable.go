package executor

import (
	"kith/sitesched/executor/shim"
	"kith/sitesched/work"
)

// unable reports that this host cannot start an attempt, for a reason that is not
// the job's. See finish for the worker.
//
// This cannot be said of an attempt that an earlier daemon may have given to a shim: that
// shim may still start it. Such an attempt is tried again until it is known to have
// started here.
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
