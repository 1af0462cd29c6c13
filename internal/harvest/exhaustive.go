package harvest

import (
	"fmt"
	"math"
	"math/bits"
)

// MostSets bounds how many machines [Policy.Exhaustive] and [Policy.Fixed] look at.
const MostSets = 20

// roughError is how far off a first look may be.
const roughError = 0.05

// Exhaustive looks at all sets of at most [MostSets] machines that have time for guests; it
// returns [ErrTooMany] for more.
func (p *Policy) Exhaustive(ms []Machine, j Job) (Choice, error) { return p.sets(ms, j, 0) }

// Fixed looks at all sets of that many machines, as [Policy.Exhaustive] does.
func (p *Policy) Fixed(ms []Machine, j Job, machines int) (Choice, error) {
	if machines < 1 {
		return Choice{}, fmt.Errorf("%d machines: choose at least 1: %w", machines, ErrMachine)
	}
	return p.sets(ms, j, machines)
}

// sets looks at all sets of a size, or at all if it is 0: at each roughly, which is right to a few
// percent, and then closely at those that may be the best.
func (p *Policy) sets(ms []Machine, j Job, size int) (Choice, error) {
	fine, err := p.search(ms, j)
	if err != nil {
		return Choice{}, err
	}
	list := usable(ms, 1)
	if len(list) > MostSets {
		return Choice{}, fmt.Errorf("%d: at most %d; use a heuristic: %w", len(list), MostSets, ErrTooMany)
	}
	if size > len(list) {
		return Choice{}, fmt.Errorf("%d machines wanted, %d have time for guests: %w", size, len(list), ErrNobody)
	}
	var set []int
	members := func(mask uint) []int {
		set = set[:0]
		for ; mask > 0; mask &= mask - 1 {
			set = append(set, list[bits.TrailingZeros(mask)])
		}
		return set
	}
	look, err := p.rough(ms, list, j)
	if err != nil {
		return Choice{}, err
	}
	costs := make([]float32, 1<<len(list))
	best, looked := float32(math.Inf(1)), 0
	for mask := range costs {
		n := bits.OnesCount(uint(mask))
		if n == 0 || size > 0 && n != size {
			costs[mask] = float32(math.Inf(1))
			continue
		}
		c, err := look(members(uint(mask)))
		if err != nil {
			return Choice{}, err
		}
		costs[mask] = float32(c)
		best = min(best, costs[mask])
		looked++
	}
	for mask, c := range costs {
		if c <= best*(1+roughError) && !math.IsInf(float64(c), 1) {
			if _, err := fine.cost(members(uint(mask))); err != nil {
				return Choice{}, err
			}
		}
	}
	fine.best.Evaluated = looked
	return fine.done()
}

// rough returns how a set is looked at first: where there are many sets of divisible work by a
// table, else with few points.
func (p *Policy) rough(ms []Machine, list []int, j Job) (func(set []int) (float64, error), error) {
	if d, ok := j.(Divisible); ok && len(list) > 12 && d > 0 {
		t := newTable(ms, list, float64(d), p)
		return func(set []int) (float64, error) { return t.cost(set), nil }, nil
	}
	few := *p
	few.Method.Points = 24
	s, err := few.search(ms, j)
	if err != nil {
		return nil, err
	}
	return s.cost, nil
}

// table has the distributions of machines that divide work by [MeanTime]. All machines of a set
// have the same mean, W ÷ Σ(1−ρ)τ, so that the distribution of each hangs on that mean alone: it is
// there for means that are a few percent apart, and a set's is scaled to its own.
type table struct {
	work, risk  float64
	rates       []float64            // by machine
	least, step float64              // ln of the least mean, and between two
	times       [tablePoints]float64 // in units of the mean
	// cdf is for each mean, machine and time.
	cdf [][][tablePoints]float64
}

// How fine a [table] is: times reach from a tenth of the mean to 80 means.
const (
	tablePoints = 96
	tableStep   = 0.04
)

func newTable(ms []Machine, list []int, work float64, p *Policy) *table {
	t := &table{work: work, risk: p.Risk, rates: make([]float64, len(ms)), step: tableStep}
	all, slowest := 0.0, math.Inf(1)
	for _, i := range list {
		t.rates[i] = ms[i].Rate()
		all += t.rates[i]
		slowest = min(slowest, t.rates[i])
	}
	for i := range t.times {
		t.times[i] = 0.1 * math.Pow(800, float64(i)/(tablePoints-1))
	}
	t.least = math.Log(work / all)
	for g := 0; t.least+float64(g-1)*t.step < math.Log(work/slowest); g++ {
		mean := math.Exp(t.least + float64(g)*t.step)
		row := make([][tablePoints]float64, len(ms))
		for _, i := range list {
			f := newFinish(ms[i], mean*t.rates[i], Method{Printed: p.Method.Printed})
			for k, at := range t.times {
				row[i][k] = f.CDF(at * mean)
			}
		}
		t.cdf = append(t.cdf, row)
	}
	return t
}

// cost is about what the set costs.
func (t *table) cost(set []int) float64 {
	rate := 0.0
	for _, i := range set {
		rate += t.rates[i]
	}
	mean := t.work / rate
	row := t.cdf[int(math.Round((math.Log(mean)-t.least)/t.step))]
	all := row[set[0]]
	for _, i := range set[1:] {
		one := &row[i]
		for k := range all {
			all[k] *= one[k]
		}
	}
	// The rule of trapezes, up from the first time.
	first, second := t.times[0], t.times[0]*t.times[0]
	for k := 1; k < tablePoints; k++ {
		step := t.times[k] - t.times[k-1]
		first += step * (2 - all[k] - all[k-1]) / 2
		second += step * (t.times[k]*(1-all[k]) + t.times[k-1]*(1-all[k-1]))
	}
	return mean * (first + t.risk*math.Sqrt(max(0, second-first*first)))
}
