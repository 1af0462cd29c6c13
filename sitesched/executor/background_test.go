package executor

import (
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// Every process of a job gives way to everything else, also what its first process makes;
// the next job of the same shim too, and the shim itself does not.
//
// It runs beside no other test: where others compute, such jobs hardly do.
func TestBackgroundJobsGiveWay(t *testing.T) {
	b := openBench(t, Config{Background: true, Processors: 2, KeepIdle: 1})
	b.patience = 5 * patience
	// Field 41 of stat is the policy (5 is SCHED_IDLE); ionice prints the class.
	const script = `policy() { sed 's/.*) //' /proc/$1/stat | cut -d' ' -f39; }
policy self; sh -c 'sed "s/.*) //" /proc/self/stat | cut -d" " -f39'; policy 1; ionice; sleep 0.01`
	for n := range 3 {
		if e := b.run(shell(n+1, script)); e.ExitCode != 0 {
			t.Fatalf("%+v: %s", e, readFile(b.Files(number(n+1)).Stderr))
		}
		got := strings.Fields(readFile(b.StdoutPath(number(n + 1))))
		if len(got) != 4 || got[0] != "5" || got[1] != "5" || got[3] != "idle" {
			t.Errorf("job %d, its child, process 1 and the I/O class: %q", n+1, got)
		}
		if b.launcher.isolation != Subreaper && got[2] != "0" {
			t.Errorf("the shim has policy %s", got[2])
		}
	}
	for _, c := range b.Capabilities() {
		if c.Name == CapBackground {
			if !c.Available || !strings.Contains(c.Detail, "SCHED_IDLE") {
				t.Errorf("%+v", c)
			}
			return
		}
	}
	t.Error("the capability is not told")
}

func TestOthersDoNotGiveWay(t *testing.T) {
	t.Parallel()
	b := openBench(t, Config{})
	b.run(shell(1, `sed 's/.*) //' /proc/self/stat | cut -d' ' -f39`))
	if got := strings.TrimSpace(readFile(b.StdoutPath(number(1)))); got != "0" {
		t.Errorf("policy %s", got)
	}
}

// A made-up owner who computes on the processor of a job gets nearly all of it; without the
// setting they share.
func TestOwnerBesideAGuest(t *testing.T) {
	if testing.Short() {
		t.Skip("left out with -short: it takes some seconds of a processor")
	}
	used := func(pid int) float64 {
		b, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
		if err != nil {
			t.Fatal(err)
		}
		fields := strings.Fields(string(b[strings.LastIndexByte(string(b), ')'):]))
		ticks, err := strconv.ParseFloat(fields[12], 64) // utime, field 14
		if err != nil {
			t.Fatal(err)
		}
		return ticks
	}
	share := map[bool]float64{}
	measure := func(t *testing.T, background bool) {
		b := openBench(t, Config{Background: background, Processors: 1})
		b.Start(shell(1, "echo ready > ready; while [ ! -e stop ]; do :; done"))
		b.untilFile(number(1), "ready")
		var guest int
		for _, pid := range jobProcesses(b.config.Dir) {
			guest = pid
		}
		if background { // where sessions are groups, that of the job is a low one soon
			eventually(t, "a low session", func() bool {
				group, err := os.ReadFile("/proc/" + strconv.Itoa(guest) + "/autogroup")
				return err != nil || len(group) == 0 || strings.HasSuffix(string(group), "nice 19\n")
			})
		}
		var set unix.CPUSet
		if err := unix.SchedGetaffinity(guest, &set); err != nil || set.Count() != 1 {
			t.Skipf("the job is not pinned: %d processors, %v", set.Count(), err)
		}
		owner := exec.CommandContext(t.Context(), "/bin/sh", "-c", "while :; do :; done")
		owner.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Pdeathsig: syscall.SIGKILL}
		if err := owner.Start(); err != nil {
			t.Fatal(err)
		}
		if err := unix.SchedSetaffinity(owner.Process.Pid, &set); err != nil {
			t.Fatal(err)
		}
		before, own := used(guest), used(owner.Process.Pid)
		for end := time.Now().Add(patience); used(owner.Process.Pid)-own < 50 && time.Now().Before(end); {
			time.Sleep(20 * time.Millisecond)
		}
		share[background] = (used(guest) - before) / (used(owner.Process.Pid) - own)
		_ = owner.Process.Kill()
		_ = owner.Wait()
		if err := os.WriteFile(b.WorkPath(number(1))+"/stop", nil, 0o600); err != nil {
			t.Fatal(err)
		}
		b.wait(number(1))
	}
	t.Run("in the background", func(t *testing.T) { measure(t, true) })
	t.Run("as usual", func(t *testing.T) { measure(t, false) })
	t.Logf("the guest had %.3f of the owner's time in the background, %.3f without", share[true], share[false])
	if len(share) < 2 {
		t.Skip("jobs are not pinned to processors of their own on this machine, see the subtests")
	}
	if share[true] > 0.2 || share[true] > share[false]/2 {
		t.Errorf("the guest had %.3f of the owner's time in the background, %.3f without", share[true], share[false])
	}
}
