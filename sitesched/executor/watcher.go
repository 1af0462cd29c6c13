package executor

import (
	"errors"
	"fmt"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

// watcher waits for the shims of earlier daemons, all of them in one goroutine.
type watcher struct {
	x     *Executor
	epoll int
	wake  int // eventfd
	alarm int // timerfd by the clock of leases

	mu     sync.Mutex
	closed bool
	shims  map[int]*attempt // by pidfd
	again  []*attempt       // to be looked at once more, soon
	rings  time.Duration    // when the alarm does, 0 if it does not
}

// recheckPause is how often a held record is looked at.
const recheckPause = 200 * time.Millisecond

func openWatcher(x *Executor) (*watcher, error) {
	w := &watcher{x: x, shims: make(map[int]*attempt)}
	var err error
	if w.epoll, err = unix.EpollCreate1(unix.EPOLL_CLOEXEC); err != nil {
		return nil, fmt.Errorf("watch shims: %w", err)
	}
	if w.wake, err = unix.Eventfd(0, unix.EFD_CLOEXEC|unix.EFD_NONBLOCK); err != nil {
		return nil, errors.Join(fmt.Errorf("watch shims: %w", err), unix.Close(w.epoll))
	}
	if w.alarm, err = unix.TimerfdCreate(unix.CLOCK_BOOTTIME, unix.TFD_CLOEXEC|unix.TFD_NONBLOCK); err != nil {
		return nil, errors.Join(fmt.Errorf("watch leases: %w", err), unix.Close(w.epoll), unix.Close(w.wake))
	}
	if err := errors.Join(w.register(w.wake), w.register(w.alarm)); err != nil {
		return nil, errors.Join(err, unix.Close(w.epoll), unix.Close(w.wake), unix.Close(w.alarm))
	}
	return w, nil
}

// alarmAt has [Executor.enforce] called at a time by the clock of leases, or
// earlier. That clock goes on while the machine sleeps, which those of the Go
// runtime do not.
func (w *watcher) alarmAt(t time.Duration) {
	t = max(t, 1)
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.closed || t == never || w.rings != 0 && w.rings <= t {
		return
	}
	spec := unix.ItimerSpec{Value: unix.NsecToTimespec(int64(t))}
	if err := unix.TimerfdSettime(w.alarm, unix.TFD_TIMER_ABSTIME, &spec, nil); err != nil {
		w.x.log.Error("cannot watch leases", "error", err)
		return
	}
	w.rings = t
}

// rang clears the alarm.
func (w *watcher) rang() {
	w.mu.Lock()
	defer w.mu.Unlock()
	var b [8]byte
	_, _ = unix.Read(w.alarm, b[:])
	w.rings = 0
}

func (w *watcher) register(fd int) error {
	event := unix.EpollEvent{Events: unix.EPOLLIN, Fd: int32(fd)}
	if err := unix.EpollCtl(w.epoll, unix.EPOLL_CTL_ADD, fd, &event); err != nil {
		return fmt.Errorf("watch shims: %w", err)
	}
	return nil
}

// add watches the shim behind pidfd, which the watcher owns from now on.
func (w *watcher) add(a *attempt, pidfd int) {
	w.mu.Lock()
	if w.closed {
		w.mu.Unlock()
		_ = unix.Close(pidfd)
		return
	}
	w.shims[pidfd] = a
	w.mu.Unlock()
	w.x.mu.Lock()
	a.pidfd = pidfd
	w.x.mu.Unlock()
	if err := w.register(pidfd); err != nil {
		w.x.log.Error("cannot watch a shim", "attempt_id", a.id.String(), "error", err)
		w.drop(pidfd)
		w.recheck(a)
	}
}

// recheck has the attempt settled again after a pause.
func (w *watcher) recheck(a *attempt) {
	w.x.mu.Lock()
	if a.phase != ended {
		a.phase = adopting
	}
	w.x.mu.Unlock()
	w.mu.Lock()
	w.again = append(w.again, a)
	w.mu.Unlock()
	w.poke()
}

func (w *watcher) run() {
	events := make([]unix.EpollEvent, 64)
	settled := time.Now()
	for {
		n, err := unix.EpollWait(w.epoll, events, w.timeout())
		if err != nil && !errors.Is(err, unix.EINTR) {
			w.x.log.Error("cannot watch shims", "error", err)
			return
		}
		for _, event := range events[:max(n, 0)] {
			switch fd := int(event.Fd); fd {
			case w.wake:
				var b [8]byte
				_, _ = unix.Read(w.wake, b[:])
			case w.alarm:
				w.rang()
				w.x.enforce()
			default:
				if a := w.drop(fd); a != nil {
					w.x.settleLater(a, nil)
				}
			}
		}
		if w.finished() {
			return
		}
		if time.Since(settled) >= recheckPause {
			w.settleAgain()
			settled = time.Now()
		}
	}
}

func (w *watcher) timeout() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(w.again) == 0 {
		return -1
	}
	return int(recheckPause.Milliseconds())
}

func (w *watcher) settleAgain() {
	w.mu.Lock()
	again := w.again
	w.again = nil
	w.mu.Unlock()
	for _, a := range again {
		w.x.errands.post(func() { w.x.settle(a) })
	}
}

// drop closes pidfd and returns the attempt it stood for. A shim that happens to
// be a child of this process, because the executor was closed and opened again
// in it, is reaped.
func (w *watcher) drop(pidfd int) *attempt {
	w.mu.Lock()
	a := w.shims[pidfd]
	delete(w.shims, pidfd)
	w.mu.Unlock()
	if a == nil {
		return nil
	}
	w.x.mu.Lock()
	a.pidfd = -1
	w.x.mu.Unlock()
	_ = unix.Waitid(unix.P_PIDFD, pidfd, nil, unix.WEXITED|unix.WNOHANG, nil)
	_ = unix.Close(pidfd)
	return a
}

func (w *watcher) close() {
	w.mu.Lock()
	w.closed = true
	w.mu.Unlock()
	w.poke()
}

// finished releases everything after close.
func (w *watcher) finished() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	if !w.closed {
		return false
	}
	for pidfd := range w.shims {
		_ = unix.Close(pidfd)
	}
	w.shims = nil
	_ = unix.Close(w.epoll)
	_ = unix.Close(w.alarm)
	return true
}

func (w *watcher) poke() {
	_, _ = unix.Write(w.wake, []byte{1, 0, 0, 0, 0, 0, 0, 0})
}

// pids returns the numbers of the shims that are watched.
func (w *watcher) pids() []int {
	w.mu.Lock()
	defer w.mu.Unlock()
	var list []int
	for fd := range w.shims {
		if pid, ok := pidOf(fd); ok {
			list = append(list, pid)
		}
	}
	return list
}
