package executor

import (
	"errors"
	"fmt"
	"io"
	"os"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"kith/sitesched/executor/shim"
)

// process is a shim as the daemon sees it: a child and a socket to it.
type process struct {
	pid   int
	pidfd *os.File
	conn  *os.File
	in    []byte
	out   []byte
	// status is how the process ended, once wait returned true.
	status unix.WaitStatus
}

// Patience with a shim.
const (
	setupPatience = 20 * time.Second // to get ready, on a busy machine
	sendPatience  = 30 * time.Second // to read what it is sent
	exitPatience  = 3 * time.Second  // to exit after its socket was closed
	killPatience  = 30 * time.Second // for the kernel to end it and its job
)

// launcher starts shims.
type launcher struct {
	path      string
	argv      []string
	isolation Isolation
	dir       string // of the attempts
	log       string // where a crash of a shim is written
	boot      string
	cgroup    string
	maxOutput int64
	// background makes jobs give way to everything else.
	background bool
}

// start starts a shim and waits until it is ready.
func (l *launcher) start() (*process, shim.Ready, error) {
	p, err := l.spawn()
	if err != nil {
		return nil, shim.Ready{}, fmt.Errorf("start the shim: %w", err)
	}
	ready, err := p.setUp(l)
	if err != nil {
		_ = p.end()
		return nil, shim.Ready{}, err
	}
	return p, ready, nil
}

// spawn forks and executes the shim.
func (l *launcher) spawn() (*process, error) {
	null, err := os.OpenFile(os.DevNull, os.O_RDWR, 0)
	if err != nil {
		return nil, err
	}
	defer func() { _ = null.Close() }()
	stderr, err := openShimLog(l.log)
	if err != nil {
		return nil, err
	}
	defer func() { _ = stderr.Close() }()
	sockets, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, os.NewSyscallError("socketpair", err)
	}
	defer func() { _ = unix.Close(sockets[1]) }()

	pidfd := -1
	pid, err := syscall.ForkExec(l.path, l.argv, &syscall.ProcAttr{
		Dir:   "/",
		Env:   shim.RuntimeEnv(),
		Files: []uintptr{null.Fd(), null.Fd(), stderr.Fd(), uintptr(sockets[1])},
		Sys:   l.attributes(&pidfd),
	})
	if err != nil {
		_ = unix.Close(sockets[0])
		if l.isolation != Subreaper && unix.Access(l.path, unix.X_OK) == nil {
			return nil, fmt.Errorf("make the namespaces: %w", err)
		}
		return nil, &os.PathError{Op: "execute", Path: l.path, Err: err}
	}
	if pidfd < 0 {
		_ = unix.Close(sockets[0])
		_ = unix.Kill(pid, unix.SIGKILL)
		_, _ = unix.Wait4(pid, nil, 0, nil)
		return nil, errNoPidfd
	}
	_ = unix.SetNonblock(sockets[0], true)
	_ = unix.SetNonblock(pidfd, true)
	return &process{
		pid:   pid,
		pidfd: os.NewFile(uintptr(pidfd), "pidfd"),
		conn:  os.NewFile(uintptr(sockets[0]), "shim"),
		in:    make([]byte, 0, shim.MaxReply+64),
	}, nil
}

var (
	errNoPidfd    = errors.New("this kernel has no process descriptors; Linux 5.4 or newer is needed")
	errShimSilent = errors.New("the shim does not speak the protocol of this daemon")
)

func (l *launcher) attributes(pidfd *int) *syscall.SysProcAttr {
	attr := &syscall.SysProcAttr{Setsid: true, PidFD: pidfd}
	if l.isolation == Subreaper {
		return attr
	}
	attr.Cloneflags = syscall.CLONE_NEWPID | syscall.CLONE_NEWNS | syscall.CLONE_NEWIPC
	if l.isolation == UserNamespace {
		attr.Cloneflags |= syscall.CLONE_NEWUSER
		uid, gid := unix.Geteuid(), unix.Getegid()
		attr.UidMappings = []syscall.SysProcIDMap{{ContainerID: uid, HostID: uid, Size: 1}}
		attr.GidMappings = []syscall.SysProcIDMap{{ContainerID: gid, HostID: gid, Size: 1}}
		if uid != 0 {
			// Executing the shim would take away what the namespace gave. The shim
			// needs this much to mount /proc, and passes none of it on.
			attr.AmbientCaps = []uintptr{unix.CAP_SYS_ADMIN}
		}
	}
	return attr
}

