package shim

import (
	"encoding/binary"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// conditions are what a job inherits from its shim and another process of the same
// user can change from outside: a job can do so to its own shim, and the next job, which
// may be another user's, would inherit it. So a shim compares them after each job.
type conditions struct {
	inherited
	// Files of /proc that stay open, as opening costs more than all the rest; -1 without.
	scoreFile, tasks int
	// threads of this process and the links of their folder when they were listed. The
	// folder has two more links than there are threads, and the runtime ends no thread:
	// while the links are the same the list is. counted says that this kernel does so.
	threads []int
	links   uint64
	counted bool
}

// inherited is what is compared.
type inherited struct {
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
	c.scoreFile = openOr("/proc/self/oom_score_adj", syscall.O_RDONLY)
	c.tasks = openOr("/proc/self/task", syscall.O_RDONLY|syscall.O_DIRECTORY)
	c.inherited = c.read()
	c.list()
	return c
}

// openOr opens a file, and returns -1 if it cannot.
func openOr(path string, flags int) int {
	fd, errno := openat(unix.AT_FDCWD, path, flags, 0)
	if errno != 0 {
		return -1
	}
	return fd
}

func (c *conditions) read() (now inherited) {
	for i := range now.limits {
		// prlimit, which can ask for those of others too, takes twice as long.
		_, _, _ = syscall.RawSyscall(unix.SYS_GETRLIMIT, uintptr(i), uintptr(unsafe.Pointer(&now.limits[i])), 0)
	}
	if c.scoreFile >= 0 {
		_, _ = readAt(c.scoreFile, now.score[:], 0)
	}
	now.schedule = scheduleOf(0)
	return now
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
	now := c.read()
	switch {
	case now.limits != c.limits:
		return "the job changed the limits of its shim"
	case now.score != c.score:
		return "the job changed the out-of-memory score of its shim"
	}
	if !c.counted || links(c.tasks) != c.links {
		c.list()
	}
	for _, thread := range c.threads {
		if scheduleOf(thread) != c.schedule {
			return "the job changed the priority of its shim"
		}
	}
	return ""
}

// list lists the threads of this process. Any of them may be the one that forks.
func (c *conditions) list() {
	c.counted, c.threads = false, c.threads[:0]
	if c.tasks < 0 {
		c.threads = append(c.threads, 0)
		return
	}
	c.links = links(c.tasks)
	_, _, _ = syscall.RawSyscall(syscall.SYS_LSEEK, uintptr(c.tasks), 0, 0)
	var buf [1024]byte
	for {
		n, _, errno := syscall.RawSyscall(syscall.SYS_GETDENTS64, uintptr(c.tasks), uintptr(unsafe.Pointer(&buf[0])), uintptr(len(buf)))
		if errno != 0 || n == 0 {
			c.counted = errno == 0 && c.links == uint64(len(c.threads))+2
			return
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
				c.threads = append(c.threads, id)
			}
		}
	}
}
