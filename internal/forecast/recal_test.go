package forecast

import (
	"math"
	"testing"
	"time"
)

// Level is the inverse of the distribution of past levels, each weighed by its age.
func TestRecalibrationAgainstDefinition(t *testing.T) {
	for seed := range uint64(20) {
		rng := newRand(seed)
		fade := []float64{0.5, 0.9, FadeRuns, FadeStarts}[seed%4]
		r := NewRecalibration(fade)
		var bin [200]float64
		for i := range bin {
			bin[i] = 0.1
		}
		for range 200 {
			u := rng.Float64() * rng.Float64()
			r.Add(u, u, nil) // nothing to draw
			for i := range bin {
				bin[i] *= fade
			}
			bin[int(u*200)]++
		}
		sum := 0.0
		for _, b := range bin {
			sum += b
		}
		for _, p := range Levels {
			want, level := p*sum, 0.0
			for _, b := range bin {
				part := min(b, max(want, 0))
				level += part / b / 200
				want -= b
			}
			if got := r.Level(p); math.Abs(got-level) > 1e-6 {
				t.Fatalf("seed %d, fade %v: level %v is %v, want %v", seed, fade, p, got, level)
			}
		}
	}
}

// A new recalibration answers each level with itself; levels rise and stay inside.
func TestLevels(t *testing.T) {
	r := NewRecalibration(FadeRuns)
	for i := range 1001 {
		if p := float64(i) / 1000; math.Abs(r.Level(p)-p) > 1e-9 {
			t.Fatalf("level %v is %v", p, r.Level(p))
		}
	}
	rng := newRand(1)
	for range 5000 {
		r.Add(1, 1, rng)
	}
	last := 0.0
	for i := range 1000 {
		level := r.Level((float64(i) + .5) / 1000)
		if level <= last || level >= 1 {
			t.Fatalf("level %v after %v", level, last)
		}
		last = level
	}
}

// A forecaster whose ranges are too narrow, too wide or to one side holds 80 % once it is
// recalibrated; ties are no way out.
func TestRecalibrationHolds(t *testing.T) {
	for name, draw := range map[string]func(z, noise float64) float64{
		"narrow":  func(z, noise float64) float64 { return z + 0.75*noise },
		"wide":    func(z, noise float64) float64 { return z + 3*noise },
		"shifted": func(z, noise float64) float64 { return z + 0.5 + noise },
		"ties":    func(z, noise float64) float64 { return math.Round(z + 0.5*noise) },
	} {
		rng, r := newRand(2), NewRecalibration(FadeStarts)
		var d Dist
		var all Record
		for i := range 6000 {
			z := rng.NormFloat64()
			var s Samples
			for range DefaultScenarios {
				s = append(s, time.Duration((100+10*draw(z, rng.NormFloat64()))*1e9))
			}
			truth := time.Duration((100 + 10*z + 10*rng.NormFloat64()) * 1e9)
			if name == "ties" {
				truth = truth.Round(10 * time.Second)
			}
			s.Dist(&d)
			if i >= 1000 {
				score := Judge(&d, r, truth)
				all.Add(&score)
			}
			below, upto := d.PIT(truth)
			r.Add(below, upto, rng)
		}
		if share := all.Share(); math.Abs(share-0.8) > 0.02 {
			t.Errorf("%s: %.3f held", name, share)
		}
	}
}
