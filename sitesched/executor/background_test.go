package executor

import (
	"strings"
	"testing"
)

// Every process of a job gives way to everything else, also what its first process makes;
// the next job of the same shim too, and the shim itself does not.
func TestBackgroundJobsGiveWay(t *testing.T) {
	t.Parallel()
	b := openBench(t, Config{Background: true, Processors: 2, KeepIdle: 1})
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
