package forecast

import (
	"sort"
	"time"
)

// Distribution is what forecasts are read off and scored by: a [Dist] or a [Curve].
type Distribution interface {
	// Quantile returns the value at a level of 0 to 1.
	Quantile(p float64) time.Duration
	// PIT returns the levels between which y lies.
	PIT(y time.Duration) (below, upto float64)
}

// Curve is a distribution known at some levels, with all as likely between two of them. It
// takes no memory of its own. The zero value is zero for certain.
type Curve struct {
	at    [len(Levels) + 5]float64 // nanoseconds, not falling
	level [len(Levels) + 5]float64 // rising, from 0 to 1
	n     int
}

func (c *Curve) add(at, level float64) {
	if c.n > 0 {
		at = max(at, c.at[c.n-1])
	}
	c.at[c.n], c.level[c.n] = at, level
	c.n++
}

// Quantile implements [Distribution].
func (c *Curve) Quantile(p float64) time.Duration { return time.Duration(c.quantile(p)) }

func (c *Curve) quantile(p float64) float64 {
	if c.n == 0 {
		return 0
	}
	for i := 1; i < c.n; i++ {
		if p <= c.level[i] {
			share := max(p-c.level[i-1], 0) / (c.level[i] - c.level[i-1])
			return c.at[i-1] + share*(c.at[i]-c.at[i-1])
		}
	}
	return c.at[c.n-1]
}

// PIT implements [Distribution]. The levels differ where the curve stands still at y.
func (c *Curve) PIT(y time.Duration) (below, upto float64) {
	if c.n == 0 {
		return 0, 1
	}
	t := float64(y)
	return c.below(t), c.upto(t)
}

// below returns the share that is less than t, upto that at or below it.
func (c *Curve) below(t float64) float64 {
	i := sort.Search(c.n, func(i int) bool { return c.at[i] >= t })
	return c.between(i, t)
}

func (c *Curve) upto(t float64) float64 {
	i := sort.Search(c.n, func(i int) bool { return c.at[i] > t })
	if i > 0 && c.at[i-1] == t {
		return c.level[i-1]
	}
	return c.between(i, t)
}

// between returns the level of t, which is above the point before i and at most that at i.
func (c *Curve) between(i int, t float64) float64 {
	switch {
	case i == 0:
		return 0
	case i == c.n:
		return 1
	}
	share := (t - c.at[i-1]) / (c.at[i] - c.at[i-1])
	return c.level[i-1] + share*(c.level[i]-c.level[i-1])
}

// residual returns the quantile at level p given that the value is above t.
func (c *Curve) residual(t, p float64) float64 {
	gone := c.upto(t)
	return c.quantile(gone + p*(1-gone))
}

// CurveOf makes a curve of waits, with the tails that [Samples.Dist] gives them: the truth
// may well lie outside of what was drawn.
func CurveOf(w *Waits) (c Curve) {
	least, most := float64(w[0]), float64(w[len(w)-1])
	c.add(least/4, 0)
	for i, p := range Levels {
		c.add(float64(w[i]), p)
	}
	c.add(most*4/3, .98)
	c.add(most*2, .99)
	c.add(most*4, 1)
	return c
}

// curve makes a curve of a run time with a limit.
func (q *Runs) curve(limit time.Duration) (c Curve) {
	l := float64(max(limit, 0))
	c.add(0, 0)
	if q.Known() {
		for i, p := range Levels {
			c.add(float64(q[i])/whole*l, p)
		}
	}
	c.add(l, 1)
	return c
}

// Curve is the distribution of a run time with a limit, even up to it where q says nothing.
func (q *Runs) Curve(limit time.Duration) Curve { return q.curve(limit) }

// Residual returns the quantile at level p of a run time with a limit, given that the run has
// lasted for elapsed already, see [Dist.Residual].
func (q *Runs) Residual(elapsed, limit time.Duration, p float64) time.Duration {
	c := q.curve(limit)
	if elapsed <= 0 {
		return c.Quantile(p)
	}
	if elapsed >= limit {
		return max(limit, 0)
	}
	return min(max(time.Duration(c.residual(float64(elapsed), p)), elapsed), limit)
}
