package shim

import (
	"os"
	"strconv"
	"syscall"
	"time"

	"kith/internal/clock"
)

// How often a shim looks at what no event tells of.
const (
	// Memory and output are looked at soon after the start, then less often.
	firstCheck = 100 * time.Millisecond
	slowCheck  = time.Second
	// Processes other than the first one end without an event. The pauses double.
	firstLook = time.Millisecond
	slowLook  = 100 * time.Millisecond
	// giveUp is how long SIGKILL may take. Only a process that hangs inside the
	// kernel, on a dead network disk for example, survives it for that long.
	giveUp = 60 * time.Second
	// askLook is how often it is looked at most whether a job that was asked to save has done so.
	askLook = 50 * time.Millisecond
)

// advance collects processes that ended and does what is due.
func (s *shim) advance() {
	j := s.job
	if j == nil {
		return
	}
	if e := j.estimate; e != nil && e.pipe >= 0 && s.poll.has(e.pipe) {
		s.hearEstimator()
	}
	if s.reap() {
		if j.estimate == nil {
			s.finish()
		} else {
			s.estimated()
		}
		return
	}
	now := s.poll.now()
	s.tellStart(now)
	switch j.phase {
	case watching:
		switch {
		case j.over:
			// Whatever the job left running ends with it.
			s.kill()
		case now >= j.deadline:
			s.stop(CauseWalltime, "the walltime of "+time.Duration(j.run.WalltimeNanos).String()+" is used up")
		case j.run.Leased && clock.SinceBoot() >= j.leaseLook:
			s.checkLease()
		case j.estimate != nil && now >= j.estimate.until:
			s.stopEstimator("its time was over, " + time.Duration(j.run.Estimate.Nanos).String())
		case now >= j.nextCheck:
			s.check(now)
		}
	case asked:
		switch {
		case j.over:
			s.kill()
		case j.run.Leased && clock.SinceBoot() >= j.leaseLook:
			s.checkLease()
		case now >= j.nextCheck:
			s.check(now)
		default:
			s.awaitAnswer(now)
		}
	case stopping:
		if now >= j.killAt || s.leaseGone() {
			s.kill()
		} else if now >= j.look {
			j.later(now)
		}
	case killing:
		switch {
		case now >= j.giveUpAt:
			s.abandon()
			return
		case now >= j.look:
			// A process may have been forked while the others were being killed.
			s.signalAll(syscall.SIGKILL)
			j.later(now)
		}
	}
	if s.job != nil {
		s.wakeWhenDue()
	}
}

// wakeWhenDue has the poller wake the shim when the job needs attention next.
func (s *shim) wakeWhenDue() {
	s.poll.wakeAt(s.job.due())
	if s.job.run.Leased && s.job.phase != killing {
		s.poll.alarmAt(s.job.leaseLook)
	}
}

// later sets the next look.
func (j *running) later(now time.Duration) {
	j.interval = min(2*j.interval, slowLook)
	j.look = now + j.interval
}

// reap collects what ended and reports whether nothing is left: a shim has
// adopted every process whose parent died, so it has children as long as any
// process of the job lives.
func (s *shim) reap() bool {
	j := s.job
	for {
		pid, status, errno := waitAny(&j.usage)
		if errno == syscall.ECHILD {
			// Another process has collected the first one: that cannot happen, but must not hang.
			j.over = true
			return true
		}
		if pid <= 0 {
			return false
		}
		j.exit.CPUNanos += j.usage.Utime.Nano() + j.usage.Stime.Nano()
		j.exit.MaxRSSBytes = max(j.exit.MaxRSSBytes, j.usage.Maxrss<<10)
		if pid == j.pid {
			j.ended(status)
		}
	}
}

// ended takes down how the first process ended.
func (j *running) ended(status syscall.WaitStatus) {
	j.over = true
	j.exit.End = wallNow()
	if j.phase == asked {
		j.exit.Cause = CauseAsked
	}
	if status.Signaled() {
		j.exit.Signal = int(status.Signal())
	} else {
		j.exit.Code = status.ExitStatus()
	}
	closeFD(j.pidfd)
	j.pidfd = -1
}

