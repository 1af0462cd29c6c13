package executor

import (
	"strings"
	"syscall"
	"testing"
	"time"

	"kith/internal/job"
	"kith/sitesched/work"
)

// daemonise leaves processes behind in every way a script can: in the
// background, in a session of its own, with its parent gone, and deaf to SIGTERM.
const daemonise = `
	sleep 1000 &
	setsid sleep 1001 &
	(setsid sh -c '(sleep 1002 &); sleep 1003' &)
	(setsid sh -c 'trap "" TERM HUP; touch deaf; while :; do sleep 0.05; done' >/dev/null 2>&1 </dev/null &)
	while [ ! -e deaf ]; do sleep 0.01; done
	touch ready
`

func TestNothingSurvivesTheEnd(t *testing.T) {
	inEachIsolation(t, func(t *testing.T, c Config) {
		b := openBench(t, c)
		e := b.run(shell(1, daemonise+"exit 3"))
		if left := jobProcesses(b.config.Dir); len(left) > 0 {
			t.Errorf("processes %v live after the end was reported", left)
		}
		if e.ExitCode != 3 || e.Signal != 0 || e.Reason != "" {
			t.Errorf("%+v", e)
		}
	})
}

func TestNothingSurvivesAStop(t *testing.T) {
	inEachIsolation(t, func(t *testing.T, c Config) {
		c.Grace = 200 * time.Millisecond
		b := openBench(t, c)
		b.Start(shell(1, daemonise+"sleep 60"))
		b.untilFile(number(1), "ready")
		b.Stop(number(1), work.StopCancel)
		e := b.wait(number(1))
		if left := jobProcesses(b.config.Dir); len(left) > 0 {
			t.Errorf("processes %v live after the end was reported", left)
		}
		if e.Kind != job.Cancel {
			t.Errorf("%+v", e)
		}
	})
}

func TestForksWhileBeingKilled(t *testing.T) {
	inEachIsolation(t, func(t *testing.T, c Config) {
		c.Grace = 100 * time.Millisecond
		b := openBench(t, c)
		// Every process starts another one and ends: none lives long enough to be found easily.
		b.Start(shell(1, `
			cat > run <<'END'
trap "" TERM
sleep 0.02
setsid sh ./run &
END
			for i in 1 2 3 4; do setsid sh ./run & done
			touch ready; sleep 60`))
		b.untilFile(number(1), "ready")
		time.Sleep(100 * time.Millisecond)
		b.Stop(number(1), work.StopCancel)
		b.wait(number(1))
		if left := jobProcesses(b.config.Dir); len(left) > 0 {
			t.Errorf("processes %v live after the end was reported", left)
		}
	})
}

// TestKilledShimTakesTheJobAlong kills the shim while it runs a job, and while
// it has none.
func TestKilledShimTakesTheJobAlong(t *testing.T) {
	inEachIsolation(t, func(t *testing.T, c Config) {
		b := openBench(t, c)
		kill := func() {
			for _, pid := range shimProcesses(b.config.ShimPath) {
				signalProcess(t, pid, syscall.SIGKILL)
			}
		}
		b.Start(shell(1, daemonise+"sleep 60"))
		b.untilFile(number(1), "ready")
		kill()
		e := b.wait(number(1))
		if left := jobProcesses(b.config.Dir); len(left) > 0 {
			t.Errorf("processes %v live after the loss was reported", left)
		}
		if !lost(e) || !strings.Contains(e.Reason, "shim was killed") || e.Start == 0 {
			t.Errorf("%+v", e)
		}
		// A shim that dies with nothing to do is replaced.
		if e := b.run(shell(2, "exit 2")); e.ExitCode != 2 {
			t.Errorf("%+v", e)
		}
		kill()
		if e := b.run(shell(3, "exit 3")); e.ExitCode != 3 {
			t.Errorf("%+v", e)
		}
	})
}

// TestShimsThatCannotLive has every shim die under the attempt before it can start it.
func TestShimsThatCannotLive(t *testing.T) {
	beside(t)
	b := openBench(t, Config{})
	stop := make(chan struct{})
	done := make(chan struct{})
	go func() {
		defer close(done)
		for {
			select {
			case <-stop:
				return
			default:
				for _, pid := range shimProcesses(b.config.ShimPath) {
					_ = syscall.Kill(pid, syscall.SIGKILL)
				}
			}
		}
	}()
	ended := 0
	for n := range 5 {
		b.Start(shell(n+1, "exit 4"))
		b.until("end or failed start", func() bool { return len(b.finished[number(n+1)])+len(b.unable[number(n+1)]) > 0 })
		if b.isUnable(number(n + 1)) {
			continue // no shim lived long enough to be told
		}
		e := b.exit(number(n + 1))
		if e.ExitCode == 4 && !lost(e) && e.Start != 0 {
			ended++
		} else if !lost(e) && e.Start != 0 || e.Reason == "" {
			t.Errorf("%+v", e)
		}
	}
	close(stop)
	<-done
	t.Logf("%d of 5 ran all the same", ended)
	if e := b.run(shell(99, "exit 4")); e.ExitCode != 4 {
		t.Errorf("afterwards: %+v", e)
	}
}
