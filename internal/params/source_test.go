package params

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"kith/internal/job"
)

// all returns the rows of a source from one on.
func all(t *testing.T, s Source, from uint32) [][]string {
	t.Helper()
	var rows [][]string
	err := s.Each(from, func(ordinal uint32, values []string) bool {
		if ordinal != from+uint32(len(rows)) {
			t.Fatalf("row %d instead of %d", ordinal, from+uint32(len(rows)))
		}
		rows = append(rows, slices.Clone(values))
		return true
	})
	if err != nil {
		t.Fatal(err)
	}
	return rows
}

// checkSource checks what must hold of every source that has these rows.
func checkSource(t *testing.T, s Source, want [][]string) {
	t.Helper()
	if int(s.Count()) != len(want) {
		t.Fatalf("Count() = %d, want %d", s.Count(), len(want))
	}
	widths := make([]int, len(s.Names()))
	for _, row := range want {
		for i, v := range row {
			widths[i] = max(widths[i], len(v))
		}
	}
	if !slices.Equal(widths, s.Widths()) {
		t.Errorf("Widths() = %d, want %d", s.Widths(), widths)
	}
	for _, from := range []int{0, 1, len(want) / 2, len(want) - 1, len(want)} {
		if from > len(want) || from < 0 {
			continue
		}
		if got := all(t, s, uint32(from)); !slices.EqualFunc(got, want[from:], slices.Equal[[]string]) {
			t.Errorf("rows from %d: %.200q, want %.200q", from, fmt.Sprint(got), fmt.Sprint(want[from:]))
		}
	}
	for _, n := range []int{0, len(want) - 1} {
		if row, err := Row(s, uint32(n)); err != nil || !slices.Equal(row, want[n]) {
			t.Errorf("Row(%d) = %.100q, %v", n, row, err)
		}
	}
	if row, err := Row(s, uint32(len(want))); !errors.Is(err, ErrNoRow) {
		t.Errorf("the row behind the last one is %q, %v", row, err)
	}
	visits := 0
	if err := s.Each(0, func(uint32, []string) bool { visits++; return false }); err != nil || visits != 1 {
		t.Errorf("%d visits after false, %v", visits, err)
	}
}

func TestRows(t *testing.T) {
	rows := [][]string{{"1", "a"}, {"22", ""}, {"3", "ä\nb"}}
	r, err := NewRows([]string{"x", "y"}, rows)
	if err != nil {
		t.Fatal(err)
	}
	checkSource(t, r, rows)
	checkSource(t, NoRows{Tasks: 3}, [][]string{nil, nil, nil})

	many := make([][]string, MaxRows+1)
	for i := range many {
		many[i] = []string{"v"}
	}
	half := strings.Repeat("v", MaxRowBytes/2+1)
	large := make([][]string, MaxRowsSize/len(half)+1)
	for i := range large {
		large[i] = []string{half}
	}
	for name, c := range map[string]struct {
		names []string
		rows  [][]string
		want  error
		part  string
	}{
		"none":            {[]string{"x"}, nil, ErrBadRows, "0 rows"},
		"no parameter":    {nil, [][]string{{}}, ErrBadRows, "without a parameter"},
		"too many":        {[]string{"x"}, many, ErrBadRows, "10001 rows"},
		"too large":       {[]string{"x"}, large, ErrBadRows, "upload a table"},
		"a value short":   {[]string{"x", "y"}, [][]string{{"1", "2"}, {"1"}}, ErrBadRows, "row 2 has 1 values, there are 2 parameters"},
		"a value more":    {[]string{"x"}, [][]string{{"1", "2"}}, ErrBadRows, "row 1 has 2 values"},
		"a zero byte":     {[]string{"x"}, [][]string{{"1"}, {"a\x00b"}}, ErrBadValue, "row 2: the value of x"},
		"no UTF-8":        {[]string{"x"}, [][]string{{"a\xffb"}}, ErrBadValue, "is not UTF-8"},
		"a row too large": {[]string{"x", "y"}, [][]string{{half, half}}, ErrBadValue, "row 1: the values up to that of y have 65538 bytes"},
		"a bad name":      {[]string{"x y"}, [][]string{{"1"}}, ErrBadName, `"x y"`},
	} {
		if _, err := NewRows(c.names, c.rows); !errors.Is(err, c.want) || !strings.Contains(err.Error(), c.part) {
			t.Errorf("%s: %v; want %v with %q", name, err, c.want, c.part)
		}
	}
}

