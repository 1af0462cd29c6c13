package job

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"
)

func TestTaskNames(t *testing.T) {
	bag := ID{Origin: "uni-a", Generation: 930693, Seq: 17}
	indices, _, err := ParseIndices("0-15:4,4711,2147483647")
	if err != nil {
		t.Fatal(err)
	}
	for ordinal, want := range []string{"uni-a.jy4l.17_0", "uni-a.jy4l.17_4", "uni-a.jy4l.17_8", "uni-a.jy4l.17_12", "uni-a.jy4l.17_4711", "uni-a.jy4l.17_2147483647"} {
		id := TaskID{Bag: bag, Ordinal: uint32(ordinal)}
		name := id.Name(&indices)
		if name != want {
			t.Errorf("task %d is called %q, want %q", ordinal, name, want)
		}
		gotBag, index, err := ParseTaskName(name)
		if at, ok := indices.Ordinal(index); err != nil || gotBag != bag || !ok || at != id.Ordinal {
			t.Errorf("ParseTaskName(%q) = %v, %d, %v", name, gotBag, index, err)
		}
		// What a log writes is no name: an ordinal would be taken for an index.
		if _, _, err := ParseTaskName(id.String()); err == nil {
			t.Errorf("%q is read as a name", id)
		}
	}
	if got := (TaskID{Bag: bag, Ordinal: 4}).String(); got != "uni-a.jy4l.17[4]" {
		t.Errorf("a log has %q", got)
	}
}

func TestParseTaskNameRefuses(t *testing.T) {
	for _, s := range []string{
		"", "_", "a.1.1", "a.1.1_", "_5", "a.1.1_-1", "a.1.1_+1", "a.1.1_05", "a.1.1_5 ", "a.1.1_x", "a.1_5", "a.1.1_1_2", "a.1.1#1_5", "a.1.1_5#1",
		"a.1.1_2147483648", "a.1.1_99999999999999999999", "a.1.1[5]", strings.Repeat("x", 1<<20),
	} {
		if bag, index, err := ParseTaskName(s); !errors.Is(err, ErrBadTaskName) {
			t.Errorf("ParseTaskName(%.40q) = %v, %d, %v; want ErrBadTaskName", s, bag, index, err)
		} else if len(err.Error()) > 300 {
			t.Errorf("the error about a text of %d bytes has %d bytes", len(s), len(err.Error()))
		}
	}
}

func FuzzParseTaskName(f *testing.F) {
	f.Add("uni-a.k3f9.17_4711")
	f.Fuzz(func(t *testing.T, s string) {
		bag, index, err := ParseTaskName(s)
		if err != nil {
			return
		}
		one := Indices{}
		one.append(IndexRange{First: index, Last: index, Step: 1})
		if name := (TaskID{Bag: bag}).Name(&one); name != s {
			t.Errorf("%q and %q name one task", s, name)
		}
	})
}

func TestTaskOrder(t *testing.T) {
	want := []TaskID{{ID{"a", 1, 1}, 2}, {ID{"a", 1, 1}, 10}, {ID{"a", 2, 1}, 0}, {ID{"b", 1, 1}, 0}}
	got := slices.Clone(want)
	slices.Reverse(got)
	slices.SortFunc(got, TaskID.Compare)
	if !slices.Equal(got, want) {
		t.Errorf("order %v, want %v", got, want)
	}
	seen := map[[2]uint64]bool{}
	for _, id := range want {
		_, x, y := id.HashParts()
		seen[[2]uint64{x, y}] = true
	}
	if len(seen) != 4 {
		t.Errorf("%d hash parts of four tasks", len(seen))
	}
}

func TestTaskResultValidate(t *testing.T) {
	good := TaskResult{Ordinal: MaxTasks - 1, Kind: Failure, ExitCode: 255, Start: 1, Run: time.Hour, CPUTime: time.Minute, MaxRSSBytes: 1 << 30, ErrorLine: strings.Repeat("ö", MaxErrorLine/2)}
	if err := good.Validate(); err != nil {
		t.Fatalf("a good result: %v", err)
	}
	for field, spoil := range map[string]func(*TaskResult){
		"ordinal 16777216":      func(r *TaskResult) { r.Ordinal = MaxTasks },
		"kind 0":                func(r *TaskResult) { r.Kind = NoOutcome },
		"kind 6":                func(r *TaskResult) { r.Kind = Loss + 1 },
		"exit_code -1":          func(r *TaskResult) { r.ExitCode = -1 },
		"exit_code 256":         func(r *TaskResult) { r.ExitCode = 256 },
		"signal -1":             func(r *TaskResult) { r.Signal = -1 },
		"signal 65":             func(r *TaskResult) { r.Signal = 65 },
		"a success with":        func(r *TaskResult) { r.Kind = Success },
		"start -1":              func(r *TaskResult) { r.Start = -1 },
		"run -1ns":              func(r *TaskResult) { r.Run = -1 },
		"run 87840h0m0.000":     func(r *TaskResult) { r.Run = MaxWalltime + 1 },
		"cpu_time -1ns":         func(r *TaskResult) { r.CPUTime = -1 },
		"max_rss_bytes -1":      func(r *TaskResult) { r.MaxRSSBytes = -1 },
		"max_rss_bytes 1125899": func(r *TaskResult) { r.MaxRSSBytes = MaxMemoryBytes + 1 },
		"error_line \"xx":       func(r *TaskResult) { r.ErrorLine = strings.Repeat("x", MaxErrorLine+1) },
		"error_line \"a\\nb":    func(r *TaskResult) { r.ErrorLine = "a\nb" },
		"error_line \"\\x1b[2J": func(r *TaskResult) { r.ErrorLine = "\x1b[2J" },
		"error_line \"\\u202e":  func(r *TaskResult) { r.ErrorLine = "\u202e" },
		"error_line \"\\xff":    func(r *TaskResult) { r.ErrorLine = "\xff" },
		"error_line \"cancel":   func(r *TaskResult) { r.Kind, r.ErrorLine = Cancel, "cancel" },
	} {
		r := good
		spoil(&r)
		if err := r.Validate(); !errors.Is(err, ErrBadTaskResult) || !strings.Contains(err.Error(), field) {
			t.Errorf("Validate() = %v, want %q in it", err, field)
		}
	}
}
