package executor

import (
	"errors"
	"os"
	"time"

	"kith/internal/job"
	"kith/sitesched/executor/shim"
	"kith/sitesched/work"
)

// worker owns one shim and gives it one attempt after the other.
type worker struct {
	x        *Executor
	process  *process // nil until the first attempt if the shim is yet to be started
	next     chan *attempt
	sequence uint64

	ledger *ledger // of the shim; nil before the first light attempt
	warm   string  // the name of a folder for the next of those; empty for none
}

const (
	// startPatience is how long a starting attempt keeps others from starting.
	startPatience = time.Second
	// silencePatience is how long after its walltime a job's shim may keep silent.
	silencePatience = 5 * time.Minute
	// mostTries is how many shims may die under an attempt before they start it.
	mostTries = 3
)

// serve runs until the shim has been idle for long, or is lost, or Close.
func (w *worker) serve() {
	w.warmUp()
	idle := time.NewTimer(w.x.config.IdleTime)
	defer idle.Stop()
	for w.serveOne(idle) {
	}
	w.leave()
	w.x.dropped()
}

// warmUp starts the shim of a worker for which no attempt waits yet. If that
// fails, the first attempt tries again.
func (w *worker) warmUp() {
	if w.process != nil || len(w.next) > 0 {
		return
	}
	p, err := w.startShim()
	if err != nil {
		w.x.log.Debug("no shim in advance", "error", err)
		return
	}
	w.adopt(p)
}

func (w *worker) serveOne(idle *time.Timer) bool {
	idle.Reset(w.x.config.IdleTime)
	select {
	case a, ok := <-w.next:
		if !ok {
			w.retire()
			return false
		}
		return w.carry(a)
	case <-idle.C:
		if !w.x.withdraw(w) {
			// It is the last one; or an attempt, or the end of the executor, is on its way.
			return true
		}
		w.retire()
		return false
	}
}

// retire ends a shim without a job.
func (w *worker) retire() {
	if w.process == nil {
		return
	}
	if err := w.process.end(); err != nil {
		w.x.log.Error("shim does not exit", "pid", w.process.pid, "error", err)
	}
}

// carry brings one attempt to its end, and reports whether the worker can take another.
func (w *worker) carry(a *attempt) bool {
	run, exit, trouble := w.x.prepareRun(a, w)
	switch {
	case errors.Is(trouble, errTaken):
		return w.refused(a, &shim.Refused{Taken: true})
	case trouble != nil:
		return w.giveUp(a, trouble.Error())
	case exit != nil:
		return w.settleDown(a, *exit)
	}
	fresh := w.process == nil
	if fresh {
		p, err := w.startShim()
		if err != nil {
			w.x.unable(a, "no shim: "+err.Error(), nil)
			return false
		}
		w.adopt(p)
	}
	w.sequence++
	run.Sequence = w.sequence
	if outcome := w.x.markSent(a, w.sequence); outcome != nil {
		return w.settleDown(a, *outcome)
	}
	err := w.process.send(run)
	if err == nil {
		w.x.stopAfterSend(a, w)
		var again bool
		if again, err = w.listen(a); err == nil {
			return again
		}
	}
	if !fresh {
		// It may have died while it was idle, which says nothing of the attempt. There
		// are only so many idle ones.
		w.x.untried(a)
	}
	return w.lose(a, err)
}

// settleDown reports the end of an attempt and keeps the worker if it is needed.
func (w *worker) settleDown(a *attempt, o job.Outcome) bool {
	if w.x.finish(a, o, w) {
		return true
	}
	w.retire()
	return false
}

// giveUp reports that an attempt cannot be started here, and keeps the worker if it
// is needed.
func (w *worker) giveUp(a *attempt, reason string) bool {
	if w.x.unable(a, reason, w) {
		return true
	}
	w.retire()
	return false
}

