package executor

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"kith/internal/job"
	"kith/internal/scratch"
	"kith/sitesched/work"
)

// eatVariable makes the test binary a program that uses memory.
const eatVariable = "KITH_TEST_EAT"

// eat uses so many bytes for good and then waits.
func eat(bytes int) {
	hog := make([]byte, bytes)
	for i := 0; i < len(hog); i += 4096 {
		hog[i] = 1
	}
	_ = os.WriteFile("eaten", nil, 0o600)
	time.Sleep(time.Minute)
	runtime.KeepAlive(hog)
}

func TestMemoryLimit(t *testing.T) {
	inEachIsolation(t, func(t *testing.T, c Config) {
		b := openBench(t, c)
		self, err := os.Executable()
		if err != nil {
			t.Fatal(err)
		}
		greedy := work.Spec{
			Attempt: number(1), Argv: []string{self}, Env: map[string]string{eatVariable: "100000000"},
			Processors: 1, MemoryBytes: 60 << 20,
		}
		// Three that are fine alone are too much together.
		together := shell(2, self+" & "+self+" & "+self+" & wait")
		together.Env = map[string]string{eatVariable: "40000000"}
		together.MemoryBytes = 90 << 20
		for _, spec := range []work.Spec{greedy, together} {
			b.Start(spec)
		}
		for _, spec := range []work.Spec{greedy, together} {
			e := b.wait(spec.Attempt)
			if e.Signal != 9 || e.Kind != job.Failure || !strings.HasPrefix(e.Reason, "out of memory: ") {
				t.Errorf("%+v", e)
			}
		}
		modest := greedy
		modest.Attempt, modest.Env = number(3), map[string]string{eatVariable: "5000000"}
		modest.MemoryBytes = 300 << 20
		b.Start(modest)
		b.untilFile(number(3), "eaten")
		time.Sleep(300 * time.Millisecond)
		b.Stop(number(3), work.StopCancel)
		if e := b.wait(number(3)); e.Kind != job.Cancel || e.MaxRSSBytes < 5_000_000 {
			t.Errorf("within its limit: %+v", e)
		}
	})
}

func TestOutputBound(t *testing.T) {
	beside(t)
	const most = 100_000
	b := openBench(t, Config{MaxOutputBytes: most})
	endless := shell(1, "cat /dev/zero >&2")
	b.Start(endless)
	if e := b.wait(number(1)); e.Signal != 9 || !strings.Contains(e.Reason, "larger than the site's bound of 100000 bytes") {
		t.Errorf("endless: %+v", e)
	}
	// Over before anybody looks: the result counts, the file is cut.
	quick := shell(2, "head -c 200000 /dev/zero")
	if e := b.run(quick); e.Kind != job.Success || !strings.Contains(e.Reason, "was cut") {
		t.Errorf("quick: %+v", e)
	}
	exact := shell(3, "head -c 100000 /dev/zero; head -c 100000 /dev/zero >&2; head -c 200000 /dev/zero > file")
	if e := b.run(exact); e.Kind != job.Success || e.Reason != "" {
		t.Errorf("exact: %+v", e)
	}
	for _, path := range []string{b.StderrPath(number(1)), b.StdoutPath(number(2)), b.StdoutPath(number(3)), b.StderrPath(number(3))} {
		if st, err := os.Stat(path); err != nil || st.Size() != most {
			t.Errorf("%s: %v, %v; want %d bytes", path, st.Size(), err, most)
		}
	}
}

func TestDiskFull(t *testing.T) {
	b := openBench(t, Config{Dir: filepath.Join(scratch.NewDisk(t, 1<<20).Dir, "attempts")})
	// A job that fills the disk while others run and while it writes its own end.
	b.Start(shell(1, "touch ready; while [ ! -e go ]; do sleep 0.01; done; exit 3"))
	b.untilFile(number(1), "ready")
	full := b.run(shell(2, "head -c 10000000 /dev/zero > big"))
	if full.Kind != job.Failure || !strings.Contains(full.Reason, "is full") {
		t.Errorf("filling the disk: %+v", full)
	}
	b.Start(shell(3, "echo must not run"))
	if why := b.untilUnable(shell(3, "")); !strings.Contains(why, "no space left on device") {
		t.Errorf("starting on a full disk: %s", why)
	}
	b.Stop(number(4), work.StopCancel)
	if err := os.Remove(filepath.Join(b.WorkPath(number(1)), "ready")); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("x", filepath.Join(b.WorkPath(number(1)), "go")); err != nil {
		t.Fatal(err)
	}
	if err := os.Truncate(filepath.Join(b.WorkPath(number(2)), "big"), 1<<19); err != nil {
		t.Fatal(err)
	}
	b.Stop(number(1), work.StopCancel)
	if e := b.wait(number(1)); e.Kind != job.Cancel {
		t.Errorf("running meanwhile: %+v", e)
	}
	b.Forget(number(2))
	eventually(t, "room again", func() bool { return !exists(b.WorkPath(number(2))) })
	if e := b.run(shell(5, "echo fine")); e.Kind != job.Success {
		t.Errorf("afterwards: %+v", e)
	}
}

