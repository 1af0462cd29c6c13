package draw

import (
	"math"
	"math/rand/v2"
	"testing"
)

// Means and variances are those of the distributions, for small and large parameters.
func TestMoments(t *testing.T) {
	const n = 100_000
	rng := rand.New(rand.NewPCG(1, 2))
	check := func(name string, mean, variance float64, draw func() float64) {
		t.Helper()
		var sum, squares float64
		for range n {
			x := draw() - mean
			sum += x
			squares += x * x
		}
		// Five standard errors of the mean; a twentieth of the variance, which even shape 1/9 keeps.
		if off := sum / n; math.Abs(off) > 5*math.Sqrt(variance/n) {
			t.Errorf("%s: the mean is %v off %v", name, off, mean)
		}
		if got := squares / n; math.Abs(got-variance) > 0.05*variance {
			t.Errorf("%s: the variance is %v, want %v", name, got, variance)
		}
	}
	for _, shape := range []float64{1.0 / 9, 0.5, 1, 2.5, 40} {
		check("gamma", 3*shape, 9*shape, func() float64 { return Gamma(rng, shape, 3) })
	}
	for _, mean := range []float64{0.3, 4, 15.9, 16, 40, 1000, 123_456} {
		check("poisson", mean, mean, func() float64 { return Poisson(rng, mean) })
	}
	for _, p := range []float64{0.1, 0.5, 0.97} {
		check("binomial", 300*p, 300*p*(1-p), func() float64 { return binomial(rng, 300, p) })
	}
}

// The Poisson distribution is right event by event, on both sides of the change of method.
func TestPoissonByCount(t *testing.T) {
	const n = 200_000
	rng := rand.New(rand.NewPCG(3, 4))
	for _, mean := range []float64{2, 15, 17, 33} {
		seen := make(map[float64]int)
		for range n {
			seen[Poisson(rng, mean)]++
		}
		for k := math.Floor(mean - 2*math.Sqrt(mean)); k <= mean+2*math.Sqrt(mean); k++ {
			lg, _ := math.Lgamma(k + 1)
			p := math.Exp(k*math.Log(mean) - mean - lg)
			if off := float64(seen[k]) - n*p; math.Abs(off) > 5*math.Sqrt(n*p) {
				t.Errorf("mean %v: %v comes %d times, want %.0f", mean, k, seen[k], n*p)
			}
		}
	}
}

func TestPoissonWithoutEvents(t *testing.T) {
	rng := rand.New(rand.NewPCG(5, 6))
	for _, mean := range []float64{0, -1, math.Inf(-1)} {
		if n := Poisson(rng, mean); n != 0 {
			t.Errorf("mean %v: %v events", mean, n)
		}
	}
	if n := Poisson(rng, math.Inf(1)); !math.IsInf(n, 1) {
		t.Errorf("without a bound: %v events", n)
	}
}
