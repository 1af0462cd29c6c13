package executor

import (
	"bytes"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"kith/internal/job"
	"kith/sitesched/work"
)

// ownProgram stands for the test binary itself as the shim.
const ownProgram = "own"

// bench is an executor whose events a test can wait for.
type bench struct {
	*Executor
	t        testing.TB
	patience time.Duration // for what until waits for

	mu       sync.Mutex
	changed  chan struct{}
	started  map[job.AttemptID]int
	finished map[job.AttemptID][]job.Outcome
	unable   map[job.AttemptID][]string
	blank    map[job.AttemptID]bool
	asked    map[job.AttemptID]*work.Asked
}

// patience is how long a test waits for anything.
const patience = 60 * time.Second

// openBench opens an executor with the real shim. When the test ends it closes
// the executor, kills the jobs that are left, and makes sure no process is.
func openBench(t testing.TB, c Config) *bench {
	t.Helper()
	if c.Dir == "" {
		c.Dir = filepath.Join(t.TempDir(), "attempts")
	}
	switch c.ShimPath {
	case "":
		c.ShimPath = shimBinary(t)
	case ownProgram:
		c.ShimPath = ""
	}
	if c.Logger == nil {
		c.Logger = slog.New(slog.NewTextHandler(t.Output(), nil))
	}
	b := &bench{
		t: t, patience: patience, changed: make(chan struct{}),
		started: map[job.AttemptID]int{}, finished: map[job.AttemptID][]job.Outcome{}, unable: map[job.AttemptID][]string{}, blank: map[job.AttemptID]bool{},
		asked: map[job.AttemptID]*work.Asked{},
	}
	x, err := Open(c, b.note)
	if err != nil {
		t.Fatal(err)
	}
	b.Executor = x
	t.Cleanup(func() {
		x.Close()
		killMarkedJobs(x.config.Dir)
		nothingLeft(t, x.config.Dir, c.ShimPath)
	})
	return b
}

// jobProcesses lists the processes of jobs whose folders are in dir.
func jobProcesses(dir string) []int {
	var list []int
	mark := []byte(workVariable + "=" + dir + "/")
	for _, pid := range processes() {
		env, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/environ")
		if err == nil && bytes.Contains(env, mark) {
			list = append(list, pid)
		}
	}
	return list
}

// killMarkedJobs kills what a test left running, shims aside: they end then.
func killMarkedJobs(dir string) {
	for _, pid := range jobProcesses(dir) {
		killMarked(pid, []byte(workVariable+"="+dir+"/"))
	}
}

// shimProcesses lists the processes that run the shim of this test binary.
func shimProcesses(path string) []int {
	var list []int
	for _, pid := range processes() {
		if exe, err := os.Readlink("/proc/" + strconv.Itoa(pid) + "/exe"); err == nil && exe == path {
			list = append(list, pid)
		}
	}
	return list
}

// nothingLeft fails the test if jobs in dir or shims outlive it.
func nothingLeft(t testing.TB, dir, shimPath string) {
	t.Helper()
	eventually(t, "no process is left", func() bool {
		return len(jobProcesses(dir)) == 0 && len(shimProcesses(shimPath)) == 0
	})
}

// eventually waits until ok.
func eventually(t testing.TB, what string, ok func() bool) {
	t.Helper()
	pause := time.Millisecond
	for deadline := time.Now().Add(patience); !ok(); time.Sleep(pause) {
		if time.Now().After(deadline) {
			t.Fatalf("not within %v: %s", patience, what)
		}
		pause = min(2*pause, 50*time.Millisecond) // to look through all processes is work
	}
}

func (b *bench) note(ev work.Event) {
	b.mu.Lock()
	defer b.mu.Unlock()
	switch ev := ev.(type) {
	case work.Started:
		b.started[ev.Attempt]++
	case work.Finished:
		b.finished[ev.Attempt] = append(b.finished[ev.Attempt], ev.Outcome)
		b.blank[ev.Attempt] = ev.Blank
		b.asked[ev.Attempt] = ev.Asked
	case work.StartFailed:
		b.unable[ev.Attempt] = append(b.unable[ev.Attempt], ev.Reason)
	}
	close(b.changed)
	b.changed = make(chan struct{})
}

// until waits until ok, which is called with the events locked.
func (b *bench) until(what string, ok func() bool) {
	b.t.Helper()
	deadline := time.After(b.patience)
	for {
		b.mu.Lock()
		done, changed := ok(), b.changed
		b.mu.Unlock()
		if done {
			return
		}
		select {
		case <-changed:
		case <-deadline:
			b.t.Fatalf("not within %v: %s", b.patience, what)
		}
	}
}

// wasBlank tells whether the attempt was reported to have left nothing.
func (b *bench) wasBlank(id job.AttemptID) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.blank[id]
}

// askedOf tells how the attempt was asked to save, nil if it was not.
func (b *bench) askedOf(id job.AttemptID) *work.Asked {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.asked[id]
}

// starts tells how often the attempt was reported as started.
func (b *bench) starts(id job.AttemptID) int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.started[id]
}

func (b *bench) untilStarted(id job.AttemptID) {
	b.t.Helper()
	b.until("start of "+id.String(), func() bool { return b.started[id] > 0 })
}

// wait returns the only exit of the attempt.
func (b *bench) wait(id job.AttemptID) job.Outcome {
	b.t.Helper()
	b.until("end of "+id.String(), func() bool { return len(b.finished[id]) > 0 })
	return b.exit(id)
}