// TestEndIsWrittenOnFullDisk has the daemon away while a job ends on a full disk.
func TestEndIsWrittenOnFullDisk(t *testing.T) {
	b := openBench(t, Config{Dir: filepath.Join(scratch.NewDisk(t, 1<<20).Dir, "attempts")})
	b.Start(shell(1, "touch ready; head -c 10000000 /dev/zero > big; sleep 0.2; exit 3"))
	b.untilFile(number(1), "ready")
	b.Close()
	eventually(t, "the shim ends", func() bool { return livingShims(b.config.ShimPath) == 0 })
	if err := os.Remove(filepath.Join(b.WorkPath(number(1)), "big")); err != nil {
		t.Fatal(err)
	}
	b2 := b.reopen()
	b2.Adopt(shell(1, "exit 1"), b.BootID())
	if e := b2.wait(number(1)); e.ExitCode != 3 || !strings.Contains(e.Reason, "is full") {
		t.Errorf("%+v", e)
	}
}

func TestAffinity(t *testing.T) {
	var set unix.CPUSet
	if err := unix.SchedGetaffinity(0, &set); err != nil {
		t.Fatal(err)
	}
	count := set.Count()
	if count < 2 {
		t.Skip("this machine has one processor: with two it is seen that jobs get different ones")
	}
	const script = "grep Cpus_allowed_list /proc/self/status; touch ready; while [ ! -e go ]; do sleep 0.01; done"
	b := openBench(t, Config{Processors: count})
	for n := 1; n <= 2; n++ {
		b.Start(shell(n, script))
		b.untilFile(number(n), "ready")
	}
	// The processors of adopted jobs are taken.
	b2 := b.reopen()
	for n := 1; n <= 2; n++ {
		b2.Adopt(shell(n, script), b.BootID())
		b2.untilStarted(number(n))
	}
	b2.Executor.mu.Lock()
	if got := len(b2.processors.free); got != count-2 {
		t.Errorf("%d processors are free, want %d", got, count-2)
	}
	b2.Executor.mu.Unlock()
	pinned := map[string]bool{}
	for n := 1; n <= 2; n++ {
		pinned[readFile(b.StdoutPath(number(n)))] = true
		if err := os.WriteFile(filepath.Join(b.WorkPath(number(n)), "go"), nil, 0o600); err != nil {
			t.Fatal(err)
		}
		b2.wait(number(n))
	}
	for list := range pinned {
		if strings.ContainsAny(list, ",-") {
			t.Errorf("a job of one processor may use %s", list)
		}
	}
	if len(pinned) != 2 {
		t.Errorf("two jobs share %v", pinned)
	}
	wide := shell(3, "grep Cpus_allowed_list /proc/self/status")
	wide.Processors = count
	b2.run(wide)
	before := readFile(b2.StdoutPath(number(3)))
	b2.Close()
	b3 := openBench(t, Config{Processors: count + 1})
	b3.run(shell(3, "grep Cpus_allowed_list /proc/self/status"))
	if after := readFile(b3.StdoutPath(number(3))); before != after {
		t.Errorf("all processors are %s, unpinned are %s", before, after)
	}
}

func TestProcessorSet(t *testing.T) {
	p := processorSet{free: []int{0, 2, 3, 4, 9}}
	for _, c := range []struct {
		n    int
		want string
	}{{3, "[2 3 4]"}, {2, "[0 9]"}, {1, "[]"}} {
		if got := strings.ReplaceAll(fmt.Sprint(p.reserve(c.n)), "<nil>", "[]"); got != c.want {
			t.Errorf("reserve(%d) = %s, want %s", c.n, got, c.want)
		}
	}
	p.release([]int{9, 2})
	if got := fmt.Sprint(p.take([]int{2, 3})); got != "[2]" || fmt.Sprint(p.free) != "[9]" {
		t.Errorf("took %s, left %v", got, p.free)
	}
	var none processorSet
	if none.reserve(1) != nil || none.take([]int{1}) != nil {
		t.Error("a set without processors hands some out")
	}
}

// TestTaintedShimIsReplaced has a job leave something in the namespaces of its
// shim. The next job must not find it.
func TestTaintedShimIsReplaced(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("only root can mount")
	}
	b := openBench(t, Config{Processors: 1, Isolation: PIDNamespace})
	before := shimProcesses(b.config.ShimPath)
	if e := b.run(shell(1, "mkdir m && mount -t tmpfs none m && touch m/left")); e.ExitCode != 0 {
		t.Skipf("cannot mount in a job: %+v %s", e, readFile(b.StderrPath(number(1))))
	}
	if e := b.run(shell(2, "ls ../../*/work/m/left")); e.ExitCode == 0 {
		t.Errorf("the next job sees the mount of the last: %+v", e)
	}
	after := shimProcesses(b.config.ShimPath)
	if len(before) == 1 && len(after) > 0 && after[0] == before[0] {
		t.Error("the shim with a changed mount table is still used")
	}
	if _, err := os.Stat("/usr/bin/ipcmk"); err != nil {
		t.Skip("no ipcmk on this machine, which makes shared memory")
	}
	if e := b.run(shell(3, "ipcmk -M 4096 && ipcs -m | grep -c 0x")); e.ExitCode != 0 {
		t.Fatalf("%+v", e)
	}
	if e := b.run(shell(4, "ipcs -m | grep 0x")); e.ExitCode == 0 {
		t.Error("the next job sees the shared memory of the last")
	}
}