// stop begins the end of the job. Only the first cause counts.
func (s *shim) stop(cause Cause, reason string) {
	j := s.job
	if j.estimate != nil {
		s.stopBoth(cause, reason)
		return
	}
	if j.phase > asked || j.over {
		return
	}
	j.exit.Cause, j.exit.Reason = cause, reason
	j.phase = stopping
	now := s.poll.now()
	j.killAt = now + time.Duration(j.run.GraceNanos)
	j.interval = firstLook
	j.look = now + j.interval
	j.leaseLook = 0 // until now it was about the time to stop
	if j.run.GraceNanos <= 0 || s.leaseGone() {
		s.kill()
	} else {
		s.signalAll(syscall.SIGTERM)
		s.signalAll(syscall.SIGCONT)
	}
	s.wakeWhenDue()
}

// stopBoth ends a job whose estimator runs, or is just being ended: it has done nothing that could be
// saved, and its command is not executed any more.
func (s *shim) stopBoth(cause Cause, reason string) {
	if j := s.job; j.exit.Cause == CauseOwn {
		j.exit.Cause, j.exit.Reason = cause, reason
	}
	s.kill()
}

// kill ends every process of the job. It is repeated until none is left.
func (s *shim) kill() {
	j := s.job
	now := s.poll.now()
	if j.phase != killing {
		j.phase = killing
		j.giveUpAt = now + giveUp
		j.interval = firstLook
	}
	j.look = now + j.interval
	s.signalAll(syscall.SIGKILL)
	s.wakeWhenDue()
}

// abandon gives up on processes that SIGKILL does not end.
func (s *shim) abandon() {
	j := s.job
	if !j.over {
		j.over = true
		j.exit.End = wallNow()
		j.exit.Signal = int(syscall.SIGKILL)
	}
	j.exit.Reason = "a process of the job hangs in the kernel and cannot be killed; " + j.exit.Reason
	s.retire = true
	s.finish()
}

// signalAll signals every process of the job.
func (s *shim) signalAll(sig syscall.Signal) {
	if s.setup.Namespaces {
		// From the first process of a PID namespace this means: all others in it.
		_ = syscall.Kill(-1, sig)
		return
	}
	if sig == syscall.SIGKILL && s.job.cgroup != nil {
		s.job.cgroup.kill()
	}
	for _, pid := range descendants(os.Getpid()) {
		_ = syscall.Kill(pid, sig)
	}
}

// check looks at memory and output.
func (s *shim) check(now time.Duration) {
	j := s.job
	j.interval = min(2*j.interval, slowCheck)
	// The lease ends when its file is taken away.
	s.checkLease()
	s.lookForAsk()
	s.lowerSession(j)
	if s.checkMemory() || s.checkOutput() {
		j.interval = firstCheck
	}
	j.nextCheck = now + j.interval
}

// outputSize is the size of the larger stream.
func (j *running) outputSize() int64 {
	out, _ := fileSize(j.out)
	err, _ := fileSize(j.err)
	return max(out, err)
}

// checkOutput ends a job that wrote too much, and reports whether the next look should be soon.
func (s *shim) checkOutput() bool {
	size, most := s.job.outputSize(), s.setup.MaxOutputBytes
	if size > most {
		s.excess(CauseOutput, s.outputReason())
	}
	return size > most/2
}

func (s *shim) outputReason() string {
	return "stdout or stderr is larger than the site's bound of " + strconv.FormatInt(s.setup.MaxOutputBytes, 10) + " bytes"
}

// excess ends the job at once: what uses too much must not go on doing so
// while it is asked politely.
func (s *shim) excess(cause Cause, reason string) {
	switch j := s.job; {
	case j.estimate != nil && cause == CauseMemory:
		s.stopEstimator(reason)
		return
	case j.estimate != nil:
		s.stopBoth(cause, reason)
		return
	case j.phase > asked || j.over:
		return
	}
	s.job.exit.Cause, s.job.exit.Reason = cause, reason
	s.kill()
}

// judgeOutput cuts the streams to their bound once nothing writes to them any more.
func (s *shim) judgeOutput(j *running) {
	most := s.setup.MaxOutputBytes
	if j.outputSize() <= most {
		return
	}
	for _, fd := range []int{j.out, j.err} {
		if size, _ := fileSize(fd); size > most {
			_ = syscall.Ftruncate(fd, most)
		}
	}
	if j.exit.Reason == "" {
		j.exit.Reason = s.outputReason() + " and was cut"
	}
}