// startShim retries for a while: the machine may be out of processes for a moment.
func (w *worker) startShim() (*process, error) {
	var errs error
	for pause := 20 * time.Millisecond; pause < time.Second; pause *= 4 {
		p, _, err := w.x.launcher.start()
		if err == nil {
			return p, nil
		}
		errs = err
		time.Sleep(pause)
	}
	w.x.log.Debug("shim not started", "error", errs)
	return nil, errs
}

// listen waits for what the shim tells of the attempt. It returns an error if
// the shim dies, else whether the worker can take another attempt.
func (w *worker) listen(a *attempt) (again bool, err error) {
	w.deadline(startPatience)
	started := time.Now()
	for {
		m, err := w.process.receive()
		if errors.Is(err, os.ErrDeadlineExceeded) {
			if !w.patient(a, started) {
				w.process.kill()
			}
			continue
		}
		if err != nil {
			return false, err
		}
		switch m := m.(type) {
		case *shim.Started:
			if m.Sequence == w.sequence {
				w.x.begun(a, m.At, running)
			}
		case *shim.Ended:
			if m.Sequence == w.sequence {
				return w.end(a, m), nil
			}
		case *shim.Refused:
			if m.Sequence == w.sequence {
				return w.refused(a, m), nil
			}
		}
	}
}

// patient lets other attempts start while this one hangs, and reports false
// when the shim has been silent for so long that it cannot be at work.
func (w *worker) patient(a *attempt, started time.Time) bool {
	w.x.mu.Lock()
	w.x.ungate(a)
	walltime := a.spec.Walltime
	w.x.mu.Unlock()
	if walltime <= 0 {
		w.deadline(job.MaxWalltime)
		return true
	}
	left := walltime + w.x.config.Grace + silencePatience - time.Since(started)
	w.deadline(max(left, startPatience))
	return left > 0
}

func (w *worker) deadline(d time.Duration) {
	_ = w.process.conn.SetReadDeadline(time.Now().Add(d))
}

// end reports what the shim said.
func (w *worker) end(a *attempt, m *shim.Ended) bool {
	if m.Exit.Cause == shim.CauseNotStarted {
		w.x.report(a, work.StartFailed{Attempt: a.id, Reason: m.Exit.Reason}, nil)
		w.retire() // what it lacks the next one may have
		return false
	}
	outcome := w.x.outcomeOf(a, &m.Exit)
	if m.Retire == "" && w.leftBlank(a) {
		if w.x.finishBlank(a, outcome, w) {
			return true
		}
		w.retire()
		return false
	}
	if m.Retire == "" {
		return w.settleDown(a, outcome)
	}
	w.x.log.Debug("shim retired", "pid", w.process.pid, "attempt_id", a.id.String(), "reason", m.Retire)
	w.x.finish(a, outcome, nil)
	w.retire()
	return false
}

// refused deals with an attempt that the shim did not start.
func (w *worker) refused(a *attempt, m *shim.Refused) bool {
	if !m.Taken {
		return w.giveUp(a, m.Reason)
	}
	// Another shim has it, which was told by an earlier daemon.
	kept := w.x.settleLater(a, w)
	if !kept {
		w.retire()
	}
	return kept
}

// lose deals with the death of the shim. The attempt's record tells how far it came.
func (w *worker) lose(a *attempt, cause error) bool {
	if w.x.isClosed() {
		w.process.detach()
		return false
	}
	err := w.process.end()
	w.x.log.Error("shim lost", "pid", w.process.pid, "attempt_id", a.id.String(), "cause", cause,
		"status", describe(w.process.status), "error", err)
	w.x.settleLater(a, nil)
	return false
}

// adopt sets the worker's shim; Close looks at it.
func (w *worker) adopt(p *process) {
	w.x.mu.Lock()
	defer w.x.mu.Unlock()
	w.process = p
}

// interrupt makes a worker notice that the executor is closed. The shim sees
// that there is no listener any more. The caller holds Executor.mu.
func (w *worker) interrupt() {
	if w.process != nil {
		_ = w.process.conn.Close()
	}
}
