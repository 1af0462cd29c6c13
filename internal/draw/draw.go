// Package draw draws from distributions that the library has none for. All randomness is that
// of the caller.
package draw

import (
	"math"
	"math/rand/v2"
)

// Gamma draws from the gamma distribution with a positive shape and scale.
//
// Source: G. Marsaglia and W. W. Tsang, A simple method for generating gamma
// variables, ACM Transactions on Mathematical Software 26 (2000) 363-372; below
// shape 1 by its section 6.
func Gamma(rng *rand.Rand, shape, scale float64) float64 {
	if shape < 1 {
		return Gamma(rng, shape+1, scale) * math.Pow(1-rng.Float64(), 1/shape)
	}
	d := shape - 1.0/3
	c := 1 / math.Sqrt(9*d)
	for {
		x := rng.NormFloat64()
		v := 1 + c*x
		if v <= 0 {
			continue
		}
		v *= v * v
		if math.Log(1-rng.Float64()) < 0.5*x*x+d-d*v+d*math.Log(v) {
			return d * v * scale
		}
	}
}

// fewEvents is the mean from which Poisson halves its work instead of counting events.
const fewEvents = 16

// Poisson draws the number of events of a Poisson process in which mean of them are expected;
// 0 if mean is not positive. A mean beyond 1e15 is taken for the number itself.
//
// Source: J. H. Ahrens and U. Dieter, Computer methods for sampling from gamma, beta, Poisson
// and binomial distributions, Computing 12 (1974) 223-246: the instant of the event in the
// middle is drawn first.
func Poisson(rng *rand.Rand, mean float64) float64 {
	if mean > 1e15 {
		return mean
	}
	n := 0.0
	for mean >= fewEvents {
		// m events come before the instant at, which is the m-th one.
		m := math.Floor(mean * 7 / 8)
		at := Gamma(rng, m, 1)
		if at > mean {
			return n + binomial(rng, m-1, mean/at)
		}
		n += m
		mean -= at
	}
	for product := 1 - rng.Float64(); product > math.Exp(-mean); product *= 1 - rng.Float64() {
		n++
	}
	return n
}

// binomial draws how many of n events, each of which comes with probability p, come.
func binomial(rng *rand.Rand, n, p float64) float64 {
	k := 0.0
	for n >= 2*fewEvents {
		// The a-th of n events spread evenly over [0, 1] is beta distributed.
		a := 1 + math.Floor(n/2)
		x, y := Gamma(rng, a, 1), Gamma(rng, n+1-a, 1)
		at := x / (x + y)
		if at >= p {
			n, p = a-1, p/at
		} else {
			k += a
			n, p = n-a, (p-at)/(1-at)
		}
	}
	for ; n > 0; n-- {
		if rng.Float64() < p {
			k++
		}
	}
	return k
}
