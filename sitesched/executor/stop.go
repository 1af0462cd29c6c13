package executor

import (
	"errors"
	"os"
	"path/filepath"
	"slices"

	"golang.org/x/sys/unix"

	"kith/internal/clock"
	"kith/internal/job"
	"kith/internal/jobfile"
	"kith/sitesched/work"
)

// maxStopReason bounds a [work.StopReason], in bytes.
const maxStopReason = 128

// Stop ends an attempt: SIGTERM to its processes, SIGKILL to what is left after
// the grace time. A shim that was stopped by a signal is made to go on; one that
// does not end the attempt even so is killed. The end is reported as Finished.
// An attempt that was not started yet is not started any more; if
// Start or Adopt was not called yet, the stop is kept until it is. Only the first
// reason counts.
func (x *Executor) Stop(id job.AttemptID, reason work.StopReason) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.closed {
		return
	}
	a := x.attempts[id]
	if a == nil {
		a = x.addAttempt(id)
	}
	if a.stopping || a.phase == ended {
		return
	}
	a.stopping, a.stop = true, reason[:min(len(reason), maxStopReason)]
	x.errands.post(func() { x.carryOutStop(a) })
}

// carryOutStop writes the reason down, for a daemon after this one, and ends
// the attempt where it stands.
func (x *Executor) carryOutStop(a *attempt) {
	if err := x.folders.writeStop(a.folder, a.stop); err != nil {
		x.log.Warn("cannot note the stop of an attempt", "attempt_id", a.id.String(), "error", err)
	}
	x.mu.Lock()
	w, sequence := a.worker, a.sequence
	tell := a.sent && (a.phase == starting || a.phase == running)
	unqueued := a.phase == queued
	if unqueued {
		if i := slices.Index(x.pending, a); i >= 0 {
			x.pending = slices.Delete(x.pending, i, i+1)
		}
	}
	if a.phase == watched && a.pidfd >= 0 {
		// The shim of an earlier daemon takes no other job: the signal cannot hit a wrong one.
		for _, signal := range []unix.Signal{unix.SIGTERM, unix.SIGCONT} {
			if err := unix.PidfdSendSignal(a.pidfd, signal, nil, 0); err != nil && !errors.Is(err, unix.ESRCH) {
				x.log.Error("cannot stop an attempt", "attempt_id", a.id.String(), "error", err)
			}
		}
	}
	if a.stopBy == 0 && (a.phase == starting || a.phase == running || a.phase == watched) {
		a.stopBy = clock.SinceBoot() + max(0, x.config.Grace) + x.stopPatience
		x.watcher.alarmAt(a.stopBy)
	}
	x.mu.Unlock()
	switch {
	case unqueued:
		x.finish(a, stoppedBefore(a.stop), nil)
	case tell:
		// If the socket is broken the worker notices too.
		_ = w.process.sendStop(sequence)
		w.process.resume()
	}
}

// markSent says that the shim is about to be told, or why the attempt must not
// start any more.
func (x *Executor) markSent(a *attempt, sequence uint64) *job.Outcome {
	x.mu.Lock()
	defer x.mu.Unlock()
	var o job.Outcome
	switch {
	case x.closed:
		o = notStarted("the executor is closed")
	case a.stopping:
		o = stoppedBefore(a.stop)
	default:
		a.sequence = sequence
		return nil
	}
	return &o
}

// stopAfterSend passes on a stop that came while the shim was being told: sent
// earlier, it would have named a job that the shim did not know yet.
func (x *Executor) stopAfterSend(a *attempt, w *worker) {
	x.mu.Lock()
	a.sent = true
	stopping := a.stopping
	x.mu.Unlock()
	if stopping {
		_ = w.process.sendStop(w.sequence)
		w.process.resume()
	}
}

func stoppedBefore(reason work.StopReason) job.Outcome {
	o := notStarted(string(reason))
	o.Kind = reason.Kind()
	return o
}

// writeStop notes in the attempt's folder that it is to be stopped.
func (f *folders) writeStop(name string, reason work.StopReason) error {
	if err := f.prepare(name); err != nil {
		return err
	}
	path := filepath.Join(f.path(name), stopName)
	file, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL|unix.O_NOFOLLOW, 0o600)
	if errors.Is(err, os.ErrExist) {
		return nil
	}
	if err != nil {
		return err
	}
	_, err = file.WriteString(string(reason) + "\n")
	return errors.Join(err, file.Close())
}

// stopReason returns the reason noted in the attempt's folder, if any.
func (f *folders) stopReason(name string) (work.StopReason, bool) {
	b, err := jobfile.Read(f.dir, name+"/"+stopName, maxStopReason+1)
	if err != nil {
		return "", false
	}
	for len(b) > 0 && b[len(b)-1] == '\n' {
		b = b[:len(b)-1]
	}
	return work.StopReason(b), true
}
