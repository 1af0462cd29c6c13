package executor

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"golang.org/x/sys/unix"

	"kith/sitesched/executor/shim"
	"kith/sitesched/work"
)

// Names of capabilities.
const (
	CapShim          = "shim"
	CapSession       = "session"
	CapPIDNamespace  = "pid-namespace"
	CapUserNamespace = "user-namespace"
	CapSubreaper     = "subreaper"
	CapNoNewPrivs    = "no-new-privileges"
	CapCoreLimit     = "core-limit"
	CapCgroup        = "cgroup"
	CapMemoryLimit   = "memory-limit"
	CapProcessLimit  = "process-limit"
	CapOutputLimit   = "output-limit"
	CapAffinity      = "cpu-affinity"
	CapAccounts      = "accounts"
	CapBackground    = "background"
)

// Capabilities returns what [Open] found out about this machine.
func (x *Executor) Capabilities() []work.Capability {
	return append([]work.Capability(nil), x.capabilities...)
}

// shimArgument makes a binary act as the shim; see [ShimMain].
const shimArgument = "__kith-shim"

// ShimMain makes the process a shim if args, which are os.Args, say so. A
// binary that opens an Executor calls it before anything else and exits with
// exitCode if isShim.
func ShimMain(args []string) (isShim bool, exitCode int) {
	if !calledAsShim(args) {
		return false, 0
	}
	return true, shim.Main()
}

func calledAsShim(args []string) bool { return len(args) >= 2 && args[1] == shimArgument }

// errNoShimMain keeps a program that forgot [ShimMain] from starting itself
// again and again, each time in the place of a shim.
var errNoShimMain = errors.New("this process was started as a shim: its main, or TestMain, must call executor.ShimMain first")

// program is a binary that can be a shim.
type program struct {
	path string
	argv []string
}

// shimPrograms lists what can be tried, best first.
func shimPrograms(c Config) []program {
	if c.ShimPath != "" {
		return []program{{c.ShimPath, []string{filepath.Base(c.ShimPath)}}}
	}
	var list []program
	if self, err := os.Executable(); err == nil {
		beside := filepath.Join(filepath.Dir(self), "kith-shim")
		if unix.Access(beside, unix.X_OK) == nil {
			list = append(list, program{beside, []string{"kith-shim"}})
		}
	}
	// The link still leads to the running binary when its file was replaced.
	return append(list, program{"/proc/self/exe", []string{"kith-shim", shimArgument}})
}

// probe starts the first shim, in the strongest isolation that works, and takes
// down what works and what does not.
func (x *Executor) probe() (*process, error) {
	l := &x.launcher
	groups := findCgroups(x.config)
	l.cgroup = groups.dir
	refused := map[Isolation]string{}
	var errs []error
	for _, candidate := range shimPrograms(x.config) {
		l.path, l.argv = candidate.path, candidate.argv
		for _, isolation := range x.config.candidates() {
			l.isolation = isolation
			p, ready, err := l.start()
			if err == nil {
				x.describe(ready, refused, &groups)
				return p, nil
			}
			refused[isolation] = err.Error()
			errs = append(errs, fmt.Errorf("%s with %s: %w", candidate.path, isolation, err))
		}
	}
	return nil, errors.Join(errs...)
}

// maxLog is the size above which the log of crashed shims is emptied.
const maxLog = 1 << 20

// openShimLog opens the log of crashed shims. A job can put something else in its place,
// as it runs under the account of kithd: that is removed, and never waited for.
func openShimLog(path string) (*os.File, error) {
	if st, err := os.Lstat(path); err == nil && st.Mode() != 0o600 {
		if err := removeTree(path); err != nil {
			return nil, err
		}
	}
	file, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_APPEND|unix.O_NOFOLLOW|unix.O_NONBLOCK, 0o600)
	if err != nil {
		return nil, err
	}
	if st, err := file.Stat(); err == nil && st.Size() > maxLog {
		_ = file.Truncate(0)
	}
	return file, nil
}

