package executor

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"kith/internal/job"
	"kith/sitesched/executor/shim"
	"kith/sitesched/work"
)

func TestConfigRefuses(t *testing.T) {
	dir := t.TempDir()
	for name, c := range map[string]struct {
		config Config
		reason string
	}{
		"no folder":         {Config{}, "must be absolute"},
		"relative":          {Config{Dir: "x"}, "must be absolute"},
		"negative":          {Config{Dir: dir, Processors: -1}, "processors -1"},
		"unknown isolation": {Config{Dir: dir, Isolation: "strong"}, `isolation "strong"`},
		"no shim":           {Config{Dir: dir, ShimPath: "/no/such"}, "/no/such"},
		"not a shim":        {Config{Dir: dir, ShimPath: "/bin/true"}, "protocol"},
		"below a file":      {Config{Dir: "/dev/null/x"}, "/dev/null"},
	} {
		x, err := Open(c.config, func(work.Event) {})
		if err == nil {
			x.Close()
			t.Errorf("%s: opened", name)
		} else if !strings.Contains(err.Error(), c.reason) {
			t.Errorf("%s: %v", name, err)
		}
	}
	// A refused executor keeps no lock on the folder.
	x, err := Open(Config{Dir: dir, ShimPath: shimBinary(t)}, func(work.Event) {})
	if err != nil {
		t.Fatal(err)
	}
	x.Close()
	x.Close()
}

// A program that opens an executor where it should be a shim would start itself
// without end: a test without a TestMain once did.
func TestShimOpensNoExecutor(t *testing.T) {
	args := os.Args
	defer func() { os.Args = args }()
	os.Args = []string{"kith-shim", shimArgument}
	if x, err := Open(Config{Dir: t.TempDir()}, func(work.Event) {}); !errors.Is(err, errNoShimMain) {
		t.Errorf("opened: %v, %v", x, err)
	}
}

func TestCapabilities(t *testing.T) {
	for _, isolation := range isolations(t) {
		b := openBench(t, Config{Isolation: isolation, Processors: 1, NoAffinity: true})
		have := map[string]work.Capability{}
		for _, c := range b.Capabilities() {
			if c.Detail == "" {
				t.Errorf("%s: no detail of %s", isolation, c.Name)
			}
			have[c.Name] = c
		}
		for _, name := range []string{
			CapShim, CapSession, CapPIDNamespace, CapUserNamespace, CapSubreaper, CapNoNewPrivs, CapCoreLimit, CapCgroup,
			CapMemoryLimit, CapOutputLimit, CapAffinity, CapAccounts,
		} {
			if _, ok := have[name]; !ok {
				t.Errorf("%s: nothing said about %s", isolation, name)
			}
		}
		if !have[string(isolation)].Available || have[CapAffinity].Available || have[CapAffinity].Detail != "switched off" {
			t.Errorf("%s: %+v", isolation, have)
		}
		b.Close()
	}
}

func TestKinds(t *testing.T) {
	b := openBench(t, Config{})
	for _, c := range []struct {
		exit shim.Exit
		stop work.StopReason
		want job.OutcomeKind
	}{
		{shim.Exit{}, "", job.Success},
		{shim.Exit{Code: 1}, "", job.Failure},
		{shim.Exit{Signal: 9}, "", job.Failure},
		{shim.Exit{Cause: shim.CauseNotStarted}, "", job.Failure},
		{shim.Exit{Cause: shim.CauseMemory}, "", job.Failure},
		{shim.Exit{Cause: shim.CauseMemory, Signal: 9}, "", job.Failure},
		{shim.Exit{Cause: shim.CauseWalltime}, "", job.Timeout},
		{shim.Exit{Cause: shim.CauseStop}, work.StopCancel, job.Cancel},
		{shim.Exit{Cause: shim.CauseStop}, work.StopSite, job.Cancel},
		{shim.Exit{Cause: shim.CauseStop}, work.StopLease, job.Loss},
		{shim.Exit{Cause: shim.CauseStop, Code: 3}, "", job.Failure},
		{shim.Exit{Cause: shim.CauseLease, Signal: 15}, "", job.Loss},
	} {
		a := &attempt{stopping: c.stop != "", stop: c.stop, folder: "none"}
		if got := b.outcomeOf(a, &c.exit); got.Kind != c.want {
			t.Errorf("%+v is %+v, want kind %d", c.exit, got, c.want)
		}
	}
}

