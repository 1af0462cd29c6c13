package owner

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"testing"
	"time"
)

// fakeProc is a machine whose counters a test sets.
type fakeProc struct {
	t   *testing.T
	dir string
	now time.Time
}

func newFake(t *testing.T) *fakeProc {
	return &fakeProc{t: t, dir: t.TempDir(), now: time.Unix(1e9, 0)}
}

func (f *fakeProc) write(name, text string) {
	f.t.Helper()
	path := filepath.Join(f.dir, name)
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		f.t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		f.t.Fatal(err)
	}
}

// machine sets the time that was used on the machine, in hundredths of a second.
func (f *fakeProc) machine(ticks int) {
	f.write("stat", fmt.Sprintf("cpu  %d 0 0 5000 60 0 0 0 0 0\ncpu0 1 0 0 1 0 0 0 0 0 0\n", ticks))
}

// process sets what a process has used itself, and those of its children that ended.
func (f *fakeProc) process(pid, parent, own, children int) {
	f.write(strconv.Itoa(pid)+"/stat", fmt.Sprintf("%d (a) b ) S %d 1 1 0 -1 0 0 0 0 0 %d 0 %d 0 20 0 1 0 %d 0 0\n", pid, parent, own, children, 100+pid))
}

func (f *fakeProc) end(pid int) {
	f.t.Helper()
	if err := os.RemoveAll(filepath.Join(f.dir, strconv.Itoa(pid))); err != nil {
		f.t.Fatal(err)
	}
}

func (f *fakeProc) sensor(adopted ...int) *Sensor {
	return New(Config{Site: 10, Adopted: func() []int { return adopted }, Now: func() time.Time { return f.now }, Proc: f.dir})
}

// held reads after ten more seconds.
func (f *fakeProc) held(s *Sensor) float64 {
	f.t.Helper()
	f.now = f.now.Add(10 * time.Second)
	span, err := s.Read()
	if err != nil || span.Length != 10*time.Second {
		f.t.Fatalf("%+v, %v", span, err)
	}
	return span.Held
}

func TestSitesProcessesAreNotTheOwners(t *testing.T) {
	t.Parallel()
	f := newFake(t)
	f.machine(10_000)
	f.process(1, 0, 5, 0)
	f.process(10, 1, 100, 900) // the daemon, with children of before
	f.process(11, 10, 50, 0)   // a shim
	f.process(20, 1, 3000, 0)  // the owner's
	s := f.sensor(30)
	if _, err := s.Read(); !errors.Is(err, ErrNoSpan) {
		t.Fatalf("the first reading: %v", err)
	}
	step := func(what string, want float64) {
		t.Helper()
		if got := f.held(s); got != want {
			t.Errorf("%s: the owner held %v, want %v", what, got, want)
		}
	}
	step("nothing happens", 0)

	f.machine(11_000)
	f.process(20, 1, 4000, 0)
	step("the owner works", 1)

	f.machine(12_500)
	f.process(11, 10, 60, 0)
	f.process(12, 11, 990, 0) // a job
	f.process(20, 1, 4500, 0)
	step("a job of 10 s beside 5 s of the owner", 0.5)

	f.machine(12_700)
	f.end(12)
	f.process(11, 10, 60, 1190) // the job ended after 2 s more, and its shim has its time
	step("a job ends", 0)

	f.machine(12_800)
	f.end(11)
	f.process(10, 1, 100, 900+60+1190+100)
	step("a shim ends after another second", 0)

	f.process(30, 1, 7777, 0) // a shim of an earlier daemon is adopted
	step("adopted", 0)
	f.machine(13_000)
	f.process(30, 1, 7977, 0)
	step("and works for 2 s", 0)
	f.end(30)
	step("and ends", 0)

	f.machine(14_000)
	f.process(13, 10, 0, 0)
	f.process(31, 13, 250, 0)
	f.process(32, 31, 250, 0) // a job's child's child
	step("a deep tree", 0.5)
}

