package executor

import (
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"kith/internal/job"
	"kith/sitesched/work"
)

// stubborn runs until it is killed, and says when it is ready for that.
const stubborn = `trap "" TERM; touch ready; while :; do sleep 0.05; done`

func (b *bench) untilFile(id job.AttemptID, name string) {
	b.t.Helper()
	path := filepath.Join(b.WorkPath(id), name)
	eventually(b.t, path, func() bool { return exists(path) })
}

func TestWalltime(t *testing.T) {
	inEachIsolation(t, func(t *testing.T, c Config) {
		for _, x := range []struct {
			script string
			grace  time.Duration
			signal int32
		}{
			{"sleep 600", patience, 15}, // it ends of SIGTERM, however long a busy machine takes for that
			{stubborn, 300 * time.Millisecond, 9},
		} {
			c.Grace = x.grace
			b := openBench(t, c)
			for n, walltime := 1, 200*time.Millisecond; ; n, walltime = n+1, 2*walltime {
				spec := shell(n, x.script)
				spec.Walltime = walltime
				e := b.run(spec)
				if x.signal == 9 && e.Signal == 15 && walltime < patience && !exists(filepath.Join(b.WorkPath(spec.Attempt), "ready")) {
					continue // a busy machine let it ignore nothing in that time
				}
				if e.Kind != job.Timeout || e.Signal != x.signal || !strings.Contains(e.Reason, fmt.Sprint("walltime of ", walltime)) {
					t.Errorf("%s: %+v", x.script, e)
				}
				if ran := e.End.Sub(e.Start); ran < walltime || ran > walltime+patience {
					t.Errorf("%s ran %v", x.script, ran)
				}
				break
			}
			b.Close() // the next one's shims are told from these
		}
	})
}

func TestStopRunning(t *testing.T) {
	inEachIsolation(t, func(t *testing.T, c Config) {
		for _, x := range []struct {
			script string
			grace  time.Duration
			want   job.Outcome
		}{
			{stubborn, 300 * time.Millisecond, job.Outcome{Signal: 9}},
			// These end of SIGTERM, however long a busy machine takes for that.
			{"touch ready; sleep 600", patience, job.Outcome{Signal: 15}},
			{`trap "exit 7" TERM; touch ready; while :; do sleep 0.01; done`, patience, job.Outcome{ExitCode: 7}},
		} {
			c.Grace = x.grace
			b := openBench(t, c)
			id := number(1)
			b.Start(shell(1, x.script))
			b.untilFile(id, "ready")
			b.Stop(id, work.StopCancel)
			b.Stop(id, "a second reason does not count")
			e := b.wait(id)
			if e.Signal != x.want.Signal || e.ExitCode != x.want.ExitCode ||
				e.Kind != job.Cancel || e.Reason != "stopped: cancelled" {
				t.Errorf("%s: %+v", x.script, e)
			}
			b.Stop(id, work.StopCancel)
			b.Close() // the next one's shims are told from these
		}
	})
}

// TestGraceIsForAll has a shell die of SIGTERM at once while its child still
// saves its work.
func TestGraceIsForAll(t *testing.T) {
	inEachIsolation(t, func(t *testing.T, c Config) {
		c.Grace = 30 * time.Second
		b := openBench(t, c)
		b.Start(shell(1, `sh -c 'trap "sleep 0.3; echo saved; exit" TERM; touch ready; while :; do sleep 0.01; done' & wait`))
		b.untilFile(number(1), "ready")
		b.Stop(number(1), work.StopCancel)
		e := b.wait(number(1))
		if out := readFile(b.StdoutPath(number(1))); out != "saved\n" || e.Kind != job.Cancel {
			t.Errorf("stdout %q, %+v", out, e)
		}
	})
}

func TestNoGrace(t *testing.T) {
	beside(t)
	b := openBench(t, Config{Grace: -1})
	b.Start(shell(1, `trap "echo saved; exit" TERM; touch ready; while :; do sleep 0.01; done`))
	b.untilFile(number(1), "ready")
	b.Stop(number(1), work.StopSite)
	if e := b.wait(number(1)); e.Kind != job.Cancel || e.Signal != 9 || e.Reason != "stopped: "+string(work.StopSite) {
		t.Errorf("%+v", e)
	}
}

func TestStopBeforeStart(t *testing.T) {
	beside(t)
	b := openBench(t, Config{})
	b.Stop(number(1), work.StopSite)
	b.Start(shell(1, "echo must not run"))
	e := b.wait(number(1))
	if e.Kind != job.Cancel || e.Start != 0 || e.Reason != "not started: "+string(work.StopSite) {
		t.Errorf("%+v", e)
	}
	b.Stop(number(2), work.StopCancel)
	folder := filepath.Dir(b.WorkPath(number(2)))
	eventually(t, "the stop is noted", func() bool { return exists(filepath.Join(folder, stopName)) })
	b.Forget(number(2))
	eventually(t, "the stop is forgotten", func() bool { return !exists(folder) })
}

func TestStopQueued(t *testing.T) {
	beside(t)
	b := openBench(t, Config{Processors: 1, KeepIdle: 1})
	// More than can be started: the last ones wait for a shim.
	last := 1 + spareShims + 3
	for n := 1; n <= last; n++ {
		b.Start(shell(n, "touch ready; sleep 60"))
	}
	b.untilFile(number(1), "ready")
	b.Stop(number(last), work.StopCancel)
	if e := b.wait(number(last)); e.Start != 0 || e.Kind != job.Cancel {
		t.Errorf("%+v", e)
	}
	for n := 1; n < last; n++ {
		b.Stop(number(n), work.StopCancel)
	}
	for n := 1; n < last; n++ {
		if e := b.wait(number(n)); e.Kind != job.Cancel {
			t.Errorf("job %d: %+v", n, e)
		}
	}
}