// exit returns the only exit of the attempt.
func (b *bench) exit(id job.AttemptID) job.Outcome {
	b.t.Helper()
	b.mu.Lock()
	defer b.mu.Unlock()
	if n := len(b.finished[id]); n != 1 {
		b.t.Fatalf("%v finished %d times", id, n)
	}
	return b.finished[id][0]
}

func (b *bench) run(s work.Spec) job.Outcome {
	b.t.Helper()
	b.Start(s)
	return b.wait(s.Attempt)
}

// number makes an attempt of job n.
func number(n int) job.AttemptID {
	return job.AttemptID{Job: job.ID{Origin: "uni-a", Generation: 7, Seq: uint64(n)}, Number: 1}
}

// shell makes a job of a shell script.
func shell(n int, script string) work.Spec {
	return work.Spec{
		Attempt: number(n), Argv: []string{"/bin/sh", "-c", script}, Processors: 1,
		Walltime: time.Minute, Name: "test", User: "mira", OriginSite: "uni-a", HostSite: "uni-b",
	}
}

// shimVariable names a shim that is already built, for a test binary that runs
// where it cannot build one.
const shimVariable = "KITH_TEST_SHIM"

var buildShim = sync.OnceValues(func() (string, error) {
	if path := os.Getenv(shimVariable); path != "" {
		return path, nil
	}
	dir, err := os.MkdirTemp("", "kith-shim")
	if err != nil {
		return "", err
	}
	path := filepath.Join(dir, "kith-shim")
	cmd := exec.Command("go", "build", "-o", path, "kith/cmd/kith-shim")
	out, err := cmd.CombinedOutput()
	if err != nil {
		return string(out), err
	}
	return path, nil
})

// ownShims are the names under which tests have the shim to themselves.
var ownShims struct {
	sync.Mutex
	names map[testing.TB]string
}

// shimBinary builds the real shim once and gives it a name that only this test
// uses, so that the test can tell its shims from those of others beside it.
// Where that is not possible it returns the shim itself, and the test must be
// alone; see [beside].
func shimBinary(t testing.TB) string {
	path, err := buildShim()
	if err != nil {
		t.Fatalf("build the shim: %v: %s", err, path)
	}
	ownShims.Lock()
	defer ownShims.Unlock()
	if own, ok := ownShims.names[t]; ok {
		return own
	}
	own := filepath.Join(t.TempDir(), "kith-shim")
	if os.Link(path, own) != nil {
		return path // another file system, or another user's file
	}
	if ownShims.names == nil {
		ownShims.names = map[testing.TB]string{}
	}
	ownShims.names[t] = own
	t.Cleanup(func() {
		ownShims.Lock()
		delete(ownShims.names, t)
		ownShims.Unlock()
	})
	return own
}

// beside lets the test run beside others if it has a shim of its own. Most of
// these tests spend their time waiting for a job.
func beside(t *testing.T) {
	t.Helper()
	if path, err := buildShim(); err == nil && shimBinary(t) != path {
		t.Parallel()
	}
}

// findIsolations finds out once which ways to isolate work here.
var findIsolations = sync.OnceValues(func() (working []Isolation, missing error) {
	path, err := buildShim()
	if err != nil {
		return nil, fmt.Errorf("build the shim: %w: %s", err, path)
	}
	dir, err := os.MkdirTemp("", "kith-probe")
	if err != nil {
		return nil, err
	}
	for _, isolation := range []Isolation{PIDNamespace, UserNamespace, Subreaper} {
		x, err := Open(Config{Dir: dir, ShimPath: path, Isolation: isolation}, func(work.Event) {})
		if err != nil {
			missing = errors.Join(missing, err)
			continue
		}
		x.Close()
		working = append(working, isolation)
	}
	return working, errors.Join(missing, os.RemoveAll(dir))
})

// isolations lists the ways to isolate that work here.
func isolations(t *testing.T) []Isolation {
	t.Helper()
	list, missing := findIsolations()
	if missing != nil {
		t.Logf("not tested: %v", missing)
	}
	if len(list) == 0 {
		t.Fatal("no way to run jobs")
	}
	return list
}

// inEachIsolation runs a test with every isolation that works here.
func inEachIsolation(t *testing.T, test func(t *testing.T, c Config)) {
	beside(t)
	for _, isolation := range isolations(t) {
		t.Run(string(isolation), func(t *testing.T) {
			beside(t)
			test(t, Config{Isolation: isolation})
		})
	}
}

// readFile returns a file as text, or nothing.
func readFile(path string) string {
	b, _ := os.ReadFile(path)
	return string(b)
}

func exists(path string) bool {
	_, err := os.Lstat(path)
	return err == nil
}

// signalProcess signals a process that the test started.
func signalProcess(t testing.TB, pid int, sig syscall.Signal) {
	t.Helper()
	if err := syscall.Kill(pid, sig); err != nil {
		t.Errorf("signal %v to %d: %v", sig, pid, err)
	}
}

// lost reports whether an outcome says that it is not known how far the job came.
func lost(o job.Outcome) bool {
	return o.Kind == job.Loss && strings.HasPrefix(o.Reason, "lost: ")
}

func (b *bench) WorkPath(id job.AttemptID) string   { return b.Files(id).Work }
func (b *bench) StdoutPath(id job.AttemptID) string { return b.Files(id).Stdout }
func (b *bench) StderrPath(id job.AttemptID) string { return b.Files(id).Stderr }