func TestMatrix(t *testing.T) {
	m, err := ParseMatrix("a=1..3,b=x,y=z,c=")
	if err != nil {
		t.Fatal(err)
	}
	if want := []string{"a", "b", "y", "c"}; !slices.Equal(m.Names(), want) {
		t.Errorf("names %q, want %q", m.Names(), want)
	}
	checkSource(t, m, [][]string{{"1", "x", "z", ""}, {"2", "x", "z", ""}, {"3", "x", "z", ""}})

	for text, want := range map[string]string{
		"a=1..4":       "1 2 3 4",
		"a=1..9..4":    "1 5 9",
		"a=1..10..4":   "1 5 9",
		"a=08..11":     "08 09 10 11",
		"a=8..011":     "008 009 010 011",
		"a=-2..1":      "-2 -1 0 1",
		"a=-01..1":     "-01 00 01",
		"a=5..5":       "5",
		"a=0.5,1..2,x": "0.5 1 2 x",
		"a=../up,a..b": "../up a..b",
		"a=k=v":        "k=v",
		"a=-9223372036854775807..9223372036854775807..9223372036854775807": "-9223372036854775807 0 9223372036854775807",
	} {
		m, err := ParseMatrix(text)
		if err != nil {
			t.Errorf("%q: %v", text, err)
			continue
		}
		var got []string
		for _, row := range all(t, m, 0) {
			got = append(got, row...)
		}
		if strings.Join(got, " ") != want {
			t.Errorf("%q has %q, want %q", text, got, want)
		}
	}
}

func TestMatrixRefused(t *testing.T) {
	for text, c := range map[string]struct {
		want error
		part string
	}{
		"":                          {ErrBadMatrix, "1 to 8 lists"},
		"x,a=1":                     {ErrBadMatrix, `at "x"`},
		"a=9..1":                    {ErrBadMatrix, `list a: range "9..1" runs backwards; begin with the lower number`},
		"a=1..9..0":                 {ErrBadMatrix, "has step 0, it must be at least 1"},
		"a=1..9..-1":                {ErrBadMatrix, "has step -1"},
		"a=1...3":                   {ErrBadMatrix, "not of whole numbers"},
		"a=0.1..0.5":                {ErrBadMatrix, "not of whole numbers; write its values"},
		"a=1..16777217":             {ErrBadMatrix, "more than 16777216 numbers"},
		"a=1..16777216,0":           {ErrBadMatrix, "more than 16777216 values"},
		"a=1..4097,b=1..4096":       {ErrBadMatrix, "more than 16777216 combinations up to list b; submit several bags"},
		"a=0..99999999999999999999": {ErrBadMatrix, "more than 63 bits"},
		"a=-9223372036854775808..0": {ErrBadMatrix, "more than 63 bits"},
		"a=-9223372036854775807..9223372036854775807":                             {ErrBadMatrix, "more than 16777216 numbers"},
		"a=1,b=1,c=1,d=1,e=1,f=1,g=1,h=1,i=1":                                     {ErrBadMatrix, "in list 9"},
		"a=1..256,b=1..256,c=1..256,d=1..256,e=1..256,f=1..256,g=1..256,h=1..256": {ErrBadMatrix, "up to list d"},
		"=1":                              {ErrBadName, `parameter ""`},
		"a b=1":                           {ErrBadName, `"a b"`},
		"a=1,A=2":                         {ErrBadNames, `"a" and "A"`},
		"a=x\x00y":                        {ErrBadValue, "zero byte"},
		"a=x\xffy":                        {ErrBadValue, "UTF-8"},
		"a=" + strings.Repeat("x", 70000): {ErrBadMatrix, "upload a table"},
	} {
		_, err := ParseMatrix(text)
		if !errors.Is(err, c.want) || !strings.Contains(err.Error(), c.part) {
			t.Errorf("%.60q: %v; want %v with %q", text, err, c.want, c.part)
		}
	}
}

