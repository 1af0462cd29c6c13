package estimate

import (
	"math"
	"strings"
	"testing"

	"kith/internal/job"
)

func TestMostWorkIsThatOfJobs(t *testing.T) {
	t.Parallel()
	if MostWork != job.MostWork {
		t.Errorf("%g here, %g there", MostWork, job.MostWork)
	}
}

func TestReader(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		said    string
		want    float64 // 0 for none
		ignored int
		first   string
	}{
		"nothing":           {"", 0, 0, ""},
		"one":               {"bound 120\n", 120, 0, ""},
		"the least":         {"bound 120\nbound 90.5\nbound 1e2\n", 90.5, 0, ""},
		"one that rises":    {"bound 90\nbound 120\n", 90, 0, ""},
		"blanks":            {"  bound \t 7  \r\n\n \n", 7, 0, ""},
		"no end of line":    {"bound 7", 7, 0, ""},
		"nonsense":          {"hello\nbound 7\nbound\nbound x\n", 7, 3, "hello"},
		"negative":          {"bound -5\n", 0, 1, "bound -5"},
		"minus zero":        {"bound -0\n", 0, 1, "bound -0"},
		"zero":              {"bound 0\n", 0, 1, "bound 0"},
		"not finite":        {"bound inf\nbound NaN\nbound 1e400\n", 0, 3, "bound inf"},
		"too much":          {"bound 1e19\n", 0, 1, "bound 1e19"},
		"hexadecimal":       {"bound 0x10\n", 0, 1, "bound 0x10"},
		"two numbers":       {"bound 5 6\n", 0, 1, "bound 5 6"},
		"no blank":          {"bound5\nbounds 5\n", 0, 2, "bound5"},
		"other case":        {"Bound 5\n", 0, 1, "Bound 5"},
		"a long line":       {"bound 1" + strings.Repeat("0", 300) + "\nbound 9\n", 9, 1, "bound 1" + strings.Repeat("0", MostLine-7)},
		"a long blank line": {strings.Repeat(" ", 300) + "\n", 0, 1, ""},
	} {
		var whole, pieces Reader
		whole.Write([]byte(c.said))
		for i := range len(c.said) {
			pieces.Write([]byte(c.said[i : i+1]))
		}
		for _, r := range []*Reader{&whole, &pieces} {
			r.End(true)
			if got, known := r.Least(); got != c.want || known != (c.want > 0) || r.Ignored != c.ignored || r.First != c.first {
				t.Errorf("%s: %v %v, ignored %d, first %q", name, got, known, r.Ignored, r.First)
			}
		}
	}
}

// TestNumberThatWasCut is an estimator that is stopped while it writes: what it has not
// finished may be far below what it meant.
func TestNumberThatWasCut(t *testing.T) {
	t.Parallel()
	var r Reader
	r.Write([]byte("bound 5000\nbound 48"))
	r.End(false)
	if got, _ := r.Least(); got != 5000 {
		t.Errorf("bound %v, want the 5000 of the last whole line", got)
	}
}

func TestReaderIsBounded(t *testing.T) {
	t.Parallel()
	for name, said := range map[string]string{
		"lines": strings.Repeat("bound 9\n", MostLines), "one line": strings.Repeat("x", MostBytes), "empty lines": strings.Repeat("\n", MostLines),
	} {
		var r Reader
		if r.Write([]byte(said)) || !r.Full() {
			t.Errorf("%s: more is wanted", name)
		}
		r.Write([]byte("\nbound 1\n"))
		r.End(true)
		if got, _ := r.Least(); got == 1 {
			t.Errorf("%s: what came after counts", name)
		}
		if len(r.line) > MostLine || len(r.First) > MostLine {
			t.Errorf("%s: keeps %d and %d bytes", name, len(r.line), len(r.First))
		}
	}
}

func TestBound(t *testing.T) {
	t.Parallel()
	var b Bound
	if b.Exceeds(0, 0) || b.Add(-1) || b.Add(math.NaN()) || b.Add(math.Inf(1)) {
		t.Error("what is not known exceeds something, or what is no bound is taken")
	}
	b.Add(100)
	if b.Exceeds(0, 100) || !b.Exceeds(0, 99) || b.Exceeds(1, 99) || b.Exceeds(500, 0) {
		t.Errorf("%+v", b)
	}
}

func FuzzReader(f *testing.F) {
	for _, said := range []string{"", "bound 5\n", "bound 1e3\nbound -1\r\nx", "bound 5", "\x00bound 5\n", "bound 1\nbound 2\n"} {
		f.Add([]byte(said), uint8(3))
	}
	f.Fuzz(func(t *testing.T, said []byte, size uint8) {
		var whole, pieces Reader
		whole.Write(said)
		n := max(1, int(size))
		least := math.Inf(1)
		for i := 0; i < len(said); i += n {
			pieces.Write(said[i:min(i+n, len(said))])
			if b, known := pieces.Least(); known {
				if !(b > 0) || b > MostWork || b > least {
					t.Fatalf("a bound of %v after one of %v", b, least)
				}
				least = b
			}
		}
		for _, r := range []*Reader{&whole, &pieces} {
			r.End(true)
			if len(r.line) > MostLine || len(r.First) > MostLine || r.Ignored > r.lines || r.lines > MostLines+1 {
				t.Fatalf("%d bytes of a line, %d of the first, %d of %d lines ignored", len(r.line), len(r.First), r.Ignored, r.lines)
			}
		}
		if whole.Bound != pieces.Bound || whole.Ignored != pieces.Ignored || whole.First != pieces.First {
			t.Fatalf("%+v in one piece, %+v in pieces of %d", whole, pieces, n)
		}
	})
}
