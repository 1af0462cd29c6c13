package forecast

import (
	"errors"
	"fmt"
	"math"
	"time"
)

// Runs are the quantiles of a run time at [Levels], as fractions of the limit in units of
// 1/65535: what an origin tells the hosts of a copy. The zero value says nothing.
type Runs [len(Levels)]uint16

// ErrRuns is wrapped by every error of [ParseRuns].
var ErrRuns = errors.New("not the quantiles of a run time")

const whole = math.MaxUint16

// RunsOf reads them off a distribution. A limit that is not positive has none.
func RunsOf(d *Dist, limit time.Duration) (q Runs) {
	if limit <= 0 || d.Len() == 0 {
		return q
	}
	for i, p := range Levels {
		f := math.Round(float64(d.Quantile(p)) / float64(limit) * whole)
		q[i] = uint16(min(max(f, 0), whole))
	}
	q[len(q)-1] = max(q[len(q)-1], 1) // not nothing
	return q
}

// ParseRuns checks what a peer sent: nine numbers that do not fall and are at most 65535. None
// at all says nothing. The error wraps [ErrRuns] and names the number that is wrong.
func ParseRuns(sent []uint32) (q Runs, err error) {
	if len(sent) == 0 {
		return q, nil
	}
	if len(sent) != len(q) {
		return q, fmt.Errorf("%d numbers, not %d: %w", len(sent), len(q), ErrRuns)
	}
	for i, x := range sent {
		switch {
		case x > whole:
			return Runs{}, fmt.Errorf("number %d is %d, more than the limit (%d): %w", i+1, x, whole, ErrRuns)
		case i > 0 && x < sent[i-1]:
			return Runs{}, fmt.Errorf("number %d is %d, less than the one before (%d): %w", i+1, x, sent[i-1], ErrRuns)
		}
		q[i] = uint16(x)
	}
	return q, nil
}

// Known reports whether q says anything.
func (q *Runs) Known() bool { return *q != Runs{} }

// Times are the quantiles of f times the run time, at most the limit: those of a processor on which
// it takes that much longer. What is no positive number changes nothing.
func (q *Runs) Times(f float64) Runs {
	if !q.Known() || f == 1 || !(f > 0) {
		return *q
	}
	var r Runs
	for i, x := range q {
		r[i] = uint16(min(math.Round(float64(x)*f), whole))
	}
	r[len(r)-1] = max(r[len(r)-1], 1) // not nothing
	return r
}

// Dist makes d a distribution that has about these quantiles: between them, and between the
// outer ones and the ends, all is as likely. Where q says nothing, so it is everywhere.
func (q *Runs) Dist(limit time.Duration, d *Dist) {
	d.Reset()
	limit = max(limit, 0)
	x, p := [len(q) + 2]float64{}, [len(q) + 2]float64{}
	for i := range q {
		x[i+1], p[i+1] = float64(q[i])/whole, Levels[i]
	}
	x[len(x)-1], p[len(p)-1] = 1, 1
	if !q.Known() {
		for i := range Levels {
			x[i+1] = Levels[i]
		}
	}
	const pieces = 4
	for i := 1; i < len(x); i++ {
		for k := range pieces {
			at := x[i-1] + (x[i]-x[i-1])*(float64(k)+0.5)/pieces
			d.Add(time.Duration(at*float64(limit)), (p[i]-p[i-1])/pieces)
		}
	}
	d.Settle()
}
