package executor

import (
	"math/rand/v2"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"syscall"
	"testing"
	"time"

	"kith/internal/job"
	"kith/sitesched/executor/shim"
	"kith/sitesched/work"
)

// reopen closes b and opens another executor on the same folder.
func (b *bench) reopen() *bench {
	b.t.Helper()
	b.Close()
	c := b.config
	c.Logger = nil
	return openBench(b.t, c)
}

func TestAdoptRunning(t *testing.T) {
	inEachIsolation(t, func(t *testing.T, c Config) {
		c.Grace = 200 * time.Millisecond
		b := openBench(t, c)
		specs := []work.Spec{
			shell(1, "touch ready; while [ ! -e go ]; do sleep 0.01; done; exit 3"),
			shell(2, stubborn),
			shell(3, "sleep 600"),
		}
		// On a busy machine its time is up before the next daemon is there, or before the
		// job has done anything: it ends in the same way.
		specs[2].Walltime = 1500 * time.Millisecond
		for _, spec := range specs {
			b.Start(spec)
		}
		for _, spec := range specs[:2] {
			b.untilFile(spec.Attempt, "ready")
		}
		b.untilStarted(number(3))
		b2 := b.reopen()
		if left := jobProcesses(b.config.Dir); len(left) < 2 {
			t.Fatalf("closing killed jobs: %v are left", left)
		}
		for _, spec := range specs {
			b2.Adopt(spec, b.BootID())
			b2.Adopt(spec, b.BootID())
		}
		for _, spec := range specs[:2] {
			b2.untilStarted(spec.Attempt)
		}
		eventually(t, "the shims of the daemon before are known", func() bool { return len(b2.AdoptedShims()) >= 2 })
		if shims := b.AdoptedShims(); len(shims) != 0 {
			t.Errorf("the first daemon has shims of one before: %v", shims)
		}
		if err := os.WriteFile(filepath.Join(b.WorkPath(number(1)), "go"), nil, 0o600); err != nil {
			t.Fatal(err)
		}
		b2.Stop(number(2), work.StopLease)
		if e := b2.wait(number(1)); e.ExitCode != 3 || e.Kind != job.Failure || e.Start == 0 || e.CPUTime == 0 {
			t.Errorf("left alone: %+v", e)
		}
		if e := b2.wait(number(2)); e.Kind != job.Loss || !strings.Contains(e.Reason, string(work.StopLease)) || e.Signal != 9 {
			t.Errorf("stopped: %+v", e)
		}
		if e := b2.wait(number(3)); e.Kind != job.Timeout {
			t.Errorf("out of time: %+v", e)
		}
		if n := b2.starts(number(3)); n > 1 {
			t.Errorf("job 3 reported as started %d times", n)
		}
		for n := 1; n <= 2; n++ {
			if b2.starts(number(n)) != 1 {
				t.Errorf("job %d reported as started %d times", n, b2.starts(number(n)))
			}
		}
	})
}

func TestAdoptEnded(t *testing.T) {
	inEachIsolation(t, func(t *testing.T, c Config) {
		b := openBench(t, c)
		b.Start(shell(1, "touch ready; sleep 0.3; exit 9"))
		b.untilFile(number(1), "ready")
		b.Close()
		eventually(t, "the job ends without a daemon", func() bool { return len(jobProcesses(b.config.Dir)) == 0 })
		eventually(t, "and so does its shim", func() bool { return livingShims(b.config.ShimPath) == 0 })
		b2 := b.reopen()
		b2.Adopt(shell(1, "exit 1"), b.BootID())
		if e := b2.wait(number(1)); e.ExitCode != 9 || e.Kind != job.Failure {
			t.Errorf("%+v", e)
		}
		// A caller that forgets to adopt and starts again gets the same.
		b3 := b2.reopen()
		if e := b3.run(shell(1, "exit 1")); e.ExitCode != 9 {
			t.Errorf("started again: %+v", e)
		}
		b3.Forget(number(1))
		eventually(t, "the folder is gone", func() bool { return !exists(filepath.Dir(b.WorkPath(number(1)))) })
	})
}

// livingShims counts the shims that are not zombies: after Close, a test is
// the parent of shims that it does not wait for.
func livingShims(path string) int { return len(shimProcesses(path)) }

func TestAdoptNeverStarted(t *testing.T) {
	beside(t)
	b := openBench(t, Config{})
	if err := b.Prepare(number(2)); err != nil {
		t.Fatal(err)
	}
	for n := 1; n <= 2; n++ {
		b.Adopt(shell(n, "echo once >> ../../ledger; exit 2"), b.BootID())
		if e := b.wait(number(n)); e.ExitCode != 2 || b.starts(number(n)) != 1 {
			t.Errorf("%+v", e)
		}
	}
	if got := readFile(filepath.Join(b.config.Dir, "ledger")); got != "once\nonce\n" {
		t.Errorf("ledger %q", got)
	}
	// It was to be stopped when the daemon died.
	b.Stop(number(3), work.StopCancel)
	eventually(t, "the stop is noted", func() bool { _, ok := b.folders.stopReason(folderName(number(3))); return ok })
	b2 := b.reopen()
	b2.Adopt(shell(3, "exit 1"), b.BootID())
	if e := b2.wait(number(3)); e.Start != 0 || e.Kind != job.Cancel || e.Reason != "not started: cancelled" {
		t.Errorf("%+v", e)
	}
}

