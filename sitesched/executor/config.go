package executor

import (
	"fmt"
	"log/slog"
	"path/filepath"
	"runtime"
	"time"

	"golang.org/x/sys/unix"
)

// Config says how an [Executor] works. Zero values mean the defaults.
type Config struct {
	// Dir holds a folder for every attempt. It must be absolute, on a local disk
	// and used by one executor at a time; it is made if it does not exist.
	// Required.
	Dir string
	// Processors is what the site offers: the sum over the running attempts never
	// exceeds it. Default: the processors of the machine.
	Processors int
	// Grace is the time between SIGTERM and SIGKILL. Default 5 s; negative means
	// SIGKILL at once.
	Grace time.Duration
	// MaxOutputBytes bounds stdout and stderr, each. Default 1 GiB. See DESIGN.md
	// for how far a job can overshoot before it is stopped.
	MaxOutputBytes int64
	// ShimPath is the shim program. Default: kith-shim in the folder of the
	// running program if it is there, else the running program itself, which must
	// then call [ShimMain] first.
	ShimPath string
	// KeepIdle is how many shims without a job are kept for the next one.
	// Default: Processors, at most 64; negative means none.
	KeepIdle int
	// IdleTime is how long such a shim is kept; the last one stays. Default 60 s.
	IdleTime time.Duration
	// Isolation demands one way to keep the processes of a job together; [Open]
	// fails where it does not work. Default: the strongest that works.
	Isolation Isolation
	// NoAffinity leaves the placement of jobs on processors to the kernel. Set it
	// when several sites share one machine: each would count from processor 0.
	NoAffinity bool
	// Background makes jobs give way to everything else that the machine does: its owner
	// comes first. What of it does not work here is in [CapBackground].
	Background bool
	// CgroupParent is a version 2 cgroup without processes of its own in which a
	// cgroup is made per attempt. Default: one below the daemon's own cgroup, if
	// that was delegated to it.
	CgroupParent string
	// Logger defaults to none.
	Logger *slog.Logger
}

// Isolation is how the processes of a job are kept together.
type Isolation string

// The ways, strongest first.
const (
	// PIDNamespace makes the shim the first process of a PID namespace: when it
	// ends, the kernel ends all others. It takes root.
	PIDNamespace Isolation = "pid-namespace"
	// UserNamespace is the same within a user namespace, for other users.
	UserNamespace Isolation = "user-namespace"
	// Subreaper makes the shim adopt what the job leaves behind and kill it one by one.
	Subreaper Isolation = "subreaper"
)

const (
	defaultGrace     = 5 * time.Second
	defaultMaxOutput = 1 << 30
	defaultIdleTime  = 60 * time.Second
	mostKeepIdle     = 64
	// spareShims is how many more shims than processors may live: some are
	// starting or ending.
	spareShims = 16
)

func (c Config) withDefaults() (Config, error) {
	if !filepath.IsAbs(c.Dir) {
		return c, fmt.Errorf("executor directory %q: must be absolute", c.Dir)
	}
	c.Dir = filepath.Clean(c.Dir)
	if c.Processors < 0 {
		return c, fmt.Errorf("processors %d: must not be negative", c.Processors)
	}
	if c.Processors == 0 {
		c.Processors = runtime.NumCPU()
	}
	if c.Grace == 0 {
		c.Grace = defaultGrace
	}
	if c.MaxOutputBytes <= 0 {
		c.MaxOutputBytes = defaultMaxOutput
	}
	if c.KeepIdle == 0 {
		c.KeepIdle = min(c.Processors, mostKeepIdle)
	}
	if c.IdleTime <= 0 {
		c.IdleTime = defaultIdleTime
	}
	switch c.Isolation {
	case "", PIDNamespace, UserNamespace, Subreaper:
	default:
		return c, fmt.Errorf("isolation %q: must be %s, %s or %s", c.Isolation, PIDNamespace, UserNamespace, Subreaper)
	}
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	return c, nil
}

// candidates lists the ways to isolate that are worth trying, best first.
func (c Config) candidates() []Isolation {
	switch {
	case c.Isolation != "":
		return []Isolation{c.Isolation}
	case unix.Geteuid() == 0:
		return []Isolation{PIDNamespace, UserNamespace, Subreaper}
	default:
		return []Isolation{UserNamespace, Subreaper}
	}
}
