package bench

import (
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"kith/testbed/check/flood"
	"kith/testbed/local/inprocess"
	"kith/testbed/workload"
)

func TestMain(m *testing.M) {
	// This test binary plays the part of the kith that is measured.
	if len(os.Args) > 1 {
		switch os.Args[1] {
		case "replay":
			os.Exit(replayed(os.Args))
		case "version", "submit":
			os.Exit(0)
		}
	}
	if handled, code := inprocess.Main(os.Args); handled {
		os.Exit(code)
	}
	if handled, code := flood.Main(os.Args); handled {
		os.Exit(code)
	}
	os.Exit(m.Run())
}

// self is this test binary.
func self(t *testing.T) string {
	t.Helper()
	path, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	return path
}

// replayed is what "kith replay" does as far as it is measured.
func replayed(args []string) int {
	value := func(flag string) string {
		if i := slices.Index(args, flag); i >= 0 {
			return args[i+1]
		}
		return ""
	}
	w, err := workload.Open(value("--trace"))
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 3
	}
	if err := os.WriteFile(value("--schedule"), fmt.Appendf(nil, "%d jobs on %s processors", len(w.Jobs), value("--processors")), 0o600); err != nil {
		return 4
	}
	return 0
}

// smallLog writes a packed log of a machine whose size its header says, if any.
func smallLog(t *testing.T, header string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "small.swf.gz")
	f, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	z := gzip.NewWriter(f)
	fmt.Fprint(z, header)
	for i := range 50 {
		fmt.Fprintf(z, "%d %d -1 %d %d -1 -1 %d 100 -1 1 1 1 -1 -1 -1 -1 -1\n", i+1, 10*i, 60+i%7, 1+i%6, 1+i%6)
	}
	if err := errors.Join(z.Close(), f.Close()); err != nil {
		t.Fatal(err)
	}
	return path
}

// A log is replayed on the machine that it is from, by a program of its own as
// well, and the targets of another log are none for it.
func TestSimOfAnotherLog(t *testing.T) {
	for header, processors := range map[string]int{"; MaxProcs: 9\n": 9, "; MaxProcs: 4\n": 4, "": 6} {
		opt := Options{Dir: t.TempDir(), Queued: 200, Trace: smallLog(t, header), Kith: self(t)}
		b := &bench{opt: opt, report: &Report{}, now: "sim"}
		w, err := b.log()
		if err != nil {
			t.Fatal(err)
		}
		if int(w.Processors) != processors {
			t.Errorf("header %q: on %d processors, want %d", header, w.Processors, processors)
		}
		if err := b.wholeReplay(t.Context(), w); err != nil {
			t.Fatal(err)
		}
		if text, err := os.ReadFile(filepath.Join(opt.Dir, "schedule.csv")); err != nil || string(text) != fmt.Sprintf("50 jobs on %d processors", processors) {
			t.Errorf("header %q: replayed %q, %v", header, text, err)
		}
		b.addTargetOfLog(w, "speed", 1, "jobs/s", 1_000_000, false)
		for _, f := range b.report.Figures {
			if f.Target != nil || f.Value <= 0 {
				t.Errorf("header %q: figure %+v has a target, or no value", header, f)
			}
		}
		if n := len(b.report.Figures); n != 4 {
			t.Errorf("header %q: %d figures", header, n)
		}
	}
	b := &bench{opt: Options{Trace: "ctc"}, report: &Report{}}
	b.addTargetOfLog(&workload.Workload{Processors: ctcProcessors, Jobs: make([]workload.Job, ctcJobs)}, "speed", 1, "jobs/s", 1_000_000, false)
	if f := b.report.Figures[0]; f.Target == nil || f.Reached() {
		t.Errorf("the log of the targets: %+v", f)
	}
}

// What a child says when it fails is told.
func TestChildFails(t *testing.T) {
	if _, _, err := child(t.Context(), self(t), nil, "replay", "--trace", "no/such.log"); err == nil || !strings.Contains(err.Error(), "no/such.log: no such file") {
		t.Errorf("error %v", err)
	}
	if _, _, err := child(t.Context(), self(t), []int{3}, "replay", "--trace", "no/such.log"); err != nil {
		t.Errorf("with an exit code that is fine: %v", err)
	}
}

// TestMeasures runs every measure with little work: each must finish, count
// what it should and report figures. What the figures are is not tested.
func TestMeasures(t *testing.T) {
	opt := Options{
		Dir:     t.TempDir(),
		Clients: 3, Kith: self(t), Earlier: self(t),
		Starts: 3, Jobs: 30, Sites: 3, Copies: 2, Claims: 200, InFlight: 64, Queued: 300, Tasks: 60, BagTasks: 2000, GuestJobs: 300, Moves: 2, LargeMiB: 3,
		Floods: []string{flood.Computing, "queries"}, FloodTime: 500 * time.Millisecond,
	}
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Minute) // with the race detector, beside other packages
	defer cancel()
	names := Names()
	if testing.Short() { // the logs of sim and guests have a fixed size; tls repeats others
		names = slices.DeleteFunc(names, func(name string) bool { return name == "sim" || name == "guests" || name == "tls" })
	}
	r, err := Run(ctx, opt, names)
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range names {
		if !slices.ContainsFunc(r.Figures, func(f Figure) bool { return f.Measure == name }) {
			t.Errorf("measure %s reports no figure", name)
		}
	}
	for _, f := range r.Figures {
		difference := f.Measure == "tls" && f.Unit == "%"                                  // it may be below zero
		little := f.Measure == "flood" && (f.Unit == "ms" || f.Unit == "MiB")              // the kernel counts in 10 ms; it need not grow
		kept := f.Measure == "bags" && (f.Unit == "MiB" || f.Unit == "B" || f.Unit == "%") // memory and files need not grow, processors need not idle
		if f.Value <= 0 && !difference && !little && !kept || f.Unit == "" || f.Name == "" {
			t.Errorf("figure %+v: nothing was measured", f)
		}
	}
	if m := r.Machine; m.ForkExecSerial <= 0 || m.ForkExecParallel <= 0 || m.SyncMedian <= 0 || m.Processors <= 0 {
		t.Errorf("the machine's limits were not measured: %+v", m)
	}
}

func TestUnknownMeasure(t *testing.T) {
	_, err := Run(t.Context(), Options{Dir: t.TempDir()}, []string{"sped"})
	if err == nil || !strings.Contains(err.Error(), `"sped"`) || !strings.Contains(err.Error(), "throughput") {
		t.Errorf("error is %v, want one that names the value and the choices", err)
	}
}

func TestReached(t *testing.T) {
	target := 10.0
	for _, c := range []struct {
		figure Figure
		want   bool
	}{
		{Figure{Value: 1}, true},
		{Figure{Value: 9, Target: &target}, false},
		{Figure{Value: 10, Target: &target}, true},
		{Figure{Value: 10, Target: &target, AtMost: true}, true},
		{Figure{Value: 11, Target: &target, AtMost: true}, false},
	} {
		if got := c.figure.Reached(); got != c.want {
			t.Errorf("%+v: reached %v, want %v", c.figure, got, c.want)
		}
	}
}

func TestParseDate(t *testing.T) {
	if got, err := parseDate("12.000000345\n"); err != nil || !got.Equal(time.Unix(12, 345)) {
		t.Errorf("got %v, %v", got, err)
	}
	for _, text := range []string{"", "12", "x.1", "1.y"} {
		if _, err := parseDate(text); err == nil {
			t.Errorf("%q was taken for a time", text)
		}
	}
}
