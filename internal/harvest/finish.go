package harvest

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"sort"

	"kith/internal/draw"
)

// Method says how distributions are computed. The zero value is good: the gamma distribution
// with the exact variance, which has the right mean and variance everywhere.
type Method struct {
	// Printed takes the source's (3) for the variance of the interruption instead of the exact
	// (3'); they merge from five interruptions on.
	Printed bool
	// Draws is how many sums of busy periods are drawn where the gamma distribution is not good
	// enough, up to [MaxDraws]; 0 for the gamma distribution everywhere.
	Draws int
	// Seed is that of the draws: the same seed gives the same distribution.
	Seed uint64
	// Points is how many intervals [Parallel] integrates over, an even number of at least 8; 0
	// means 128.
	Points int
}

// MaxDraws bounds [Method.Draws].
const MaxDraws = 1_000_000

// gammaServes says whether the gamma distribution is within 0.05 of the true one: where its
// shape for many interruptions, λx(1−ρ)/(1+θ²), is large enough. 2 is enough for owners that take
// up to 0.7 of the time, 2.5 for all. Where service times are nearly alike interruptions are a few
// values, each of a probability of its own, until there are many. TestSpecCheck03 has the figures.
func gammaServes(lx, rho, theta float64) bool {
	return lx*(1-rho)/(1+theta*theta) >= 2.5 && (theta >= 0.5 || lx >= 20)
}

// Finish is the distribution of when a task ends that begins at 0 on an idle machine.
type Finish struct {
	// Dedicated is how long the task takes without an owner, x.
	Dedicated float64
	// none is the probability that no job of the owner comes meanwhile.
	none     float64
	mean, sd float64
	gamma    gammaDist
	// drawn are interruptions in order, given that there is one; nil where gamma stands.
	drawn []float64
	// after is when it begins, many how many such tasks there are on machines of their own, if
	// more than one: both for [Parallel], see [Policy.SplitBisection].
	after, many float64
}

// NewFinish returns when work, of at least 0, ends on the machine. Errors wrap [ErrMachine] and
// [ErrWork].
func NewFinish(m Machine, work float64, by Method) (Finish, error) {
	if err := m.Check(); err != nil {
		return Finish{}, err
	}
	if err := checkWork(work); err != nil {
		return Finish{}, err
	}
	return newFinish(m, work, by), nil
}

func checkWork(work float64) error {
	if work < 0 || math.IsNaN(work) || math.IsInf(work, 0) {
		return fmt.Errorf("work %v: use a number from 0: %w", work, ErrWork)
	}
	return nil
}

// newFinish is NewFinish for what was checked.
func newFinish(m Machine, work float64, by Method) Finish {
	x := work / m.Speed
	f := Finish{Dedicated: x, none: 1, mean: x}
	switch {
	case x == 0 || m.quiet():
		return f
	case m.Rho >= 1:
		f.none, f.mean, f.sd = 0, math.Inf(1), math.Inf(1)
		return f
	}
	lx, idle := m.Lambda*x, 1-m.Rho
	theta := m.variation()
	some := -math.Expm1(-lx) // Pr(S>0)
	f.none = 1 - some
	u := m.Rho / idle * x                                                   // E(U)
	v := m.Rho * (theta*theta + 1) * x * m.service() / (idle * idle * idle) // V(U)
	f.mean, f.sd = x+u, math.Sqrt(v)                                        // and so those of T
	given, spread := u/some, v/some                                         // (2), (3)
	if !by.Printed {
		spread -= f.none * given * given // (3')
	}
	if spread <= 0 { // by rounding: hardly any interruption, and all alike
		spread = given * given * 1e-9
	}
	f.gamma = newGamma(given*given/spread, spread/given)
	if by.Draws > 0 && !gammaServes(lx, m.Rho, theta) {
		f.drawn = drawInterruptions(m, lx, by)
	}
	return f
}

// mostGenerations bounds what one draw takes: jobs that come while those of one generation are
// served are the next. What is left then is taken at its mean.
const mostGenerations = 1000

