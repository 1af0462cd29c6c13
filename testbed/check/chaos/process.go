package chaos

import (
	"bytes"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"

	"kith/cmd/kithd/daemon"
	"kith/internal/jobfile"
	"kith/sitesched/executor/shim"
)

const (
	sigkill = syscall.SIGKILL
	sigstop = syscall.SIGSTOP
	sigcont = syscall.SIGCONT
)

// process names a process for good: its number may be used again, but not with
// the same start.
type process struct {
	pid   int
	ticks uint64 // since boot
}

// lives reports whether it has not ended.
func (p process) lives() bool {
	state, _, ticks, ok := stat(p.pid)
	return ok && ticks == p.ticks && state != 'Z' && state != 'X'
}

// signal sends a signal to it and to no other.
func (p process) signal(s syscall.Signal) bool {
	fd, err := unix.PidfdOpen(p.pid, 0)
	if err != nil {
		return false
	}
	defer unix.Close(fd) //nolint:errcheck // it was only to send
	return p.lives() && unix.PidfdSendSignal(fd, s, nil, 0) == nil
}

// stat reads what the kernel says about a process.
func stat(pid int) (state byte, parent int, ticks uint64, ok bool) {
	text, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	if err != nil {
		return 0, 0, 0, false
	}
	// The fields are counted from the end of the name, which may hold anything.
	f := bytes.Fields(text[bytes.LastIndexByte(text, ')')+1:])
	const startTime = 22 - 3
	if len(f) <= startTime {
		return 0, 0, 0, false
	}
	parent, err1 := strconv.Atoi(string(f[1]))
	ticks, err2 := strconv.ParseUint(string(f[startTime]), 10, 64)
	return f[0][0], parent, ticks, err1 == nil && err2 == nil
}

// pids lists all processes that this one can see.
func pids() []int {
	entries, err := os.ReadDir("/proc")
	if err != nil {
		return nil
	}
	var list []int
	for _, e := range entries {
		if pid, err := strconv.Atoi(e.Name()); err == nil {
			list = append(list, pid)
		}
	}
	return list
}

// childrenOf returns the children of a process.
func childrenOf(parent int) []process {
	if parent == 0 {
		return nil
	}
	// A child belongs to the thread that made it.
	tasks, err := os.ReadDir("/proc/" + strconv.Itoa(parent) + "/task")
	if err != nil {
		return nil
	}
	var text []byte
	for _, t := range tasks {
		if of, err := os.ReadFile("/proc/" + strconv.Itoa(parent) + "/task/" + t.Name() + "/children"); err == nil {
			text = append(append(text, of...), ' ')
		}
	}
	var list []process
	for _, word := range strings.Fields(string(text)) {
		pid, err := strconv.Atoi(word)
		if err != nil {
			continue
		}
		if _, of, ticks, ok := stat(pid); ok && of == parent {
			list = append(list, process{pid, ticks})
		}
	}
	return list
}

// processesUnder returns the processes of jobs whose folders are below dir:
// their environment names them.
func processesUnder(dir string) []process {
	mark := []byte("KITH_WORK_DIR=" + dir + "/")
	var list []process
	for _, pid := range pids() {
		_, _, ticks, ok := stat(pid)
		if !ok {
			continue
		}
		env, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/environ")
		if err == nil && (bytes.HasPrefix(env, mark) || bytes.Contains(env, append([]byte{0}, mark...))) {
			list = append(list, process{pid, ticks})
		}
	}
	return list
}

// running is an attempt with the shim that runs it.
type running struct {
	attempt string // the name of its folder
	shim    process
}

// runningAt reads from the attempts' records what runs at a site, whether or
// not its daemon lives.
func runningAt(data string) []running {
	attempts := filepath.Join(data, daemon.AttemptsFolder)
	folders, err := os.ReadDir(attempts)
	if err != nil {
		return nil
	}
	var list []running
	look := func(text []byte) {
		r, err := shim.ParseRecord(text)
		if err != nil || r.Exit != nil {
			return
		}
		p := process{r.Start.Shim.PID, r.Start.Shim.StartTicks}
		if p.lives() {
			list = append(list, running{attempt: r.Start.Attempt, shim: p})
		}
	}
	for _, folder := range folders {
		// Its job may have put anything there.
		if text, err := jobfile.Read(attempts, filepath.Join(folder.Name(), shim.RecordName), 1<<20); err == nil {
			look(text)
		}
	}
	ledgers, err := os.ReadDir(filepath.Join(attempts, shim.LedgersName))
	if err != nil {
		return list
	}
	for _, ledger := range ledgers {
		text, err := jobfile.Read(attempts, filepath.Join(shim.LedgersName, ledger.Name()), shim.LedgerSize)
		for n := 0; err == nil && len(text) == shim.LedgerSize && n < shim.LedgerEntries; n++ {
			look(text[shim.EntryOffset(n):][:shim.RecordSize])
		}
	}
	return list
}
