package forecast

import (
	"math/rand/v2"
	"slices"
	"testing"
	"time"
)

// The quantiles of a wait and a run time together are about those of sums that are drawn.
func TestEndsAgainstDraws(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 1))
	for n := range 30 {
		var w Waits
		at := 0.0
		for i := range w {
			at += rng.ExpFloat64() * float64(10*time.Minute)
			w[i] = time.Duration(at)
		}
		var runs Runs
		for i := range runs {
			runs[i] = uint16((i + 1) * (1000 + 500*n%6000))
		}
		const limit = 2 * time.Hour
		ends := EndsOf(&w, &runs, limit, limit)
		wait, run := CurveOf(&w), runs.Curve(limit)
		sums := make([]time.Duration, 40_000)
		for i := range sums {
			sums[i] = wait.Quantile(rng.Float64()) + run.Quantile(rng.Float64())
		}
		slices.Sort(sums)
		for i, p := range Levels[:8] {
			want := sums[int(p*float64(len(sums)))]
			if d := (ends[i] - want).Abs(); d > want/12+3*time.Minute {
				t.Errorf("case %d, level %v: %v, want %v", n, p, ends[i], want)
			}
			if ends[i] < w[i] || i > 0 && ends[i] < ends[i-1] {
				t.Errorf("case %d: waits %v, ends %v", n, w, ends)
			}
		}
	}
}

func TestEndsAtTheEdges(t *testing.T) {
	var w Waits
	runs := Runs{8: 1}
	if ends := EndsOf(&w, &runs, 0, 0); ends != (Waits{}) {
		t.Errorf("no wait and no run end after %v", ends)
	}
	for i := range w {
		w[i] = time.Hour
	}
	if m := w.Mean(); m != time.Hour {
		t.Errorf("mean %v", m)
	}
	if m := (&Waits{8: 2 * time.Hour}).Mean(); m <= 0 || m > 10*time.Minute {
		t.Errorf("mean of a tail %v", m)
	}
	unknown := Runs{}
	if ends := EndsOf(&w, &unknown, time.Hour, time.Hour); ends[4] < time.Hour || ends[8] > 5*time.Hour {
		t.Errorf("of an unknown run time: %v", ends)
	}
	if ends := EndsOf(&Waits{}, &unknown, time.Hour, time.Minute); ends[8] != time.Minute {
		t.Errorf("of one that is stopped: %v", ends)
	}
}
