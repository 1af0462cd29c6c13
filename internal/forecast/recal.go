package forecast

import "math/rand/v2"

// How fast recalibrations forget: the weight of an outcome after each later one.
const (
	FadeRuns   = 0.998
	FadeStarts = 0.999
)

const (
	bins = 200
	// prior is the weight with which a recalibration begins: all levels as likely.
	prior = 20
)

// Recalibration knows at which levels of past distributions the truth lay (quantile
// recalibration): a histogram of the PIT that fades. The zero value is not usable, see
// [NewRecalibration].
type Recalibration struct {
	bin [bins]float64
	sum float64
	// unit is the weight of the next outcome. Instead of the past fading, it grows.
	unit, growth float64
	outcomes     int64
}

// NewRecalibration returns one that knows of no outcome, and answers each level with itself.
// Fade is within 0 to 1, for example [FadeRuns].
func NewRecalibration(fade float64) *Recalibration {
	r := &Recalibration{sum: prior, unit: 1, growth: 1 / fade}
	for i := range r.bin {
		r.bin[i] = float64(prior) / bins
	}
	return r
}

// Outcomes returns how many were added.
func (r *Recalibration) Outcomes() int64 { return r.outcomes }

// Add notes where in a distribution the truth lay: somewhere between two levels, as
// [Dist.PIT] returns them. Where in between is drawn.
func (r *Recalibration) Add(below, upto float64, rng *rand.Rand) {
	u := below
	if upto > below {
		u += rng.Float64() * (upto - below)
	}
	r.unit *= r.growth
	r.bin[min(max(int(u*bins), 0), bins-1)] += r.unit
	r.sum += r.unit
	r.outcomes++
	const large = 1e9
	if r.unit < large {
		return
	}
	r.sum = 0
	for i := range r.bin {
		r.bin[i] /= r.unit
		r.sum += r.bin[i]
	}
	r.unit = 1
}

// Level returns the level of a raw distribution below which the share p of past truths lay.
// It grows with p, and is above 0 and below 1 where p is.
func (r *Recalibration) Level(p float64) float64 {
	want := p * r.sum
	for i := range r.bin {
		if want <= r.bin[i] {
			return (float64(i) + max(want, 0)/r.bin[i]) / bins
		}
		want -= r.bin[i]
	}
	return 1
}
