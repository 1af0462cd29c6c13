package executor

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"kith/internal/job"
	"kith/sitesched/work"
)

// asking asks for a checkpoint as a runner does.
var asking = work.Ask{Cause: job.Evicted, Signal: int(syscall.SIGUSR1), Grace: 20 * time.Second, Done: "DONE", Before: 4}

// What a job that is asked to save does: save and exit, save and go on, die of the signal, finish,
// fail, ignore it, fork away, save too late, be already done, save an older number.
func TestAsk(t *testing.T) {
	inEachIsolation(t, func(t *testing.T, c Config) {
		c.Grace = patience // a busy machine takes long to end of SIGTERM
		b := openBench(t, c)
		short, none, all := asking, asking, asking
		short.Grace = 300 * time.Millisecond
		none.Signal = 0
		all.All = true
		loop := "touch ready; while :; do sleep 0.01; done"
		for i, x := range []struct {
			name, script string
			ask          work.Ask
			want         job.Outcome
			inTime       bool
			says         string
		}{
			{"saves and exits", `trap "echo 5 >DONE; exit 85" USR1; ` + loop, asking, job.Outcome{Kind: job.Failure, ExitCode: 85, Cause: job.Evicted}, true, ""},
			{"saves and goes on", `trap "echo 5 >D; mv D DONE" USR1; ` + loop, asking, job.Outcome{Kind: job.Demoted, Cause: job.Evicted}, true, ""},
			{"dies of the signal", loop, asking, job.Outcome{Kind: job.Demoted, Signal: 10, Cause: job.Evicted}, true, "by the signal that asked it to save (SIGUSR1)"},
			{"its command dies of it", `trap : USR1; sh -c "touch ready; while :; do sleep 0.01; done"; exit $?`, all, job.Outcome{Kind: job.Demoted, ExitCode: 138, Cause: job.Evicted}, true, "(SIGUSR1)"},
			{"finishes", `trap "exit 0" USR1; ` + loop, asking, job.Outcome{Kind: job.Success}, true, ""},
			{"fails", `trap "exit 3" USR1; ` + loop, asking, job.Outcome{Kind: job.Failure, ExitCode: 3, Cause: job.Evicted}, true, ""},
			{"saves an older number", `trap "echo 4 >DONE" USR1; ` + loop, short, job.Outcome{Kind: job.Demoted, Signal: 15, Cause: job.Evicted}, false, "had not saved"},
			{"saves nonsense", `trap "mkdir DONE" USR1; ` + loop, short, job.Outcome{Kind: job.Demoted, Signal: 15, Cause: job.Evicted}, false, "had not saved"},
			{"saves too late", `trap "" USR1; trap "echo 5 >DONE; exit 85" TERM; ` + loop, short, job.Outcome{Kind: job.Demoted, ExitCode: 85, Cause: job.Evicted}, false, "had not saved"},
			{"forks away", `trap "sleep 600 & exit 85" USR1; ` + loop, asking, job.Outcome{Kind: job.Failure, ExitCode: 85, Cause: job.Evicted}, true, ""},
			{"knows no signal", loop, none, job.Outcome{Kind: job.Demoted, Cause: job.Evicted}, false, ""},
			{"ignores it", `trap "" USR1 TERM; ` + loop, short, job.Outcome{Kind: job.Demoted, Signal: 9, Cause: job.Evicted}, false, "had not saved anything 300ms after it was asked"},
		} {
			if x.want.Signal == 9 { // it has to be killed
				c.Grace = 300 * time.Millisecond
				b.Close() // the next one's shims are told from these
				b = openBench(t, c)
			}
			id := number(i + 1)
			b.Start(shell(i+1, x.script))
			b.untilFile(id, "ready")
			b.Ask(id, x.ask)
			second := x.ask
			second.Cause = job.Requested
			b.Ask(id, second)
			e := b.wait(id)
			if x.want.ExitCode == 85 && x.inTime && e.Kind == job.Demoted && e.Reason == "" {
				e.Kind, e.ExitCode = x.want.Kind, 85 // it was stopped between its DONE and its exit
			}
			if e.Kind != x.want.Kind || e.ExitCode != x.want.ExitCode || e.Signal != x.want.Signal || e.Cause != x.want.Cause || !strings.Contains(e.Reason, x.says) {
				t.Errorf("%s: %+v", x.name, e)
			}
			if a := b.askedOf(id); a == nil || a.InTime != x.inTime || a.Ask != x.ask {
				t.Errorf("%s: %+v", x.name, a)
			}
			b.Ask(id, x.ask) // of what has ended
		}
	})
}