// TestStopWhileStarting stops attempts at every moment of their start, and
// their neighbours that use the same shims must not notice.
func TestStopWhileStarting(t *testing.T) {
	beside(t)
	rounds := 150
	if testing.Short() {
		rounds = 30
	}
	random := rand.New(rand.NewPCG(1, 2))
	b := openBench(t, Config{Processors: 4, Grace: time.Second})
	stopped, before := 0, 0
	for n := range rounds {
		target, neighbour := number(2*n+1), number(2*n+2)
		b.Start(shell(2*n+1, "sleep 60"))
		b.Start(shell(2*n+2, "exit 6"))
		time.Sleep(time.Duration(random.IntN(4000)) * time.Microsecond)
		b.Stop(target, work.StopCancel)
		e := b.wait(target)
		if e.Kind != job.Cancel {
			t.Fatalf("round %d: %+v", n, e)
		}
		if e.Start == 0 {
			before++
		} else {
			stopped++
		}
		if e := b.wait(neighbour); e.ExitCode != 6 || e.Kind == job.Cancel {
			t.Fatalf("round %d: the neighbour was hit: %+v", n, e)
		}
	}
	t.Logf("%d stopped while they ran, %d before", stopped, before)
}

func TestSignalFromOutsideIsNoCancel(t *testing.T) {
	inEachIsolation(t, func(t *testing.T, c Config) {
		b := openBench(t, c)
		b.Start(shell(1, "touch ready; sleep 60"))
		b.untilFile(number(1), "ready")
		for _, pid := range shimProcesses(b.config.ShimPath) {
			signalProcess(t, pid, 15)
		}
		e := b.wait(number(1))
		if e.Kind != job.Failure || !strings.Contains(e.Reason, "from outside") || strings.HasSuffix(e.Reason, "; ") {
			t.Errorf("%+v", e)
		}
	})
}

// TestStopFrozenShim: a shim that was stopped by a signal cannot stop its job,
// be it this executor's or one before's. It is made to go on, and the job has
// its grace time.
func TestStopFrozenShim(t *testing.T) {
	inEachIsolation(t, func(t *testing.T, c Config) {
		b := openBench(t, c)
		for n := 1; n <= 2; n++ {
			b.Start(shell(n, `trap "exit 7" TERM; touch ready; while :; do sleep 0.01; done`))
			b.untilFile(number(n), "ready")
			b.freeze(number(n))
		}
		b.Stop(number(1), work.StopCancel)
		if e := b.wait(number(1)); e.Kind != job.Cancel || e.ExitCode != 7 {
			t.Errorf("%+v", e)
		}
		b2 := b.reopen()
		b2.Adopt(work.Spec{Attempt: number(2)}, b.BootID())
		b2.untilStarted(number(2))
		b2.Stop(number(2), work.StopCancel)
		if e := b2.wait(number(2)); e.Kind != job.Cancel || e.ExitCode != 7 {
			t.Errorf("%+v", e)
		}
	})
}

// TestStopShimThatDoesNotReact: a shim that does not go on is killed in the
// end, and its job with it.
func TestStopShimThatDoesNotReact(t *testing.T) {
	inEachIsolation(t, func(t *testing.T, c Config) {
		c.Grace = time.Second
		b := openBench(t, c)
		b.Start(shell(1, stubborn))
		b.untilFile(number(1), "ready")
		pid := b.freeze(number(1))
		over := make(chan struct{})
		var freezing sync.WaitGroup
		freezing.Go(func() {
			for {
				select {
				case <-over:
					return
				default:
					_ = syscall.Kill(pid, syscall.SIGSTOP)
				}
			}
		})
		b2 := b.reopen()
		b2.Executor.mu.Lock()
		b2.stopPatience = 500 * time.Millisecond
		b2.Executor.mu.Unlock()
		b2.Adopt(work.Spec{Attempt: number(1)}, b.BootID())
		b2.untilStarted(number(1))
		b2.Stop(number(1), work.StopCancel)
		e := b2.wait(number(1))
		close(over)
		freezing.Wait()
		if e.Kind != job.Cancel || e.Signal != 9 {
			t.Errorf("%+v", e)
		}
		if left := jobProcesses(b.config.Dir); len(left) > 0 {
			t.Errorf("processes %v of the job are left", left)
		}
	})
}

// zombies lists the ended processes that none of parents has collected.
func zombies(parents []int) []int {
	var list []int
	for _, pid := range processes() {
		fields := strings.Fields(readFile(fmt.Sprintf("/proc/%d/stat", pid)))
		if len(fields) > 3 && fields[1] == "(sleep)" && fields[2] == "Z" {
			if parent, _ := strconv.Atoi(fields[3]); slices.Contains(parents, parent) {
				list = append(list, pid)
			}
		}
	}
	return list
}

func TestOrphansAreReaped(t *testing.T) {
	inEachIsolation(t, func(t *testing.T, c Config) {
		b := openBench(t, c)
		// Each subshell leaves a process that ends later, and no process waits for it.
		b.Start(shell(1, `for i in 1 2 3 4 5 6 7 8; do (sleep 0.05 &) ; done; touch ready; sleep 60`))
		b.untilFile(number(1), "ready")
		eventually(t, "no zombies", func() bool { return len(zombies(shimProcesses(b.config.ShimPath))) == 0 })
		b.Stop(number(1), work.StopCancel)
		b.wait(number(1))
	})
}
