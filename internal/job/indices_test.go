package job

import (
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
)

func TestParseIndices(t *testing.T) {
	for text, c := range map[string]struct {
		want   string
		count  uint32
		atMost uint32
		step   uint32
	}{
		"0":                       {"0", 1, 0, 1},
		"0-15":                    {"0-15", 16, 0, 1},
		"0-15:4":                  {"0-12:4", 4, 0, 4},
		"0-15:20":                 {"0", 1, 0, 1},
		"5-5:7":                   {"5", 1, 0, 1},
		"0-15:4,17,100-200%50":    {"0-12:4,17,100-200", 106, 50, 1},
		"100-200,17,0-15:4":       {"0-12:4,17,100-200", 106, 0, 1},
		"0-15:4,17":               {"0-12:4,17", 5, 0, 4},
		"1,2,3,5,7,9":             {"1-3,5,7,9", 6, 0, 1},
		"1-9:2,4":                 {"1-3:2,4,5-9:2", 6, 0, 2},
		"0-10:2,1-11:2":           {"0-11", 12, 0, 1},
		"0-10:2,12,14-20:2":       {"0-20:2", 11, 0, 2},
		"0-4:4,1-3":               {"0-4", 5, 0, 1},
		"4,7,10-16:3":             {"4,7,10-16:3", 5, 0, 3},
		"01-12":                   {"1-12", 12, 0, 1},
		"20260101-20260131":       {"20260101-20260131", 31, 0, 1},
		"2147483647":              {"2147483647", 1, 0, 1},
		"0-2147483647:1000000000": {"0-2000000000:1000000000", 3, 0, 1000000000},
		"0-2147483647:2147483647": {"0-2147483647:2147483647", 2, 0, 2147483647},
		"0-16777215":              {"0-16777215", MaxTasks, 0, 1},
		"0-9%4294967295":          {"0-9", 10, 4294967295, 1},
	} {
		x, atMost, err := ParseIndices(text)
		if err != nil || x.String() != c.want || x.Count() != c.count || atMost != c.atMost || x.Step() != c.step {
			t.Errorf("ParseIndices(%q) = %v, %d indices, step %d, at most %d at once, %v; want %+v", text, x.String(), x.Count(), x.Step(), atMost, err, c)
		}
	}
}

// Every error names the field, the value, and what to write instead.
func TestParseIndicesRefuses(t *testing.T) {
	for text, remedy := range map[string]string{
		"":                                 "name one index at least",
		"%5":                               "name one index at least",
		"5-1":                              `write "1-5"`,
		"0,30-10:5":                        `write "10-30:5"`,
		"0-9:0":                            `"0-9:0" has step 0; write a step from 1 on`,
		"0-9,5":                            `index 5 is in "0-9" and in "5"; name each index once`,
		"5,5":                              "index 5 is in",
		"0-10:2,10-20":                     `index 10 is in "0-10:2" and in "10-20"`,
		"0-100:3,1-100:5":                  "index 6 is in",
		"0-16777216":                       "16777217 tasks, at most 16777216; submit several bags",
		"0-9999999,10000000-19999999":      "20000000 tasks",
		"0-2147483648":                     "above the highest index, 2147483647",
		"99999999999999999999999":          "above the highest index",
		"a":                                `"a" is no index and no range`,
		"1,":                               `"" is no index`,
		",1":                               `"" is no index`,
		"1 ,2":                             `"1 " is no index`,
		"-1":                               `"-1" is no index`,
		"+1":                               `"+1" is no index`,
		"1-":                               "is no index",
		"1-2-3":                            "is no index",
		"5:2":                              "write for example 7, 0-15 or 0-15:4",
		"0-9:":                             "is no index",
		"0-9:2:2":                          "is no index",
		"0-9:+2":                           "is no index",
		"1_0":                              "is no index",
		"٣":                                "is no index",
		"0-9%":                             `"%" must be a number of tasks`,
		"0-9%0":                            `"%0" must be a number of tasks from 1 on`,
		"0-9%-1":                           "must be a number of tasks from 1 on",
		"0-9%+1":                           "must be a number of tasks from 1 on",
		"0-9%5%5":                          "must be a number of tasks from 1 on",
		"0-9%4294967296":                   "must be a number of tasks from 1 on",
		"%":                                `"%" must be a number of tasks`,
		"0-999999:2,1-999999:2":            "submit a bag for each",
		"0-16777214:2,1-9:2,11-16777215:2": "submit a bag for each",
		"0-9999999:3,1-9999999:3":          "submit a bag for each",
		strings.Repeat("1,", 40000):        "80000 bytes, at most 65536; write ranges",
		strings.Repeat("9", 60000):         "above the highest index",
		strings.Repeat("x", 60000):         "is no index",
	} {
		x, _, err := ParseIndices(text)
		switch {
		case !errors.Is(err, ErrBadIndices) || x.Count() != 0:
			t.Errorf("ParseIndices(%.40q) = %.40q, %v; want ErrBadIndices", text, x.String(), err)
		case !strings.Contains(err.Error(), remedy):
			t.Errorf("ParseIndices(%.40q): %v; want %q in it", text, err, remedy)
		case len(err.Error()) > 600:
			t.Errorf("ParseIndices(%.40q): an error of %d bytes", text, len(err.Error()))
		}
	}
}