// An ask outlives the daemon: the shim goes on with it, the next daemon tells its cause, and can
// ask what the earlier one did not.
func TestAskOutlivesTheDaemon(t *testing.T) {
	inEachIsolation(t, func(t *testing.T, c Config) {
		c.Grace = 300 * time.Millisecond
		c.Dir = filepath.Join(t.TempDir(), "attempts")
		first := openBench(t, c)
		gate := filepath.Join(t.TempDir(), "gate")
		saves := `trap "touch got; until [ -e ` + gate + ` ]; do sleep 0.01; done; echo 5 >DONE; exit 85" USR1; touch ready; while :; do sleep 0.01; done`
		for n := 1; n <= 3; n++ {
			first.Start(shell(n, saves))
			first.untilFile(number(n), "ready")
		}
		late := asking
		late.Grace = 2 * time.Second
		first.Ask(number(1), asking)
		first.untilFile(number(1), "got")
		first.Ask(number(2), late)
		first.untilFile(number(2), "got")
		boot := first.BootID()
		first.Close()
		second := openBench(t, c)
		for n := 1; n <= 3; n++ {
			second.Adopt(shell(n, ""), boot)
			if n != 2 { // that may have ended by then
				second.untilStarted(number(n))
			}
		}
		if e := second.wait(number(2)); e.Kind != job.Demoted || e.Cause != job.Evicted || second.askedOf(number(2)).InTime {
			t.Errorf("not in time: %+v", e)
		}
		again := asking
		again.Cause = job.Requested
		for _, n := range []int{1, 3} {
			second.Ask(number(n), again)
			second.untilFile(number(n), "got")
		}
		if err := os.WriteFile(gate, nil, 0o600); err != nil {
			t.Fatal(err)
		}
		for n, cause := range map[int]job.DemotionCause{1: job.Evicted, 3: job.Requested} {
			// It is asked to end as soon as it has saved, which may be before it does so by itself.
			if e := second.wait(number(n)); e.ExitCode != 85 && e.Kind != job.Demoted || e.Cause != cause || !second.askedOf(number(n)).InTime || second.askedOf(number(n)).Before != 4 {
				t.Errorf("attempt %d: %+v, %+v", n, e, second.askedOf(number(n)))
			}
		}
	})
}

// A stop ends what was asked to save, and what is being stopped is not asked.
func TestAskAndStop(t *testing.T) {
	inEachIsolation(t, func(t *testing.T, c Config) {
		c.Grace = 20 * time.Second
		b := openBench(t, c)
		for n := 1; n <= 2; n++ {
			b.Start(shell(n, `trap "touch got" USR1; trap "touch term; until [ -e go ]; do sleep 0.01; done; exit 85" TERM; touch ready; while :; do sleep 0.01; done`))
			b.untilFile(number(n), "ready")
		}
		b.Ask(number(1), asking)
		b.untilFile(number(1), "got")
		for n := 1; n <= 2; n++ {
			b.Stop(number(n), work.StopCancel)
			b.untilFile(number(n), "term")
			b.Ask(number(n), asking)
			if err := os.WriteFile(filepath.Join(b.WorkPath(number(n)), "go"), nil, 0o600); err != nil {
				t.Fatal(err)
			}
			if e := b.wait(number(n)); e.Kind != job.Cancel {
				t.Errorf("attempt %d: %+v", n, e)
			}
		}
	})
}
