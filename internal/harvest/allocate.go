package harvest

import (
	"cmp"
	"fmt"
	"math"
	"slices"
)

// MeanTime divides work such that all machines end at the same time in the mean: each gets work
// in proportion to its rate, (6). Machines without one get none. It returns [ErrNobody] if no
// machine has a rate.
func MeanTime(ms []Machine, work float64) ([]float64, error) {
	return inProportion(ms, work, Machine.Rate)
}

// SpeedEqual divides work in proportion to the speeds, whatever owners do.
func SpeedEqual(ms []Machine, work float64) ([]float64, error) {
	return inProportion(ms, work, func(m Machine) float64 { return m.Speed })
}

// Equal gives each machine the same work.
func Equal(ms []Machine, work float64) ([]float64, error) {
	return inProportion(ms, work, func(Machine) float64 { return 1 })
}

func inProportion(ms []Machine, work float64, share func(Machine) float64) ([]float64, error) {
	if err := check(ms); err != nil {
		return nil, err
	}
	if err := checkWork(work); err != nil {
		return nil, err
	}
	sum := 0.0
	for _, m := range ms {
		sum += share(m)
	}
	if sum == 0 {
		return nil, fmt.Errorf("%d machines: %w", len(ms), ErrNobody)
	}
	list := make([]float64, len(ms))
	for i, m := range ms {
		list[i] = work * (share(m) / sum)
	}
	return list, nil
}

// MinMin assigns subtasks to machines that have work already, which nil says is none: of all that
// are left, the one that can end soonest in the mean goes where it does. That is the smallest one
// each time, as all that a machine has and the subtask end at (A+w)/((1−ρ)τ) there. It returns the
// machine of each subtask, and [ErrNobody] if there is none with a rate. It keeps ends close, but
// leaves large subtasks last; see [MaxMin].
//
// Source: spec 003 section 2.6, where the source's own figure is lost.
func MinMin(ms []Machine, have, tasks []float64) ([]int, error) {
	return assign(ms, have, tasks, cmp.Compare[float64])
}

// MaxMin is [MinMin] with the largest subtask first.
func MaxMin(ms []Machine, have, tasks []float64) ([]int, error) {
	return assign(ms, have, tasks, func(a, b float64) int { return cmp.Compare(b, a) })
}

func assign(ms []Machine, have, tasks []float64, order func(a, b float64) int) ([]int, error) {
	if err := check(ms); err != nil {
		return nil, err
	}
	got := make([]float64, len(ms))
	copy(got, have)
	if have != nil && len(have) != len(ms) {
		return nil, fmt.Errorf("%d works for %d machines: say of each what it has: %w", len(have), len(ms), ErrWork)
	}
	for k, w := range got {
		if err := checkWork(w); err != nil {
			return nil, fmt.Errorf("machine %d: %w", k, err)
		}
	}
	for i, w := range tasks {
		if err := checkWork(w); err != nil {
			return nil, fmt.Errorf("subtask %d: %w", i, err)
		}
	}
	if !slices.ContainsFunc(ms, func(m Machine) bool { return m.Rate() > 0 }) {
		return nil, fmt.Errorf("%d machines: %w", len(ms), ErrNobody)
	}
	list := make([]int, len(tasks))
	for i := range list {
		list[i] = i
	}
	slices.SortStableFunc(list, func(a, b int) int { return order(tasks[a], tasks[b]) })
	where := make([]int, len(tasks))
	for _, i := range list {
		best, end := -1, math.Inf(1)
		for k, m := range ms {
			if rate := m.Rate(); rate > 0 && (best < 0 || (got[k]+tasks[i])/rate < end) {
				best, end = k, (got[k]+tasks[i])/rate
			}
		}
		where[i] = best
		got[best] += tasks[i]
	}
	return where, nil
}

// sums adds up the subtasks of each machine.
func sums(machines int, tasks []float64, where []int) []float64 {
	list := make([]float64, machines)
	for i, k := range where {
		list[k] += tasks[i]
	}
	return list
}
