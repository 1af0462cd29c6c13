package executor

import (
	"bytes"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"golang.org/x/sys/unix"
)

// sweepPatience bounds how long the processes of a lost attempt may take to end.
const sweepPatience = 5 * time.Second

// sweep kills what a lost attempt may have left behind: a shim that died without
// a PID namespace took only the job's first process along, and one whose record was
// removed runs on unknown. The others are
// recognised by their environment, which names the attempt's work folder; one
// that cleared its environment escapes.
func (x *Executor) sweep(name string) {
	if group := x.launcher.cgroup; group != "" {
		if err := clearCgroup(filepath.Join(group, name)); err != nil {
			x.log.Error("cannot clear the cgroup of a lost attempt", "folder", name, "error", err)
		}
	}
	for deadline := time.Now().Add(sweepPatience); ; time.Sleep(10 * time.Millisecond) {
		found := x.marked(name)
		for _, pid := range found {
			killMarked(pid, x.mark(name))
		}
		if len(found) == 0 {
			return
		}
		if time.Now().After(deadline) {
			x.log.Error("processes of a lost attempt do not end", "folder", name, "count", len(found))
			return
		}
	}
}

// mark is the variable by which the processes of an attempt are known.
func (x *Executor) mark(name string) []byte {
	return []byte(workVariable + "=" + filepath.Join(x.folders.path(name), workName) + "\x00")
}

// marked lists the processes of an attempt.
func (x *Executor) marked(name string) []int {
	mark := append([]byte{0}, x.mark(name)...)
	var list []int
	for _, pid := range processes() {
		env, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/environ")
		if err == nil && bytes.Contains(append([]byte{0}, env...), mark) {
			list = append(list, pid)
		}
	}
	return list
}

// killMarked kills pid if it still is the process that carries the mark.
func killMarked(pid int, mark []byte) {
	fd, err := unix.PidfdOpen(pid, 0)
	if err != nil {
		return
	}
	defer func() { _ = unix.Close(fd) }()
	env, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/environ")
	if err == nil && bytes.Contains(env, mark) {
		_ = unix.PidfdSendSignal(fd, unix.SIGKILL, nil, 0)
	}
}

// processes lists all processes that this one can see.
func processes() []int {
	proc, err := os.Open("/proc")
	if err != nil {
		return nil
	}
	defer func() { _ = proc.Close() }()
	names, _ := proc.Readdirnames(-1)
	var pids []int
	for _, name := range names {
		if pid, err := strconv.Atoi(name); err == nil {
			pids = append(pids, pid)
		}
	}
	return pids
}
