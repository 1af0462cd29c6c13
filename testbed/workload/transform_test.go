package workload

import (
	"errors"
	"math"
	"math/rand/v2"
	"reflect"
	"slices"
	"testing"
	"time"

	"kith/internal/job"
)

// sample is a workload of which every transformation finds something to do.
func sample() *Workload {
	return &Workload{
		Name: "sample", Tick: time.Second, Start: monday, Processors: 99,
		Jobs: []Job{
			{ID: 1, Submit: 0, Run: seconds(10), Estimate: seconds(20), Procs: 64},
			{ID: 2, Submit: second(100), Run: seconds(30), Estimate: seconds(20), Procs: 2, User: "ann"},
			{ID: 3, Submit: second(100), Run: seconds(5), Estimate: seconds(5), Procs: 1},
			{ID: 4, Submit: second(250), Run: seconds(1), Estimate: seconds(3), Procs: 8},
		},
	}
}

// unchanged demands that a transformation left its input alone.
func unchanged(t *testing.T, w *Workload) {
	t.Helper()
	if !reflect.DeepEqual(w, sample()) {
		t.Errorf("the input has become %+v", w)
	}
}

func TestFit(t *testing.T) {
	for overrun, change := range map[Overrun]func(*Job){
		Kill: func(j *Job) { j.Run = seconds(20) }, Raise: func(j *Job) { j.Estimate = seconds(30) }, Keep: func(*Job) {},
	} {
		w := sample()
		got, err := w.Fit(8, overrun)
		if err != nil {
			t.Fatal(err)
		}
		want := slices.Clone(sample().Jobs[1:])
		for i := range want {
			want[i].Submit -= second(100)
		}
		change(&want[0])
		if !slices.Equal(got.Jobs, want) || got.Processors != 8 || !got.Start.Equal(monday.Add(100*time.Second)) {
			t.Errorf("%v: %+v, want %+v", overrun, got, want)
		}
		if n := counts(&got.Report); !reflect.DeepEqual(n, map[Kind]int{TooWide: 1, Overran: 1}) {
			t.Errorf("%v: counts are %v", overrun, n)
		}
		unchanged(t, w)
		if back, err := ParseOverrun(overrun.String()); err != nil || back != overrun {
			t.Errorf("ParseOverrun(%v) = %v, %v", overrun, back, err)
		}
	}
	for _, p := range []int32{0, -1, job.MaxProcessors + 1} {
		if _, err := sample().Fit(p, Kill); !errors.Is(err, ErrArgument) {
			t.Errorf("%d processors: %v", p, err)
		}
	}
	if _, err := sample().Fit(8, Overrun(7)); !errors.Is(err, ErrOverrun) {
		t.Errorf("an unknown overrun: %v", err)
	}
	if _, err := ParseOverrun("maim"); !errors.Is(err, ErrOverrun) {
		t.Errorf("ParseOverrun(maim): %v", err)
	}
	if none, err := sample().Fit(1, Kill); err != nil || len(none.Jobs) != 1 {
		t.Errorf("on one processor: %+v, %v", none, err)
	}
}

func TestWindow(t *testing.T) {
	for _, m := range []struct {
		skip, n int
		want    []int64
	}{{0, 0, []int64{1, 2, 3, 4}}, {0, 2, []int64{1, 2}}, {1, 0, []int64{2, 3, 4}}, {2, 1, []int64{3}}, {3, 100, []int64{4}}, {4, 0, nil}, {100, math.MaxInt, nil}} {
		w := sample()
		got, err := w.Window(m.skip, m.n)
		if err != nil {
			t.Fatal(err)
		}
		var ids []int64
		for i, j := range got.Jobs {
			ids = append(ids, j.ID)
			if want := w.Jobs[m.skip+i].Submit - w.Jobs[m.skip].Submit; j.Submit != want {
				t.Errorf("window %d+%d: job %d is submitted at %d, want %d", m.skip, m.n, j.ID, j.Submit, want)
			}
		}
		if !slices.Equal(ids, m.want) {
			t.Errorf("window %d+%d: %v, want %v", m.skip, m.n, ids, m.want)
		}
		unchanged(t, w)
	}
	for _, m := range [][2]int{{-1, 0}, {0, -1}} {
		if _, err := sample().Window(m[0], m[1]); !errors.Is(err, ErrArgument) {
			t.Errorf("window %v: %v", m, err)
		}
	}
}

func TestStretch(t *testing.T) {
	w := sample()
	w.Jobs[3].Estimate = seconds(35)
	got, err := w.Stretch(1.7)
	if err != nil {
		t.Fatal(err)
	}
	want := [][2]int64{{17, 34}, {51, 34}, {9, 9}, {2, 60}} // 8.5, 1.7 and 59.5 rounded
	for i, j := range got.Jobs {
		if j.Run != seconds(want[i][0]) || j.Estimate != seconds(want[i][1]) || j.Submit != w.Jobs[i].Submit {
			t.Errorf("%+v, want %v", j, want[i])
		}
	}
	if got, err = sample().Stretch(1e-9); err != nil || got.Jobs[0].Run != time.Second {
		t.Errorf("almost nothing left: %+v, %v", got, err)
	}
	if got, err = sample().Stretch(2e7); err != nil || len(got.Jobs) != 2 || got.Report.Count(TooLong) != 2 {
		t.Errorf("too long: %+v, %v", got, err)
	}
	fine := sample()
	fine.Tick = 1
	if got, err = fine.Stretch(1.7); err != nil || got.Jobs[2].Run != 8500*time.Millisecond {
		t.Errorf("in nanoseconds: %+v, %v", got, err)
	}
	for _, x := range []float64{0, -1, math.NaN(), math.Inf(1)} {
		if _, err := sample().Stretch(x); !errors.Is(err, ErrArgument) {
			t.Errorf("by %v: %v", x, err)
		}
		if _, err := sample().ScaleLoad(x); !errors.Is(err, ErrArgument) {
			t.Errorf("load by %v: %v", x, err)
		}
	}
	unchanged(t, sample())
}

