package executor

import (
	"math"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"kith/internal/job"
	"kith/sitesched/executor/shim"
)

// leaseFor returns a lease that ends so long from now, with a tenth of it for SIGTERM.
func leaseFor(d time.Duration) Lease {
	now := SinceBoot()
	return Lease{Stop: now + d - d/10, Gone: now + d}
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
			if e.Kind() != job.Loss || e.StopReason != StopLease || !strings.Contains(e.Reason, "lease") {
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
	if e := b.wait(number(1)); e.Kind() != job.Success {
		t.Errorf("%+v, want success after 3.2 s under leases of 2 s", e)
	}
}

// TestLeaseOverBeforeStart: neither a late start nor an adopted attempt of
// which nobody knows the lease runs anything.
func TestLeaseOverBeforeStart(t *testing.T) {
	b := openBench(t, Config{})
	late, adopted := shell(1, "touch ran"), shell(2, "touch ran")
	late.Leased, late.Lease = true, Lease{Stop: 1, Gone: 2}
	adopted.Leased = true
	b.Start(late)
	b.Adopt(adopted, b.BootID())
	for n := 1; n <= 2; n++ {
		e := b.wait(number(n))
		if e.Kind() != job.Loss || !e.NotStarted || e.StopReason != StopLease {
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
	if e := second.wait(number(1)); e.Kind() != job.Loss {
		t.Errorf("the job without a lease: %+v", e)
	}
	if err := os.WriteFile(filepath.Join(second.WorkPath(number(2)), "enough"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if e := second.wait(number(2)); e.Kind() != job.Success {
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
		b.Executor.mu.Lock()
		pid := b.attempts[number(1)].worker.process.pid
		b.Executor.mu.Unlock()
		if err := syscall.Kill(pid, syscall.SIGSTOP); err != nil {
			t.Fatal(err)
		}
		if e := b.wait(number(1)); e.Kind() != job.Loss {
			t.Errorf("%+v", e)
		}
	})
}

func TestParseLease(t *testing.T) {
	want := Lease{Stop: 5, Gone: math.MaxInt64}
	if got := shim.ParseLease(want.Text()); got != want {
		t.Errorf("got %+v", got)
	}
	for _, text := range []string{"", "5", "5 4\n", "-1 4\n", "a b", "5 6 7", "5 99999999999999999999\n"} {
		if got := shim.ParseLease(text); got != (Lease{}) {
			t.Errorf("%q: %+v, want a lease that has ended", text, got)
		}
	}
}
