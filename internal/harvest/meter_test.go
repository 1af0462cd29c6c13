package harvest

import (
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"kith/internal/draw"
)

// An owner of one processor is drawn by an M/G/1 queue, measured in spans of 1 s, and found
// again: the share within 0.02, the deviation within a quarter, and arrivals within a tenth.
// Where service varies much (θ = 3) most jobs are shorter than what is told from noise, so
// that only two thirds of the arrivals are found.
func TestMeterFindsTheOwner(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		Load
		off float64
	}{{Load{1.0 / 120, 0.2, 24}, 0.1}, {Load{1.0 / 120, 0.5, 60}, 0.1}, {Load{1.0 / 60, 0.5, 90}, 0.4}, {Load{1.0 / 600, 0.1, 10}, 0.1}} {
		rng := rand.New(rand.NewPCG(1, uint64(c.Rho*100)))
		const span = time.Second
		m := Meter{Processors: 1}
		service := c.Rho / c.Lambda
		theta := c.Sigma / service
		var left, next float64 // s of service to do, until the next arrival
		next = rng.ExpFloat64() / c.Lambda
		for range 400 * 3600 {
			there, at := 0.0, 0.0
			for at < span.Seconds() {
				step := min(span.Seconds()-at, next)
				if left > 0 {
					step = min(step, left)
					there += step
					left -= step
				}
				at += step
				if next -= step; next <= 0 {
					left += draw.Gamma(rng, 1/(theta*theta), theta*theta*service)
					next = rng.ExpFloat64() / c.Lambda
				}
			}
			m.Add(span, there/span.Seconds())
		}
		loads, ok := m.Hour()
		got := loads[0]
		t.Logf("%+v measured as %+v", c.Load, got)
		if !ok || math.Abs(got.Rho-c.Rho) > 0.02 || math.Abs(got.Lambda/c.Lambda-1) > c.off || math.Abs(got.Sigma/c.Sigma-1) > 0.25 {
			t.Errorf("%+v was measured as %+v", c.Load, got)
		}
	}
}

func TestMeterByWidth(t *testing.T) {
	t.Parallel()
	m := Meter{Processors: 4}
	for range 360 {
		m.Add(10*time.Second, 1.5)
	}
	loads, _ := m.Hour()
	// He holds one and a half of four: one of one is free, two of two, and never all four.
	for w, rho := range [Widths]float64{0, 0, 1} {
		if loads[w].Rho != rho {
			t.Errorf("width %d: %+v, want rho %v", w, loads[w], rho)
		}
		if err := loads[w].Check(); err != nil {
			t.Error(err)
		}
	}
	if loads[2].Lambda == 0 {
		t.Errorf("who is always there has come at some time: %+v", loads[2])
	}
	m.NextHour()
	if _, ok := m.Hour(); ok {
		t.Error("an hour without a span has a load")
	}
	for _, c := range []struct {
		taken, processors int32
		want              int
	}{{1, 1, 0}, {1, 4, 0}, {2, 4, 1}, {3, 4, 2}, {4, 4, 2}, {3, 5, 1}, {1, 2, 0}, {2, 2, 2}, {9, 4, 2}} {
		if got := WidthOf(c.taken, c.processors); got != c.want {
			t.Errorf("WidthOf(%d, %d) = %d, want %d", c.taken, c.processors, got, c.want)
		}
	}
}

// An owner who is always there, never there, or measured as nonsense.
func TestMeterOfOddOwners(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ held, rho float64 }{
		"never": {0, 0}, "always": {1, 1}, "more than there is": {7, 1}, "NaN": {math.NaN(), 0}, "negative": {-1, 0}, "infinite": {math.Inf(1), 0},
	} {
		m := Meter{Processors: 1}
		for i := range 20 {
			m.Add(time.Minute, c.held)
			m.Add(0, 1)
			m.Add(-time.Minute, 1)
			if i == 10 {
				m.Gap()
			}
		}
		loads, ok := m.Hour()
		if !ok || loads[0].Rho != c.rho || loads[0].Check() != nil {
			t.Errorf("%s: %+v, %v", name, loads[0], ok)
		}
	}
}