// A matrix has the rows of loops within one another, the last list innermost.
func TestMatrixAgainstLoops(t *testing.T) {
	for seed := range uint64(200) {
		rng := rand.New(rand.NewPCG(seed, 0))
		want := [][]string{nil}
		var text []string
		for l := range 1 + rng.IntN(4) {
			var values, items []string
			for range 1 + rng.IntN(3) {
				if rng.IntN(2) == 0 {
					lo, n, step := rng.IntN(20)-5, rng.IntN(4), 1+rng.IntN(3)
					items = append(items, fmt.Sprintf("%d..%d..%d", lo, lo+n*step+rng.IntN(step), step))
					for k := range n + 1 {
						values = append(values, fmt.Sprint(lo+k*step))
					}
				} else {
					v := strings.Repeat("v", rng.IntN(4))
					items, values = append(items, v), append(values, v)
				}
			}
			text = append(text, fmt.Sprintf("p%d=%s", l, strings.Join(items, ",")))
			var next [][]string
			for _, row := range want {
				for _, v := range values {
					next = append(next, append(slices.Clone(row), v))
				}
			}
			want = next
		}
		m, err := ParseMatrix(strings.Join(text, ","))
		if err != nil {
			t.Fatalf("seed %d: %q: %v", seed, text, err)
		}
		checkSource(t, m, want)
		if t.Failed() {
			t.Fatalf("seed %d: %q", seed, text)
		}
	}
}

// A matrix is never expanded: sixteen million tasks are some bytes, and any row is found
// at once.
func TestMatrixIsNotExpanded(t *testing.T) {
	bytes := testing.AllocsPerRun(5, func() {
		m, err := ParseMatrix("a=1..4096,b=1..4096")
		if err != nil || m.Count() != job.MaxTasks {
			t.Fatal(m, err)
		}
		row, err := Row(m, job.MaxTasks-1)
		if err != nil || row[0] != "4096" || row[1] != "4096" {
			t.Fatal(row, err)
		}
	})
	if bytes > 60 {
		t.Errorf("%v allocations", bytes)
	}
}

func FuzzMatrix(f *testing.F) {
	for _, text := range []string{"a=1..9,b=x,y", "a=08..11", "a=1..9..0", "a=k=v,b=", "a=1..4097,b=1..4096"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		m, err := ParseMatrix(text)
		if err != nil {
			if !errors.Is(err, ErrBadMatrix) && !errors.Is(err, ErrBadName) && !errors.Is(err, ErrBadNames) && !errors.Is(err, ErrBadValue) || len(err.Error()) > 1500 {
				t.Errorf("%.60q: %v", text, err)
			}
			return
		}
		for _, n := range []uint32{0, m.Count() / 2, m.Count() - 1} {
			row, err := Row(m, n)
			if err != nil || len(row) != len(m.Names()) {
				t.Fatalf("%.60q: row %d is %q, %v", text, n, row, err)
			}
			for i, v := range row {
				if len(v) > m.Widths()[i] {
					t.Errorf("%.60q: row %d has %q, the longest should have %d bytes", text, n, v, m.Widths()[i])
				}
			}
		}
	})
}

func TestEnvironment(t *testing.T) {
	task := Task{Bag: "uni-a.k3f9.17", Index: 8, Count: 4, Min: 0, Max: 12, Step: 4, Names: []string{"seed", "Rate_2"}, Values: []string{"17", "a b"}}
	var got []string
	for _, v := range task.Environment() {
		got = append(got, v.Name+"="+v.Value)
	}
	want := []string{
		"KITH_TASK_INDEX=8", "SLURM_ARRAY_JOB_ID=uni-a.k3f9.17", "SLURM_ARRAY_TASK_ID=8", "SLURM_ARRAY_TASK_COUNT=4",
		"SLURM_ARRAY_TASK_MIN=0", "SLURM_ARRAY_TASK_MAX=12", "SLURM_ARRAY_TASK_STEP=4", "KITH_PARAM_SEED=17", "KITH_PARAM_RATE_2=a b",
	}
	if !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
}
