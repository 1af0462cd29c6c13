package executor

import (
	"bufio"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"kith/internal/job"
	"kith/sitesched/work"
)

// crashVariable makes the test binary the daemon of [TestKilledDaemon]; its
// value is the folder.
const crashVariable = "KITH_TEST_DAEMON"

// crashJobs is how many jobs that daemon runs, at most crashWidth at a time.
const (
	crashJobs  = 60
	crashWidth = 4
)

// crashSpec is job n of the daemon: it writes itself into the ledger and takes
// a while, so that the daemon dies at every stage of it.
func crashSpec(dir string, n int) work.Spec {
	spec := shell(n, fmt.Sprintf("echo $KITH_JOB_ID >> %s/ledger; sleep 0.0%d; exit %d", dir, n%8, n%3))
	spec.Light = os.Getenv(crashVariable+"_LIGHT") != "" && n%5 != 0
	return spec
}

// crashDaemon is a daemon reduced to what matters here: it writes down that an
// attempt begins before it starts it, and how it ended when it hears of it. It
// adopts what it finds, then starts what is left, and exits when all have ended.
func crashDaemon(dir string) error {
	begun, err := openLog(filepath.Join(dir, "begun"))
	if err != nil {
		return err
	}
	finished, err := openLog(filepath.Join(dir, "finished"))
	if err != nil {
		return err
	}
	free := make(chan struct{}, crashJobs+crashWidth)
	x, err := Open(Config{
		Dir: filepath.Join(dir, "attempts"), Processors: crashWidth, ShimPath: os.Getenv(crashVariable + "_SHIM"),
		Isolation: Isolation(os.Getenv(crashVariable + "_ISOLATION")),
	}, func(ev work.Event) {
		if done, ok := ev.(work.Finished); ok {
			e := done.Outcome
			finished.add(fmt.Sprintf("%d code=%d signal=%d lost=%v notstarted=%v %s",
				done.Attempt.Job.Seq, e.ExitCode, e.Signal, lost(e), e.Start == 0, e.Reason))
			free <- struct{}{}
		}
	})
	if err != nil {
		return err
	}
	defer x.Close()
	fmt.Println("open")
	over := map[int]bool{}
	for _, line := range finished.lines {
		over[number1(line)] = true
	}
	running, seen := 0, map[int]bool{}
	for _, line := range begun.lines {
		n, boot, _ := strings.Cut(line, " ")
		seen[number1(n)] = true
		if !over[number1(n)] {
			x.Adopt(crashSpec(dir, number1(n)), boot)
			running++
		}
	}
	for n := 1; n <= crashJobs; n++ {
		if seen[n] {
			continue
		}
		for running >= crashWidth {
			<-free
			running--
		}
		begun.add(fmt.Sprintf("%d %s", n, x.BootID()))
		x.Start(crashSpec(dir, n))
		running++
	}
	for ; running > 0; running-- {
		<-free
	}
	return nil
}

func number1(line string) int {
	word, _, _ := strings.Cut(line, " ")
	n, _ := strconv.Atoi(word)
	return n
}

// testLog is a file of lines that survives its writer.
type testLog struct {
	mu    sync.Mutex
	file  *os.File
	lines []string
}

func openLog(path string) (*testLog, error) {
	file, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE|os.O_APPEND, 0o600)
	if err != nil {
		return nil, err
	}
	l := &testLog{file: file}
	for lines := bufio.NewScanner(file); lines.Scan(); {
		l.lines = append(l.lines, lines.Text())
	}
	return l, nil
}

func (l *testLog) add(line string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if _, err := l.file.WriteString(line + "\n"); err != nil {
		panic(err)
	}
}

// TestKilledDaemon kills a daemon again and again at random moments, and
// demands that every job ran once and that its end was reported once.
func TestKilledDaemon(t *testing.T) {
	inEachIsolation(t, func(t *testing.T, c Config) {
		if testing.Short() && c.Isolation == UserNamespace {
			t.Skip("left out with -short: one kind of namespace is enough for it")
		}
		t.Run("light", func(t *testing.T) { testKilledDaemon(t, c, true) })
		t.Run("with files", func(t *testing.T) { testKilledDaemon(t, c, false) })
	})
}