func TestShift(t *testing.T) {
	w := sample()
	got, err := w.Shift(3 * time.Hour)
	if err != nil || got.Jobs[0].Submit != second(10800) || got.Jobs[3].Submit != second(11050) {
		t.Errorf("%+v, %v", got, err)
	}
	if back, err := got.Shift(-3 * time.Hour); err != nil || !reflect.DeepEqual(back, w) {
		t.Errorf("and back: %+v, %v", back, err)
	}
	for _, d := range []time.Duration{-time.Second, MaxSpan + 1, math.MinInt64} {
		if _, err := w.Shift(d); !errors.Is(err, ErrArgument) {
			t.Errorf("by %v: %v", d, err)
		}
	}
	unchanged(t, w)
}

// The offered load is what was asked for, but for rounding to seconds.
func TestScaleLoad(t *testing.T) {
	w := sample()
	got, err := w.ScaleLoad(2)
	if err != nil || got.Jobs[1].Submit != second(50) || got.Jobs[3].Submit != second(125) || got.Jobs[3].Run != w.Jobs[3].Run {
		t.Errorf("%+v, %v", got, err)
	}
	unchanged(t, w)
	long, err := CTCLike{Jobs: 2000, Load: 0.5}.Generate(NewRand(3, 0))
	if err != nil {
		t.Fatal(err)
	}
	if got, err = long.ScaleLoad(1.5); err != nil || math.Abs(got.OfferedLoad(430)-0.75) > 1e-5 {
		t.Errorf("1.5 × 0.5 is %v, %v", got.OfferedLoad(430), err)
	}
	if got, err = w.ScaleLoad(1e-9); err != nil || len(got.Jobs) != 1 || got.Report.Count(TooLate) != 3 {
		t.Errorf("almost no load: %+v, %v", got, err)
	}
}

func TestPerfectEstimatesAndEqualWidth(t *testing.T) {
	w := sample()
	for i, j := range w.PerfectEstimates().Jobs {
		if j.Estimate != j.Run || j.Run != w.Jobs[i].Run {
			t.Errorf("%+v", j)
		}
	}
	// (64·10 + 2·30 + 1·5 + 8·1) ÷ 46 = 15.5
	width := MeanWidth(w)
	if width != 16 || MeanWidth(w, w) != 16 || MeanWidth() != 1 {
		t.Errorf("the mean width is %d", width)
	}
	equal, err := w.EqualWidth(width)
	if err != nil {
		t.Fatal(err)
	}
	for i, j := range equal.Jobs {
		if j.Procs != width || j.Run != w.Jobs[i].Run {
			t.Errorf("%+v", j)
		}
	}
	if _, err := w.EqualWidth(0); !errors.Is(err, ErrArgument) {
		t.Errorf("no width: %v", err)
	}
	unchanged(t, w)
}

// What no argument may break, for random workloads and arguments.
func TestTransformationsKeepTheirPromises(t *testing.T) {
	rng := rand.New(rand.NewPCG(5, 6))
	for range 200 {
		w, err := CTCLike{Jobs: 1 + rng.IntN(200), Processors: 1 + rng.Int32N(600), Load: 0.1 + rng.Float64()}.Generate(rng)
		if err != nil {
			t.Fatal(err)
		}
		checkJobs(t, w)
		before := Hash(w)
		fit, err := w.Fit(1+rng.Int32N(300), Overrun(rng.UintN(3)))
		if err != nil {
			t.Fatal(err)
		}
		window, err := fit.Window(rng.IntN(50), rng.IntN(100))
		if err != nil {
			t.Fatal(err)
		}
		stretched, err := window.Stretch(math.Exp(4*rng.Float64() - 2))
		if err != nil {
			t.Fatal(err)
		}
		scaled, err := stretched.ScaleLoad(math.Exp(4*rng.Float64() - 2))
		if err != nil {
			t.Fatal(err)
		}
		for _, v := range []*Workload{fit, window, stretched, scaled, scaled.PerfectEstimates()} {
			checkJobs(t, v)
		}
		if Hash(w) != before {
			t.Fatal("the workload has changed")
		}
	}
}

func TestHash(t *testing.T) {
	base := Hash(sample(), sample())
	if base != Hash(sample(), sample()) || len(base) != 64 {
		t.Error("equal workloads differ")
	}
	seen := map[string]int{base: -1, Hash(sample()): -2, Hash(): -3}
	for i, change := range []func(*Job){
		func(j *Job) { j.ID++ }, func(j *Job) { j.Submit++ }, func(j *Job) { j.Run++ }, func(j *Job) { j.Estimate++ },
		func(j *Job) { j.Procs++ }, func(j *Job) { j.MemoryBytes++ }, func(j *Job) { j.User = "x" }, func(j *Job) { j.Group = "x" },
		func(j *Job) { j.User, j.Group = "x", "" },
	} {
		w := sample()
		change(&w.Jobs[2])
		h := Hash(sample(), w)
		if other, ok := seen[h]; ok && i != 8 {
			t.Errorf("change %d is like %d", i, other)
		}
		seen[h] = i
	}
}
