package shim

import (
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// The calls of this file go to the kernel past the Go scheduler. An ordinary
// system call wakes the runtime's monitor thread, which then ticks every 20 µs
// as long as the process is busy; with a few shims at work that cost as much as
// the jobs. What is called here does not wait for anything but the disk, and
// nothing else in a shim wants to run meanwhile.

func openat(dir int, path string, flags int, mode uint32) (int, syscall.Errno) {
	p, err := syscall.BytePtrFromString(path)
	if err != nil {
		return -1, syscall.EINVAL
	}
	for {
		fd, _, errno := syscall.RawSyscall6(syscall.SYS_OPENAT, uintptr(dir), uintptr(unsafe.Pointer(p)),
			uintptr(flags|unix.O_CLOEXEC), uintptr(mode), 0, 0)
		if errno != syscall.EINTR {
			return int(fd), errno
		}
	}
}

func closeFD(fd int) {
	if fd >= 0 {
		_, _, _ = syscall.RawSyscall(syscall.SYS_CLOSE, uintptr(fd), 0, 0)
	}
}

// takeLock reports whether it got an exclusive lock on the open file without waiting.
func takeLock(fd int) syscall.Errno {
	_, _, errno := syscall.RawSyscall(syscall.SYS_FLOCK, uintptr(fd), unix.LOCK_EX|unix.LOCK_NB, 0)
	return errno
}

func fileSize(fd int) (int64, syscall.Errno) {
	var st syscall.Stat_t
	_, _, errno := syscall.RawSyscall(syscall.SYS_FSTAT, uintptr(fd), uintptr(unsafe.Pointer(&st)), 0)
	return st.Size, errno
}

// isRegular reports whether fd is a regular file.
func isRegular(fd int) bool {
	var st syscall.Stat_t
	_, _, errno := syscall.RawSyscall(syscall.SYS_FSTAT, uintptr(fd), uintptr(unsafe.Pointer(&st)), 0)
	return errno == 0 && st.Mode&syscall.S_IFMT == syscall.S_IFREG
}

// links returns how many links the file behind fd has, 0 if that is not known.
func links(fd int) uint64 {
	var st syscall.Stat_t
	_, _, errno := syscall.RawSyscall(syscall.SYS_FSTAT, uintptr(fd), uintptr(unsafe.Pointer(&st)), 0)
	if errno != 0 {
		return 0
	}
	return uint64(st.Nlink) //nolint:unconvert // Its type differs between machines.
}

// waitAsUsual takes O_NONBLOCK from a file that was opened with these flags and with
// it: a job must not find it set on its streams. A regular file never waits either way.
func waitAsUsual(fd, flags int) bool {
	_, _, errno := syscall.RawSyscall(syscall.SYS_FCNTL, uintptr(fd), syscall.F_SETFL, uintptr(flags))
	return errno == 0
}

// readAt reads what one call gives.
func readAt(fd int, b []byte, offset int64) (int, syscall.Errno) {
	for {
		n, _, errno := syscall.RawSyscall6(syscall.SYS_PREAD64, uintptr(fd), uintptr(unsafe.Pointer(&b[0])),
			uintptr(len(b)), uintptr(offset), 0, 0)
		if errno == 0 {
			return int(n), 0
		}
		if errno != syscall.EINTR {
			return 0, errno
		}
	}
}

// writeAt writes all of b or fails.
func writeAt(fd int, b []byte, offset int64) syscall.Errno {
	for len(b) > 0 {
		n, _, errno := syscall.RawSyscall6(syscall.SYS_PWRITE64, uintptr(fd), uintptr(unsafe.Pointer(&b[0])),
			uintptr(len(b)), uintptr(offset), 0, 0)
		switch {
		case errno == syscall.EINTR:
			continue
		case errno != 0:
			return errno
		case n == 0:
			return syscall.EIO
		}
		b, offset = b[n:], offset+int64(n)
	}
	return 0
}

// receive reads what is there.
func receive(fd int, b []byte) (int, syscall.Errno) {
	for {
		n, _, errno := syscall.RawSyscall6(syscall.SYS_RECVFROM, uintptr(fd), uintptr(unsafe.Pointer(&b[0])),
			uintptr(len(b)), unix.MSG_DONTWAIT, 0, 0)
		if errno != syscall.EINTR {
			return int(n), errno
		}
	}
}

// readSome reads what is there of a pipe.
func readSome(fd int, b []byte) (int, syscall.Errno) {
	for {
		n, _, errno := syscall.RawSyscall(syscall.SYS_READ, uintptr(fd), uintptr(unsafe.Pointer(&b[0])), uintptr(len(b)))
		if errno != syscall.EINTR {
			return int(n), errno
		}
	}
}

// send writes all of b. Replies are small and the daemon reads them, so the
// socket has room; if not, the daemon hangs and the record is what counts.
func send(fd int, b []byte) syscall.Errno {
	for len(b) > 0 {
		n, _, errno := syscall.RawSyscall6(syscall.SYS_SENDTO, uintptr(fd), uintptr(unsafe.Pointer(&b[0])),
			uintptr(len(b)), unix.MSG_NOSIGNAL|unix.MSG_DONTWAIT, 0, 0)
		if errno == syscall.EINTR {
			continue
		}
		if errno != 0 {
			return errno
		}
		b = b[n:]
	}
	return 0
}

// waitAny collects one ended child, whatever made it. The number is zero while
// children live, and the error ECHILD when there are none.
func waitAny(usage *syscall.Rusage) (int, syscall.WaitStatus, syscall.Errno) {
	var status uint32
	any := -1
	for {
		pid, _, errno := syscall.RawSyscall6(syscall.SYS_WAIT4, uintptr(any), uintptr(unsafe.Pointer(&status)),
			syscall.WNOHANG|syscall.WALL, uintptr(unsafe.Pointer(usage)), 0, 0)
		if errno != syscall.EINTR {
			return int(pid), syscall.WaitStatus(status), errno
		}
	}
}

// mountsChanged reports whether the mount table behind fd (an open
// /proc/self/mounts) changed since the last call.
func mountsChanged(fd int) bool {
	poll := unix.PollFd{Fd: int32(fd), Events: unix.POLLPRI}
	var none unix.Timespec
	n, _, errno := syscall.RawSyscall6(syscall.SYS_PPOLL, uintptr(unsafe.Pointer(&poll)), 1,
		uintptr(unsafe.Pointer(&none)), 0, 0, 0)
	return errno != 0 || n > 0
}
