package shim

import (
	"golang.org/x/sys/unix"
)

// Processes of one user count together. A job that makes all that there may be takes
// them from other jobs, from its shim, and from the daemon, whose runtime aborts when
// it cannot make a thread. So a job's limit is lower than that of the shim and of the
// daemon, by a reserve: the kernel compares the number of all with the limit of the one
// that forks. Root has no such limit, and without one there is no reserve.

// processReserve is the most that is kept back.
const processReserve = 128

// JobProcesses returns the limit of processes for a job where that of the shim is l,
// and false if there is none.
func JobProcesses(l unix.Rlimit) (unix.Rlimit, bool) {
	if l.Cur == unix.RLIM_INFINITY {
		return l, false
	}
	n := l.Cur - min(processReserve, l.Cur/4)
	return unix.Rlimit{Cur: n, Max: n}, true
}

// limitProcesses gives what is forked next the limit of a job, and returns what must be
// done with the number of the process that was made, 0 if none was.
func (s *shim) limitProcesses() (after func(pid int)) {
	own := s.before.limits[unix.RLIMIT_NPROC]
	limit, bounded := JobProcesses(own)
	if !bounded || unix.Setrlimit(unix.RLIMIT_NPROC, &unix.Rlimit{Cur: limit.Cur, Max: own.Max}) != nil {
		return func(int) {}
	}
	return func(pid int) {
		_ = unix.Setrlimit(unix.RLIMIT_NPROC, &own)
		if pid > 0 {
			// It has the lower limit already; from now on it cannot raise it. What it made
			// and raised in the moment before keeps the higher one.
			_ = unix.Prlimit(pid, unix.RLIMIT_NPROC, &limit, nil)
		}
	}
}
