package forecast

import (
	"math"
	"testing"
	"time"
)

// The parts add up, and a truth drawn from the very distribution is within four times of five.
func TestJudge(t *testing.T) {
	rng, r := newRand(3), NewRecalibration(FadeRuns)
	var all Record
	for range 4000 {
		d, _ := drawn(rng)
		s := Judge(d, r, d.Quantile(rng.Float64()))
		if sum := s.Held + s.Below + s.Above; math.Abs(sum-1) > 1e-9 || s.Held < 0 || s.Below < 0 || s.Above < 0 {
			t.Fatalf("%+v", s)
		}
		all.Add(&s)
	}
	if share := all.Share(); math.Abs(share-0.8) > 0.02 {
		t.Errorf("%.3f held", share)
	}
}

// A tie with a bound counts by the part of it inside.
func TestTiesAreSplit(t *testing.T) {
	var d Dist
	d.Reset()
	for i := range 10 {
		d.Add(time.Duration(i/2)*time.Second, 1) // 0, 0, 1, 1, 2, 2, 3, 3, 4, 4
	}
	r := NewRecalibration(FadeRuns)
	for _, c := range []struct {
		truth              time.Duration
		below, held, above float64
	}{
		{-time.Second, 1, 0, 0}, {0, 0.5, 0.5, 0}, {time.Second, 0, 1, 0}, {2500 * time.Millisecond, 0, 1, 0},
		{4 * time.Second, 0, 0.5, 0.5}, {5 * time.Second, 0, 0, 1},
	} {
		s := Judge(&d, r, c.truth)
		if math.Abs(s.Below-c.below)+math.Abs(s.Held-c.held)+math.Abs(s.Above-c.above) > 1e-9 {
			t.Errorf("%v: %+v", c.truth, s)
		}
	}
	if got := RangeOf(&d, r); got != (Range{0, 2 * time.Second, 4 * time.Second}) {
		t.Errorf("range %v", got)
	}
}

// The true quantile has the least loss.
func TestPinballLoss(t *testing.T) {
	loss := func(quantile time.Duration) (sum float64) {
		for y := range 100 {
			sum += PinballLoss(quantile, time.Duration(y)*time.Second, 0.9)
		}
		return sum
	}
	if best := loss(90 * time.Second); loss(80*time.Second) <= best || loss(99*time.Second) <= best {
		t.Errorf("%v, %v, %v", loss(80*time.Second), best, loss(99*time.Second))
	}
}

// A ledger is the record of the last thousand.
func TestLedgerAgainstList(t *testing.T) {
	rng := newRand(4)
	var l Ledger
	var list []Score
	for range 2500 {
		s := Score{Class: Class(rng.IntN(3)), Held: rng.Float64(), Pinball: rng.Float64() * 1000, Width: rng.Float64()}
		s.Below = 1 - s.Held
		l.Add(&s)
		list = append(list, s)
		if rng.IntN(100) > 0 {
			continue
		}
		for c := range Class(3) {
			var want, all Record
			for _, s := range list[max(0, len(list)-1000):] {
				all.Add(&s)
				if s.Class == c {
					want.Add(&s)
				}
			}
			equalRecords(t, l.Of(c), want)
			equalRecords(t, l.All(), all)
		}
	}
	if (&Record{}).Share() != 0 {
		t.Error("nothing has a share")
	}
}

func equalRecords(t *testing.T, got, want Record) {
	t.Helper()
	if got.Forecasts != want.Forecasts || math.Abs(got.Held-want.Held)+math.Abs(got.Below-want.Below)+math.Abs(got.Pinball-want.Pinball)+math.Abs(got.Width-want.Width) > 1e-6 {
		t.Fatalf("%+v, want %+v", got, want)
	}
}

func TestClasses(t *testing.T) {
	for _, c := range []struct {
		limit time.Duration
		jobs  int
		want  Class
	}{{4 * time.Hour, 19, 0}, {4 * time.Hour, 20, 1}, {4*time.Hour + 1, 0, 2}, {time.Duration(math.MaxInt64), 1000, 3}} {
		if got := RunClass(c.limit, c.jobs); got != c.want || RunClassName(got) == "" {
			t.Errorf("%v, %d jobs: class %d", c.limit, c.jobs, got)
		}
	}
	for median, want := range map[time.Duration]Class{0: 0, time.Hour: 0, time.Hour + 1: 1, 6 * time.Hour: 1, 7 * time.Hour: 2} {
		if got := StartClass(median); got != want || StartClassName(got) == "" {
			t.Errorf("%v: class %d", median, got)
		}
	}
}
