package shim

import (
	"bytes"
	"errors"
	"os"
	"strconv"
	"syscall"
	"time"
)

// Bounds of a cgroup.
const (
	quotaPeriodMicros = 100000
	// maxTasks keeps a fork bomb from using up the machine's process numbers.
	maxTasks = 16384
	// removePatience is how long the kernel may take to let go of an empty cgroup.
	removePatience = time.Second
)

// cgroup is the version 2 control group of one attempt.
type cgroup struct {
	path         string
	fd           int
	limitsMemory bool
	// killed is how many processes the kernel had killed for memory before the job's command.
	killed int
}

// makeCgroup makes the group of an attempt below parent. Controllers that the
// parent does not hand down have no files here; their limits are left out.
func makeCgroup(parent string, m *Run) (*cgroup, error) {
	g := &cgroup{path: parent + "/" + m.Folder, fd: -1}
	if err := os.Mkdir(g.path, 0o755); err != nil && !errors.Is(err, syscall.EEXIST) {
		return nil, err
	}
	var err error
	if g.fd, err = syscall.Open(g.path, syscall.O_DIRECTORY|syscall.O_CLOEXEC, 0); err != nil {
		_ = os.Remove(g.path)
		return nil, &os.PathError{Op: "open", Path: g.path, Err: err}
	}
	_ = g.set("pids.max", strconv.Itoa(maxTasks))
	if m.Processors > 0 {
		_ = g.set("cpu.max", strconv.Itoa(m.Processors*quotaPeriodMicros)+" "+strconv.Itoa(quotaPeriodMicros))
	}
	if m.MemoryBytes > 0 {
		g.limitsMemory = g.set("memory.max", strconv.FormatInt(m.MemoryBytes, 10)) == nil
		_ = g.set("memory.swap.max", "0")
		_ = g.set("memory.oom.group", "1")
	}
	return g, nil
}

func (g *cgroup) set(file, value string) error {
	f, err := os.OpenFile(g.path+"/"+file, os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	_, err = f.WriteString(value)
	return errors.Join(err, f.Close())
}

func (g *cgroup) kill() { _ = g.set("cgroup.kill", "1") }

// killedForMemory reports whether the kernel killed a process of the job's command
// because the group had used up its memory.
func (g *cgroup) killedForMemory() bool { return g.memoryKills() > g.killed }

// memoryKills is how many processes of the group the kernel has killed for that.
func (g *cgroup) memoryKills() int {
	events, _ := os.ReadFile(g.path + "/memory.events")
	for line := range bytes.Lines(events) {
		name, count, _ := bytes.Cut(bytes.TrimSpace(line), []byte(" "))
		if string(name) == "oom_kill" {
			n, _ := strconv.Atoi(string(count))
			return n
		}
	}
	return 0
}

// remove removes the group, and says what is wrong if it cannot.
func (g *cgroup) remove() string {
	closeFD(g.fd)
	pause := time.Millisecond
	for waited := time.Duration(0); ; waited += pause {
		err := os.Remove(g.path)
		if err == nil || errors.Is(err, os.ErrNotExist) {
			return ""
		}
		if waited > removePatience {
			return "cannot remove the cgroup: " + err.Error()
		}
		pause *= 2
		time.Sleep(pause)
	}
}
