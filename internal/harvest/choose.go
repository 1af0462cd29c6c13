package harvest

import (
	"cmp"
	"fmt"
	"slices"
)

// Policy says how machines are chosen.
type Policy struct {
	// Risk is how many standard deviations count as much as the mean: the cost of a choice is
	// mean + Risk·deviation, in s. 0 looks at the mean alone.
	Risk float64
	// Busiest is the share above which an owner's machine is left out of [Policy.Bisection] and
	// [Policy.PrefixScan].
	Busiest float64
	// LeastRatio is how many mean jobs of the owner the work of each machine must be worth there,
	// so that it is large enough to be predicted.
	LeastRatio float64
	// Method computes distributions. Sets are best compared without draws, which cost some fifteen
	// times as much: see DESIGN.md.
	Method Method
}

// DefaultPolicy has the numbers of spec 003.
func DefaultPolicy() Policy { return Policy{Risk: 1, Busiest: 0.9, LeastRatio: 4} }

// Job is work that can be divided: [Divisible] or [Tasks].
type Job interface {
	total() float64
	// divide says what each of the machines gets, all of which have a rate.
	divide(ms []Machine) ([]float64, error)
}

// Divisible is work that can be cut anywhere; it is divided by [MeanTime].
type Divisible float64

func (d Divisible) total() float64                         { return float64(d) }
func (d Divisible) divide(ms []Machine) ([]float64, error) { return MeanTime(ms, float64(d)) }

// Tasks are the works of subtasks that cannot be cut; they are divided by [MinMin].
type Tasks []float64

func (t Tasks) total() float64 {
	sum := 0.0
	for _, w := range t {
		sum += w
	}
	return sum
}

func (t Tasks) divide(ms []Machine) ([]float64, error) {
	where, err := MinMin(ms, nil, t)
	if err != nil {
		return nil, err
	}
	return sums(len(ms), t, where), nil
}

// Choice is a set of machines, and what is expected of it.
type Choice struct {
	// Machines are places in the list, ascending, and Works what each gets.
	Machines []int
	Works    []float64
	// Mean and SD are those of the completion, in s, Cost what the policy makes of them.
	Mean, SD, Cost float64
	// Evaluated is how many sets were looked at.
	Evaluated int
}

// search looks at sets of machines.
type search struct {
	ms     []Machine
	job    Job
	policy *Policy
	all    Parallel
	picked []Machine
	best   Choice
}

func (p *Policy) search(ms []Machine, j Job) (*search, error) {
	if err := check(ms); err != nil {
		return nil, err
	}
	if err := checkWork(j.total()); err != nil {
		return nil, err
	}
	return &search{ms: ms, job: j, policy: p}, nil
}

// cost is what the set costs. If it is less than that of all before, it is the best.
func (s *search) cost(set []int) (float64, error) {
	s.picked = s.picked[:0]
	for _, i := range set {
		s.picked = append(s.picked, s.ms[i])
	}
	works, err := s.job.divide(s.picked)
	if err != nil {
		return 0, err
	}
	s.all.set(s.picked, works, s.policy.Method)
	s.best.Evaluated++
	c := s.all.mean
	if s.policy.Risk > 0 {
		c += s.policy.Risk * s.all.sd
	}
	if s.best.Machines == nil || c < s.best.Cost {
		s.best.Machines, s.best.Works = slices.Clone(set), works
		s.best.Mean, s.best.SD, s.best.Cost = s.all.mean, s.all.sd, c
	}
	return c, nil
}

// Evaluate says what a set of machines, as places in the list, is worth.
func (p *Policy) Evaluate(ms []Machine, j Job, set ...int) (Choice, error) {
	s, err := p.search(ms, j)
	if err != nil {
		return Choice{}, err
	}
	set = slices.Clone(set)
	slices.Sort(set)
	for i, k := range set {
		if k < 0 || k >= len(ms) || i > 0 && set[i-1] == k {
			return Choice{}, fmt.Errorf("machine %d of %d: use each place at most once: %w", k, len(ms), ErrMachine)
		}
	}
	_, err = s.cost(set)
	return s.best, err
}