// setUp tells the new shim who it is and where it works.
func (p *process) setUp(l *launcher) (shim.Ready, error) {
	ticks, ok := startTicks(p.pid)
	if !ok {
		return shim.Ready{}, errShimSilent
	}
	err := p.send(&shim.Setup{
		Version:         shim.Version,
		Directory:       l.dir,
		Process:         shim.Process{PID: p.pid, StartTicks: ticks, Boot: l.boot},
		Namespaces:      l.isolation != Subreaper,
		CgroupDirectory: l.cgroup,
		MaxOutputBytes:  l.maxOutput,
		Background:      l.background,
	})
	if err != nil { // it has exited already
		return shim.Ready{}, fmt.Errorf("%w: %w", errShimSilent, err)
	}
	_ = p.conn.SetReadDeadline(time.Now().Add(setupPatience))
	m, err := p.receive()
	if err != nil {
		return shim.Ready{}, fmt.Errorf("%w: %w", errShimSilent, err)
	}
	ready, ok := m.(*shim.Ready)
	switch {
	case !ok || ready.Version != shim.Version:
		return shim.Ready{}, errShimSilent
	case ready.Fault != "":
		return shim.Ready{}, errors.New(ready.Fault)
	}
	return *ready, nil
}

// send writes m. Other goroutines may send at the same time if they bring a
// buffer of their own; see [process.sendStop].
func (p *process) send(m shim.Message) error {
	p.out = shim.Append(p.out[:0], m)
	err := p.write(p.out)
	if cap(p.out) > 64<<10 {
		p.out = nil
	}
	return err
}

// sendStop may be called by any goroutine.
func (p *process) sendStop(sequence uint64) error {
	return p.write(shim.Append(nil, &shim.Stop{Sequence: sequence}))
}

func (p *process) write(b []byte) error {
	if len(b) > 32<<10 {
		// Only a message that does not fit the socket can block.
		_ = p.conn.SetWriteDeadline(time.Now().Add(sendPatience))
	}
	_, err := p.conn.Write(b)
	return err
}

// receive returns the next message of the shim.
func (p *process) receive() (shim.Message, error) {
	for {
		m, size, err := shim.Cut(p.in, shim.MaxReply)
		if err == nil {
			p.in = p.in[:copy(p.in, p.in[size:])]
			return m, nil
		}
		if !errors.Is(err, shim.ErrShort) {
			return nil, err
		}
		n, err := p.conn.Read(p.in[len(p.in):cap(p.in)])
		if err != nil {
			return nil, err
		}
		if n == 0 {
			return nil, io.EOF
		}
		p.in = p.in[:len(p.in)+n]
	}
}

// end closes the socket, upon which a shim without a job exits, and reaps it.
// One that does not exit is killed.
func (p *process) end() error {
	_ = p.conn.Close()
	defer func() { _ = p.pidfd.Close() }()
	if p.wait(exitPatience) {
		return nil
	}
	p.kill()
	if p.wait(killPatience) {
		return fmt.Errorf("shim %d: %w", p.pid, errStuck)
	}
	return fmt.Errorf("shim %d: %w", p.pid, errUnkillable)
}

var (
	errStuck      = errors.New("did not exit and was killed")
	errUnkillable = errors.New("does not end after SIGKILL")
)

// detach leaves the shim alone with its job.
func (p *process) detach() {
	_ = p.conn.Close()
	_ = p.pidfd.Close()
}

func (p *process) kill() {
	p.onPidfd(func(fd int) { _ = unix.PidfdSendSignal(fd, unix.SIGKILL, nil, 0) })
}

// resume lets a process go on that a signal has stopped.
func (p *process) resume() {
	p.onPidfd(func(fd int) { _ = unix.PidfdSendSignal(fd, unix.SIGCONT, nil, 0) })
}

// wait waits until the process is over, and reaps it. In a PID namespace all
// others of the namespace are over then.
func (p *process) wait(patience time.Duration) bool {
	if p.pidfd.SetReadDeadline(time.Now().Add(patience)) != nil {
		return false
	}
	raw, err := p.pidfd.SyscallConn()
	if err != nil {
		return false
	}
	if raw.Read(func(fd uintptr) bool { return hasEnded(int(fd)) }) != nil {
		return false
	}
	_, _ = unix.Wait4(p.pid, &p.status, unix.WNOHANG, nil)
	return true
}

func (p *process) onPidfd(f func(fd int)) {
	if raw, err := p.pidfd.SyscallConn(); err == nil {
		_ = raw.Control(func(fd uintptr) { f(int(fd)) })
	}
}