// TestIdleShims keeps as many as wanted, for as long as wanted, and one for good.
func TestIdleShims(t *testing.T) {
	beside(t)
	mounts := mountTable(t)
	b := openBench(t, Config{Processors: 6, KeepIdle: 2, IdleTime: 500 * time.Millisecond})
	for n := 1; n <= 6; n++ {
		b.Start(shell(n, "touch ready; while [ ! -e "+filepath.Join(b.config.Dir, "go")+" ]; do sleep 0.01; done"))
		b.untilFile(number(n), "ready")
	}
	if got := len(shimProcesses(b.config.ShimPath)); got != 6 {
		t.Errorf("%d shims for 6 jobs", got)
	}
	if e := b.run(shell(7, "touch "+filepath.Join(b.config.Dir, "go"))); e.ExitCode != 0 {
		t.Errorf("%+v", e)
	}
	for n := 1; n <= 6; n++ {
		b.wait(number(n))
	}
	eventually(t, "two idle shims", func() bool { return len(shimProcesses(b.config.ShimPath)) <= 2 })
	eventually(t, "one idle shim", func() bool { return len(shimProcesses(b.config.ShimPath)) <= 1 })
	time.Sleep(2 * b.config.IdleTime)
	last := shimProcesses(b.config.ShimPath)
	if e := b.run(shell(8, "exit 3")); e.ExitCode != 3 {
		t.Errorf("%+v", e)
	}
	if mountTable(t) != mounts {
		t.Skip("another process mounted something meanwhile: a shim whose mount table changed runs no second job")
	}
	if now := shimProcesses(b.config.ShimPath); len(last) != 1 || len(now) != 1 || last[0] != now[0] {
		t.Errorf("shim %v was kept, but %v ran the next job", last, now)
	}
	// One that is lost with its job has a successor before there is another job.
	b.Start(shell(9, "touch ready; sleep 60"))
	b.untilFile(number(9), "ready")
	signalProcess(t, last[0], syscall.SIGKILL)
	b.wait(number(9))
	eventually(t, "a new idle shim", func() bool {
		now := shimProcesses(b.config.ShimPath)
		return len(now) == 1 && now[0] != last[0]
	})
}

// mountTable returns all mounts of this machine.
func mountTable(t *testing.T) string {
	t.Helper()
	b, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// TestIdleShimsDie kills all shims that wait for a job. However many they are,
// the next job gets one that lives.
func TestIdleShimsDie(t *testing.T) {
	beside(t)
	b := openBench(t, Config{Processors: 2 * mostTries})
	for n := 1; n <= b.config.Processors; n++ {
		b.Start(shell(n, "touch ready; while [ ! -e "+filepath.Join(b.config.Dir, "go")+" ]; do sleep 0.01; done"))
	}
	for n := 1; n <= b.config.Processors; n++ {
		b.untilFile(number(n), "ready")
	}
	if err := os.WriteFile(filepath.Join(b.config.Dir, "go"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for n := 1; n <= b.config.Processors; n++ {
		b.wait(number(n))
	}
	var idle []int
	eventually(t, "more shims than are tried are idle", func() bool { // those that are being made count once they are
		idle = shimProcesses(b.config.ShimPath)
		return len(idle) > mostTries
	})
	for _, pid := range idle {
		signalProcess(t, pid, syscall.SIGKILL)
	}
	if e := b.run(shell(99, "exit 3")); e.ExitCode != 3 {
		t.Errorf("%+v", e)
	}
}
