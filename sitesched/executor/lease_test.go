package executor

import (
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"kith/internal/clock"
	"kith/internal/job"
	"kith/internal/scratch"
	"kith/sitesched/executor/shim"
	"kith/sitesched/work"
)

// leaseFor returns a lease that ends so long from now, with a tenth of it for SIGTERM.
func leaseFor(d time.Duration) work.Lease {
	now := clock.SinceBoot()
	return work.Lease{Stop: now + d - d/10, Gone: now + d}
}

func TestLeaseEnds(t *testing.T) {
	inEachIsolation(t, func(t *testing.T, c Config) {
		c.Grace = 10 * time.Second // the lease leaves less
		b := openBench(t, c)
		for n, script := range []string{"sleep 60", stubborn, "setsid sleep 60 & sleep 60"} {
			spec := shell(n+1, script)
			spec.Leased, spec.Lease = true, leaseFor(time.Second)
			b.Start(spec)
		}
		for n := range 3 {
			// Which signal ends it, and whether it got so far as to start at all,
			// is a matter of how busy the machine is.
			e := b.wait(number(n + 1))
			if e.Kind != job.Loss || !strings.Contains(e.Reason, "lease") {
				t.Errorf("job %d: %+v", n+1, e)
			}
		}
	})
}

func TestLeaseProlonged(t *testing.T) {
	b := openBench(t, Config{})
	spec := shell(1, "while [ ! -e enough ]; do sleep 0.02; done; echo done")
	spec.Leased, spec.Lease = true, leaseFor(2*time.Second)
	b.Start(spec)
	for range 8 {
		time.Sleep(400 * time.Millisecond)
		b.Extend(number(1), leaseFor(2*time.Second))
	}
	b.Extend(number(1), leaseFor(50*time.Millisecond)) // never becomes shorter
	b.Extend(number(1), leaseFor(time.Minute))
	if err := os.WriteFile(filepath.Join(b.WorkPath(number(1)), "enough"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if e := b.wait(number(1)); e.Kind != job.Success {
		t.Errorf("%+v, want success after 3.2 s under leases of 2 s", e)
	}
}

// TestLeaseOverBeforeStart: neither a late start nor an adopted attempt of
// which the lease is not known runs anything.
func TestLeaseOverBeforeStart(t *testing.T) {
	b := openBench(t, Config{})
	late, adopted := shell(1, "touch ran"), shell(2, "touch ran")
	late.Leased, late.Lease = true, work.Lease{Stop: 1, Gone: 2}
	adopted.Leased = true
	b.Start(late)
	b.Adopt(adopted, b.BootID())
	for n := 1; n <= 2; n++ {
		e := b.wait(number(n))
		// On a busy machine the guard may kill the shim before it has said why.
		said, killed := e.Start == 0 && strings.Contains(e.Reason, "lease"), e.Reason == "lost: its shim was killed"
		if e.Kind != job.Loss || !said && !killed {
			t.Errorf("job %d: %+v", n, e)
		}
		if exists(filepath.Join(b.WorkPath(number(n)), "ran")) {
			t.Errorf("job %d ran without a lease", n)
		}
	}
}

// TestLeaseOutlivesDaemon: the shim knows the lease when its daemon is gone,
// and a new daemon can prolong it.
func TestLeaseOutlivesDaemon(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "attempts")
	first := openBench(t, Config{Dir: dir})
	for n := 1; n <= 2; n++ {
		spec := shell(n, "touch ready; while [ ! -e enough ]; do sleep 0.02; done")
		spec.Leased, spec.Lease = true, leaseFor(4*time.Second)
		first.Start(spec)
		first.untilFile(number(n), "ready")
	}
	first.Close()
	second := openBench(t, Config{Dir: dir})
	for n := 1; n <= 2; n++ {
		spec := shell(n, "false")
		spec.Leased = true
		second.Adopt(spec, second.BootID())
	}
	second.Extend(number(2), leaseFor(time.Minute))
	if e := second.wait(number(1)); e.Kind != job.Loss {
		t.Errorf("the job without a lease: %+v", e)
	}
	if err := os.WriteFile(filepath.Join(second.WorkPath(number(2)), "enough"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if e := second.wait(number(2)); e.Kind != job.Success {
		t.Errorf("the job with a lease: %+v", e)
	}
}

// TestLeaseEndsUnderFrozenShim: a shim that was stopped cannot end its job; the
// executor ends both.
func TestLeaseEndsUnderFrozenShim(t *testing.T) {
	inEachIsolation(t, func(t *testing.T, c Config) {
		b := openBench(t, c)
		spec := shell(1, "touch ready; sleep 60")
		spec.Leased, spec.Lease = true, leaseFor(4*time.Second)
		b.Start(spec)
		b.untilFile(number(1), "ready")
		b.freeze(number(1))
		if e := b.wait(number(1)); e.Kind != job.Loss {
			t.Errorf("%+v", e)
		}
	})
}

// freeze stops the shim of a running attempt and returns its number.
func (b *bench) freeze(id job.AttemptID) int {
	b.t.Helper()
	b.Executor.mu.Lock()
	pid := b.attempts[id].worker.process.pid
	b.Executor.mu.Unlock()
	signalProcess(b.t, pid, syscall.SIGSTOP)
	return pid
}

// TestLeaseEndsUnderFrozenShimOfEarlierDaemon: nor does such a job go on when a
// new daemon has adopted it and is not told of the lease.
func TestLeaseEndsUnderFrozenShimOfEarlierDaemon(t *testing.T) {
	inEachIsolation(t, func(t *testing.T, c Config) {
		b := openBench(t, c)
		spec := shell(1, "touch ready; sleep 60")
		spec.Leased, spec.Lease = true, leaseFor(4*time.Second)
		b.Start(spec)
		b.untilFile(number(1), "ready")
		b.freeze(number(1))
		b2 := b.reopen()
		b2.Adopt(work.Spec{Attempt: number(1), Leased: true}, b.BootID())
		if e := b2.wait(number(1)); e.Kind != job.Loss {
			t.Errorf("%+v", e)
		}
		if late := clock.SinceBoot() - spec.Lease.Gone; late > 10*time.Second {
			t.Errorf("it ended %v after its lease", late)
		}
		if left := jobProcesses(b.config.Dir); len(left) > 0 {
			t.Errorf("processes %v of the job are left", left)
		}
	})
}

// TestLeaseBoundsGrace: a job that is stopped for whatever cause has only as
// much of its grace time as its lease leaves; a lease that is prolonged
// meanwhile leaves more. The shim sees to that without a daemon.
func TestLeaseBoundsGrace(t *testing.T) {
	inEachIsolation(t, func(t *testing.T, c Config) {
		c.Grace = 40 * time.Second
		b := openBench(t, c)
		var gone time.Duration
		for n := 1; n <= 3; n++ {
			spec := shell(n, `trap "touch told" TERM; touch ready; while :; do sleep 0.05; done`)
			spec.Leased, spec.Lease = true, leaseFor(5*time.Second)
			gone = spec.Lease.Gone
			if n == 2 {
				spec.Walltime = 2 * time.Second
			}
			b.Start(spec)
		}
		for n := 1; n <= 3; n++ {
			b.untilFile(number(n), "ready")
		}
		b.Stop(number(1), work.StopCancel)
		b.Stop(number(3), work.StopCancel)
		b.Extend(number(3), leaseFor(15*time.Second))
		for n := 1; n <= 3; n++ {
			b.untilFile(number(n), "told")
		}
		b.Close()
		time.Sleep(gone + 2*time.Second - clock.SinceBoot())
		b2 := b.reopen()
		for n := 1; n <= 3; n++ {
			b2.Adopt(work.Spec{Attempt: number(n), Leased: true}, b.BootID())
		}
		for n := 1; n <= 2; n++ {
			e := b2.wait(number(n))
			if e.Signal != 9 || e.End > job.Instant(time.Now()).Add(gone+time.Second-clock.SinceBoot()) {
				t.Errorf("job %d: %+v", n, e)
			}
		}
		b2.untilStarted(number(3)) // it still runs
		if e := b2.wait(number(3)); e.Kind != job.Cancel || e.Signal != 9 {
			t.Errorf("%+v", e)
		}
	})
}

// TestLeaseOnFullDisk: a lease is prolonged in place, though there is room for
// nothing.
func TestLeaseOnFullDisk(t *testing.T) {
	disk := scratch.NewDisk(t, 16<<20)
	b := openBench(t, Config{Dir: filepath.Join(disk.Dir, "attempts")})
	enough := filepath.Join(t.TempDir(), "enough")
	spec := shell(1, "touch ready; while [ ! -e "+enough+" ]; do sleep 0.02; done")
	spec.Leased, spec.Lease = true, leaseFor(3*time.Second)
	b.Start(spec)
	b.untilFile(number(1), "ready")
	disk.Fill(0)
	for range 12 {
		time.Sleep(400 * time.Millisecond)
		b.Extend(number(1), leaseFor(3*time.Second))
	}
	if err := os.WriteFile(enough, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if e := b.wait(number(1)); e.Kind != job.Success {
		t.Errorf("%+v, want success after 4.8 s under leases of 3 s", e)
	}
}

// TestLeaseFile writes one lease after the other, tears each, and reads what
// is there as shims of this and of an earlier version do.
func TestLeaseFile(t *testing.T) {
	f := &folders{dir: t.TempDir()}
	if err := os.Mkdir(f.path("a"), 0o700); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(f.path("a"), shim.LeaseName)
	write := func(l work.Lease) []byte {
		t.Helper()
		if err := f.writeLease("a", l); err != nil {
			t.Fatal(err)
		}
		return []byte(readFile(path))
	}
	before := write(work.Lease{Stop: 1, Gone: 2})
	for n := time.Duration(2); n < 8; n++ {
		l := work.Lease{Stop: n, Gone: 10 * n}
		was := f.readLease("a")
		now := write(l)
		if got := f.readLease("a"); got != l || len(now) != shim.LeaseSize {
			t.Fatalf("wrote %+v, read %+v of %d bytes", l, got, len(now))
		}
		for cut := range now {
			torn := append(append([]byte(nil), now[:cut]...), before[cut:]...)
			if got := work.Lease(shim.ParseLease(torn)); got != was && got != l {
				t.Fatalf("torn at %d: %+v, want %+v or %+v", cut, got, was, l)
			}
		}
		before = now
	}
	if err := os.WriteFile(path, shim.Lease{Stop: 3, Gone: 4}.OldText(), 0o600); err != nil {
		t.Fatal(err)
	}
	if got := write(work.Lease{Stop: 5, Gone: 6}); string(got) != "5 6\n" || f.readLease("a") != (work.Lease{Stop: 5, Gone: 6}) {
		t.Errorf("for a shim of an earlier version: %q", got)
	}
}

func TestParseLease(t *testing.T) {
	want := work.Lease{Stop: 5, Gone: math.MaxInt64}
	for _, file := range [][]byte{shim.Lease(want).File(), shim.Lease(want).OldText()} {
		if got := work.Lease(shim.ParseLease(file)); got != want {
			t.Errorf("%q: got %+v", file, got)
		}
	}
	for _, text := range []string{"", "5", "5 4\n", "-1 4\n", "a b", "5 6 7", "5 99999999999999999999\n", string(shim.Lease(want).Slot())} {
		if got := work.Lease(shim.ParseLease([]byte(text))); got != (work.Lease{}) {
			t.Errorf("%q: %+v, want a lease that has ended", text, got)
		}
	}
}

// TestLeaseEndsBeforeFrozenShimStarts: a shim that was stopped while it was idle
// starts nothing when it goes on, and the attempt ends with its lease, as lost.
func TestLeaseEndsBeforeFrozenShimStarts(t *testing.T) {
	inEachIsolation(t, func(t *testing.T, c Config) {
		b := openBench(t, c)
		b.Executor.mu.Lock()
		pid := b.idle[0].process.pid
		b.Executor.mu.Unlock()
		signalProcess(t, pid, syscall.SIGSTOP)
		spec := shell(1, "touch ran")
		spec.Leased, spec.Lease = true, leaseFor(time.Second)
		b.Start(spec)
		if e := b.wait(number(1)); e.Kind != job.Loss || exists(filepath.Join(b.WorkPath(number(1)), "ran")) {
			t.Errorf("%+v", e)
		}
	})
}

// TestGuardClock: the executor watches over leases by their own clock.
func TestGuardClock(t *testing.T) {
	b := openBench(t, Config{})
	text := readFile(fmt.Sprintf("/proc/self/fdinfo/%d", b.watcher.alarm))
	if !strings.Contains(text, "clockid:") {
		t.Skipf("this kernel does not tell in /proc/self/fdinfo which clock a timer has: %s", text)
	}
	if !strings.Contains(text, "clockid: 7\n") { // CLOCK_BOOTTIME
		t.Error(text)
	}
}
