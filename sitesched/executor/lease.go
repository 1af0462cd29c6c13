package executor

import (
	"os"
	"path/filepath"
	"time"

	"golang.org/x/sys/unix"

	"kith/internal/job"
	"kith/sitesched/executor/shim"
)

// Lease is until when an attempt may run, by the machine's clock since boot.
// Its shim stops it in time, whether or not the daemon lives; see [SinceBoot].
type Lease = shim.Lease

// SinceBoot reads the clock of leases: the time since the machine was started,
// times of sleep included.
func SinceBoot() time.Duration { return shim.SinceBoot() }

// guardMargin is how long after the end of a lease the executor leaves it to
// the shim to end the job; a shim that does not, because somebody has stopped
// it, is killed.
const guardMargin = time.Second

// Extend prolongs the lease of an attempt that runs under one. A lease never
// becomes shorter.
func (x *Executor) Extend(id job.AttemptID, l Lease) {
	x.mu.Lock()
	defer x.mu.Unlock()
	a := x.attempts[id]
	if x.closed || a == nil || a.phase == ended || !a.spec.Leased || l.Gone <= a.spec.Lease.Gone {
		return
	}
	a.spec.Lease = l
	x.guardLease(a)
	x.errands.post(func() {
		x.mu.Lock()
		latest, over := a.spec.Lease, a.phase == ended
		x.mu.Unlock()
		if over {
			return
		}
		if err := x.folders.writeLease(a.folder, latest); err != nil {
			x.log.Warn("cannot prolong the lease of an attempt", "attempt_id", a.id.String(), "error", err.Error())
		}
	})
}

// writeLease replaces the lease of an attempt in one step.
func (f *folders) writeLease(name string, l Lease) error {
	path := filepath.Join(f.path(name), shim.LeaseName)
	if err := os.WriteFile(path+".new", []byte(l.Text()), 0o600); err != nil {
		return err
	}
	return os.Rename(path+".new", path)
}

// guardLease sets the time at which the shim is killed unless the attempt is
// over. x.mu is held.
func (x *Executor) guardLease(a *attempt) {
	left := a.spec.Lease.Gone - SinceBoot() + guardMargin
	if a.guard == nil {
		a.guard = time.AfterFunc(left, func() { x.enforceLease(a) })
	} else {
		a.guard.Reset(left)
	}
}

// enforceLease kills the shim of an attempt whose lease is over, and with it
// the job.
func (x *Executor) enforceLease(a *attempt) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.closed || a.phase == ended || a.spec.Lease.Gone == 0 {
		return
	}
	if left := a.spec.Lease.Gone - SinceBoot(); left > 0 {
		a.guard.Reset(left + guardMargin)
		return
	}
	switch {
	case a.phase == running && a.worker != nil && a.worker.process != nil:
		x.log.Warn("lease ended and its shim did not end the attempt: shim killed", "attempt_id", a.id.String())
		a.worker.process.kill()
	case a.phase == watched && a.pidfd >= 0:
		x.log.Warn("lease ended and its shim did not end the attempt: shim killed", "attempt_id", a.id.String())
		_ = unix.PidfdSendSignal(a.pidfd, unix.SIGKILL, nil, 0)
	}
}