// slowIndices reads a text with nothing but a map, false if it should be refused.
func slowIndices(text string) ([]uint32, bool) {
	seen := map[uint32]bool{}
	for part := range strings.SplitSeq(text, ",") {
		var first, last, step uint32 = 0, 0, 1
		if n, _ := fmt.Sscanf(part, "%d-%d:%d", &first, &last, &step); n == 1 {
			last = first
		}
		for i := uint64(first); i <= uint64(last); i += uint64(step) {
			if seen[uint32(i)] {
				return nil, false
			}
			seen[uint32(i)] = true
		}
	}
	return slices.Sorted(maps.Keys(seen)), true
}

func TestIndicesAgainstMap(t *testing.T) {
	good := 0
	for seed := range uint64(2000) {
		rng := rand.New(rand.NewPCG(seed, 4))
		var parts []string
		for range 1 + rng.IntN(5) {
			first := rng.IntN(60)
			switch rng.IntN(3) {
			case 0:
				parts = append(parts, fmt.Sprint(first))
			case 1:
				parts = append(parts, fmt.Sprintf("%d-%d", first, first+rng.IntN(20)))
			default:
				parts = append(parts, fmt.Sprintf("%d-%d:%d", first, first+rng.IntN(60), 1+rng.IntN(9)))
			}
		}
		text := strings.Join(parts, ",")
		want, ok := slowIndices(text)
		x, _, err := ParseIndices(text)
		if ok != (err == nil) {
			t.Fatalf("seed %d: ParseIndices(%q) = %v, %v; want it accepted: %v", seed, text, x.String(), err, ok)
		}
		if !ok {
			continue
		}
		good++
		checkIndices(t, &x)
		if int(x.Count()) != len(want) || x.Min() != want[0] || x.Max() != want[len(want)-1] {
			t.Fatalf("seed %d: %q has %d indices, %d to %d; want %v", seed, text, x.Count(), x.Min(), x.Max(), want)
		}
		for ordinal, index := range want {
			if got := x.Index(uint32(ordinal)); got != index {
				t.Fatalf("seed %d: %q: Index(%d) = %d, want %d", seed, text, ordinal, got, index)
			}
		}
		for index := range uint32(140) {
			ordinal, found := x.Ordinal(index)
			at, is := slices.BinarySearch(want, index)
			if found != is || found && int(ordinal) != at {
				t.Fatalf("seed %d: %q: Ordinal(%d) = %d, %v; want %d, %v", seed, text, index, ordinal, found, at, is)
			}
		}
	}
	if good < 300 {
		t.Errorf("only %d of 2000 texts are good: the test looks at too little", good)
	}
}

