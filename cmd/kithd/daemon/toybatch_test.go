package daemon

import (
	"errors"
	"fmt"
	"io/fs"
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

// toyLoop is a batch system: it starts toyWrapper for each entry of the file
// "queue" of its folder, once, in order, unless there is a file "pause". It belongs
// to no daemon and outlives them.
const toyLoop = `cd "$1" && while [ ! -e quit ]; do
	while read -r entry; do
		[ ! -e pause ] && mkdir "entries/$entry/taken" 2>/dev/null || continue
		( sh wrapper "$entry"; : > "entries/$entry/left" ) </dev/null &
	done < queue
	sleep 0.05
done; wait`

// toyWrapper is what the batch system starts for a copy. It calls, waits for a
// word, and goes on as the one that runs the attempt, or leaves. Of several that
// stand for one attempt one takes it.
const toyWrapper = `entry=entries/$1; attempt=${1%.*}
echo $$ > "$entry/pid"; : > "$entry/called"
while [ ! -e "$attempt/script" ]; do
	[ ! -e "$entry/leave" ] && [ ! -e quit ] || exit 0
	sleep 0.02
done
mkdir "$attempt/taken" || exit 0
cd "$attempt/work"
setsid --wait sh -c 'echo $$ > ../pid.new; date +%s%N > ../began; mv ../pid.new ../pid; exec sh ../script' >../stdout 2>../stderr
echo $? > ../end.new; mv ../end.new ../end`

// startToy starts a batch system in a folder; it ends with the test.
func startToy(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	toyWrite(t, filepath.Join(dir, "queue"), "")
	toyWrite(t, filepath.Join(dir, "wrapper"), toyWrapper)
	if err := os.Mkdir(filepath.Join(dir, "entries"), 0o700); err != nil {
		t.Fatal(err)
	}
	loop := exec.Command("/bin/sh", "-c", toyLoop, "toy", dir)
	if err := loop.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		toyWrite(t, filepath.Join(dir, "quit"), "")
		pids, _ := filepath.Glob(filepath.Join(dir, "*", "pid"))
		for _, path := range pids { // a test that failed leaves jobs behind
			if _, err := os.Stat(filepath.Join(filepath.Dir(path), "end")); err != nil {
				if pid, ok := toyNumber(path); ok {
					_ = syscall.Kill(-int(pid), syscall.SIGKILL)
				}
			}
		}
		if err := loop.Wait(); err != nil {
			t.Error(err)
		}
	})
	return dir
}

// toy is a [work.Batch] over such a batch system, of which it knows nothing but its
// files. What it is told it keeps in mind, and its one goroutine brings the files
// to agree. It enforces neither limits nor leases.
type toy struct {
	t      testing.TB
	dir    string
	report func(work.Event)
	done   chan struct{}
	wg     sync.WaitGroup

	mu       sync.Mutex
	known    map[job.AttemptID]*toyJob  // started or adopted
	queued   map[job.AttemptID]job.Time // with the time before which they must not start
	dequeued map[job.AttemptID]bool     // what was started for them leaves
	restored bool
}

type toyJob struct {
	stop    work.StopReason
	started bool
}

func openToy(t testing.TB, dir string, report func(work.Event)) *toy {
	y := &toy{
		t: t, dir: dir, report: report, done: make(chan struct{}), known: make(map[job.AttemptID]*toyJob),
		queued: make(map[job.AttemptID]job.Time), dequeued: make(map[job.AttemptID]bool),
	}
	y.wg.Go(y.watch)
	return y
}

var _ work.Batch = (*toy)(nil)

func toyName(id job.AttemptID) string { return strings.ReplaceAll(id.String(), "#", "_") }

func toyID(name string) (job.AttemptID, error) {
	return job.ParseAttemptID(strings.ReplaceAll(name, "_", "#"))
}

func (y *toy) path(id job.AttemptID, name string) string {
	return filepath.Join(y.dir, toyName(id), name)
}

func (y *toy) BootID() string { return "toy" }

func (y *toy) Capabilities() []work.Capability {
	return []work.Capability{{Name: "toy", Available: true, Detail: "a queue in a file and a shell loop"}}
}

func (y *toy) Files(id job.AttemptID) work.Files {
	return work.Files{Work: y.path(id, "work"), Stdout: y.path(id, "stdout"), Stderr: y.path(id, "stderr"), Mark: y.path(id, "mark")}
}

func (y *toy) Prepare(id job.AttemptID) error { return os.MkdirAll(y.path(id, "work"), 0o700) }

func (y *toy) Folders() (list []job.AttemptID, err error) {
	entries, err := os.ReadDir(y.dir)
	for _, e := range entries {
		if id, err := toyID(e.Name()); err == nil {
			list = append(list, id)
		}
	}
	return list, err
}

func (y *toy) Queue(c job.Copy, notBefore job.Time) {
	y.mu.Lock()
	defer y.mu.Unlock()
	y.queued[c.ID] = notBefore
}

