package ghs

import (
	"math"
	"math/rand/v2"

	"kith/internal/draw"
	"kith/internal/harvest"
)

const (
	hour = 3600.0
	day  = 24 * hour
)

// owner is the owner of a machine: his jobs come one by one and have priority, those that meet
// another wait for it. Time only goes on.
type owner struct {
	rng     *rand.Rand
	rate    func(t float64) float64 // of arrivals, 1/s, at most most
	most    float64
	service func() float64

	next float64 // when his next job comes
	free float64 // when all that have come are served

	// tell learns of each job when it comes: when, how long it is served, and when that ends;
	// nil for no one.
	tell func(at, served, end float64)
}

// begin draws the first arrival.
func (o *owner) begin() *owner {
	o.next = o.after(0)
	return o
}

// after draws the next arrival after t.
func (o *owner) after(t float64) float64 {
	for {
		t += o.rng.ExpFloat64() / o.most
		if o.rng.Float64()*o.most <= o.rate(t) {
			return t
		}
	}
}

// come lets the next job come.
func (o *owner) come() {
	served := o.service()
	o.free = max(o.free, o.next) + served
	if o.tell != nil {
		o.tell(o.next, served, o.free)
	}
	o.next = o.after(o.next)
}

// run runs guest work of x seconds from the time from on, which is no earlier than the end of the
// last one, and returns when it ends.
func (o *owner) run(from, x float64) float64 {
	for {
		at := max(o.free, from)
		if idle := o.next - at; idle >= x {
			return at + x
		} else if idle > 0 {
			x -= idle
		}
		o.come()
	}
}

// until lets all come that comes before t.
func (o *owner) until(t float64) {
	for o.next < t {
		o.come()
	}
}

// idleFrom is the first time from t on at which the machine is idle.
func (o *owner) idleFrom(t float64) float64 {
	for {
		at := max(o.free, t)
		if o.next > at {
			return at
		}
		o.come()
	}
}

// expected is how long guest work of x seconds takes from t on if the owner's jobs, with the
// source's life times, take their mean at each moment: what who knows the true rates would say.
func (o *owner) expected(t, x float64) float64 {
	const step = 60
	from := t
	for {
		pace := 1 - o.rate(t)*meanLife
		if left := x / pace; left <= step {
			return t + left - from
		}
		x -= pace * step
		t += step
	}
}

// longest is where the source's life times are cut: their mean has no bound otherwise.
const longest = hour

// lifetime draws the service time of a job as the source does, 2/u.
func lifetime(rng *rand.Rand) float64 { return min(longest, 2/(1-rng.Float64())) }

// The mean of [lifetime], and of its square: ∫ over u, of which 2/longest are cut.
var (
	meanLife   = 2 * (1 + math.Log(longest/2))
	squareLife = 4 * (longest - 1)
	sigmaLife  = math.Sqrt(squareLife - meanLife*meanLife)
)

// lively is an owner with the source's life times who takes that share in the mean, steadily.
func lively(rng *rand.Rand, rho float64) (*owner, harvest.Machine) {
	lambda := rho / meanLife
	o := &owner{
		rng: rng, rate: func(float64) float64 { return lambda }, most: lambda,
		service: func() float64 { return lifetime(rng) },
	}
	return o.begin(), harvest.Machine{Lambda: lambda, Rho: rho, Sigma: sigmaLife, Speed: 1}
}

// habitual is such an owner with habits: he comes half as often again in the middle of a day, half
// as often at night, and half as often on two days of the week.
func habitual(rng *rand.Rand, rho float64) *owner {
	// Two of seven days count half: so that the mean is rho, the others have 7/6 of it.
	lambda := rho / meanLife * 7 / 6
	o := &owner{rng: rng, most: 1.5 * lambda, service: func() float64 { return lifetime(rng) }}
	o.rate = func(t float64) float64 {
		l := lambda * (1 + 0.5*math.Sin(2*math.Pi*t/day))
		if int(t/day)%7 >= 5 {
			l /= 2
		}
		return l
	}
	return o.begin()
}

// steady is the owner of a machine by its parameters, with gamma distributed service.
func steady(rng *rand.Rand, m harvest.Machine) *owner {
	mean := m.Rho / m.Lambda
	theta2 := (m.Sigma / mean) * (m.Sigma / mean)
	o := &owner{
		rng: rng, rate: func(float64) float64 { return m.Lambda }, most: m.Lambda,
		service: func() float64 { return draw.Gamma(rng, 1/theta2, theta2*mean) },
	}
	return o.begin()
}

// generated are machines of the specification's generator: shares from 0.05 to 0.9, mean service
// times log-normal around 30 s, which vary by 1, 2 or 3, and three speeds.
func generated(rng *rand.Rand, n int) []harvest.Machine {
	ms := make([]harvest.Machine, n)
	for i := range ms {
		rho := 0.05 + 0.85*rng.Float64()
		const spread = 0.5 // of the logarithm; the specification leaves it open
		mean := 30 * math.Exp(spread*rng.NormFloat64()-spread*spread/2)
		ms[i] = harvest.Machine{
			Lambda: rho / mean, Rho: rho, Sigma: mean * float64(1+rng.IntN(3)), Speed: []float64{0.8, 1, 1.33}[rng.IntN(3)],
		}
	}
	return ms
}

// random is the randomness of a part of a run.
func random(seed uint64, part string, number int) *rand.Rand {
	h := uint64(14695981039346656037) // FNV-1a
	for _, b := range []byte(part) {
		h = (h ^ uint64(b)) * 1099511628211
	}
	return rand.New(rand.NewPCG(seed, h+uint64(number)*0x9e3779b97f4a7c15))
}
