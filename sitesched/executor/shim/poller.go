package shim

import (
	"os"
	"syscall"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// poller waits for the socket, the job's first process, a timer and signals at
// once. It is an epoll instance inside the one of the Go runtime: waiting parks
// the goroutine instead of blocking a thread in a system call, which again
// keeps the runtime's monitor thread asleep (see sys.go).
type poller struct {
	epoll  int
	file   *os.File // owns epoll
	raw    syscall.RawConn
	fetch  func(fd uintptr) bool
	events [8]unix.EpollEvent
	ready  int

	timer int
	base  time.Time
	armed time.Duration // when the timer fires, since base; zero if it does not
	wake  int           // eventfd, written by the signal goroutine

	// alarm is a timer by the clock of leases: the other one stands still while
	// the machine sleeps.
	alarm   int
	alarmed time.Duration // when it fires, since boot; zero if it does not
}

func newPoller() (*poller, error) {
	epoll, err := unix.EpollCreate1(unix.EPOLL_CLOEXEC)
	if err != nil {
		return nil, os.NewSyscallError("epoll_create1", err)
	}
	p := &poller{epoll: epoll, base: time.Now()}
	if p.timer, err = unix.TimerfdCreate(unix.CLOCK_MONOTONIC, unix.TFD_CLOEXEC|unix.TFD_NONBLOCK); err != nil {
		return nil, os.NewSyscallError("timerfd_create", err)
	}
	if p.alarm, err = unix.TimerfdCreate(unix.CLOCK_BOOTTIME, unix.TFD_CLOEXEC|unix.TFD_NONBLOCK); err != nil {
		return nil, os.NewSyscallError("timerfd_create", err)
	}
	if p.wake, err = unix.Eventfd(0, unix.EFD_CLOEXEC|unix.EFD_NONBLOCK); err != nil {
		return nil, os.NewSyscallError("eventfd", err)
	}
	for _, fd := range []int{p.timer, p.alarm, p.wake} {
		if err := p.add(fd); err != nil {
			return nil, err
		}
	}
	if err := unix.SetNonblock(epoll, true); err != nil {
		return nil, os.NewSyscallError("fcntl", err)
	}
	p.file = os.NewFile(uintptr(epoll), "epoll")
	// A deadline can only be set on a file that the runtime polls. On any other
	// the goroutine would spin, so that is found out here.
	if err := p.file.SetReadDeadline(time.Time{}); err != nil {
		return nil, err
	}
	if p.raw, err = p.file.SyscallConn(); err != nil {
		return nil, err
	}
	p.fetch = p.fetchEvents
	return p, nil
}

func (p *poller) add(fd int) error {
	event := unix.EpollEvent{Events: unix.EPOLLIN, Fd: int32(fd)}
	_, _, errno := syscall.RawSyscall6(syscall.SYS_EPOLL_CTL, uintptr(p.epoll), unix.EPOLL_CTL_ADD,
		uintptr(fd), uintptr(unsafe.Pointer(&event)), 0, 0)
	if errno != 0 {
		return os.NewSyscallError("epoll_ctl", errno)
	}
	return nil
}

func (p *poller) fetchEvents(uintptr) bool {
	n, _, errno := syscall.RawSyscall6(syscall.SYS_EPOLL_PWAIT, uintptr(p.epoll),
		uintptr(unsafe.Pointer(&p.events[0])), uintptr(len(p.events)), 0, 0, 0)
	p.ready = 0
	if errno == 0 {
		p.ready = int(n)
	}
	return p.ready > 0
}

// wait returns when something happened; see [poller.has].
func (p *poller) wait() error { return p.raw.Read(p.fetch) }

// has reports whether fd was ready when wait returned.
func (p *poller) has(fd int) bool {
	for _, event := range p.events[:p.ready] {
		if event.Fd == int32(fd) {
			return true
		}
	}
	return false
}

// now is the time since the shim started. It does not jump.
func (p *poller) now() time.Duration { return time.Since(p.base) }

// wakeAt makes wait return at t or earlier. A timer that is already set to an
// earlier time is left alone, so that a run of short jobs sets it once a second.
func (p *poller) wakeAt(t time.Duration) {
	if p.armed != 0 && p.armed <= t {
		return
	}
	if setTimer(p.timer, 0, max(t-p.now(), time.Microsecond)) {
		p.armed = t
	}
}

// alarmAt is wakeAt by the clock of leases, see package clock.
func (p *poller) alarmAt(t time.Duration) {
	t = max(t, 1)
	if p.alarmed != 0 && p.alarmed <= t {
		return
	}
	if setTimer(p.alarm, unix.TFD_TIMER_ABSTIME, t) {
		p.alarmed = t
	}
}

func setTimer(fd, flags int, t time.Duration) bool {
	spec := unix.ItimerSpec{Value: unix.NsecToTimespec(int64(t))}
	_, _, errno := syscall.RawSyscall6(syscall.SYS_TIMERFD_SETTIME, uintptr(fd), uintptr(flags),
		uintptr(unsafe.Pointer(&spec)), 0, 0, 0)
	return errno == 0
}

// clearTimers clears the timers that have fired.
func (p *poller) clearTimers() {
	if p.has(p.timer) {
		p.drain(p.timer)
		p.armed = 0
	}
	if p.has(p.alarm) {
		p.drain(p.alarm)
		p.alarmed = 0
	}
}

// woken clears the signal goroutine's mark and reports whether it was set.
func (p *poller) woken() bool {
	if !p.has(p.wake) {
		return false
	}
	p.drain(p.wake)
	return true
}

func (p *poller) drain(fd int) {
	var b [8]byte
	_, _, _ = syscall.RawSyscall(syscall.SYS_READ, uintptr(fd), uintptr(unsafe.Pointer(&b[0])), uintptr(len(b)))
}
