package forecast

import (
	"cmp"
	"slices"
	"sort"
	"time"
)

// Levels are the nine levels of a distribution that are told, kept and scored.
var Levels = [9]float64{.05, .1, .2, .35, .5, .65, .8, .9, .95}

// Dist is a distribution made of weighted samples. Its distribution function is a step
// function: a share of the weight lies on each sample. The zero value has no samples.
// It may be used again and again, see [Dist.Reset], and is not safe for concurrent changes.
type Dist struct {
	points []point
	total  float64
	sorted bool
}

// point is a sample. Once a Dist is sorted, upto is the weight of it and all below.
type point struct {
	at   time.Duration
	upto float64
}

// Reset takes out all samples and keeps the memory.
func (d *Dist) Reset() { d.points, d.total, d.sorted = d.points[:0], 0, true }

// Add puts in a sample. One without a positive weight is left out.
func (d *Dist) Add(at time.Duration, weight float64) {
	if weight > 0 {
		d.points, d.sorted = append(d.points, point{at, weight}), false
	}
}

// Len returns the number of samples.
func (d *Dist) Len() int { return len(d.points) }

// Settle makes d ready to be read, which the reading methods do by themselves where they
// have to: after it several goroutines may read d. No samples can be added before a Reset.
func (d *Dist) Settle() {
	if d.sorted {
		return
	}
	slices.SortFunc(d.points, func(a, b point) int { return cmp.Compare(a.at, b.at) })
	sum := 0.0
	for i := range d.points {
		sum += d.points[i].upto
		d.points[i].upto = sum
	}
	d.total, d.sorted = sum, true
}

// Scale multiplies all samples by a factor above 0.
func (d *Dist) Scale(factor float64) {
	if factor == 1 {
		return
	}
	for i := range d.points {
		d.points[i].at = time.Duration(float64(d.points[i].at) * factor)
	}
}

// CopyTo makes o the same distribution, in memory of its own.
func (d *Dist) CopyTo(o *Dist) {
	d.Settle()
	o.points, o.total, o.sorted = append(o.points[:0], d.points...), d.total, true
}

// Quantile returns the least sample that has at least the share p of the weight at or below
// it; zero if there are no samples. What is not within 0 to 1 counts as the end it is beyond.
func (d *Dist) Quantile(p float64) time.Duration {
	d.Settle()
	if len(d.points) == 0 {
		return 0
	}
	want := p * d.total
	i := sort.Search(len(d.points)-1, func(i int) bool { return d.points[i].upto >= want })
	return d.points[i].at
}

// PIT returns the shares of the weight below y and at or below it, between which a random
// level lies if y is drawn from d (probability integral transform). They differ if y is a
// sample. Without samples they are 0 and 1.
func (d *Dist) PIT(y time.Duration) (below, upto float64) {
	d.Settle()
	if len(d.points) == 0 {
		return 0, 1
	}
	i := sort.Search(len(d.points), func(i int) bool { return d.points[i].at >= y })
	if i > 0 {
		below = d.points[i-1].upto / d.total
	}
	for i < len(d.points) && d.points[i].at == y {
		i++
	}
	if i > 0 {
		upto = d.points[i-1].upto / d.total
	}
	return below, upto
}

// Residual returns the quantile of a run time at level p given that the run has lasted for
// elapsed already: more than elapsed, unless limit is not. Where no sample is larger, all
// that is left up to the limit is as likely. The result is at most limit.
func (d *Dist) Residual(elapsed, limit time.Duration, p float64) time.Duration {
	d.Settle()
	n := len(d.points)
	if elapsed <= 0 && n > 0 {
		return min(d.Quantile(p), limit)
	}
	if n == 0 || d.points[n-1].at <= elapsed {
		return min(elapsed+time.Duration(p*float64(max(limit-elapsed, 0))), max(limit, 0))
	}
	from := sort.Search(n, func(i int) bool { return d.points[i].at > elapsed })
	gone := 0.0
	if from > 0 {
		gone = d.points[from-1].upto
	}
	want := gone + p*(d.total-gone)
	i := from + sort.Search(n-1-from, func(i int) bool { return d.points[from+i].upto >= want })
	return min(d.points[i].at, limit)
}
