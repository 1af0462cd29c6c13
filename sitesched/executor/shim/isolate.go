package shim

import (
	"os"
	"runtime"
	"syscall"

	"golang.org/x/sys/unix"
)

// prepare makes the process what the jobs inherit from it. What is missing is
// reported; only what would make a job go wrong is a fault.
func (s *shim) prepare(m *Setup) Ready {
	s.setup = *m
	ready := Ready{Version: Version}
	if m.Version != Version {
		ready.Fault = "the daemon speaks another version of the shim protocol"
		return ready
	}
	syscall.Umask(0o077)
	if err := os.Chdir("/"); err != nil {
		ready.Fault = err.Error()
		return ready
	}
	if m.Namespaces {
		if err := s.enterNamespaces(); err != nil {
			ready.Fault = err.Error()
			return ready
		}
	} else if err := unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0); err != nil {
		ready.Subreaper = os.NewSyscallError("prctl", err).Error()
	}
	runtime.LockOSThread()
	ready.NoNewPrivileges = explain(renouncePrivileges())
	runtime.UnlockOSThread()
	ready.CoreLimit = explain(forbidCore())
	if m.Background {
		var err error
		s.background, err = newBackground()
		ready.Background = explain(err)
	}
	if err := s.openFiles(); err != nil {
		ready.Fault = err.Error()
	}
	s.before = readConditions()
	_ = unix.SchedGetaffinity(0, &s.cpus)
	return ready
}

func (s *shim) openFiles() error {
	var errno syscall.Errno
	if s.dir, errno = openat(unix.AT_FDCWD, s.setup.Directory, unix.O_DIRECTORY, 0); errno != 0 {
		return &os.PathError{Op: "open", Path: s.setup.Directory, Err: errno}
	}
	if s.null, errno = openat(unix.AT_FDCWD, os.DevNull, unix.O_RDONLY, 0); errno != 0 {
		return &os.PathError{Op: "open", Path: os.DevNull, Err: errno}
	}
	return nil
}

// enterNamespaces gives the jobs a /proc of their own. Mounts of the host keep
// coming in, so that network folders appear and disappear as they do outside.
func (s *shim) enterNamespaces() error {
	if os.Getpid() != 1 {
		return errNotInit
	}
	if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_SLAVE, ""); err != nil {
		return os.NewSyscallError("mount / as slave", err)
	}
	if err := unix.Mount("proc", "/proc", "proc", unix.MS_NOSUID|unix.MS_NODEV|unix.MS_NOEXEC, ""); err != nil {
		return os.NewSyscallError("mount /proc", err)
	}
	var errno syscall.Errno
	if s.mounts, errno = openat(unix.AT_FDCWD, "/proc/self/mounts", unix.O_RDONLY, 0); errno != 0 {
		return os.NewSyscallError("open /proc/self/mounts", errno)
	}
	mountsChanged(s.mounts)
	return nil
}

// shimError is an error without details.
type shimError string

func (e shimError) Error() string { return string(e) }

const errNotInit = shimError("not the first process of a PID namespace")

// renouncePrivileges keeps the thread's children from gaining anything by a
// set-user-id program, and from inheriting what the shim was given to mount
// /proc in a user namespace. Both belong to the thread, so it is done before
// every fork; any thread may be the one that forks.
func renouncePrivileges() error {
	_, _, errno := syscall.RawSyscall6(syscall.SYS_PRCTL, unix.PR_CAP_AMBIENT, unix.PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0, 0)
	if errno != 0 {
		return os.NewSyscallError("clear ambient capabilities", errno)
	}
	_, _, errno = syscall.RawSyscall6(syscall.SYS_PRCTL, unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0, 0)
	if errno != 0 {
		return os.NewSyscallError("set no_new_privs", errno)
	}
	return nil
}

// forbidCore sets the soft limit only: a job that wants a core file can have one.
func forbidCore() error {
	var limit unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_CORE, &limit); err != nil {
		return os.NewSyscallError("getrlimit", err)
	}
	limit.Cur = 0
	return os.NewSyscallError("setrlimit", unix.Setrlimit(unix.RLIMIT_CORE, &limit))
}

func explain(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}

// taint says why the next job must not run in this shim: the last one changed what
// it inherits, or left something in the namespaces. A fresh shim takes its place.
func (s *shim) taint() string {
	changed := s.before.changed()
	switch {
	case changed != "":
		return changed
	case s.mounts < 0:
		return ""
	case mountsChanged(s.mounts):
		return "the mount table changed"
	case leftoverIPC():
		return "the job left System V IPC objects behind"
	}
	return ""
}