func TestReadingsThatSayNothing(t *testing.T) {
	t.Parallel()
	f := newFake(t)
	f.process(10, 1, 0, 0)
	s := f.sensor()
	if _, err := s.Read(); err == nil || errors.Is(err, ErrNoSpan) {
		t.Errorf("no /proc/stat: %v", err)
	}
	f.machine(100)
	for name, step := range map[string]time.Duration{"at once": 0, "a clock that was set back": -time.Hour} {
		_, _ = s.Read()
		f.now = f.now.Add(step)
		if span, err := s.Read(); !errors.Is(err, ErrNoSpan) {
			t.Errorf("%s: %+v, %v", name, span, err)
		}
	}
	f.now = f.now.Add(time.Minute)
	_, _ = s.Read()
	f.machine(50) // a machine that was restarted under the file
	f.now = f.now.Add(time.Minute)
	if span, err := s.Read(); !errors.Is(err, ErrNoSpan) {
		t.Errorf("less than before: %+v, %v", span, err)
	}
	gone := New(Config{Proc: filepath.Join(f.dir, "none")})
	if _, err := gone.Read(); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("no /proc: %v", err)
	}
}

// Processors times uptime may be more years than a [time.Duration] holds.
func TestManyProcessorYears(t *testing.T) {
	t.Parallel()
	const years = 1 << 45 // in hundredths of a second: 11,000 of them
	f := newFake(t)
	f.machine(years)
	f.process(10, 1, 0, 0)
	s := f.sensor()
	if _, err := s.Read(); !errors.Is(err, ErrNoSpan) {
		t.Fatal(err)
	}
	f.machine(years + 3000)
	if held := f.held(s); held != 3 {
		t.Errorf("the owner held %v processors, not 3", held)
	}
}

// The kernel's own files: with all processes as the site's next to nothing is left, with none
// everything is the owner's.
func TestRealMachine(t *testing.T) {
	t.Parallel()
	all, none := New(Config{Site: 1}), New(Config{Site: -1})
	read := func(s *Sensor) float64 {
		span, err := s.Read()
		if err != nil && !errors.Is(err, ErrNoSpan) {
			t.Fatal(err)
		}
		return span.Held * span.Length.Seconds()
	}
	read(all)
	read(none)
	for end := time.Now().Add(leastSpan + 100*time.Millisecond); time.Now().Before(end); { // somebody works
	}
	everything, rest := read(none), read(all)
	t.Logf("used %v s, of them not below process 1: %v s", everything, rest)
	if everything == 0 || rest > everything {
		t.Errorf("used %v s, of them not below process 1: %v s", everything, rest)
	}
}

func FuzzParse(f *testing.F) {
	f.Add([]byte("71 (a) b ) S 1 1 1 0 -1 0 0 0 0 0 5 6 7 8 20 0 1 0 99 0 0"), []byte("cpu  1 2 3 4 5 6 7 8 9 10\n"))
	f.Add([]byte("71 (x"), []byte("cpu"))
	// 2^56-1 of everything: more than a time.Duration holds.
	f.Add([]byte("71 (a) S 1 1 1 0 -1 0 0 0 0 0 72057594037927935 72057594037927935 72057594037927935 72057594037927935 20 0 1 0 99 0 0"),
		[]byte("cpu  72057594037927935 72057594037927935 72057594037927935 0 0 72057594037927935 72057594037927935 72057594037927935\n"))
	f.Fuzz(func(t *testing.T, one, all []byte) {
		if p, err := parseProcess(one); err == nil && p.used < 0 {
			t.Errorf("%+v", p)
		}
		if d, err := machineTime(all); err == nil && d < 0 {
			t.Error(d)
		}
	})
}

// What one look at this machine costs; an hour has at most 360.
func BenchmarkRead(b *testing.B) {
	s := New(Config{Site: os.Getpid()})
	for b.Loop() {
		_, _ = s.Read()
	}
	b.ReportMetric(float64(len(s.list)), "processes")
}
