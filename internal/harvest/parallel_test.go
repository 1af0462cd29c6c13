package harvest

import (
	"math"
	"math/rand/v2"
	"testing"
	"time"
)

// made are machines by the generator of spec 003: shares from 0.05 to 0.9, service times of 30 s
// in the mean, log-normal over machines, that vary by 1, 2 or 3, and three speeds.
func made(rng *rand.Rand, n int) []Machine {
	ms := make([]Machine, n)
	for i := range ms {
		rho := 0.05 + 0.85*rng.Float64()
		service := 30 * math.Exp(rng.NormFloat64()/2-0.125)
		ms[i] = Machine{
			Lambda: rho / service, Rho: rho, Sigma: service * float64(1+rng.IntN(3)),
			Speed: []float64{0.8, 1, 1.33}[rng.IntN(3)],
		}
	}
	return ms
}

// With one machine (4) is (1); it is monotone, 0 before the longest dedicated time, and ends at 1.
func TestSpecCheck04ParallelDistribution(t *testing.T) {
	m := machineOf(4, 0.5, 2)
	one, err := NewParallel([]Machine{m}, []float64{1000}, Method{})
	if err != nil {
		t.Fatal(err)
	}
	f := newFinish(m, 1000, Method{})
	for at := 900.0; at < 20_000; at += 37 {
		if a, b := one.CDF(at), f.CDF(at); math.Abs(a-b) > 1e-8 {
			t.Errorf("with one machine the probability of %v is %v, want %v", at, a, b)
		}
	}
	rng := seeded(5)
	for _, by := range []Method{{}, {Draws: 300}} {
		ms := made(rng, 12)
		works := make([]float64, len(ms))
		longest := 0.0
		for i := range works {
			works[i] = 100 + 900*rng.Float64()
			longest = max(longest, works[i]/ms[i].Speed)
		}
		p, err := NewParallel(ms, works, by)
		if err != nil {
			t.Fatal(err)
		}
		last := 0.0
		for at := longest * 0.9; at < 100*longest; at *= 1.003 {
			f := p.CDF(at)
			if f < last || at < longest && f != 0 {
				t.Errorf("%+v: the probability of %v is %v after %v", by, at, f, last)
			}
			last = f
		}
		if p.CDF(longest-1e-6) != 0 || p.CDF(math.Inf(1)) != 1 || p.CDF(math.NaN()) != 0 {
			t.Errorf("%+v: ends at %v and %v", by, p.CDF(longest-1e-6), p.CDF(math.Inf(1)))
		}
		for _, q := range []float64{0.1, 0.5, 0.95} {
			if at := p.Quantile(q); by.Draws == 0 && math.Abs(p.CDF(at)-q) > 1e-6 {
				t.Errorf("quantile %v is %v, where it is %v", q, at, p.CDF(at))
			}
		}
	}
}

// The mean and the deviation of one machine come out of the integration, too.
func TestSpecCheck05MeanByIntegration(t *testing.T) {
	for _, rho := range []float64{0, 0.1, 0.5, 0.9} {
		for _, theta := range []float64{0, 1, 3} {
			for _, lx := range []float64{0.01, 0.5, 2, 12, 100, 10_000} {
				m := machineOf(lx, rho, theta)
				p, err := NewParallel([]Machine{m}, []float64{1000}, Method{})
				if err != nil {
					t.Fatal(err)
				}
				f := newFinish(m, 1000, Method{})
				if off := math.Abs(p.Mean()/(1000/(1-rho)) - 1); off > 0.005 {
					t.Errorf("λx=%v ρ=%v θ=%v: the mean is %.2f %% off", lx, rho, theta, 100*off)
				}
				if off := math.Abs(p.SD() - f.SD()); off > 0.02*f.SD() {
					t.Errorf("λx=%v ρ=%v θ=%v: the deviation is %v, want %v", lx, rho, theta, p.SD(), f.SD())
				}
			}
		}
	}
}

// simpson is the plain integration over all of the time up to so many deviations of the slowest;
// that of the specification has 240 intervals up to twelve.
func simpson(p *Parallel, n int, deviations float64) float64 {
	high := p.least
	for i := range p.finishes {
		high = max(high, p.finishes[i].mean+deviations*p.finishes[i].sd)
	}
	sum := 0.0
	for i := range n + 1 {
		weight := 2.0 + 2*float64(i%2)
		if i == 0 || i == n {
			weight = 1
		}
		f := 1.0
		for k := range p.finishes {
			f *= p.finishes[k].CDF(p.least + (high-p.least)*float64(i)/float64(n))
		}
		sum += weight * (1 - f)
	}
	return p.least + sum*(high-p.least)/float64(3*n)
}

