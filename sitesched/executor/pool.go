package executor

import (
	"runtime"
	"slices"

	"kith/internal/job"
	"kith/sitesched/executor/shim"
	"kith/sitesched/work"
)

// startGate is how many attempts may be between "told to a shim" and "program
// executed" at the same time. More would not start sooner, since forking is
// processor work; they would only push each other out of the caches, and more
// shims would be awake.
func startGate() int { return 2*runtime.NumCPU() + 2 }

// enqueue puts an attempt at the end of the queue. The caller holds mu and
// calls dispatch.
func (x *Executor) enqueue(a *attempt) {
	a.phase = queued
	x.pending = append(x.pending, a)
}

// dispatch hands waiting attempts to shims, the most recently used first: its
// memory is still in the caches, and those at the bottom grow old and exit. The
// caller holds mu.
func (x *Executor) dispatch() {
	for !x.closed && len(x.pending) > 0 && x.starting < x.gate {
		w := x.popIdle()
		if w == nil {
			if x.shims >= x.config.Processors+spareShims {
				return
			}
			w = x.newWorker(nil)
		}
		a := x.pending[0]
		x.pending[0] = nil
		x.pending = x.pending[1:]
		a.phase, a.worker, a.sent, a.gated = starting, w, false, true
		a.tries++
		x.starting++
		if a.cpus == nil {
			a.cpus = x.processors.reserve(a.spec.Processors)
		}
		w.next <- a
	}
}

func (x *Executor) popIdle() *worker {
	if len(x.idle) == 0 {
		return nil
	}
	last := len(x.idle) - 1
	w := x.idle[last]
	x.idle[last] = nil
	x.idle = x.idle[:last]
	return w
}

// newWorker makes a worker, with a shim that has been started already or
// without. The caller holds mu.
func (x *Executor) newWorker(p *process) *worker {
	w := &worker{x: x, process: p, next: make(chan *attempt, 1)}
	x.shims++
	x.owned.Go(w.serve)
	return w
}

// untried takes back that an attempt was given to a shim.
func (x *Executor) untried(a *attempt) {
	x.mu.Lock()
	defer x.mu.Unlock()
	a.tries--
}

// takeBack makes a worker idle that is done with its attempt. It reports false
// if the worker is not needed any more. The caller holds mu and calls dispatch.
func (x *Executor) takeBack(w *worker) bool {
	if w == nil || x.closed || len(x.idle) >= x.config.KeepIdle && len(x.pending) == 0 {
		return false
	}
	x.idle = append(x.idle, w)
	return true
}

// withdraw takes an idle worker out of the pool. It reports false if the worker
// has just been given an attempt, or is the last one: the next start must not
// wait for a shim to be made, however long nothing happened.
func (x *Executor) withdraw(w *worker) bool {
	x.mu.Lock()
	defer x.mu.Unlock()
	i := slices.Index(x.idle, w)
	if i < 0 || len(x.idle) == 1 {
		return false
	}
	x.idle = slices.Delete(x.idle, i, i+1)
	return true
}

// dropped says that a worker and its shim are gone. If no spare is left for
// the next attempt, one is started.
func (x *Executor) dropped() {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.shims--
	x.dispatch()
	if !x.closed && x.config.KeepIdle > 0 && len(x.idle) == 0 && x.shims < x.config.Processors {
		x.idle = append(x.idle, x.newWorker(nil))
	}
}

// ungate lets the next attempt start. The caller holds mu.
func (x *Executor) ungate(a *attempt) {
	if a.gated {
		a.gated = false
		x.starting--
		x.dispatch()
	}
}

// begun reports that the attempt's program was executed.
func (x *Executor) begun(a *attempt, at int64, now phase) {
	x.mu.Lock()
	if a.phase == ended || x.closed {
		x.mu.Unlock()
		return
	}
	a.phase = now
	x.ungate(a)
	first := !a.started
	a.started = true
	x.mu.Unlock()
	if first {
		x.sink(work.Started{Attempt: a.id, At: job.Time(at)})
	}
}

// finish reports the end of an attempt, once. A worker that is free again
// comes back to the pool with it, before the caller hears of the end; finish
// reports whether it did.
func (x *Executor) finish(a *attempt, o job.Outcome, free *worker) (kept bool) {
	o.Reason = shim.ClipReason(o.Reason)
	return x.report(a, work.Finished{Attempt: a.id, Outcome: o}, free)
}

// finishBlank is finish for an attempt that left its folder as it found it. A worker that is
// kept has the folder for the next attempt.
func (x *Executor) finishBlank(a *attempt, o job.Outcome, w *worker) (kept bool) {
	o.Reason = shim.ClipReason(o.Reason)
	kept = x.report(a, work.Finished{Attempt: a.id, Outcome: o, Blank: true}, w)
	if a.kept {
		w.warm = a.folder
	}
	return kept
}

// report ends an attempt and reports ev, the last event about it, once. See finish
// for the worker.
func (x *Executor) report(a *attempt, ev work.Event, free *worker) (kept bool) {
	x.mu.Lock()
	report := a.phase != ended && !x.closed
	kept = x.takeBack(free)
	if report {
		a.phase = ended
		if f, ok := ev.(work.Finished); ok {
			f.Asked = a.asked
			ev = f
		}
		if f, ok := ev.(work.Finished); ok && f.Blank && kept && !a.stopping { // a stop may be being noted in it
			a.kept = true
		}
		a.worker = nil
		a.spec = work.Spec{}
		x.processors.release(a.cpus)
		a.cpus = nil
		x.ungate(a)
	}
	x.dispatch()
	x.mu.Unlock()
	if report {
		x.sink(ev)
	}
	return kept
}
