package executor

import (
	"errors"
	"io"
	"math"
	"os"
	"time"

	"golang.org/x/sys/unix"

	"kith/internal/clock"
	"kith/internal/job"
	"kith/internal/jobfile"
	"kith/sitesched/executor/shim"
	"kith/sitesched/work"
)

// How long the executor leaves it to a shim to end its job; a shim that does
// not, because it was stopped by a signal, is killed.
const (
	// guardMargin counts from the end of a lease.
	guardMargin = 250 * time.Millisecond
	// stopPatience counts from the end of the grace time after a stop. A shim
	// itself gives up on processes that hang in the kernel, and says so, after a
	// minute; it must not be killed before it has.
	stopPatience = 75 * time.Second
	// guardPause is how often the executor looks at most.
	guardPause = 100 * time.Millisecond
)

const never = time.Duration(math.MaxInt64)

// Extend prolongs the lease of an attempt that runs under one. A lease never
// becomes shorter.
func (x *Executor) Extend(id job.AttemptID, l work.Lease) {
	x.mu.Lock()
	defer x.mu.Unlock()
	a := x.attempts[id]
	if x.closed || a == nil || a.phase == ended || !a.spec.Leased || l.Gone <= a.spec.Lease.Gone {
		return
	}
	x.guardLease(a, l)
	x.errands.post(func() {
		x.mu.Lock()
		latest, over := a.spec.Lease, a.phase == ended
		x.mu.Unlock()
		if over {
			return
		}
		err := x.folders.writeLease(a.folder, latest)
		x.mu.Lock()
		over = a.phase == ended // then its folder may be another's by now
		x.mu.Unlock()
		if err != nil && !over {
			x.log.Warn("cannot prolong the lease of an attempt", "attempt_id", a.id.String(), "error", err.Error())
		}
	})
}

// recallLease finds out how long the lease is that an earlier daemon told the
// shim of. It waits for the disk.
func (x *Executor) recallLease(a *attempt) {
	l := x.folders.readLease(a.folder)
	if l == (work.Lease{}) {
		now := clock.SinceBoot() // without the file it has ended, as the shim sees it too
		l = work.Lease{Stop: now, Gone: now}
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	if a.phase != ended && l.Gone > a.spec.Lease.Gone {
		x.guardLease(a, l)
	}
}

// writeLease writes the lease of an attempt into the file that its start made,
// which needs no room on the disk. A reader that comes meanwhile or after a crash
// finds this lease or the one before.
func (f *folders) writeLease(name string, l work.Lease) error {
	f.leasing.Lock()
	defer f.leasing.Unlock()
	file, err := jobfile.Open(f.dir, name+"/"+shim.LeaseName, unix.O_RDWR)
	if errors.Is(err, os.ErrNotExist) {
		return f.replace(name, shim.Lease(l).File())
	}
	if err != nil {
		return err
	}
	defer func() { _ = file.Close() }()
	b, err := io.ReadAll(io.LimitReader(file, shim.LeaseSize+1))
	switch {
	case err != nil:
		return err
	case shim.IsOldLease(b):
		return f.replace(name, shim.Lease(l).OldText())
	case len(b) != shim.LeaseSize:
		return f.replace(name, shim.Lease(l).File())
	}
	_, err = file.WriteAt(shim.Lease(l).Slot(), shim.LeaseOffset(b))
	return err
}

// replace makes or replaces the lease in one step.
func (f *folders) replace(name string, lease []byte) error {
	return jobfile.Replace(f.dir, name+"/"+shim.LeaseName, lease)
}

// readLease returns the lease of an attempt, one that has ended if there is none.
func (f *folders) readLease(name string) work.Lease {
	b, err := jobfile.Read(f.dir, name+"/"+shim.LeaseName, shim.LeaseSize)
	if err != nil {
		return work.Lease{}
	}
	return work.Lease(shim.ParseLease(b))
}

// guardLease gives an attempt a lease, and from now on sees to it that the
// attempt ends with it. x.mu is held.
func (x *Executor) guardLease(a *attempt, l work.Lease) {
	a.spec.Lease, a.guarded = l, true
	x.watcher.alarmAt(a.mustEnd())
}

// mustEnd is when the shim is killed unless it has ended the attempt, by the
// clock of leases.
func (a *attempt) mustEnd() time.Duration {
	at := never
	if a.guarded && a.spec.Lease.Gone < never-guardMargin {
		at = a.spec.Lease.Gone + guardMargin
	}
	if a.stopBy != 0 {
		at = min(at, a.stopBy)
	}
	return at
}

// enforce kills the shims, and with them the jobs, of all attempts that should
// have ended, and goes on looking until they have. It is called by the watcher.
func (x *Executor) enforce() {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.closed {
		return
	}
	now, next := clock.SinceBoot(), never
	for _, a := range x.attempts {
		at := a.mustEnd()
		if a.phase == ended || at == never {
			continue
		}
		if at <= now {
			x.killShim(a)
			at = now + guardMargin
		}
		next = min(next, at)
	}
	if next != never {
		x.watcher.alarmAt(max(next, now+guardPause))
	}
}

// killShim ends the shim of an attempt if it is known which one that is. x.mu is held.
func (x *Executor) killShim(a *attempt) {
	switch {
	case a.phase == starting && a.killed:
		// The next shim that is told to start it sees by itself that it is too late.
		return
	case (a.phase == starting || a.phase == running) && a.worker != nil && a.worker.process != nil:
		a.worker.process.kill()
	case a.phase == watched && a.pidfd >= 0:
		_ = unix.PidfdSendSignal(a.pidfd, unix.SIGKILL, nil, 0)
	default:
		return
	}
	if !a.killed {
		x.log.Warn("shim did not end its attempt in time and was killed", "attempt_id", a.id.String())
	}
	a.killed = true
}
