package executor

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"kith/internal/job"
	"kith/sitesched/executor/shim"
	"kith/sitesched/work"
)

// lightShell makes a light attempt of a shell script.
func lightShell(n int, script string) work.Spec {
	spec := shell(n, script)
	spec.Light = true
	return spec
}

// ledgerFiles counts the ledgers in the folder of an executor.
func (b *bench) ledgerFiles() int {
	list, err := os.ReadDir(filepath.Join(b.config.Dir, shim.LedgersName))
	if err != nil {
		b.t.Fatal(err)
	}
	return len(list)
}

// Light attempts run one after another in one folder, and one that leaves anything there
// keeps it: the next sees nothing of it.
func TestLightAttemptsSeeNothingOfEachOther(t *testing.T) {
	inEachIsolation(t, func(t *testing.T, c Config) {
		c.Processors, c.KeepIdle = 1, 1
		b := openBench(t, c)
		leave := map[string]string{
			"nothing":         "exit 0",
			"output":          "echo word",
			"a file":          "echo x >left",
			"a hidden file":   "echo x >.left",
			"in tmp":          "echo x >$TMPDIR/left",
			"beside":          "echo x >../left",
			"other rights":    "chmod 711 .",
			"of the folder":   "chmod 711 ..",
			"another stdout":  "rm ../stdout; echo x >../stdout",
			"no stdout":       "rm ../stdout",
			"an empty stdout": "rm ../stdout; : >../stdout; chmod 600 ../stdout",
			"no folder":       "rm -rf $(dirname $PWD)",
			"a long lease":    "echo x >../lease",
			"a record":        "echo x >../record",
			"a stop":          "echo x >../stop",
			"nonblocking":     "exec 3>&1; exit 0",
		}
		check := `[ -z "$(ls -A .; ls -A $TMPDIR)" ] || exit 3
			[ "$(ls -A .. | tr '\n' ' ')" = "record stderr stdout tmp work " ] || [ "$(ls -A .. | tr '\n' ' ')" = "lease record stderr stdout tmp work " ] || exit 4
			[ $(stat -c %a.%a . ..) = "700.700
700.700" ] 2>/dev/null || [ "$(stat -c %a . .. | tr '\n' ' ')" = "700 700 " ] || exit 5
			[ ! -s ../stdout ] || exit 6
			echo $KITH_JOB_ID`
		n := 0
		for what, script := range leave {
			for range 3 {
				n++
				b.run(lightShell(n, script))
				spec := lightShell(n+1000, check)
				if n%2 == 0 {
					spec.Leased, spec.Lease = true, leaseFor(time.Minute)
				}
				o := b.run(spec)
				out := strings.TrimSpace(readFile(b.StdoutPath(spec.Attempt)))
				if o.Kind != job.Success || out != spec.Attempt.Job.String() {
					t.Errorf("after one that left %s: %+v, it says %q", what, o, out)
				}
				b.Forget(spec.Attempt)
				b.Forget(number(n))
			}
		}
		eventually(t, "folders and entries are gone", func() bool {
			ids, err := b.Folders()
			return err == nil && len(ids) <= 1 && b.ledgerFiles() <= 1
		})
	})
}

// What ended is known after a restart though the next attempt has its folder, and so is
// whether it left anything.
func TestLightAttemptsThatEndedAreAdopted(t *testing.T) {
	inEachIsolation(t, func(t *testing.T, c Config) {
		c.Processors, c.KeepIdle = 1, 1
		const last = 3*shim.LedgerEntries/2 + 1
		var b *bench
		// On a busy machine an attempt may come before the shim of the last one is free, and
		// another shim with a ledger and a folder of its own takes it: then once more.
		for range 5 {
			b = openBench(t, c)
			for n := 1; n <= last; n++ {
				b.run(lightShell(n, fmt.Sprintf("echo x >>../../ran; exit %d", n%7)))
			}
			if b.ledgerFiles() == 2 {
				break
			}
		}
		if b.ledgerFiles() != 2 {
			t.Errorf("%d ledgers of %d attempts", b.ledgerFiles(), last)
		}
		folders := 0
		for n := 1; n <= last; n++ {
			if exists(b.folders.path(folderName(number(n)))) {
				folders++
			}
		}
		if folders != 1 {
			t.Errorf("%d attempts that left nothing have %d folders", last, folders)
		}
		b2 := b.reopen()
		for n := 1; n <= last; n++ {
			if !b2.Begun(number(n)) {
				t.Fatalf("attempt %d counts as never begun", n)
			}
			if n%2 == 0 {
				b2.Start(lightShell(n, "echo x >>../../ran; exit 9")) // a caller that forgets to adopt
			} else {
				b2.Adopt(lightShell(n, "echo x >>../../ran; exit 9"), b.BootID())
			}
			if o := b2.wait(number(n)); o.ExitCode != int32(n%7) {
				t.Errorf("attempt %d: %+v", n, o)
			}
			if n < last && !b2.wasBlank(number(n)) {
				t.Errorf("attempt %d: something is said to be in a folder that is gone", n)
			}
			b2.Forget(number(n))
		}
		if ran := readFile(filepath.Join(b.config.Dir, "ran")); len(ran) != 2*last {
			t.Errorf("%d attempts ran %d times", last, len(ran)/2)
		}
		eventually(t, "nothing is left", func() bool {
			ids, err := b2.Folders()
			return err == nil && len(ids) == 0 && b2.ledgerFiles() == 0
		})
	})
}

