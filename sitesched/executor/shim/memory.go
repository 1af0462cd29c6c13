package shim

import (
	"bytes"
	"os"
	"strconv"
	"syscall"
)

// checkMemory ends a job that uses more memory than it may, and reports whether
// the next look should be soon. Where a cgroup limits the memory, the kernel does that.
//
// The limit is not RLIMIT_AS: that counts address space, of which Go, Java and
// every sanitizer reserve far more than they use, and it counts each process alone.
func (s *shim) checkMemory() bool {
	limit := s.job.run.MemoryBytes
	if limit <= 0 || s.job.cgroup != nil && s.job.cgroup.limitsMemory {
		return false
	}
	pids := s.processes()
	used := residentBytes(pids)
	if used > limit {
		// Pages that processes share were counted once for each.
		used = min(used, proportionalBytes(pids))
	}
	if used > limit {
		s.excess(CauseMemory, memoryReason(limit, used))
	}
	return used > limit/2
}

func memoryReason(limit, used int64) string {
	reason := "out of memory: the job may use " + strconv.FormatInt(limit, 10) + " bytes"
	if used > 0 {
		reason += " and used " + strconv.FormatInt(used, 10)
	}
	return reason
}

// judgeMemory asks the cgroup whether the kernel killed anything.
func (s *shim) judgeMemory(j *running) {
	if j.cgroup == nil || j.exit.Cause != CauseOwn || j.exit.Code == 0 && j.exit.Signal == 0 {
		return
	}
	if j.cgroup.killedForMemory() {
		j.exit.Cause = CauseMemory
		j.exit.Reason = memoryReason(j.run.MemoryBytes, 0)
	}
}

// residentBytes sums the resident sets of pids.
func residentBytes(pids []int) int64 {
	var pages int64
	for _, pid := range pids {
		fields := bytes.Fields(readProc(pid, "statm"))
		if len(fields) > 1 {
			n, _ := strconv.ParseInt(string(fields[1]), 10, 64)
			pages += n
		}
	}
	return pages * int64(syscall.Getpagesize())
}

// proportionalBytes sums the memory of pids, shared pages divided among those
// that share them. The kernel walks every page for it, hence only in doubt.
func proportionalBytes(pids []int) int64 {
	var sum int64
	for _, pid := range pids {
		_, rest, ok := bytes.Cut(readProc(pid, "smaps_rollup"), []byte("\nPss:"))
		fields := bytes.Fields(rest)
		if !ok || len(fields) == 0 {
			// Not readable: a process of another user, or one that just ended.
			sum += residentBytes([]int{pid})
			continue
		}
		kb, _ := strconv.ParseInt(string(fields[0]), 10, 64)
		sum += kb << 10
	}
	return sum
}

func readProc(pid int, name string) []byte {
	b, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/" + name)
	if err != nil {
		return nil
	}
	return b
}
