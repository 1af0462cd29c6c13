package harvest

import (
	"cmp"
	"fmt"
	"math"
	"slices"
)

// Parallel is the distribution of when the last of several tasks ends that begin at 0, each on a
// machine of its own: (4).
type Parallel struct {
	// finishes are those that take time, the one that ends last first.
	finishes []Finish
	ends     []float64
	least    float64 // w_max: the longest dedicated time
	mean, sd float64
}

// NewParallel returns when the works, one for each machine, have all ended. Errors wrap
// [ErrMachine] and [ErrWork].
func NewParallel(ms []Machine, works []float64, by Method) (*Parallel, error) {
	if len(ms) != len(works) || len(ms) == 0 {
		return nil, fmt.Errorf("%d works for %d machines: give each one: %w", len(works), len(ms), ErrWork)
	}
	if err := check(ms); err != nil {
		return nil, err
	}
	for i, w := range works {
		if err := checkWork(w); err != nil {
			return nil, fmt.Errorf("machine %d: %w", i, err)
		}
	}
	p := &Parallel{}
	p.set(ms, works, by)
	return p, nil
}

// set makes p the distribution of what was checked, and uses its memory again.
func (p *Parallel) set(ms []Machine, works []float64, by Method) {
	p.begin()
	for i := range ms {
		one := by
		one.Seed += uint64(i) // tasks are independent
		p.add(newFinish(ms[i], works[i], one))
	}
	p.settle(by)
}

// begin takes all tasks out, to be followed by add and settle.
func (p *Parallel) begin() { p.finishes, p.ends, p.least = p.finishes[:0], p.ends[:0], 0 }

// add puts a task in.
func (p *Parallel) add(f Finish) {
	p.least = max(p.least, f.after+f.Dedicated)
	if f.none < 1 {
		p.finishes = append(p.finishes, f)
	}
}

// settle makes p ready to be read.
func (p *Parallel) settle(by Method) {
	slices.SortStableFunc(p.finishes, func(a, b Finish) int { return cmp.Compare(b.end(), a.end()) })
	for i := range p.finishes {
		p.ends = append(p.ends, p.finishes[i].end())
	}
	p.integrate(cmp.Or(by.Points, 128))
}

// CDF is the probability that all have ended at t.
func (p *Parallel) CDF(t float64) float64 {
	if !(t >= p.least) {
		return 0
	}
	f := 1.0
	for i := range p.finishes {
		if p.ends[i] <= t {
			break // and so have all that follow
		}
		one := p.finishes[i].CDF(t)
		if n := p.finishes[i].many; n > 1 {
			one = math.Pow(one, n)
		}
		if f *= one; f < 1e-12 {
			return 0
		}
	}
	return f
}

// integrate sets mean and standard deviation: Simpson's rule where the distribution moves. The
// points are closer at the begin, where a distribution of few interruptions is steep.
func (p *Parallel) integrate(points int) {
	p.mean, p.sd = p.least, 0
	if len(p.finishes) == 0 {
		return
	}
	high := max(p.ends[0], p.least)
	if math.IsInf(high, 1) {
		p.mean, p.sd = high, high
		return
	}
	const little = 1e-7
	low := p.least
	for top, i := high, 0; i < 10; i++ {
		if mid := low + (top-low)/2; p.CDF(mid) < little {
			low = mid
		} else {
			top = mid
		}
	}
	for bottom, i := low, 0; i < 10; i++ {
		if mid := bottom + (high-bottom)/2; 1-p.CDF(mid) < little {
			high = mid
		} else {
			bottom = mid
		}
	}
	points += points % 2
	var first, second float64 // ∫(1−F) and ∫2s(1−F) over s = t−low, with s = (high−low)v²
	for i := range points + 1 {
		weight := 2.0
		switch {
		case i == 0 || i == points:
			weight = 1
		case i%2 == 1:
			weight = 4
		}
		v := float64(i) / float64(points)
		s := (high - low) * v * v
		left := weight * 2 * v * (1 - p.CDF(low+s))
		first += left
		second += 2 * s * left
	}
	scale := (high - low) / (3 * float64(points))
	first, second = first*scale, second*scale
	p.mean = low + first
	p.sd = math.Sqrt(max(0, second-first*first))
}

// Mean is the mean of the completion time, by integration; +Inf if a machine never ends.
func (p *Parallel) Mean() float64 { return p.mean }

// SD is its standard deviation, likewise.
func (p *Parallel) SD() float64 { return p.sd }

// Quantile is the least time by which all have ended with probability prob.
func (p *Parallel) Quantile(prob float64) float64 {
	if len(p.finishes) == 0 || prob <= p.CDF(p.least) {
		return p.least
	}
	high := max(p.ends[0], p.least)
	if prob >= 1 || math.IsInf(high, 1) {
		return math.Inf(1)
	}
	return quantile(p.CDF, prob, p.least, high)
}