// Single chooses the machine for work that cannot be divided: that of the least cost, and of
// several the one whose owner takes least.
func (p *Policy) Single(ms []Machine, work float64) (Choice, error) {
	s, err := p.search(ms, Divisible(work))
	if err != nil {
		return Choice{}, err
	}
	order := usable(ms, 1)
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(ms[a].Rho, ms[b].Rho) })
	for _, i := range order {
		if _, err := s.cost([]int{i}); err != nil {
			return Choice{}, err
		}
	}
	return s.done()
}

// done returns the best, if there is any.
func (s *search) done() (Choice, error) {
	if s.best.Machines == nil {
		return Choice{}, fmt.Errorf("%d machines: %w", len(s.ms), ErrNobody)
	}
	return s.best, nil
}

// usable are the machines whose owners take less than the whole, and at most busiest.
func usable(ms []Machine, busiest float64) []int {
	var list []int
	for i, m := range ms {
		if m.Rate() > 0 && m.Rho <= busiest {
			list = append(list, i)
		}
	}
	return list
}

// prefixes are the candidates by what their owners leave, the most first, and how many of them
// there may be at most: such that each has work worth LeastRatio jobs of an owner, in the mean.
func (p *Policy) prefixes(ms []Machine, j Job) (order []int, most int) {
	order = usable(ms, p.Busiest)
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(ms[b].Rate(), ms[a].Rate()) })
	demand, owners := 0.0, 0.0
	for _, i := range order {
		if !ms[i].quiet() {
			demand += ms[i].Speed * ms[i].service()
			owners++
		}
	}
	most = len(order)
	if demand > 0 {
		most = int(max(1, min(float64(most), j.total()/(p.LeastRatio*demand/owners))))
	}
	return order, most
}

// prefix is the cost of the first n.
func (s *search) prefix(order []int, n int) (float64, error) {
	set := slices.Clone(order[:n])
	slices.Sort(set)
	return s.cost(set)
}

// Bisection chooses a prefix of the candidates by rate: the length is bisected, as if the cost
// fell and then rose. It looks at no more than 2·log₂(q)+2 sets.
//
// Source: spec 003 section 2.7, for the source's Figure 7, which is lost.
func (p *Policy) Bisection(ms []Machine, j Job) (Choice, error) {
	s, err := p.search(ms, j)
	if err != nil {
		return Choice{}, err
	}
	order, high := p.prefixes(ms, j)
	if len(order) == 0 {
		return s.done()
	}
	if err := bisect(high, func(n int) (float64, error) { return s.prefix(order, n) }); err != nil {
		return Choice{}, err
	}
	return s.done()
}

// PrefixScan looks at each prefix of the candidates by rate.
func (p *Policy) PrefixScan(ms []Machine, j Job) (Choice, error) {
	s, err := p.search(ms, j)
	if err != nil {
		return Choice{}, err
	}
	order, most := p.prefixes(ms, j)
	if err := scan(most, func(n int) (float64, error) { return s.prefix(order, n) }); err != nil {
		return Choice{}, err
	}
	return s.done()
}

// bisect looks at the costs of numbers from 1 to most as if they fell and then rose: at 1 if most
// is 1, at none if it is less.
func bisect(most int, cost func(n int) (float64, error)) error {
	low, high := 1, most
	for low < high {
		mid := (low + high) / 2
		here, err := cost(mid)
		if err != nil {
			return err
		}
		next, err := cost(mid + 1)
		if err != nil {
			return err
		}
		if here <= next {
			high = mid
		} else {
			low = mid + 1
		}
	}
	if most == 1 {
		_, err := cost(1)
		return err
	}
	return nil
}

// scan looks at the costs of all numbers from 1 to most.
func scan(most int, cost func(n int) (float64, error)) error {
	for n := range most {
		if _, err := cost(n + 1); err != nil {
			return err
		}
	}
	return nil
}
