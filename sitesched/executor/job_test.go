package executor

import (
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"kith/internal/job"
	"kith/sitesched/work"
)

func TestExits(t *testing.T) {
	inEachIsolation(t, func(t *testing.T, c Config) {
		b := openBench(t, c)
		dir := t.TempDir()
		write := func(name, text string, mode os.FileMode) string {
			path := filepath.Join(dir, name)
			if err := os.WriteFile(path, []byte(text), mode); err != nil {
				t.Fatal(err)
			}
			return path
		}
		plain := write("plain", "#!/bin/sh\n", 0o600)
		noise := write("noise", "\x7fnot a program", 0o700)
		orphan := write("orphan", "#!/no/such/interpreter\n", 0o700)
		script := write("script", "#!/bin/sh\nexit 5\n", 0o700)
		n := 0
		for name, want := range map[string]struct {
			argv         []string
			directory    string
			code, signal int
			reason       string
			kind         job.OutcomeKind
		}{
			"success":         {[]string{"/bin/true"}, "", 0, 0, "", job.Success},
			"in PATH":         {[]string{"true"}, "", 0, 0, "", job.Success},
			"failure":         {[]string{"sh", "-c", "exit 255"}, "", 255, 0, "", job.Failure},
			"signal":          {[]string{"sh", "-c", "kill -SEGV $$"}, "", 0, 11, "signal 11 (SIGSEGV)", job.Failure},
			"own kill":        {[]string{"sh", "-c", "kill -KILL $$"}, "", 0, 9, "signal 9 (SIGKILL)", job.Failure},
			"script":          {[]string{script}, "", 5, 0, "", job.Failure},
			"relative":        {[]string{"./script"}, dir, 5, 0, "", job.Failure},
			"no program":      {[]string{"no-such-program"}, "", 127, 0, `"no-such-program" in the job's PATH`, job.Failure},
			"no file":         {[]string{"/no/such"}, "", 127, 0, `no program "/no/such"`, job.Failure},
			"no interpreter":  {[]string{orphan}, "", 127, 0, "interpreter", job.Failure},
			"not executable":  {[]string{plain}, "", 126, 0, "permission denied", job.Failure},
			"a folder":        {[]string{dir}, "", 126, 0, "permission denied", job.Failure},
			"not a program":   {[]string{noise}, "", 126, 0, "begins with #!", job.Failure},
			"no directory":    {[]string{"/bin/true"}, "/no/such", 126, 0, `directory "/no/such"`, job.Failure},
			"file as folder":  {[]string{"/bin/true"}, plain, 126, 0, "not a directory", job.Failure},
			"relative folder": {[]string{"sh", "-c", "pwd"}, "..", 0, 0, "", job.Success},
		} {
			n++
			spec := work.Spec{Attempt: number(n), Argv: want.argv, Directory: want.directory, Processors: 1}
			e := b.run(spec)
			if int(e.ExitCode) != want.code || int(e.Signal) != want.signal || e.Kind != want.kind ||
				!strings.Contains(e.Reason, want.reason) || (want.reason == "") != (e.Reason == "") {
				t.Errorf("%s: %+v, want %+v", name, e, want)
			}
			ran := want.code < 126 || want.code > 127
			if ran != (b.starts(number(n)) == 1) || ran != (e.Start != 0) || e.End == 0 {
				t.Errorf("%s: reported as started %d times, %+v", name, b.starts(number(n)), e)
			}
		}
	})
}

func TestSpecsThatCannotRun(t *testing.T) {
	beside(t)
	b := openBench(t, Config{})
	for i, spec := range []work.Spec{
		{},
		{Argv: []string{""}},
		{Argv: []string{"a\x00b"}},
		{Argv: []string{"true"}, Env: map[string]string{"": "x"}},
		{Argv: []string{"true"}, Env: map[string]string{"A=B": "x"}},
		{Argv: []string{"true"}, Env: map[string]string{"A": "x\x00"}},
		{Argv: []string{"true"}, Directory: "\x00"},
		{Argv: []string{"true", strings.Repeat("x", 3<<20)}},
	} {
		spec.Attempt = number(i + 1)
		if e := b.run(spec); e.Start != 0 || e.Reason == "" || e.Kind != job.Failure {
			t.Errorf("spec %d: %+v", i, e)
		}
	}
	// The kernel's own limit is one argument of 128 KiB.
	e := b.run(work.Spec{Attempt: number(99), Argv: []string{"true", strings.Repeat("x", 200<<10)}})
	if e.ExitCode != 126 || !strings.Contains(e.Reason, "argument list too long") {
		t.Errorf("long argument: %+v", e)
	}
	e = b.run(work.Spec{Attempt: number(100), Argv: slices.Repeat([]string{"true", strings.Repeat("x", 10<<10)}, 100)})
	if e.Kind != job.Success {
		t.Errorf("a megabyte of arguments: %+v", e)
	}
}

