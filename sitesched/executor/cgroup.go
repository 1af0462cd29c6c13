package executor

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"kith/sitesched/work"
)

// Names of the cgroups that the daemon makes below its own. A cgroup either has
// processes or hands controllers down, so the daemon moves into a leaf.
const (
	daemonGroup  = "daemon"
	attemptGroup = "attempts"
)

var (
	errNotDelegated = errors.New("the daemon's cgroup is not delegated to it")
	errNoCgroup     = errors.New("no version 2 cgroup hierarchy is mounted")
	errNoController = errors.New("this cgroup has no memory controller")
)

// wantedControllers are those with which a job is limited.
func wantedControllers() []string { return []string{"cpu", memoryController, "pids"} }

const memoryController = "memory"

// cgroups says where the attempts get their cgroups, and what those can do.
type cgroups struct {
	dir         string // empty for none
	controllers []string
	reason      string // why there are none
	// lowered are the weights of jobs beside everything else that could be made the least.
	lowered []string
}

// findCgroups looks for a place where the daemon may make cgroups.
func findCgroups(c Config) cgroups {
	g := cgroups{dir: c.CgroupParent}
	var err error
	if g.dir == "" {
		g.dir, g.controllers, err = ownCgroup()
	} else {
		g.controllers, err = handDown(g.dir)
	}
	if err == nil {
		err = tryCgroup(g.dir)
	}
	if err != nil {
		return cgroups{reason: err.Error()}
	}
	if c.Background {
		g.lower()
	}
	return g
}

// lower gives the attempts together the least weight beside everything else. Between groups
// the kernel shares out by weight: what a thread is in its own group does not count there.
func (g *cgroups) lower() {
	for _, w := range []struct{ file, value string }{{"cpu.idle", "1"}, {"cpu.weight", "1"}, {"io.weight", "default 1"}} {
		if os.WriteFile(filepath.Join(g.dir, w.file), []byte(w.value), 0) == nil {
			g.lowered = append(g.lowered, w.file)
		}
	}
}

// belowOwner says by what jobs give way.
func (g *cgroups) belowOwner() string {
	const threads = "jobs run with the policy SCHED_IDLE and in the idle class of disks"
	switch {
	case len(g.lowered) > 0:
		return threads + ", with the least " + strings.Join(g.lowered, ", ") + " of their cgroup"
	case g.dir == "":
		return threads + "; no cgroup (" + g.reason + "): where the machine shares out by cgroups, give the unit of kithd CPUWeight=idle and IOWeight=1"
	}
	return threads + "; the cgroup " + g.dir + " has no weights: where the machine shares out by cgroups, give the unit of kithd CPUWeight=idle and IOWeight=1"
}

func (g *cgroups) capability() work.Capability {
	switch {
	case g.dir == "":
		return work.Capability{Name: CapCgroup, Detail: g.reason}
	case len(g.controllers) == 0:
		return work.Capability{Name: CapCgroup, Available: true, Detail: g.dir + " has no controllers; it only keeps the processes of a job together"}
	default:
		return work.Capability{Name: CapCgroup, Available: true, Detail: g.dir + " limits " + strings.Join(g.controllers, ", ")}
	}
}

func (g *cgroups) limitMemory() bool { return slices.Contains(g.controllers, memoryController) }

// clearCgroup kills what is left in the cgroup of a lost attempt and removes it.
func clearCgroup(dir string) error {
	err := os.WriteFile(filepath.Join(dir, "cgroup.kill"), []byte("1"), 0)
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	for range 50 {
		if err = os.Remove(dir); err == nil || errors.Is(err, os.ErrNotExist) {
			return nil
		}
		time.Sleep(10 * time.Millisecond)
	}
	return err
}

// tryCgroup makes and removes a cgroup.
func tryCgroup(dir string) error {
	probe := filepath.Join(dir, "probe")
	if err := os.Mkdir(probe, 0o755); err != nil && !errors.Is(err, os.ErrExist) {
		return err
	}
	return os.Remove(probe)
}

