package executor

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"kith/sitesched/executor/shim"
)

// poisonVariable makes the test binary change what a shim passes on: of its parent,
// as a job of the same user can. "limit N", "nice" or "score".
const poisonVariable = "KITH_TEST_POISON"

// poison does what the variable says to the parent of this process. It returns 3 if
// this machine does not allow it.
func poison(what string) int {
	parent := os.Getppid()
	kind, rest, _ := strings.Cut(what, " ")
	var err error
	switch kind {
	case "limit":
		n, _ := strconv.Atoi(rest)
		if n == unix.RLIMIT_NPROC {
			// The shim lowers its own while it forks, and sets it back after: what a job
			// changes in between is gone.
			time.Sleep(100 * time.Millisecond)
		}
		var l unix.Rlimit
		if err = unix.Prlimit(parent, n, nil, &l); err != nil {
			break
		}
		switch {
		case l.Cur == unix.RLIM_INFINITY:
			l.Cur = 1 << 40
		case l.Cur == 0 && l.Max == 0: // only root may
			l.Cur, l.Max = 1, 1
		case l.Cur == 0:
			l.Cur = 1
		default:
			l.Cur -= l.Cur / 8
		}
		err = unix.Prlimit(parent, n, &l, nil)
	case "nice":
		err = syscall.Setpriority(syscall.PRIO_PROCESS, parent, 7)
	case "score":
		err = os.WriteFile(fmt.Sprintf("/proc/%d/oom_score_adj", parent), []byte("300"), 0)
	}
	if err != nil {
		fmt.Println(err)
		return 3
	}
	return 0
}

// A job can change the limits, the priority and more of its own shim, which is a
// process of the same user. No other job may run under that shim.
func TestAPoisonedShimRetires(t *testing.T) {
	changes := []string{"nice", "score"}
	for n := range 16 {
		changes = append(changes, "limit "+strconv.Itoa(n))
	}
	inEachIsolation(t, func(t *testing.T, c Config) {
		b := openBench(t, c)
		for i, change := range changes {
			p := startTestShim(t, b)
			run := b.message(10+i, "")
			run.Argv, run.Env = []string{testBinary(t)}, append(run.Env, poisonVariable+"="+change)
			tell(t, p, run)
			hear(t, p)
			m, ok := hear(t, p).(*shim.Ended)
			switch {
			case !ok:
				t.Fatalf("%s: %+v", change, m)
			case m.Exit.Code == 3:
				t.Logf("%s: not allowed here: %s", change, readFile(b.StdoutPath(number(10+i))))
			case m.Exit.Code != 0 || !strings.Contains(m.Retire, "the job changed"):
				t.Errorf("%s: exit %+v, retires %q", change, m.Exit, m.Retire)
			}
		}
		// One that changes nothing does not.
		p := startTestShim(t, b)
		tell(t, p, b.message(1, "exit 0"))
		hear(t, p)
		if m, ok := hear(t, p).(*shim.Ended); !ok || m.Retire != "" {
			t.Errorf("an ordinary job: %+v", m)
		}
	})
}

func testBinary(t *testing.T) string {
	t.Helper()
	path, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	return path
}

// No signal that a job can send to its shim ends it; each has its default action in
// the job itself.
func TestNoSignalOfAJobEndsItsShim(t *testing.T) {
	inEachIsolation(t, func(t *testing.T, c Config) {
		c.Grace = -1
		b := openBench(t, c)
		n := 0
		for sig := 1; sig <= 64; sig++ {
			switch syscall.Signal(sig) {
			case syscall.SIGKILL, syscall.SIGSTOP, 32, 33: // cannot be caught; the C library's own
				continue
			case 34: // nor by a Go program; the first process of a namespace does not die of it
				if c.Isolation == Subreaper {
					continue
				}
			}
			n++
			o := b.run(shell(n, fmt.Sprintf("kill -%d $PPID; sleep 0.05; exit 5", sig)))
			want := o.ExitCode == 5
			if syscall.Signal(sig) == syscall.SIGTERM {
				want = strings.Contains(o.Reason, "SIGTERM") // the shim is asked to end the job, and does
			}
			if !want {
				t.Errorf("signal %d: %+v", sig, o)
			}
		}
		if log := readFile(b.launcher.log); log != "" {
			t.Errorf("shims wrote %.200s", log)
		}
		o := b.run(shell(99, "kill -QUIT $$; sleep 9"))
		if o.Signal != int32(syscall.SIGQUIT) {
			t.Errorf("a signal to the job itself: %+v", o)
		}
	})
}

// What crashed shims write is bounded, however many there are.
func TestTheLogOfShimsIsBounded(t *testing.T) {
	beside(t)
	b := openBench(t, Config{})
	if err := os.WriteFile(b.launcher.log, make([]byte, maxLog+1), 0o600); err != nil {
		t.Fatal(err)
	}
	startTestShim(t, b)
	if st, err := os.Stat(b.launcher.log); err != nil || st.Size() > maxLog {
		t.Errorf("%v, %v", st, err)
	}
}