func (y *toy) Dequeue(id job.AttemptID) {
	y.mu.Lock()
	defer y.mu.Unlock()
	delete(y.queued, id)
	if y.known[id] == nil {
		y.dequeued[id] = true
	}
}

func (y *toy) Restored() {
	y.mu.Lock()
	defer y.mu.Unlock()
	y.restored = true
}

func (y *toy) Start(s work.Spec) { y.Adopt(s, y.BootID()) }

// Adopt writes what the attempt runs, in one step, for what calls for it.
func (y *toy) Adopt(s work.Spec, _ string) {
	y.mu.Lock()
	defer y.mu.Unlock()
	delete(y.queued, s.Attempt)
	if y.known[s.Attempt] != nil {
		return
	}
	y.known[s.Attempt] = &toyJob{}
	script := ""
	for name, value := range s.Env {
		script += "export " + name + "=" + toyQuote(value) + "\n"
	}
	script += "export KITH_JOB_ID=" + s.Attempt.Job.String() + "\nexec"
	for _, arg := range s.Argv {
		script += " " + toyQuote(arg)
	}
	if err := y.Prepare(s.Attempt); err != nil {
		y.t.Errorf("toy: %v", err)
	}
	toyWrite(y.t, y.path(s.Attempt, "script"), script+"\n")
}

func (y *toy) Extend(job.AttemptID, work.Lease) {}

// Ask stops it: what a batch system runs is asked nothing.
func (y *toy) Ask(id job.AttemptID, _ work.Ask) { y.Stop(id, work.StopSite) }

func (y *toy) Stop(id job.AttemptID, reason work.StopReason) {
	y.mu.Lock()
	defer y.mu.Unlock()
	if k := y.known[id]; k != nil && k.stop == "" {
		k.stop = reason
	}
}

func (y *toy) Forget(id job.AttemptID) {
	y.mu.Lock()
	defer y.mu.Unlock()
	delete(y.known, id)
	if err := os.RemoveAll(y.path(id, "")); err != nil {
		y.t.Errorf("toy: %v", err)
	}
}

func (y *toy) Close() {
	close(y.done)
	y.wg.Wait()
}

// watch looks what has become of queue and attempts, again and again.
func (y *toy) watch() {
	for {
		select {
		case <-y.done:
			return
		case <-time.After(20 * time.Millisecond):
		}
		y.mu.Lock()
		events := y.tend()
		for id, k := range y.known {
			events = append(events, y.look(id, k)...)
		}
		y.mu.Unlock()
		for _, ev := range events {
			y.report(ev)
		}
	}
}

// look returns what is new about an attempt. y.mu is held.
func (y *toy) look(id job.AttemptID, k *toyJob) (events []work.Event) {
	began, _ := toyNumber(y.path(id, "began"))
	pid, running := toyNumber(y.path(id, "pid"))
	code, ended := toyNumber(y.path(id, "end"))
	if running && !k.started {
		k.started = true
		events = append(events, work.Started{Attempt: id, At: job.Time(began)})
	}
	o := job.Outcome{Kind: job.Success, ExitCode: int32(code), Start: job.Time(began), End: job.Instant(time.Now())}
	switch {
	case ended && k.stop != "":
		o.Kind, o.Reason = k.stop.Kind(), "stopped: "+string(k.stop)
	case ended && code != 0:
		o.Kind = job.Failure
	case ended:
	case k.stop != "" && running:
		_ = syscall.Kill(-int(pid), syscall.SIGKILL) // again, until the end is there
		return events
	case k.stop != "" && os.Mkdir(y.path(id, "taken"), 0o700) == nil: // so that it never starts
		o = job.Outcome{Kind: k.stop.Kind(), End: o.End, Reason: "not started: " + string(k.stop)}
	default:
		return events
	}
	delete(y.known, id)
	return append(events, work.Finished{Attempt: id, Outcome: o})
}

func toyQuote(s string) string { return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'" }

// toyWrite writes a file in one step.
func toyWrite(t testing.TB, path, text string) {
	err := os.WriteFile(path+".new", []byte(text), 0o600)
	if err := errors.Join(err, os.Rename(path+".new", path)); err != nil {
		t.Errorf("toy: %v", err)
	}
}

func toyNumber(path string) (int64, bool) {
	text, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return 0, false
	}
	n, bad := strconv.ParseInt(strings.TrimSpace(string(text)), 10, 64)
	return n, err == nil && bad == nil
}

func toyThere(path ...string) bool {
	_, err := os.Stat(filepath.Join(path...))
	return err == nil
}

// toyQueue returns the entries of a toy's queue: what waits, and what was started
// and is not over.
func toyQueue(dir string) []string {
	text, err := os.ReadFile(filepath.Join(dir, "queue"))
	if err != nil {
		panic(fmt.Sprintf("toy: %v", err))
	}
	return strings.Fields(string(text))
}