// A shim that was told by a daemon that is gone, and a daemon that knows nothing of it, start
// the same light attempts at the same time: who comes first seals the ledger, or writes.
func TestLateShimOfLightAttempts(t *testing.T) {
	beside(t)
	rounds := 40
	b := openBench(t, Config{})
	random := rand.New(rand.NewPCG(5, 6))
	late, sealed := 0, 0
	for n := 1; n <= rounds; n++ {
		id := number(n)
		spec := lightShell(n, "echo $KITH_JOB_ID >> ../../ledger; exit 5")
		p := startTestShim(t, b)
		w := &worker{x: b.Executor}
		run, exit, err := b.prepareRun(&attempt{id: id, folder: folderName(id), spec: spec}, w)
		if exit != nil || err != nil || run.Ledger == "" {
			t.Fatal(run, exit, err)
		}
		done := make(chan struct{})
		go func() {
			defer close(done)
			if err := p.send(run); err != nil {
				t.Error(err)
			}
			_ = p.conn.Close()
		}()
		time.Sleep(time.Duration(random.IntN(1500)) * time.Microsecond)
		if n%2 == 0 {
			b.Start(spec)
		} else {
			b.Adopt(spec, b.BootID())
		}
		<-done
		b.until("end", func() bool { return len(b.finished[id])+len(b.unable[id]) > 0 })
		b.mu.Lock()
		unable := len(b.unable[id]) > 0
		b.mu.Unlock()
		if unable {
			sealed++ // between the entry and the look at the header: then it runs nowhere
			continue
		}
		if o := b.wait(id); o.ExitCode != 5 {
			t.Fatalf("round %d: %+v", n, o)
		}
		if _, kept := b.folders.ledgers.find(folderName(id)); kept {
			late++
		}
	}
	t.Logf("the late shim won %d of %d times, and the seal came in between %d times", late, rounds, sealed)
	if late == 0 || late == rounds {
		t.Log("one side won always")
	}
	ran := strings.Count(readFile(filepath.Join(b.config.Dir, "ledger")), "\n")
	seen := map[string]bool{}
	for line := range strings.Lines(readFile(filepath.Join(b.config.Dir, "ledger"))) {
		if seen[line] {
			t.Errorf("%s ran twice", strings.TrimSpace(line))
		}
		seen[line] = true
	}
	if ran != rounds-sealed {
		t.Errorf("%d attempts ran of %d, %d were told not to have been", ran, rounds, sealed)
	}
}

// A shim that was told, and finds its ledger sealed, starts nothing.
func TestSealedLedgersStartNothing(t *testing.T) {
	beside(t)
	b := openBench(t, Config{})
	p := startTestShim(t, b)
	w := &worker{x: b.Executor}
	for n := 1; n <= 2; n++ {
		id := number(n)
		run, _, err := b.prepareRun(&attempt{id: id, folder: folderName(id), spec: lightShell(n, "echo x >>../../ran")}, w)
		if err != nil {
			t.Fatal(err)
		}
		run.Sequence = uint64(n)
		if n == 2 {
			e, ok := b.folders.ledgers.find(folderName(id))
			if !ok {
				t.Fatal("no entry")
			}
			if blank, err := b.folders.ledgers.seal(e); err != nil || !blank {
				t.Fatal(blank, err)
			}
		}
		tell(t, p, run)
		m := hear(t, p)
		if _, told := m.(*shim.Started); told && n == 1 { // or it ended before it was told
			m = hear(t, p)
		}
		ended, ok := m.(*shim.Ended)
		if !ok || (n == 2) != (ended.Exit.Cause == shim.CauseNotStarted) {
			t.Errorf("attempt %d: %+v", n, ended)
		}
	}
	if ran := readFile(filepath.Join(b.config.Dir, "ran")); ran != "x\n" {
		t.Errorf("ran: %q", ran)
	}
}

// That a light attempt was started is told while it runs, though a little later than of others,
// and only once; its end has when that was. What it leaves does not matter.
func TestLightAttemptsAreToldToRun(t *testing.T) {
	inEachIsolation(t, func(t *testing.T, c Config) {
		b := openBench(t, c)
		for n := 1; n <= 3; n++ {
			id := number(n)
			b.Start(lightShell(n, "until [ -e ../../go ]; do sleep 0.01; done"))
			b.untilStarted(id)
		}
		if err := os.WriteFile(filepath.Join(b.config.Dir, "go"), nil, 0o600); err != nil {
			t.Fatal(err)
		}
		for n := 1; n <= 3; n++ {
			if o := b.wait(number(n)); o.Kind != job.Success || o.Start == 0 || b.starts(number(n)) != 1 {
				t.Errorf("attempt %d: %+v, told %d times that it was started", n, o, b.starts(number(n)))
			}
		}
		for n := 4; n <= 40; n++ { // one behind the other: a timer of the one before fires
			b.Start(lightShell(n, "exit 3"))
			if o := b.wait(number(n)); o.ExitCode != 3 || o.Start == 0 || o.End < o.Start || b.starts(number(n)) > 1 {
				t.Errorf("attempt %d: %+v, told %d times that it was started", n, o, b.starts(number(n)))
			}
		}
		b.Start(lightShell(41, "exec sleep 1000"))
		b.untilStarted(number(41))
		b.Stop(number(41), work.StopCancel)
		if o := b.wait(number(41)); o.Kind != job.Cancel {
			t.Errorf("a long one: %+v", o)
		}
	})
}

