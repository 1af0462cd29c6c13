package executor

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"kith/internal/estimate"
	"kith/internal/job"
	"kith/sitesched/executor/shim"
	"kith/sitesched/work"
)

// estimated makes a job with an estimator, both shell scripts. At most 100 of what it needs may be
// left for its command to run.
func estimated(n int, estimator, script string) work.Spec {
	s := shell(n, script)
	s.Estimate = &work.Estimate{Argv: []string{"/bin/sh", "-c", estimator}, Limit: 40 * time.Second, Most: 100}
	return s
}

// What an estimator does: give bounds, nonsense, none, too much of it, not end, leave processes
// behind, fail.
func TestEstimate(t *testing.T) {
	inEachIsolation(t, func(t *testing.T, c Config) {
		b := openBench(t, c)
		runs := job.Outcome{Kind: job.Failure, ExitCode: 3}
		leaves := job.Outcome{Kind: job.Demoted, Cause: job.OutOfLevel}
		with := func(o job.Outcome, bound float64) job.Outcome { o.Bound = bound; return o }
		for i, x := range []struct {
			name, script string
			change       func(*work.Estimate)
			want         job.Outcome
			stderr       string // what must be in it, "" for nothing at all
		}{
			{"a bound below", "echo bound 90", nil, with(runs, 90), ""},
			{"a bound at the limit", "echo bound 100", nil, with(runs, 100), ""},
			{"a bound above", "echo bound 100.5", nil, with(leaves, 100.5), ""},
			{"the least counts", "echo bound 500; echo bound 80; echo bound 300", nil, with(runs, 80), ""},
			{"no line end", "printf 'bound 80'", nil, with(runs, 80), ""},
			{"an earlier one is less", "echo bound 500", func(e *work.Estimate) { e.Known = 70 }, with(runs, 70), ""},
			{"an earlier one is more", "echo bound 60", func(e *work.Estimate) { e.Known = 700 }, with(runs, 60), ""},
			{"an earlier one holds", ":", func(e *work.Estimate) { e.Known = 700 }, with(leaves, 700), ""},
			{"what was done is not left", "echo bound 140", func(e *work.Estimate) { e.Done = 40 }, with(runs, 140), ""},
			{"nor more than that", "echo bound 141", func(e *work.Estimate) { e.Done = 40 }, with(leaves, 141), ""},
			{"no limit", "echo bound 1e15", func(e *work.Estimate) { e.Most = 0 }, with(runs, 1e15), ""},
			{"nonsense", "echo hello; echo bound x; echo bound 7", nil, with(runs, 7), `kith: 2 of its lines are not "bound SECONDS" with a number above 0 and were ignored, the first: "hello"`},
			{"a negative one", "echo bound -7", nil, runs, `"bound -7"`},
			{"nothing", "exit 0", nil, runs, "gave no bound"},
			{"it fails", "echo bound 7; exit 5", nil, with(runs, 7), "ended with exit code 5"},
			{"it dies", "echo bound 9; printf 'bound 1'; kill -9 $$", nil, with(runs, 9), "ended by signal 9"},
			{"it is not there", ":", func(e *work.Estimate) { e.Argv = []string{"/no/such/estimator"} }, runs, "was not started: no program"},
			{"it does not stop", "trap '' TERM; echo bound 80; printf 'bound 1'; while :; do sleep 0.01; done", func(e *work.Estimate) { e.Limit = 4 * time.Second }, with(runs, 80), "was stopped: its time was over, 4s"},
			{"nor gives a bound", "sleep 600", func(e *work.Estimate) { e.Limit = 100 * time.Millisecond }, runs, "gave no bound"},
			{"it prints for ever", "echo bound 80; yes bound 90", nil, with(runs, 80), "it printed more than 10000 lines"},
			{"it says bad things", `printf '\001\377\n'; echo bound 80`, nil, with(runs, 80), "were ignored"},
		} {
			s := estimated(i+1, "touch here; "+x.script, "test -e here && echo out && exit 3")
			if x.change != nil {
				x.change(s.Estimate)
			}
			if x.name == "it is not there" || s.Estimate.Limit < time.Second { // a busy machine may let it touch nothing in that time
				s.Argv = []string{"/bin/sh", "-c", "echo out; exit 3"}
			}
			e := b.run(s)
			if e.Kind != x.want.Kind || e.ExitCode != x.want.ExitCode || e.Signal != 0 || e.Cause != x.want.Cause || e.Bound != x.want.Bound {
				t.Errorf("%s: %+v", x.name, e)
			}
			ran := x.want.Kind == job.Failure
			if (e.Start != 0) != ran || e.End == 0 || b.starts(s.Attempt) != 1 {
				t.Errorf("%s: from %v to %v, %d starts", x.name, e.Start, e.End, b.starts(s.Attempt))
			}
			if out := readFile(b.StdoutPath(s.Attempt)); out != map[bool]string{true: "out\n"}[ran] {
				t.Errorf("%s: stdout %q", x.name, out)
			}
			if says := readFile(b.StderrPath(s.Attempt)); !strings.Contains(says, x.stderr) || x.stderr == "" && says != "" || strings.Count(says, "ignored") > 1 {
				t.Errorf("%s: stderr %q", x.name, says)
			}
			if ran == strings.Contains(e.Reason, "processor-seconds by its estimate") {
				t.Errorf("%s: %q", x.name, e.Reason)
			}
		}
		if estimate.MostLines != 10000 {
			t.Error("the bound of lines is another than this test knows")
		}
	})
}

