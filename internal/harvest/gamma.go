package harvest

import "math"

// gammaDist is a gamma distribution.
type gammaDist struct {
	shape, scale float64
	// log is ln Γ(shape); low and high bound where all but e^−20 of the distribution lies, in
	// units of scale.
	log, low, high float64
}

// farOut is −ln of the probability beyond [gammaDist.low] and [gammaDist.high].
const farOut = 20

func newGamma(shape, scale float64) gammaDist {
	lg, _ := math.Lgamma(shape) // shape > 0, so that Γ is positive
	// A gamma variable is sub-gamma: Pr(Z > k+√(2ks)+s) and Pr(Z < k−√(2ks)) are at most e^−s.
	w := math.Sqrt(2 * shape * farOut)
	return gammaDist{shape: shape, scale: scale, log: lg, low: shape - w, high: shape + w + farOut}
}

// cdf is the probability of at most u.
func (g *gammaDist) cdf(u float64) float64 {
	z := u / g.scale
	switch {
	case z <= 0 || z <= g.low:
		return 0
	case z >= g.high:
		return 1
	case g.shape >= wideShape && math.Abs(z-g.shape) < 0.5*g.shape:
		return g.wide(z)
	case z < g.shape+1:
		return g.series(z)
	}
	return 1 - g.fraction(z)
}

// most bounds the terms of a sum or fraction; they end much sooner.
const most = 10_000

// series is the lower incomplete gamma function over Γ by its power series.
func (g *gammaDist) series(z float64) float64 {
	term := 1 / g.shape
	sum := term
	for k := g.shape + 1; term > sum*1e-10 && k < g.shape+most; k++ {
		term *= z / k
		sum += term
	}
	return min(1, sum*math.Exp(g.shape*math.Log(z)-z-g.log))
}

// fraction is the upper incomplete gamma function over Γ by its continued fraction, evaluated
// forwards by the method of Lentz.
func (g *gammaDist) fraction(z float64) float64 {
	const tiny = 1e-300
	b := z + 1 - g.shape
	c, d := 1/tiny, 1/b
	h := d
	for i := 1.0; i < most; i++ {
		a := -i * (i - g.shape)
		b += 2
		if d = a*d + b; math.Abs(d) < tiny {
			d = tiny
		}
		if c = b + a/c; math.Abs(c) < tiny {
			c = tiny
		}
		d = 1 / d
		step := c * d
		h *= step
		if math.Abs(step-1) < 1e-10 {
			break
		}
	}
	return min(1, h*math.Exp(g.shape*math.Log(z)-z-g.log))
}

// wideShape is the shape from which [gammaDist.wide] is right to 1e-6.
const wideShape = 20

// wideTerms are the power series, in η, of the first two coefficients of the expansion that
// [gammaDist.wide] uses.
var wideTerms = [2][8]float64{
	{-1.0 / 3, 1.0 / 12, -2.0 / 135, 1.0 / 864, 1.0 / 2835, -139.0 / 777600, 1.0 / 25515, -571.0 / 261273600},
	{-1.0 / 540, -1.0 / 288, 1.0 / 378, -77.0 / 77760, 1.0 / 4860, -4.0187757201646091e-7, -1.8098550334489978e-05, 7.6491609160811101e-06},
}

// wide is the lower incomplete gamma function over Γ for a large shape.
//
// Source: N. M. Temme, The asymptotic expansion of the incomplete gamma functions, SIAM Journal
// on Mathematical Analysis 10 (1979) 757-766.
func (g *gammaDist) wide(z float64) float64 {
	mu := (z - g.shape) / g.shape
	half := mu - math.Log1p(mu) // η²/2
	eta := math.Copysign(math.Sqrt(2*half), mu)
	var c [2]float64
	for i := range c {
		for k := len(wideTerms[i]) - 1; k >= 0; k-- {
			c[i] = c[i]*eta + wideTerms[i][k]
		}
	}
	rest := math.Exp(-g.shape*half) / math.Sqrt(2*math.Pi*g.shape) * (c[0] + c[1]/g.shape)
	return min(1, max(0, 0.5*math.Erfc(-eta*math.Sqrt(g.shape/2))-rest))
}