func TestAdoptAfterStop(t *testing.T) {
	beside(t)
	b := openBench(t, Config{Grace: 100 * time.Millisecond})
	b.Start(shell(1, stubborn))
	b.untilFile(number(1), "ready")
	b.Stop(number(1), work.StopLease)
	eventually(t, "the job ends", func() bool { return len(jobProcesses(b.config.Dir)) == 0 })
	b2 := b.reopen()
	b2.Adopt(shell(1, stubborn), b.BootID())
	if e := b2.wait(number(1)); e.Kind != job.Loss || !strings.Contains(e.Reason, string(work.StopLease)) {
		t.Errorf("%+v", e)
	}
}

func TestAdoptAfterReboot(t *testing.T) {
	beside(t)
	b := openBench(t, Config{})
	ended := b.run(shell(1, "exit 3"))
	b.Start(shell(2, "touch ready; sleep 60"))
	b.untilFile(number(2), "ready")
	b2 := b.reopen()
	for n := 1; n <= 3; n++ {
		b2.Adopt(shell(n, "echo must not run"), "another boot")
	}
	if e := b2.wait(number(1)); !reflect.DeepEqual(e, ended) {
		t.Errorf("ended before the reboot: %+v, want %+v", e, ended)
	}
	for n := 2; n <= 3; n++ {
		if e := b2.wait(number(n)); !lost(e) || e.Reason != "lost: the machine was restarted" {
			t.Errorf("job %d: %+v", n, e)
		}
	}
}

func TestAdoptWithoutItsShim(t *testing.T) {
	inEachIsolation(t, func(t *testing.T, c Config) {
		b := openBench(t, c)
		b.Start(shell(1, daemonise+"sleep 60"))
		b.Start(shell(2, daemonise+"sleep 60"))
		b.untilFile(number(1), "ready")
		b.untilFile(number(2), "ready")
		b.Close()
		eventually(t, "idle shims exit", func() bool { return livingShims(b.config.ShimPath) == 2 })
		// One dies before anybody adopts its job, the other after.
		shims := shimProcesses(b.config.ShimPath)
		signalProcess(t, shims[0], syscall.SIGKILL)
		b2 := b.reopen()
		for n := 1; n <= 2; n++ {
			b2.Adopt(shell(n, "echo must not run"), b.BootID())
		}
		survivor := number(1)
		b2.until("one is lost", func() bool {
			if len(b2.finished[survivor]) > 0 {
				survivor = number(2)
			}
			return len(b2.finished) == 1
		})
		b2.untilStarted(survivor)
		signalProcess(t, shims[1], syscall.SIGKILL)
		for n := 1; n <= 2; n++ {
			if e := b2.wait(number(n)); !lost(e) || !strings.Contains(e.Reason, "shim was killed") {
				t.Errorf("%+v", e)
			}
		}
		if left := jobProcesses(b.config.Dir); len(left) > 0 {
			t.Errorf("processes %v live after the loss was reported", left)
		}
	})
}

func TestAdoptBadRecords(t *testing.T) {
	half := shim.RecordSize / 2
	for name, c := range map[string]struct {
		spoil  func(good string) string
		reason string
	}{
		"garbage":          {func(string) string { return "nonsense" }, "start half"},
		"zeros":            {func(good string) string { return strings.Repeat("\x00", len(good)) }, "start half"},
		"torn start":       {func(good string) string { return good[:half-1] }, "start half"},
		"torn exit":        {func(good string) string { return good[:len(good)-9] }, "exit half"},
		"garbage for exit": {func(good string) string { return good[:half] + strings.Repeat("x", half) }, "exit half"},
		"no exit":          {func(good string) string { return good[:half] + strings.Repeat(" ", half) }, "shim was killed"},
		"too long":         {func(good string) string { return good + "x" }, "exit half"},
	} {
		t.Run(name, func(t *testing.T) {
			b := openBench(t, Config{})
			b.run(shell(1, "exit 3"))
			record := filepath.Join(b.config.Dir, folderName(number(1)), shim.RecordName)
			spoilt := c.spoil(readFile(record))
			b2 := b.reopen()
			adoptRecord(b2, number(1), spoilt, c.reason)
		})
	}
	t.Run("of another attempt", func(t *testing.T) {
		b := openBench(t, Config{})
		b.run(shell(1, "exit 3"))
		foreign := readFile(filepath.Join(b.config.Dir, folderName(number(1)), shim.RecordName))
		if err := b.Prepare(number(2)); err != nil {
			t.Fatal(err)
		}
		adoptRecord(b, number(2), foreign, "another attempt")
	})
}