// describe takes down what the first shim told.
func (x *Executor) describe(ready shim.Ready, refused map[Isolation]string, groups *cgroups) {
	l := &x.launcher
	add := func(name string, available bool, detail string) {
		x.capabilities = append(x.capabilities, work.Capability{Name: name, Available: available, Detail: detail})
	}
	if len(l.argv) > 1 {
		add(CapShim, true, "this program itself, as no kith-shim works beside it")
	} else {
		add(CapShim, true, l.path)
	}
	add(CapSession, true, "every job has a session of its own")
	x.capabilities = append(x.capabilities, l.isolation.layers(refused)...)
	add(CapNoNewPrivs, ready.NoNewPrivileges == "", orElse(ready.NoNewPrivileges, "set-user-id programs give a job no rights"))
	add(CapCoreLimit, ready.CoreLimit == "", orElse(ready.CoreLimit, "no core files unless the job asks for them"))
	x.capabilities = append(x.capabilities, groups.capability())
	if groups.limitMemory() {
		add(CapMemoryLimit, true, "by the cgroup's memory.max")
	} else {
		add(CapMemoryLimit, true, "the shim adds up the job's memory, at least once a second, and kills on excess")
	}
	x.capabilities = append(x.capabilities, processLimit(groups))
	add(CapOutputLimit, true, "the shim looks at the size of stdout and stderr, at least once a second, and kills on excess")
	if x.config.Background {
		add(CapBackground, ready.Background == "", orElse(ready.Background, groups.belowOwner()))
	}
	processors, reason := newProcessorSet(x.config)
	x.processors = processors
	add(CapAffinity, reason == "", orElse(reason, "a job is pinned to as many processors as it asked for"))
	x.accounts = unix.Geteuid() == 0 && l.isolation != UserNamespace
	if x.accounts {
		add(CapAccounts, true, "jobs can run as other users")
	} else {
		add(CapAccounts, false, errAccounts.Error())
	}
}

// processLimit says whether a job can use up the processes that the site itself needs.
func processLimit(groups *cgroups) work.Capability {
	own := unix.Rlimit{Cur: unix.RLIM_INFINITY}
	_ = unix.Getrlimit(unix.RLIMIT_NPROC, &own) // a limit that is not known counts as none
	c := work.Capability{Name: CapProcessLimit, Available: true}
	limit, bounded := shim.JobProcesses(own)
	switch {
	case slices.Contains(groups.controllers, "pids"):
		c.Detail = "by the cgroup's pids.max"
	case bounded && unix.Geteuid() != 0:
		c.Detail = fmt.Sprintf("all jobs together: %d of the %d that this user may have; the rest stay for the site itself", limit.Cur, own.Cur)
	default:
		c.Available = false
		c.Detail = "no cgroup with a pids controller, and this user has no limit: a job can use up all processes, and kithd ends if it cannot make a thread"
	}
	return c
}

// layers describes the ways to isolate when used is the one that is used.
func (used Isolation) layers(refused map[Isolation]string) []work.Capability {
	list := []work.Capability{
		{Name: CapPIDNamespace, Available: used == PIDNamespace, Detail: "the kernel ends all processes of a job with its shim; /proc shows the job alone"},
		{Name: CapUserNamespace, Available: used == UserNamespace, Detail: "a PID namespace without root; other users' files show as nobody's"},
		{Name: CapSubreaper, Available: used == Subreaper, Detail: "the shim adopts and kills what the job leaves behind; a killed shim takes the first process along"},
	}
	for i := range list {
		if !list[i].Available {
			// The names of the layers are those of the isolations.
			list[i].Detail = orElse(refused[Isolation(list[i].Name)], "not used: "+string(used)+" is")
		}
	}
	return list
}

func orElse(s, other string) string {
	if s != "" {
		return s
	}
	return other
}