// drawInterruptions draws sums of busy periods given that there is at least one, in order. Only
// the mean and the variance of service are known; it is drawn from a gamma distribution, sums of
// which are gamma distributed as well.
func drawInterruptions(m Machine, lx float64, by Method) []float64 {
	rng := rand.New(rand.NewPCG(by.Seed, math.Float64bits(lx)))
	n := min(by.Draws, MaxDraws)
	list := make([]float64, n)
	shape, scale := math.Inf(1), m.service()
	if t := m.variation(); t > 0 {
		shape, scale = 1/(t*t), t*t*m.service()
	}
	serve := func(jobs float64) float64 {
		if math.IsInf(shape, 1) {
			return jobs * scale
		}
		return draw.Gamma(rng, jobs*shape, scale)
	}
	for i := range list {
		// Each n-th of the distribution of the number of busy periods has its draw.
		jobs := somePoisson(lx, (float64(i)+rng.Float64())/float64(n))
		sum := 0.0
		for generation := 0; jobs > 0; generation++ {
			s := serve(jobs)
			if generation == mostGenerations {
				sum += s / (1 - m.Rho)
				break
			}
			sum += s
			jobs = draw.Poisson(rng, m.Lambda*s)
		}
		list[i] = sum
	}
	slices.Sort(list)
	return list
}

// somePoisson is the quantile p of a Poisson variable given that it is not 0.
func somePoisson(mean, p float64) float64 {
	if mean > 700 { // where e^−mean is nothing; the normal distribution is close
		return max(1, math.Round(mean+math.Sqrt(2*mean)*math.Erfinv(2*p-1)))
	}
	some := -math.Expm1(-mean)
	k := 1.0
	term := mean * math.Exp(-mean) / some
	for sum := term; sum < p && k < mean+40*math.Sqrt(mean)+100; sum += term {
		k++
		term *= mean / k
	}
	return k
}

// CDF is the probability that the task has ended at t: (1).
func (f *Finish) CDF(t float64) float64 {
	u := t - f.after - f.Dedicated
	switch {
	case u < 0 || math.IsNaN(t):
		return 0
	case f.none == 1:
		return 1
	case math.IsInf(f.mean, 1):
		return 0
	}
	return f.none + (1-f.none)*f.interrupted(u)
}

// interrupted is the probability of an interruption of at most u given that there is one.
func (f *Finish) interrupted(u float64) float64 {
	if f.drawn == nil {
		return f.gamma.cdf(u)
	}
	// No line between draws: where service times are alike, interruptions are a few values.
	n := sort.Search(len(f.drawn), func(i int) bool { return f.drawn[i] > u })
	return float64(n) / float64(len(f.drawn))
}

// Mean is the mean of the completion time: x/(1−ρ), exactly, whatever the method. It is +Inf
// where the owner leaves nothing.
func (f *Finish) Mean() float64 { return f.mean }

// SD is its standard deviation, likewise: √(ρ(θ²+1)x/(μ(1−ρ)³)).
func (f *Finish) SD() float64 { return f.sd }

// end is a time by which the task has ended, but for e^−20.
func (f *Finish) end() float64 {
	switch {
	case f.none == 1:
		return f.after + f.Dedicated
	case math.IsInf(f.mean, 1):
		return f.mean
	case f.drawn != nil:
		return f.after + f.Dedicated + f.drawn[len(f.drawn)-1]
	}
	return f.after + f.Dedicated + f.gamma.high*f.gamma.scale
}

// Quantile is the least time by which the task has ended with probability p; it is +Inf from 1 on
// where it is not bounded.
func (f *Finish) Quantile(p float64) float64 {
	if p <= f.none || p <= 0 {
		return f.Dedicated
	}
	if p >= 1 || math.IsInf(f.mean, 1) {
		return math.Inf(1)
	}
	return quantile(f.CDF, p, f.Dedicated, f.end())
}

// quantile finds where a distribution reaches p between low and high.
func quantile(cdf func(float64) float64, p, low, high float64) float64 {
	for range 60 {
		mid := low + (high-low)/2
		if mid <= low || mid >= high {
			break
		}
		if cdf(mid) < p {
			low = mid
		} else {
			high = mid
		}
	}
	return high
}