func testKilledDaemon(t *testing.T, c Config, light bool) {
	dir := t.TempDir()
	random := rand.New(rand.NewPCG(uint64(len(c.Isolation)), 5))
	t.Cleanup(func() {
		killMarkedJobs(filepath.Join(dir, "attempts"))
		nothingLeft(t, filepath.Join(dir, "attempts"), shimBinary(t))
	})
	kills := 20
	if testing.Short() {
		kills = 8
	}
	killed := 0
	for kills > 0 && killDaemon(t, dir, c.Isolation, light, random) {
		kills--
		killed++
	}
	if killed > 0 && kills == 0 {
		runDaemon(t, dir, c.Isolation, light, nil)
	}
	t.Logf("killed %d times", killed)
	checkLedger(t, filepath.Join(dir, "ledger"), crashJobs)
	ends, err := openLog(filepath.Join(dir, "finished"))
	if err != nil {
		t.Fatal(err)
	}
	seen := map[int]int{}
	for _, line := range ends.lines {
		n := number1(line)
		seen[n]++
		if want := fmt.Sprintf("%d code=%d signal=0 lost=false notstarted=false ", n, n%3); line != want {
			t.Errorf("job %d: %s", n, line)
		}
	}
	for n := 1; n <= crashJobs; n++ {
		if seen[n] != 1 {
			t.Errorf("the end of job %d was reported %d times", n, seen[n])
		}
	}
}

// killDaemon runs the daemon, kills it a little later, and reports whether that
// kept it from ending by itself.
func killDaemon(t *testing.T, dir string, isolation Isolation, light bool, random *rand.Rand) bool {
	return runDaemon(t, dir, isolation, light, func(p *os.Process) {
		time.Sleep(time.Duration(random.IntN(60)) * time.Millisecond)
		_ = p.Kill()
	})
}

// runDaemon runs the daemon and calls opened, if any, when it has opened its
// executor. It reports whether the daemon was killed.
func runDaemon(t *testing.T, dir string, isolation Isolation, light bool, opened func(*os.Process)) bool {
	t.Helper()
	daemon := exec.Command(os.Args[0])
	daemon.Env = append(os.Environ(), crashVariable+"="+dir, crashVariable+"_SHIM="+shimBinary(t),
		crashVariable+"_ISOLATION="+string(isolation))
	if light {
		daemon.Env = append(daemon.Env, crashVariable+"_LIGHT=1")
	}
	var stderr strings.Builder
	daemon.Stderr = &stderr
	stdout, err := daemon.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := daemon.Start(); err != nil {
		t.Fatal(err)
	}
	if line, err := bufio.NewReader(stdout).ReadString('\n'); line == "open\n" && opened != nil {
		opened(daemon.Process)
	} else if line != "open\n" {
		t.Errorf("the daemon says %q, %v", line, err)
	}
	err = daemon.Wait()
	if exit, ok := errors.AsType[*exec.ExitError](err); ok && exit.Exited() || stderr.Len() > 0 {
		t.Fatalf("%v: %s", err, stderr.String())
	}
	return err != nil
}

// TestCloseKeepsJobs closes the executor in the middle of everything.
func TestCloseKeepsJobs(t *testing.T) {
	beside(t)
	b := openBench(t, Config{Processors: 4})
	var specs []work.Spec
	for n := 1; n <= 12; n++ {
		specs = append(specs, shell(n, "echo $KITH_JOB_ID >> ../../ledger; sleep 0.05; exit 2"))
	}
	for round := range 40 {
		for _, spec := range specs {
			b.mu.Lock()
			over := len(b.finished[spec.Attempt]) > 0
			b.mu.Unlock()
			if !over {
				b.Adopt(spec, b.BootID())
			}
		}
		time.Sleep(time.Duration(round) * 2 * time.Millisecond)
		b2 := b.reopen()
		b2.finished = b.finished
		b = b2
	}
	for _, spec := range specs {
		b.Adopt(spec, b.BootID())
	}
	for _, spec := range specs {
		if e := b.exit1(spec.Attempt); e.ExitCode != 2 {
			t.Errorf("%v: %+v", spec.Attempt, e)
		}
	}
	checkLedger(t, filepath.Join(b.config.Dir, "ledger"), len(specs))
}

// exit1 waits for an end that an earlier executor may have reported too.
func (b *bench) exit1(id job.AttemptID) job.Outcome {
	b.t.Helper()
	b.until("end of "+id.String(), func() bool { return len(b.finished[id]) > 0 })
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.finished[id][0]
}
