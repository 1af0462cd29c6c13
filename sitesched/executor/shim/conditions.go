package shim

import (
	"encoding/binary"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// conditions are what a job inherits from its shim and another process of the same
// user can change from outside: a job can do so to its own shim, and the next job,
// of whomever, would have to live with it. So a shim compares them after each job.
type conditions struct {
	limits   [limitCount]unix.Rlimit
	score    [8]byte // of the killer of processes when memory runs out, as text
	schedule schedule
}

// limitCount is how many resource limits Linux has.
const limitCount = 16

// schedule is how the kernel treats a thread.
type schedule struct{ nice, policy, io int }

// readConditions reads the limits of this process and the schedule of this thread.
func readConditions() conditions {
	var c conditions
	for i := range c.limits {
		_, _, _ = syscall.RawSyscall6(syscall.SYS_PRLIMIT64, 0, uintptr(i), 0, uintptr(unsafe.Pointer(&c.limits[i])), 0, 0)
	}
	if fd, errno := openat(unix.AT_FDCWD, "/proc/self/oom_score_adj", syscall.O_RDONLY, 0); errno == 0 {
		_, _ = readAt(fd, c.score[:], 0)
		closeFD(fd)
	}
	c.schedule = scheduleOf(0)
	return c
}

func scheduleOf(thread int) schedule {
	const ioprioWhoProcess = 1
	nice, _, _ := syscall.RawSyscall(syscall.SYS_GETPRIORITY, syscall.PRIO_PROCESS, uintptr(thread), 0)
	policy, _, _ := syscall.RawSyscall(unix.SYS_SCHED_GETSCHEDULER, uintptr(thread), 0, 0)
	io, _, _ := syscall.RawSyscall(unix.SYS_IOPRIO_GET, ioprioWhoProcess, uintptr(thread), 0)
	return schedule{int(nice), int(policy), int(io)}
}

// changed says what is not as it was, "" if nothing is.
func (c *conditions) changed() string {
	now := readConditions()
	switch {
	case now.limits != c.limits:
		return "the job changed the limits of its shim"
	case now.score != c.score:
		return "the job changed the out-of-memory score of its shim"
	}
	for _, thread := range threads() {
		if scheduleOf(thread) != c.schedule {
			return "the job changed the priority of its shim"
		}
	}
	return ""
}

// threads lists the threads of this process. Any of them may be the one that forks.
func threads() []int {
	dir, errno := openat(unix.AT_FDCWD, "/proc/self/task", syscall.O_RDONLY|syscall.O_DIRECTORY, 0)
	if errno != 0 {
		return []int{0}
	}
	defer closeFD(dir)
	var list []int
	var buf [1024]byte
	for {
		n, _, errno := syscall.RawSyscall(syscall.SYS_GETDENTS64, uintptr(dir), uintptr(unsafe.Pointer(&buf[0])), uintptr(len(buf)))
		if errno != 0 || n == 0 {
			return list
		}
		const nameAt = 19 // of a struct linux_dirent64
		for b := buf[:n]; len(b) > nameAt; b = b[binary.NativeEndian.Uint16(b[16:]):] {
			id := 0
			for _, digit := range b[nameAt:] {
				if digit < '0' || digit > '9' {
					break
				}
				id = id*10 + int(digit-'0')
			}
			if id != 0 {
				list = append(list, id)
			}
		}
	}
}