// adoptRecord adopts an attempt with a record that nothing can be made of.
func adoptRecord(b *bench, id job.AttemptID, record, reason string) {
	b.t.Helper()
	if err := os.WriteFile(filepath.Join(b.config.Dir, folderName(id), shim.RecordName), []byte(record), 0o600); err != nil {
		b.t.Fatal(err)
	}
	spec := shell(1, "echo must not run")
	spec.Attempt = id
	b.Adopt(spec, b.BootID())
	if e := b.wait(id); !lost(e) || !strings.Contains(e.Reason, reason) {
		b.t.Errorf("%+v, want %q", e, reason)
	}
}

// TestHeldRecord has another process hold the lock of a record that says nothing yet,
// as a shim does in the instant before it writes.
func TestHeldRecord(t *testing.T) {
	beside(t)
	b := openBench(t, Config{})
	if err := b.Prepare(number(1)); err != nil {
		t.Fatal(err)
	}
	file, err := os.OpenFile(filepath.Join(b.config.Dir, folderName(number(1)), shim.RecordName), os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	if err := syscall.Flock(int(file.Fd()), syscall.LOCK_EX); err != nil {
		t.Fatal(err)
	}
	b.Adopt(shell(1, "exit 8"), b.BootID())
	time.Sleep(3 * recheckPause)
	if b.starts(number(1)) != 0 {
		t.Error("started while another process may be starting it")
	}
	if err := file.Close(); err != nil {
		t.Fatal(err)
	}
	if e := b.wait(number(1)); e.ExitCode != 8 {
		t.Errorf("%+v", e)
	}
}

// TestLateShim has a shim that was told by a daemon that is gone, and a daemon
// that knows nothing of it, start the same attempts at the same time.
func TestLateShim(t *testing.T) {
	beside(t)
	rounds := 15
	if thorough {
		rounds = 60
	}
	b := openBench(t, Config{})
	random := rand.New(rand.NewPCG(3, 4))
	late := 0
	for n := range rounds {
		id := number(n + 1)
		if err := b.Prepare(id); err != nil {
			t.Fatal(err)
		}
		spec := shell(n+1, "echo $KITH_JOB_ID >> ../../ledger; exit 5")
		p := startTestShim(t, b)
		run := b.message(n+1, spec.Argv[2])
		done := make(chan struct{})
		go func() {
			defer close(done)
			if err := p.send(run); err != nil {
				t.Error(err)
			}
			_ = p.conn.Close()
		}()
		time.Sleep(time.Duration(random.IntN(500)) * time.Microsecond)
		if n%2 == 0 {
			b.Start(spec)
		} else {
			b.Adopt(spec, b.BootID())
		}
		<-done
		if e := b.wait(id); e.ExitCode != 5 {
			t.Fatalf("round %d: %+v", n, e)
		}
		record, err := shim.ParseRecord([]byte(readFile(filepath.Join(b.config.Dir, folderName(id), shim.RecordName))))
		if err != nil {
			t.Fatal(err)
		}
		if record.Start.Shim.PID == p.pid {
			late++
		}
	}
	t.Logf("the late shim won %d of %d times", late, rounds)
	checkLedger(t, filepath.Join(b.config.Dir, "ledger"), rounds)
}

// checkLedger demands exactly one line of each of the jobs 1 to n.
func checkLedger(t *testing.T, path string, n int) {
	t.Helper()
	seen := map[string]int{}
	for line := range strings.Lines(readFile(path)) {
		seen[strings.TrimSpace(line)]++
	}
	for i := range n {
		id := number(i + 1).Job.String()
		if seen[id] != 1 {
			t.Errorf("job %s ran %d times", id, seen[id])
		}
		delete(seen, id)
	}
	if len(seen) > 0 {
		t.Errorf("strange lines in the ledger: %v", seen)
	}
}

// TestTwoShims tells two shims to run one attempt.
func TestTwoShims(t *testing.T) {
	beside(t)
	b := openBench(t, Config{})
	shims := []*process{startTestShim(t, b), startTestShim(t, b)}
	const rounds = 50
	for n := 1; n <= rounds; n++ {
		run := b.message(n, "echo $KITH_JOB_ID >> ../../ledger")
		for _, p := range shims {
			tell(t, p, run)
		}
		started, refused := 0, 0
		for _, p := range shims {
			m := hear(t, p)
			if no, ok := m.(*shim.Refused); ok {
				refused++
				if !no.Taken {
					t.Errorf("%+v", no)
				}
				continue
			}
			started++
			hear(t, p)
		}
		if started != 1 || refused != 1 {
			t.Fatalf("round %d: started %d, refused %d", n, started, refused)
		}
	}
	checkLedger(t, filepath.Join(b.config.Dir, "ledger"), rounds)
}

func TestOneExecutorPerFolder(t *testing.T) {
	b := openBench(t, Config{})
	file, err := os.Open(b.config.Dir)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = file.Close() }()
	if err := syscall.Flock(int(file.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err == nil {
		t.Error("the folder is not locked")
	}
}
