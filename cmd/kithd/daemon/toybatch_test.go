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

// toyLoop is a batch system: it runs what stands in the file "queue" of its
// folder, each entry once. It belongs to no daemon and outlives them.
const toyLoop = `cd "$1" && touch queue && while [ ! -e quit ]; do
	while read -r name; do
		mkdir "$name/taken" 2>/dev/null || continue
		( cd "$name/work"
		  setsid --wait sh -c 'echo $$ > ../pid.new; date +%s%N > ../began; mv ../pid.new ../pid; exec sh ../script' >../stdout 2>../stderr
		  echo $? > ../end.new; mv ../end.new ../end ) &
	done < queue
	sleep 0.05
done`

// startToy starts a batch system in a folder; it ends with the test.
func startToy(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	loop := exec.Command("/bin/sh", "-c", toyLoop, "toy", dir)
	if err := loop.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := os.WriteFile(filepath.Join(dir, "quit"), nil, 0o600); err != nil {
			t.Error(err)
		}
		if err := loop.Wait(); err != nil {
			t.Error(err)
		}
	})
	return dir
}

// toy is a [work.System] over such a batch system, of which it knows nothing but
// its files. It enforces neither limits nor leases.
type toy struct {
	t      testing.TB
	dir    string
	report func(work.Event)
	done   chan struct{}
	wg     sync.WaitGroup

	mu    sync.Mutex
	known map[job.AttemptID]*toyJob
}

type toyJob struct {
	stop    work.StopReason
	started bool
}

func openToy(t testing.TB, dir string, report func(work.Event)) *toy {
	y := &toy{t: t, dir: dir, report: report, done: make(chan struct{}), known: make(map[job.AttemptID]*toyJob)}
	y.wg.Go(y.watch)
	return y
}

func (y *toy) path(id job.AttemptID, name string) string {
	return filepath.Join(y.dir, strings.ReplaceAll(id.String(), "#", "_"), name)
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
		if id, err := job.ParseAttemptID(strings.ReplaceAll(e.Name(), "_", "#")); err == nil {
			list = append(list, id)
		}
	}
	return list, err
}

func (y *toy) Start(s work.Spec) { y.Adopt(s, y.BootID()) }

// Adopt puts the attempt into the queue, where it may stand already: the batch
// system runs it once.
func (y *toy) Adopt(s work.Spec, _ string) {
	y.mu.Lock()
	defer y.mu.Unlock()
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
	if err := y.submit(s.Attempt, script+"\n"); err != nil {
		y.t.Errorf("toy: %v", err)
	}
}

// submit writes the script in one step and puts its name into the queue.
func (y *toy) submit(id job.AttemptID, script string) error {
	if err := y.Prepare(id); err != nil {
		return err
	}
	path := y.path(id, "script")
	if err := os.WriteFile(path+".new", []byte(script), 0o600); err != nil {
		return err
	}
	if err := os.Rename(path+".new", path); err != nil {
		return err
	}
	queue, err := os.OpenFile(filepath.Join(y.dir, "queue"), os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	_, line := fmt.Fprintln(queue, filepath.Base(filepath.Dir(path)))
	return errors.Join(line, queue.Close())
}

func toyQuote(s string) string { return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'" }

func (y *toy) Extend(job.AttemptID, work.Lease) {}

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

// watch looks what has become of the attempts, again and again.
func (y *toy) watch() {
	for {
		select {
		case <-y.done:
			return
		case <-time.After(20 * time.Millisecond):
		}
		y.mu.Lock()
		var events []work.Event
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
	began, _ := y.number(id, "began")
	pid, running := y.number(id, "pid")
	code, ended := y.number(id, "end")
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

func (y *toy) number(id job.AttemptID, name string) (int64, bool) {
	text, err := os.ReadFile(y.path(id, name))
	if errors.Is(err, fs.ErrNotExist) {
		return 0, false
	}
	n, bad := strconv.ParseInt(strings.TrimSpace(string(text)), 10, 64)
	return n, err == nil && bad == nil
}
