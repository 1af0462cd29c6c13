package executor

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"kith/internal/job"
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
		x, err := Open(c.config, func(Event) {})
		if err == nil {
			x.Close()
			t.Errorf("%s: opened", name)
		} else if !strings.Contains(err.Error(), c.reason) {
			t.Errorf("%s: %v", name, err)
		}
	}
	// A refused executor keeps no lock on the folder.
	x, err := Open(Config{Dir: dir, ShimPath: shimBinary(t)}, func(Event) {})
	if err != nil {
		t.Fatal(err)
	}
	x.Close()
	x.Close()
}

func TestCapabilities(t *testing.T) {
	for _, isolation := range isolations(t) {
		b := openBench(t, Config{Isolation: isolation, Processors: 1, NoAffinity: true})
		have := map[string]Capability{}
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
	for _, c := range []struct {
		exit Exit
		want job.OutcomeKind
	}{
		{Exit{}, job.Success},
		{Exit{Code: 1}, job.Failure},
		{Exit{Signal: 9}, job.Failure},
		{Exit{NotStarted: true}, job.Failure},
		{Exit{OutOfMemory: true, Signal: 9}, job.Failure},
		{Exit{TimedOut: true}, job.Timeout},
		{Exit{Stopped: true, NotStarted: true}, job.Cancel},
		{Exit{Stopped: true, TimedOut: true}, job.Cancel},
		{Exit{Stopped: true, StopReason: StopLease}, job.Loss},
		{Exit{Lost: true}, job.Loss},
	} {
		if got := c.exit.Kind(); got != c.want {
			t.Errorf("%+v is kind %d, want %d", c.exit, got, c.want)
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
	if e := b.run(shell(7, "touch "+filepath.Join(b.config.Dir, "go"))); e.Code != 0 {
		t.Errorf("%+v", e)
	}
	for n := 1; n <= 6; n++ {
		b.wait(number(n))
	}
	eventually(t, "two idle shims", func() bool { return len(shimProcesses(b.config.ShimPath)) <= 2 })
	eventually(t, "one idle shim", func() bool { return len(shimProcesses(b.config.ShimPath)) <= 1 })
	time.Sleep(2 * b.config.IdleTime)
	last := shimProcesses(b.config.ShimPath)
	if e := b.run(shell(8, "exit 3")); e.Code != 3 {
		t.Errorf("%+v", e)
	}
	if mountTable(t) != mounts {
		t.Skip("somebody mounted something meanwhile: a shim whose mount table changed runs no second job")
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
	idle := shimProcesses(b.config.ShimPath)
	if len(idle) <= mostTries {
		t.Fatalf("%d idle shims are too few to tell", len(idle))
	}
	for _, pid := range idle {
		signalProcess(t, pid, syscall.SIGKILL)
	}
	if e := b.run(shell(99, "exit 3")); e.Code != 3 {
		t.Errorf("%+v", e)
	}
}
