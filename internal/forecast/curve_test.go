package forecast

import (
	"math"
	"testing"
	"time"
)

// The level of a quantile is the level that it was asked for, and a curve never falls.
func TestCurveIsItsOwnInverse(t *testing.T) {
	w := Waits{10, 20, 40, 70, 100, 140, 200, 500, 900}
	for i := range w {
		w[i] *= time.Second
	}
	c, last := CurveOf(&w), time.Duration(-1)
	for i := range 100 {
		p := (float64(i) + .5) / 100
		q := c.Quantile(p)
		below, upto := c.PIT(q)
		if q < last || math.Abs(below-p) > 1e-6 || math.Abs(upto-p) > 1e-6 {
			t.Fatalf("level %v: quantile %v, after %v, whose level is %v to %v", p, q, last, below, upto)
		}
		last = q
	}
	for i, p := range Levels {
		if got := c.Quantile(p); got != w[i] {
			t.Errorf("level %v is %v, want %v", p, got, w[i])
		}
	}
}

// Where a curve stands still the truth ties with it: all levels of the step are as likely.
func TestCurveThatStandsStill(t *testing.T) {
	w := Waits{0, 0, 0, 0, 0, time.Minute, time.Hour, time.Hour, time.Hour}
	c := CurveOf(&w)
	if below, upto := c.PIT(0); below != 0 || upto != .5 {
		t.Errorf("at zero: %v to %v", below, upto)
	}
	if below, upto := c.PIT(time.Hour); below > .8 || upto < .95 {
		t.Errorf("at an hour: %v to %v", below, upto)
	}
	var none Waits
	c = CurveOf(&none)
	if below, upto := c.PIT(0); below != 0 || upto != 1 || c.Quantile(.9) != 0 {
		t.Errorf("no wait at all: %v to %v", below, upto)
	}
}

// A residual lies between what has passed and the limit, and what has not passed yet is as
// it was.
func TestResidualsOfRuns(t *testing.T) {
	q := Runs{1000, 2000, 4000, 8000, 10000, 20000, 30000, 40000, 50000}
	for _, elapsed := range []time.Duration{-1, 0, time.Minute, 20 * time.Minute, 59 * time.Minute, time.Hour, 2 * time.Hour} {
		last := time.Duration(0)
		for i := range 21 {
			r := q.Residual(elapsed, time.Hour, float64(i)/20)
			if r > time.Hour || r < min(elapsed, time.Hour) || r < last {
				t.Errorf("elapsed %v, level %v: %v after %v", elapsed, float64(i)/20, r, last)
			}
			last = r
		}
	}
	if got, want := q.Residual(0, time.Hour, .5), time.Duration(math.Floor(10000.0/whole*float64(time.Hour))); got != want {
		t.Errorf("the median is %v, want %v", got, want)
	}
	var unknown Runs
	if got := unknown.Residual(0, time.Hour, .25); got != 15*time.Minute {
		t.Errorf("of nothing known a quarter is %v", got)
	}
}