// checkIndices checks what must hold of all indices, whatever they came from.
func checkIndices(t *testing.T, x *Indices) {
	t.Helper()
	count, end := uint32(0), int64(-1)
	for i, r := range x.ranges {
		if int64(r.First) <= end || r.Last < r.First || r.Step == 0 || (r.Last-r.First)%r.Step != 0 || r.First == r.Last && r.Step != 1 || x.before[i] != count {
			t.Fatalf("range %d of %v is %+v behind %d, with %d before it, want %d", i, x.String(), r, end, x.before[i], count)
		}
		count, end = count+r.Count(), int64(r.Last)
	}
	if count != x.Count() || count > MaxTasks || end > MaxTaskIndex || len(x.ranges) > maxStoredRanges {
		t.Fatalf("%d indices in %d ranges up to %d, Count() = %d", count, len(x.ranges), end, x.Count())
	}
	if again, err := RestoreIndices(x.Ranges()); err != nil || !slices.Equal(again.before, x.before) || again.count != x.count {
		t.Fatalf("%.60q is restored as %.60q, %v", x.String(), again.String(), err)
	}
	back, _, err := ParseIndices(x.String())
	if len(x.String()) <= MaxIndicesLength && x.Count() > 0 && (err != nil || !slices.Equal(back.ranges, x.ranges)) {
		t.Fatalf("%.60q came back as %.60q, %v", x.String(), back.String(), err)
	}
}

func TestFirstIndices(t *testing.T) {
	none, one, all := FirstIndices(0), FirstIndices(1), FirstIndices(MaxTasks)
	for _, x := range []*Indices{&none, &one, &all} {
		checkIndices(t, x)
	}
	if none.Count() != 0 || none.Min() != 0 || none.Max() != 0 || none.Step() != 1 || none.String() != "" {
		t.Errorf("no indices: %v", none.String())
	}
	if _, found := none.Ordinal(0); found {
		t.Error("no indices have an index")
	}
	if all.Index(MaxTasks-1) != MaxTasks-1 || all.Max() != MaxTasks-1 {
		t.Errorf("all: %v", all.String())
	}
	defer func() {
		if recover() == nil {
			t.Error("the index of an ordinal that is not there does not panic")
		}
	}()
	one.Index(1)
}

func TestRestoreIndicesRefuses(t *testing.T) {
	for name, ranges := range map[string][]IndexRange{
		"step 0":          {{0, 4, 0}},
		"backwards":       {{5, 4, 1}},
		"not on the step": {{0, 5, 2}},
		"one with a step": {{5, 5, 2}},
		"out of order":    {{5, 6, 1}, {0, 1, 1}},
		"overlap":         {{0, 5, 1}, {5, 6, 1}},
		"too high":        {{0, MaxTaskIndex + 1, 1 << 31}},
		"too many tasks":  {{0, MaxTasks, 1}},
		"too many ranges": make([]IndexRange, maxStoredRanges+1),
	} {
		if x, err := RestoreIndices(ranges); !errors.Is(err, ErrBadIndices) {
			t.Errorf("%s: %.40q, %v", name, x.String(), err)
		}
	}
}

func FuzzParseIndices(f *testing.F) {
	for _, text := range []string{"0-15:4,17,100-200%50", "1-9:2,4", "0-10:2,1-11:2", "5-1", "0-9:0", "0-16777216", "%", "0-9999999:3,1-9999999:3"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		x, _, err := ParseIndices(text)
		if err != nil {
			if !errors.Is(err, ErrBadIndices) || len(err.Error()) > 1000 {
				t.Errorf("ParseIndices(%.60q): %v", text, err)
			}
			return
		}
		checkIndices(t, &x)
		for _, ordinal := range []uint32{0, x.Count() / 2, x.Count() - 1} {
			if back, ok := x.Ordinal(x.Index(ordinal)); !ok || back != ordinal {
				t.Errorf("%.60q: ordinal %d has index %d, which has ordinal %d", text, ordinal, x.Index(ordinal), back)
			}
		}
	})
}

func BenchmarkParseIndices(b *testing.B) {
	b.ReportAllocs()
	for b.Loop() {
		if _, _, err := ParseIndices("0-15:4,17,100-999999%50"); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkParseIndicesThatInterleave is the dearest text that is refused.
func BenchmarkParseIndicesThatInterleave(b *testing.B) {
	b.ReportAllocs()
	for b.Loop() {
		if _, _, err := ParseIndices("0-9999999:3,1-9999999:3"); err == nil {
			b.Fatal("not refused")
		}
	}
}

func BenchmarkIndex(b *testing.B) {
	var text strings.Builder
	for i := range 3000 {
		fmt.Fprintf(&text, "%d-%d,", i*100, i*100+50)
	}
	x, _, err := ParseIndices(strings.TrimSuffix(text.String(), ","))
	if err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	n := uint32(0)
	for b.Loop() {
		if _, ok := x.Ordinal(x.Index(n % x.Count())); !ok {
			b.Fatal(n)
		}
		n += 9973
	}
}
