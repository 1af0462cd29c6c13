package shim

import (
	"errors"
	"os"
	"runtime"
	"strconv"
	"syscall"

	"golang.org/x/sys/unix"
)

// On a machine whose owner comes first a job gets processor time and disk time that nobody
// else wants. A thread that is as low as that cannot come back without privileges, and what
// it forks is as low from its first instruction. So one thread of the shim goes down for good
// and makes all its jobs' processes, and the shim itself watches them from others.

// The scheduling of input and output, of which the library has no names.
const (
	ioprioWhoProcess = 1
	ioprioClassIdle  = 3
	ioprioClassShift = 13
)

// background runs functions on the low thread, one at a time.
type background struct{ calls, done chan func() }

// newBackground makes the low thread. What it could not be given up is in the error; it
// serves all the same.
func newBackground() (*background, error) {
	b := &background{calls: make(chan func()), done: make(chan func())}
	lowered := make(chan error)
	onOwnThread(func() {
		lowered <- giveWay()
		for f := range b.calls {
			f()
			b.done <- f
		}
	})
	return b, <-lowered
}

// onOwnThread runs f on a thread that is not the first of the process: what that one is, the
// process is said to be. The thread is never given back: the runtime makes no thread from it, and
// it lasts as long as the process, as the children's parent death signal demands.
func onOwnThread(f func()) {
	begun := make(chan struct{})
	var begin func()
	begin = func() {
		runtime.LockOSThread()
		if unix.Gettid() == unix.Getpid() { // held until another thread has taken f on
			go begin()
			<-begun
			runtime.UnlockOSThread()
			return
		}
		close(begun)
		f()
	}
	go begin()
}

// do runs f on the low thread and waits for it.
func (b *background) do(f func()) {
	b.calls <- f
	<-b.done
}

// giveWay puts this thread below everything else of the machine.
func giveWay() error {
	attr := unix.SchedAttr{Size: unix.SizeofSchedAttr, Policy: unix.SCHED_IDLE}
	if err := unix.SchedSetAttr(0, &attr, 0); err != nil {
		return os.NewSyscallError("sched_setattr", err)
	}
	const idle = ioprioClassIdle << ioprioClassShift
	if _, _, errno := syscall.RawSyscall(unix.SYS_IOPRIO_SET, ioprioWhoProcess, 0, idle); errno != 0 {
		return os.NewSyscallError("ioprio_set", errno)
	}
	return nil
}

// lowestNice is the nice value of a session's group that gives it the least.
const lowestNice = "19"

// lowerSession gives the session of a job the least weight among the sessions of the machine:
// where the kernel makes a group of each (sched_autogroup), what a thread is counts within its
// own only. Without privileges a tenth of a second must pass between two such changes on the
// whole machine, so it is tried again when the job is looked at. A job can give its session the
// usual weight back; a cgroup is what it cannot leave.
func (s *shim) lowerSession(j *running) {
	if s.background == nil || j.grouped || j.over {
		return
	}
	f, err := os.OpenFile("/proc/"+strconv.Itoa(j.pid)+"/autogroup", os.O_WRONLY, 0)
	if err == nil {
		_, err = f.WriteString(lowestNice)
		_ = f.Close()
	}
	j.grouped = !errors.Is(err, syscall.EAGAIN)
}