// Shims die at any moment, while they run light attempts and between two of them: each
// attempt runs at most once, and is lost only if its shim was killed.
func TestKilledShimsOfLightAttempts(t *testing.T) {
	inEachIsolation(t, func(t *testing.T, c Config) {
		c.Processors, c.KeepIdle = 2, 2
		b := openBench(t, c)
		const attempts = 120
		var killing sync.WaitGroup
		over := make(chan struct{})
		killing.Go(func() {
			random := rand.New(rand.NewPCG(7, 8))
			for {
				select {
				case <-over:
					return
				case <-time.After(time.Duration(random.IntN(40)) * time.Millisecond):
				}
				if list := shimProcesses(c.ShimPath); len(list) > 0 {
					_ = syscall.Kill(list[random.IntN(len(list))], syscall.SIGKILL)
				}
			}
		})
		for n := 1; n <= attempts; n += 2 {
			for i := range 2 {
				b.Start(lightShell(n+i, fmt.Sprintf("echo $KITH_JOB_ID >>../../ledger; sleep 0.00%d; exit 2", n%9)))
			}
			for i := range 2 {
				id := number(n + i)
				b.until("end", func() bool { return len(b.finished[id])+len(b.unable[id]) > 0 })
				b.Forget(id)
			}
		}
		close(over)
		killing.Wait()
		seen := map[string]int{}
		for line := range strings.Lines(readFile(filepath.Join(b.config.Dir, "ledger"))) {
			seen[strings.TrimSpace(line)]++
		}
		for n := 1; n <= attempts; n++ {
			id := number(n)
			b.mu.Lock()
			ends, unable := b.finished[id], len(b.unable[id])
			b.mu.Unlock()
			ran := seen[id.Job.String()]
			switch {
			case ran > 1:
				t.Errorf("attempt %d ran %d times", n, ran)
			case unable > 0 && ran > 0:
				t.Errorf("attempt %d ran, and is said not to have been started", n)
			case len(ends) == 1 && !lost(ends[0]) && ends[0].Start != 0 && (ran != 1 || ends[0].ExitCode != 2):
				t.Errorf("attempt %d ran %d times: %+v", n, ran, ends[0])
			}
		}
		eventually(t, "ledgers of shims that died are gone", func() bool { return b.ledgerFiles() <= 2 })
	})
}

// What is no ledger of an earlier daemon any more does not keep this one from opening.
func TestLedgersThatAreNone(t *testing.T) {
	for kind, make := range replacements {
		t.Run(kind, func(t *testing.T) {
			beside(t)
			if kind == "device" && os.Geteuid() != 0 {
				t.Skip("needs root to make a device")
			}
			b := openBench(t, Config{})
			b.run(lightShell(1, "exit 4"))
			b.Close()
			path := filepath.Join(b.config.Dir, shim.LedgersName, "1")
			if err := errors.Join(os.Remove(path), make(path)); err != nil {
				t.Skipf("no %s can be put in place of a ledger here: %v", kind, err)
			}
			b2 := b.reopen()
			if o := b2.run(lightShell(2, "exit 6")); o.ExitCode != 6 {
				t.Errorf("%+v", o)
			}
		})
	}
}

// A lease that is written late does not become that of the attempt that has the folder now.
func TestLateLeasesMissTheNextAttempt(t *testing.T) {
	f, path := testFolders(t)
	name, long := filepath.Base(path), work.Lease{Stop: 1 << 60, Gone: 1 << 60}
	for n := range 400 {
		next := fmt.Sprintf("a.1.1-%d", n+2)
		if err := f.prepare(name); err != nil {
			t.Fatal(err)
		}
		own := work.Lease{Stop: time.Duration(n + 1), Gone: time.Duration(n + 1)}
		if err := f.writeLease(name, own); err != nil {
			t.Fatal(err)
		}
		var writing sync.WaitGroup
		writing.Go(func() { _ = f.writeLease(name, long) }) // on the way when its attempt ends
		if n%2 == 0 {
			if !f.passOn(name, next, own) {
				t.Fatal("not passed on")
			}
		} else {
			if !f.recycle(name) {
				t.Fatal("not recycled")
			}
			if err := f.prepare(next); err != nil {
				t.Fatal(err)
			}
		}
		writing.Wait()
		if l := f.readLease(next); l == long {
			t.Fatalf("round %d: the next attempt has the lease of the one before", n)
		}
		name = next
	}
}