// What an estimator leaves running must not live on beside the command, whether it ended or was stopped.
func TestEstimatorIsGoneBeforeTheCommand(t *testing.T) {
	inEachIsolation(t, func(t *testing.T, c Config) {
		b := openBench(t, c)
		for i, end := range []string{"exit 0", "sleep 600"} {
			s := estimated(i+1, `
				(setsid sh -c 'trap "" TERM HUP; echo $$ >deaf; mv deaf left; while :; do sleep 0.05; done' &)
				while [ ! -e left ]; do sleep 0.01; done; echo bound 1; `+end, `pid=$(cat left) && ! kill -0 $pid 2>/dev/null`)
			if end != "exit 0" {
				s.Estimate.Limit = 5 * time.Second
			}
			if e := b.run(s); e.Kind != job.Success {
				t.Errorf("%s: %+v: %s", end, e, readFile(b.StderrPath(s.Attempt)))
			}
		}
	})
}

// An attempt that is ended while its estimator runs never executes its command.
func TestEndedWhileEstimated(t *testing.T) {
	inEachIsolation(t, func(t *testing.T, c Config) {
		c.Grace = 200 * time.Millisecond
		b := openBench(t, c)
		const estimator = "echo bound 7; touch ready; sleep 600"
		stopped, saves, late := estimated(1, estimator, "touch ran"), estimated(2, estimator, "touch ran"), estimated(3, estimator, "touch ran")
		late.Walltime = time.Second
		for _, s := range []work.Spec{stopped, saves, late} {
			b.Start(s)
		}
		b.untilFile(stopped.Attempt, "ready")
		b.Stop(stopped.Attempt, work.StopCancel)
		b.untilFile(saves.Attempt, "ready")
		b.Ask(saves.Attempt, asking)
		for i, want := range []job.Outcome{{Kind: job.Cancel}, {Kind: job.Demoted, Cause: job.Evicted}, {Kind: job.Timeout}} {
			id := number(i + 1)
			if e := b.wait(id); e.Kind != want.Kind || e.Cause != want.Cause || e.Start != 0 || exists(b.WorkPath(id)+"/ran") {
				t.Errorf("%v: %+v", id, e)
			}
		}
	})
}

// shimOf returns the process of the shim that runs an attempt.
func shimOf(t *testing.T, b *bench, id job.AttemptID) int {
	t.Helper()
	record, err := shim.ParseRecord([]byte(readFile(filepath.Join(b.config.Dir, folderName(id), shim.RecordName))))
	if err != nil {
		t.Fatal(err)
	}
	return record.Start.Shim.PID
}