// handDown enables the wanted controllers for the groups below dir and returns
// those that are.
func handDown(dir string) ([]string, error) {
	b, err := os.ReadFile(filepath.Join(dir, "cgroup.controllers"))
	if err != nil {
		return nil, err
	}
	var enabled []string
	present := strings.Fields(string(b))
	for _, name := range wantedControllers() {
		if !slices.Contains(present, name) {
			continue
		}
		if err := os.WriteFile(filepath.Join(dir, "cgroup.subtree_control"), []byte("+"+name), 0); err != nil {
			return nil, err
		}
		enabled = append(enabled, name)
	}
	return enabled, nil
}

// ownCgroup makes a group for attempts below the daemon's own cgroup, if that
// was delegated to the daemon and has the controllers for it.
func ownCgroup() (string, []string, error) {
	own, err := currentCgroup()
	if err != nil {
		return "", nil, err
	}
	if filepath.Base(own) == daemonGroup {
		// An earlier daemon of this service moved, and its successor was started there.
		own = filepath.Dir(own)
	}
	if !delegated(own) {
		return "", nil, fmt.Errorf("%s: %w", own, errNotDelegated)
	}
	leaf := filepath.Join(own, daemonGroup)
	if err := os.Mkdir(leaf, 0o755); err != nil && !errors.Is(err, os.ErrExist) {
		return "", nil, err
	}
	if err := os.WriteFile(filepath.Join(leaf, "cgroup.procs"), []byte("0"), 0); err != nil {
		return "", nil, err
	}
	if _, err := handDown(own); err != nil {
		return "", nil, err
	}
	dir := filepath.Join(own, attemptGroup)
	if err := os.Mkdir(dir, 0o755); err != nil && !errors.Is(err, os.ErrExist) {
		return "", nil, err
	}
	controllers, err := handDown(dir)
	return dir, controllers, err
}

// delegated reports whether the cgroup's manager left it to the daemon.
// systemd marks such a cgroup; a user's own belongs to the user.
func delegated(dir string) bool {
	var value [8]byte
	for _, mark := range []string{"trusted.delegate", "user.delegate"} {
		if n, err := unix.Getxattr(dir, mark, value[:]); err == nil && string(value[:n]) == "1" {
			return true
		}
	}
	var st unix.Stat_t
	return unix.Stat(dir, &st) == nil && st.Uid != 0 && int(st.Uid) == unix.Geteuid()
}

// currentCgroup returns the folder of the daemon's version 2 cgroup.
func currentCgroup() (string, error) {
	mounts, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		return "", err
	}
	membership, err := os.ReadFile("/proc/self/cgroup")
	if err != nil {
		return "", err
	}
	root, path, ok := parseCgroup(mounts, membership)
	if !ok {
		return "", errNoCgroup
	}
	b, err := os.ReadFile(filepath.Join(root, path, "cgroup.controllers"))
	if err != nil {
		return "", err
	}
	if !slices.Contains(strings.Fields(string(b)), memoryController) {
		return "", fmt.Errorf("%s: %w", filepath.Join(root, path), errNoController)
	}
	return filepath.Join(root, path), nil
}

// parseCgroup finds where the version 2 hierarchy is mounted, and the daemon's
// place in it.
func parseCgroup(mounts, membership []byte) (root, path string, ok bool) {
	for line := range bytes.Lines(mounts) {
		before, after, _ := bytes.Cut(line, []byte(" - "))
		fields := bytes.Fields(before)
		if kind, _, _ := bytes.Cut(after, []byte(" ")); string(kind) == "cgroup2" && len(fields) > 4 {
			root = string(fields[4])
		}
	}
	for line := range bytes.Lines(membership) {
		if p, found := bytes.CutPrefix(line, []byte("0::")); found {
			path = string(bytes.TrimSpace(p))
		}
	}
	return root, path, root != "" && path != ""
}
