package shim

import (
	"errors"
	"os"
	"os/signal"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// ConnFD is the descriptor at which a shim finds its socket.
const ConnFD = 3

// RuntimeEnv is the environment of a shim. One processor is what it needs, and
// the Go runtime is quieter with one. It lives long and allocates a few kilobytes
// a job: the garbage is collected at one megabyte instead of four.
func RuntimeEnv() []string {
	return []string{"GOMAXPROCS=1", "GOGC=25", "GOTRACEBACK=single"}
}

// Main is the shim process; it returns the exit code. The socket to the daemon
// is descriptor [ConnFD]. Nothing of the process's own environment reaches a job.
func Main() int {
	s, err := open()
	if err != nil {
		return fail(err)
	}
	for s.step() {
	}
	return 0
}

// fail writes err where a crash of the shim would be written too.
func fail(err error) int {
	_, _ = os.Stderr.WriteString("kith-shim: " + err.Error() + "\n")
	return 1
}

// shim is the state of the process. Only the main goroutine touches it; the
// other one turns signals into events of the poller.
type shim struct {
	setup Setup
	conn  int // socket to the daemon, -1 when it is gone
	in    []byte
	out   []byte
	poll  *poller

	dir    int // the folder of all attempts
	null   int // stdin of every job
	mounts int // the mount table, -1 without a namespace

	ledger     int // -1 before the first one
	ledgerName string

	background *background // the low thread, nil where jobs give way to nobody

	before conditions  // before the first job
	cpus   unix.CPUSet // where it may run itself

	job    *running
	retire bool
}

func open() (*shim, error) {
	closeInherited()
	poll, err := newPoller()
	if err != nil {
		return nil, err
	}
	s := &shim{conn: ConnFD, poll: poll, dir: -1, null: -1, mounts: -1, ledger: -1, in: make([]byte, 0, 4096)}
	unix.CloseOnExec(s.conn)
	if err := poll.add(s.conn); err != nil {
		return nil, err
	}
	s.watchSignals()
	return s, nil
}

// closeInherited closes what the daemon itself inherited and did not mark as its
// own: a job must not have it, and a shim must not hold it for as long as it
// lives. What this process opened is marked close-on-exec.
func closeInherited() {
	for _, fd := range numericNames("/proc/self/fd") {
		if fd <= ConnFD {
			continue
		}
		flags, err := unix.FcntlInt(uintptr(fd), unix.F_GETFD, 0)
		if err == nil && flags&unix.FD_CLOEXEC == 0 {
			closeFD(fd)
		}
	}
}

// watchSignals makes SIGTERM an event. The other signals that could end or stop the
// process are caught and dropped: a job can send them to its shim, and what ends the
// shim makes the job one that was lost. A signal that is caught here has its default
// action in the job, an ignored one would be ignored there too.
func (s *shim) watchSignals() {
	signals := make(chan os.Signal, 8)
	signal.Notify(signals, caught()...)
	one := [8]byte{1}
	go func() {
		for sig := range signals {
			if sig == syscall.SIGTERM {
				_, _ = syscall.Write(s.poll.wake, one[:])
			}
		}
	}()
}

// caught are all signals that would do something to this process, but for the two that
// cannot be caught. The runtime dies of QUIT, ABRT, SEGV and others that are sent, and
// does not when a handler is there for them; of those that it causes itself it dies still.
func caught() []os.Signal {
	harmless := map[syscall.Signal]bool{
		syscall.SIGCHLD: true, syscall.SIGURG: true, syscall.SIGCONT: true, syscall.SIGWINCH: true,
	}
	var list []os.Signal
	for sig := syscall.SIGHUP; sig <= syscall.SIGSYS; sig++ {
		if sig != syscall.SIGKILL && sig != syscall.SIGSTOP && !harmless[sig] {
			list = append(list, sig)
		}
	}
	return list
}

// step waits for something to happen, handles it, and reports whether the
// shim goes on.
func (s *shim) step() bool {
	if s.poll.wait() != nil {
		return false
	}
	if s.poll.woken() {
		if s.job == nil {
			return false
		}
		s.stop(CauseStop, "")
	}
	s.poll.clearTimers()
	s.advance()
	if s.conn >= 0 && s.poll.has(s.conn) {
		s.hear()
	}
	return s.job != nil || s.conn >= 0 && !s.retire
}

// hear reads what the daemon sent. When the daemon is gone, or speaks
// nonsense, the shim goes on alone.
func (s *shim) hear() {
	if len(s.in) == cap(s.in) {
		s.in = append(make([]byte, 0, 4*cap(s.in)), s.in...)
	}
	n, errno := receive(s.conn, s.in[len(s.in):cap(s.in)])
	if errno == syscall.EAGAIN {
		return
	}
	if errno != 0 || n == 0 {
		s.hangUp()
		return
	}
	s.in = s.in[:len(s.in)+n]
	for s.conn >= 0 {
		m, size, err := Cut(s.in, MaxMessage)
		if errors.Is(err, ErrShort) {
			return
		}
		if err != nil {
			s.hangUp()
			return
		}
		s.in = s.in[:copy(s.in, s.in[size:])]
		s.obey(m)
	}
}

func (s *shim) obey(m Message) {
	switch m := m.(type) {
	case *Setup:
		ready := s.prepare(m)
		s.tell(&ready)
		s.retire = ready.Fault != ""
	case *Run:
		s.run(m)
	case *Ask:
		if s.job != nil && s.job.run.Sequence == m.Sequence {
			s.ask(m)
			s.advance()
		}
	case *Stop:
		if s.job != nil && s.job.run.Sequence == m.Sequence {
			s.stop(CauseStop, "")
			s.advance()
		}
	default:
		s.hangUp()
	}
}

// tell sends m to the daemon if it is there.
func (s *shim) tell(m Message) {
	if s.conn < 0 {
		return
	}
	s.out = Append(s.out[:0], m)
	if send(s.conn, s.out) != 0 {
		s.hangUp()
	}
}

func (s *shim) hangUp() {
	closeFD(s.conn)
	s.conn = -1
}

// wallNow is the time for people, in nanoseconds since the Unix epoch.
func wallNow() int64 { return time.Now().UnixNano() }