// The end of the daemon ends no estimator: its shim goes on, with the command or with the end of the
// attempt, and the next daemon tells the bound. A shim that dies takes the estimator along.
func TestEstimateOutlivesTheDaemon(t *testing.T) {
	inEachIsolation(t, func(t *testing.T, c Config) {
		c.Dir = filepath.Join(t.TempDir(), "attempts")
		first := openBench(t, c)
		gate := filepath.Join(t.TempDir(), "gate")
		wait := "touch ready; until [ -e " + gate + " ]; do sleep 0.01; done; "
		specs := []work.Spec{
			estimated(1, wait+"echo bound 7", "touch ran"),
			estimated(2, wait+"echo bound 700", "touch ran"),
			estimated(3, "echo bound 7; touch ready; sleep 600", "touch ran"),
		}
		for _, s := range specs {
			first.Start(s)
			first.untilFile(s.Attempt, "ready")
		}
		second := first.reopen()
		for _, s := range specs {
			second.Adopt(s, first.BootID())
			second.untilStarted(s.Attempt)
		}
		signalProcess(t, shimOf(t, second, number(3)), syscall.SIGKILL)
		if e := second.wait(number(3)); !lost(e) || exists(second.WorkPath(number(3))+"/ran") {
			t.Errorf("%+v", e)
		}
		third := second.reopen()
		for _, s := range specs[:2] {
			third.Adopt(s, first.BootID())
		}
		if err := os.WriteFile(gate, nil, 0o600); err != nil {
			t.Fatal(err)
		}
		if e := third.wait(number(1)); e.Kind != job.Success || e.Bound != 7 || !exists(third.WorkPath(number(1))+"/ran") {
			t.Errorf("%+v", e)
		}
		if e := third.wait(number(2)); e.Kind != job.Demoted || e.Cause != job.OutOfLevel || e.Bound != 700 || e.Start != 0 || exists(third.WorkPath(number(2))+"/ran") {
			t.Errorf("%+v", e)
		}
	})
}

// What bound an estimator has given is known while it runs, also to a daemon that began since: the least,
// which never rises. Nothing follows from it before the estimator has ended.
func TestBoundWhileEstimated(t *testing.T) {
	inEachIsolation(t, func(t *testing.T, c Config) {
		c.Dir = filepath.Join(t.TempDir(), "attempts")
		first := openBench(t, c)
		gates := t.TempDir()
		wait := func(gate string) string { return "until [ -e " + gates + "/" + gate + " ]; do sleep 0.01; done; " }
		open := func(gate string) {
			if err := os.WriteFile(filepath.Join(gates, gate), nil, 0o600); err != nil {
				t.Fatal(err)
			}
		}
		s := estimated(1, wait("0")+"echo bound 700; "+wait("1")+"echo bound 900; echo bound 80; "+wait("2"), "touch ran")
		first.Start(s)
		first.untilStarted(s.Attempt)
		if got := first.Bound(s.Attempt); got != 0 {
			t.Errorf("%v, and it has said nothing", got)
		}
		open("0")
		eventually(t, "a first bound", func() bool { return first.Bound(s.Attempt) == 700 })
		second := first.reopen()
		second.Adopt(s, first.BootID())
		second.untilStarted(s.Attempt)
		if got := second.Bound(s.Attempt); got != 700 || exists(second.WorkPath(s.Attempt)+"/ran") {
			t.Errorf("%v after a restart", got)
		}
		open("1")
		eventually(t, "a lower bound", func() bool {
			got := second.Bound(s.Attempt)
			if got > 700 {
				t.Fatalf("the bound rose to %v", got)
			}
			return got == 80
		})
		open("2")
		if e := second.wait(s.Attempt); e.Kind != job.Success || e.Bound != 80 || !exists(second.WorkPath(s.Attempt)+"/ran") {
			t.Errorf("%+v", e)
		}
	})
}