func TestStreamsAndFolders(t *testing.T) {
	inEachIsolation(t, func(t *testing.T, c Config) {
		b := openBench(t, c)
		for range 2 { // it may be repeated
			if err := b.Prepare(number(1)); err != nil {
				t.Fatal(err)
			}
		}
		if err := os.WriteFile(filepath.Join(b.WorkPath(number(1)), "input"), []byte("staged"), 0o600); err != nil {
			t.Fatal(err)
		}
		e := b.run(shell(1, `cat input; echo problem >&2; umask; echo made > output; echo scratch > "$TMPDIR/x"; ls /proc | grep -c '^[0-9]' ; head -c1`))
		if e.Kind != job.Success || e.Reason != "" {
			t.Errorf("%+v", e)
		}
		out := readFile(b.StdoutPath(number(1)))
		if !strings.HasPrefix(out, "staged0077\n") {
			t.Errorf("stdout %q", out)
		}
		if got := readFile(b.StderrPath(number(1))); got != "problem\n" {
			t.Errorf("stderr %q", got)
		}
		if got := readFile(filepath.Join(b.WorkPath(number(1)), "output")); got != "made\n" {
			t.Errorf("output %q", got)
		}
		if e.CPUTime <= 0 || e.MaxRSSBytes < 100<<10 || e.End.Sub(e.Start) <= 0 {
			t.Errorf("resources %+v", e)
		}
		ids, err := b.Folders()
		if err != nil || !slices.Equal(ids, []job.AttemptID{number(1)}) {
			t.Errorf("Folders() = %v, %v", ids, err)
		}
		b.Forget(number(1))
		eventually(t, "the folder is gone", func() bool {
			_, err := os.Lstat(filepath.Dir(b.WorkPath(number(1))))
			return os.IsNotExist(err)
		})
	})
}

func TestOutputCanBeReadWhileItGrows(t *testing.T) {
	b := openBench(t, Config{})
	b.Start(shell(1, "echo first; while [ ! -e go ]; do sleep 0.01; done; echo second"))
	eventually(t, "the first line", func() bool { return readFile(b.StdoutPath(number(1))) == "first\n" })
	if err := os.WriteFile(filepath.Join(b.WorkPath(number(1)), "go"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	b.wait(number(1))
	if got := readFile(b.StdoutPath(number(1))); got != "first\nsecond\n" {
		t.Errorf("stdout %q", got)
	}
}

func TestWhatAJobInherits(t *testing.T) {
	inEachIsolation(t, func(t *testing.T, c Config) {
		b := openBench(t, c)
		e := b.run(shell(1, `
			ulimit -S -c
			grep NoNewPrivs /proc/self/status
			ls /proc/self/fd | tr '\n' ' '; echo
			cut -d' ' -f6 /proc/$$/stat; echo $$
			grep -E 'Sig(Blk|Ign)' /proc/self/status
			readlink /proc/self/fd/0
			grep CapAmb /proc/self/status
			grep CapEff /proc/self/status`))
		lines := strings.Split(readFile(b.StdoutPath(number(1))), "\n")
		if e.Kind != job.Success || len(lines) < 10 {
			t.Fatalf("%+v %q", e, lines)
		}
		for what, ok := range map[string]bool{
			"core files":        lines[0] == "0",
			"no new privileges": strings.HasSuffix(lines[1], "1"),
			// 3 is ls itself, reading the folder.
			"descriptors":     lines[2] == "0 1 2 3 ",
			"session":         lines[3] == lines[4],
			"blocked signals": strings.HasSuffix(lines[5], "0000000000000000"),
			"ignored signals": strings.HasSuffix(lines[6], "0000000000000000"),
			"input":           lines[7] == "/dev/null",
			"ambient rights":  strings.HasSuffix(lines[8], "0000000000000000"),
			"rights":          strings.HasSuffix(lines[9], "0000000000000000") || os.Geteuid() == 0,
		} {
			if !ok {
				t.Errorf("%s: %q", what, lines)
			}
		}
	})
}

func TestManyShortJobs(t *testing.T) {
	beside(t)
	jobs := 300
	if testing.Short() {
		jobs = 60
	}
	b := openBench(t, Config{Processors: 4, KeepIdle: 2, IdleTime: 20 * time.Millisecond})
	for n := range jobs {
		b.Start(shell(n+1, "echo $KITH_JOB_ID"))
		b.Start(shell(n+1, "echo a second start must do nothing; exit 1"))
	}
	for n := range jobs {
		id := number(n + 1)
		e := b.wait(id)
		if got := strings.TrimSpace(readFile(b.StdoutPath(id))); got != id.Job.String() || e.Kind != job.Success {
			t.Errorf("%v wrote %q, %+v", id, got, e)
		}
		if b.starts(id) != 1 {
			t.Errorf("%v started %d times", id, b.starts(id))
		}
		b.Forget(id)
	}
	eventually(t, "idle shims but one exit", func() bool { return len(shimProcesses(b.config.ShimPath)) == 1 })
}

func TestOwnProgramAsShim(t *testing.T) {
	b := openBench(t, Config{ShimPath: ownProgram})
	if c := b.Capabilities()[0]; c.Name != CapShim || !strings.Contains(c.Detail, "this program itself") {
		t.Errorf("%+v", c)
	}
	if e := b.run(shell(1, "exit 4")); e.ExitCode != 4 {
		t.Errorf("%+v", e)
	}
}

// The shim opens the streams of a job so that it does not wait for what may be in their
// place; the job has them as usual: they append, and they wait.
func TestStreamsAppendAndWait(t *testing.T) {
	b := openBench(t, Config{})
	b.run(shell(1, "sed -n 's/flags:[[:space:]]*//p' /proc/self/fdinfo/1 /proc/self/fdinfo/2"))
	for _, text := range strings.Fields(readFile(b.StdoutPath(number(1)))) {
		flags, err := strconv.ParseInt(text, 8, 64)
		if err != nil || flags&syscall.O_APPEND == 0 || flags&syscall.O_NONBLOCK != 0 {
			t.Errorf("flags %q of a stream: %o, %v", text, flags, err)
		}
	}
	if n := len(strings.Fields(readFile(b.StdoutPath(number(1))))); n != 2 {
		t.Errorf("%d streams", n)
	}
}
