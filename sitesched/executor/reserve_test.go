package executor

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"kith/sitesched/work"
)

// reserveVariable makes the test binary run one job under a limit of processes.
const reserveVariable = "KITH_TEST_RESERVE"

// showLimits runs a job that shows its limits, in a process that has one of processes.
func showLimits(dir string) error {
	limit := unix.Rlimit{Cur: 1000, Max: 1000}
	if err := unix.Setrlimit(unix.RLIMIT_NPROC, &limit); err != nil {
		return err
	}
	ended := make(chan struct{}, 8)
	x, err := Open(Config{Dir: dir, ShimPath: os.Getenv(shimVariable)}, func(work.Event) { ended <- struct{}{} })
	if err != nil {
		return err
	}
	defer x.Close()
	x.Start(shell(1, "sleep 0.2; grep 'Max processes' /proc/self/limits; ulimit -p 1000; grep 'Max processes' /proc/self/limits"))
	<-ended
	<-ended
	for _, c := range x.Capabilities() {
		if c.Name == CapProcessLimit {
			fmt.Println(c.Detail)
		}
	}
	fmt.Print(readFile(x.Files(number(1)).Stdout))
	return nil
}

// A job that makes processes until it cannot leaves some for kithd and the shims, which
// cannot do without: the runtime of Go aborts when it cannot make a thread.
func TestJobsLeaveProcessesForTheSite(t *testing.T) {
	beside(t)
	cmd := exec.Command(testBinary(t))
	cmd.Env = append(os.Environ(), reserveVariable+"="+filepath.Join(t.TempDir(), "attempts"), shimVariable+"="+shimBinary(t))
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	n := 0
	for line := range strings.Lines(string(out)) {
		if f := strings.Fields(line); strings.HasPrefix(line, "Max processes") {
			n++
			if soft, _ := strconv.Atoi(f[2]); soft != 872 || f[3] != "872" {
				t.Errorf("the job may have %s and %s processes, expected 872", f[2], f[3])
			}
		}
	}
	if n == 0 {
		t.Errorf("the job shows no limit: %s", out)
	}
}