// bench is a parallel task of 8 h a machine by the generator.
func bench(n int) ([]Machine, []float64) {
	ms := made(seeded(6), n)
	works, err := MeanTime(ms, float64(n)*8*3600)
	if err != nil {
		panic(err)
	}
	return ms, works
}

// Looking where the distribution moves gives what looking everywhere does, and what drawing does.
// For tasks of hours 240 points are everywhere enough; of many short ones the last ends beyond
// twelve deviations at times.
func TestMeansOfManyMachines(t *testing.T) {
	for _, n := range []int{4, 20, 1024} {
		for _, share := range []float64{600, 8 * 3600} { // of work for each machine
			ms := made(seeded(uint64(n)), n)
			works, err := MeanTime(ms, share*float64(n))
			if err != nil {
				t.Fatal(err)
			}
			p, err := NewParallel(ms, works, Method{})
			if err != nil {
				t.Fatal(err)
			}
			want, coarse := simpson(p, 2400, 60), simpson(p, 240, 12)
			t.Logf("%d machines, %v s: mean %.1f, by 2400 points %.1f, by 240 %.1f; deviation %.1f", n, share, p.Mean(), want, coarse, p.SD())
			if off := math.Abs(p.Mean()/coarse - 1); share > 3600 && off > 0.005 {
				t.Errorf("%d machines: the mean is %.2f %% off that by 240 points", n, 100*off)
			}
			if off := math.Abs(p.Mean()/want - 1); off > 0.005 {
				t.Errorf("%d machines: the mean is %.2f %% off", n, 100*off)
			}
		}
	}
	ms := made(seeded(8), 8)
	works, err := MeanTime(ms, 8*3600*8)
	if err != nil {
		t.Fatal(err)
	}
	p, err := NewParallel(ms, works, Method{})
	if err != nil {
		t.Fatal(err)
	}
	const draws = 2000
	rng, sum, squares := seeded(9), 0.0, 0.0
	for range draws {
		last := 0.0
		for i, m := range ms {
			x := works[i] / m.Speed
			last = max(last, x+played(rng, m, x, gammaService))
		}
		sum += last
		squares += last * last
	}
	mean := sum / draws
	sd := math.Sqrt(squares/draws - mean*mean)
	t.Logf("8 machines: mean %.1f, drawn %.1f; deviation %.1f, drawn %.1f", p.Mean(), mean, p.SD(), sd)
	if math.Abs(p.Mean()/mean-1) > 0.01 || math.Abs(p.SD()/sd-1) > 0.1 {
		t.Errorf("8 machines: mean %v, drawn %v; deviation %v, drawn %v", p.Mean(), mean, p.SD(), sd)
	}
}

// What a prediction and a choice cost hangs on how many machines there are as the source says: the
// prediction grows with them, and the heuristics look at few sets. The times are shown; 0.66 s and
// 0.1 s are the source's.
func TestSpecCheck09Work(t *testing.T) {
	ms, works := bench(1024)
	began := time.Now()
	p, err := NewParallel(ms, works, Method{})
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("1,024 machines: %v, mean %.0f s", time.Since(began), p.Mean())
	twenty, policy := made(seeded(7), 20), DefaultPolicy()
	for name, choose := range map[string]func([]Machine, Job) (Choice, error){"bisection": policy.Bisection, "prefix scan": policy.PrefixScan} {
		began = time.Now()
		c, err := choose(twenty, Divisible(20*545))
		if err != nil {
			t.Fatal(err)
		}
		t.Logf("20 machines, %s: %v, %d sets", name, time.Since(began), c.Evaluated)
		if c.Evaluated > 20 {
			t.Errorf("%s looks at %d sets", name, c.Evaluated)
		}
	}
}

func BenchmarkCompletion(b *testing.B) {
	for _, n := range []int{1, 64, 1024} {
		ms, works := bench(n)
		b.Run(map[int]string{1: "1", 64: "64", 1024: "1024"}[n], func(b *testing.B) {
			for b.Loop() {
				if _, err := NewParallel(ms, works, Method{}); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// One machine whose distribution is drawn, as few long interruptions are expected.
func BenchmarkDrawnCompletion(b *testing.B) {
	m := machineOf(5, 0.5, 2)
	for b.Loop() {
		if _, err := NewFinish(m, 1000, Method{Draws: 400}); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkChoice(b *testing.B) {
	policy := DefaultPolicy()
	ms, ten := made(seeded(7), 20), made(seeded(7), 10)
	for _, c := range []struct {
		name   string
		choose func([]Machine, Job) (Choice, error)
		ms     []Machine
	}{{"bisection/20", policy.Bisection, ms}, {"scan/20", policy.PrefixScan, ms}, {"exhaustive/10", policy.Exhaustive, ten}} {
		b.Run(c.name, func(b *testing.B) {
			for b.Loop() {
				if _, err := c.choose(c.ms, Divisible(545*float64(len(c.ms)))); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
