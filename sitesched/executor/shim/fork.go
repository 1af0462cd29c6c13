package shim

import (
	"errors"
	"os"
	"runtime"
	"strconv"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// forkPatience bounds the time in which a shim tries to make a process while
// the machine has no room for one.
const forkPatience = 5 * time.Second

// What a shell returns for a program that it cannot run.
const (
	codeNotExecutable = 126
	codeNotFound      = 127
)

// fork makes the first process of the command that m says, with this stdout. On an error, j.exit says
// what happened.
func (s *shim) fork(j *running, m *Run, stdout int) error {
	path, errno := findProgram(m)
	if errno != 0 {
		return j.cannotExecute(path, errno)
	}
	attr := syscall.ProcAttr{
		Dir:   m.Directory,
		Env:   m.Env,
		Files: []uintptr{uintptr(s.null), uintptr(stdout), uintptr(j.err)},
		Sys:   &syscall.SysProcAttr{Setsid: true, PidFD: &j.pidfd},
	}
	if !s.setup.Namespaces {
		// The signal comes when the forking thread dies. The runtime ends no
		// thread before the process ends.
		attr.Sys.Pdeathsig = syscall.SIGKILL
	}
	if a := m.Account; a != nil {
		attr.Sys.Credential = &syscall.Credential{Uid: a.UID, Gid: a.GID, Groups: a.Groups}
	}
	if s.setup.CgroupDirectory != "" {
		if j.cgroup == nil { // else the estimator ran in it
			var err error
			if j.cgroup, err = makeCgroup(s.setup.CgroupDirectory, m); err != nil {
				return j.cannotFork(err)
			}
		}
		attr.Sys.UseCgroupFD, attr.Sys.CgroupFD = true, j.cgroup.fd
	}
	var err error
	if s.background != nil {
		s.background.do(func() { j.pid, err = s.forkHere(path, m, &attr) })
	} else {
		runtime.LockOSThread()
		j.pid, err = s.forkHere(path, m, &attr)
		runtime.UnlockOSThread()
	}
	if err != nil {
		j.pidfd = -1
		return j.explainFork(path, err)
	}
	s.lowerSession(j)
	return nil
}

// forkHere makes the process on this thread, to which what comes before the fork belongs: the
// child has that of the thread that forks.
func (s *shim) forkHere(path string, m *Run, attr *syscall.ProcAttr) (int, error) {
	_ = renouncePrivileges() // reported when the shim was set up
	if len(m.CPUs) > 0 {
		pin(m.CPUs)
	} else {
		s.unpin()
	}
	after := s.limitProcesses()
	pid, err := forkPatiently(func() (int, error) { return syscall.ForkExec(path, m.Argv, attr) })
	after(pid)
	return pid, err
}

func pin(cpus []int) {
	var set unix.CPUSet
	for _, cpu := range cpus {
		set.Set(cpu)
	}
	// A processor that went away is no reason to fail the job.
	_ = unix.SchedSetaffinity(0, &set)
}

// unpin has this thread run where the shim may: not where an earlier job ran, or sent it.
func (s *shim) unpin() {
	var now unix.CPUSet
	// To set what is set already takes the locks of the kernel's scheduler for nothing.
	if unix.SchedGetaffinity(0, &now) != nil || now != s.cpus {
		_ = unix.SchedSetaffinity(0, &s.cpus)
	}
}

// forkPatiently retries fork while the machine is out of processes or memory.
func forkPatiently(fork func() (int, error)) (int, error) {
	pause := 5 * time.Millisecond
	for waited := time.Duration(0); ; waited += pause {
		pid, err := fork()
		if !noRoom(err) || waited >= forkPatience {
			return pid, err
		}
		pause *= 2
		time.Sleep(pause)
	}
}

func noRoom(err error) bool {
	return errors.Is(err, syscall.EAGAIN) || errors.Is(err, syscall.ENOMEM)
}

// noFile reports whether there is no descriptor to be had, or none on the machine.
func noFile(err error) bool {
	return errors.Is(err, syscall.EMFILE) || errors.Is(err, syscall.ENFILE)
}

// explainFork tells a program that cannot be executed from a process that
// cannot be made. The error alone does not say which of the steps failed.
func (j *running) explainFork(path string, err error) error {
	var st syscall.Stat_t
	var errno syscall.Errno
	switch dirErr := syscall.Stat(j.run.Directory, &st); {
	case noRoom(err), noFile(err):
		return j.cannotFork(err)
	case dirErr == nil && st.Mode&syscall.S_IFMT != syscall.S_IFDIR:
		dirErr = syscall.ENOTDIR
		fallthrough
	case dirErr != nil:
		j.exit.Cause, j.exit.Code = CauseExec, codeNotExecutable
		j.exit.Reason = "cannot use the directory " + strconv.Quote(j.run.Directory) + ": " + dirErr.Error()
		return err
	case errors.As(err, &errno):
		return j.cannotExecute(path, errno)
	}
	return j.cannotFork(err)
}

func (j *running) cannotFork(err error) error {
	j.exit.Cause = CauseNotStarted
	j.exit.Reason = "cannot make a process: " + err.Error()
	return err
}

func (j *running) cannotExecute(path string, errno syscall.Errno) error {
	j.exit.Cause, j.exit.Code = CauseExec, codeNotExecutable
	name := strconv.Quote(path)
	switch errno {
	case errNotInPath:
		j.exit.Code = codeNotFound
		j.exit.Reason = "no program " + name + " in the job's PATH"
	case syscall.ENOENT:
		j.exit.Code = codeNotFound
		j.exit.Reason = "no program " + name
		if path[:min(1, len(path))] != "/" {
			path = j.run.Directory + "/" + path
		}
		if _, err := os.Stat(path); err == nil {
			j.exit.Reason = "the interpreter that " + name + " names does not exist"
		}
	case syscall.ENOEXEC:
		j.exit.Reason = name + " is neither a program of this machine nor a script that begins with #!"
	case syscall.EPERM, syscall.EINVAL:
		j.exit.Reason = "cannot execute " + name + " as this user: " + errno.Error()
	default:
		j.exit.Reason = "cannot execute " + name + ": " + errno.Error()
	}
	return errno
}
