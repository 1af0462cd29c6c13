package metrics

import (
	"math"
	"slices"
)

// Distribution describes a set of numbers. Without any it is all zero.
type Distribution struct {
	Mean float64 `json:"mean"`
	// SD is the standard deviation of the set itself: the divisor is n.
	SD  float64 `json:"sd"`
	Min float64 `json:"min"`
	// P50, P95 and P99 are exact percentiles: the least of the numbers below or at
	// which so many percent of them lie (nearest rank), never a mixture of two.
	P50 float64 `json:"p50"`
	P95 float64 `json:"p95"`
	P99 float64 `json:"p99"`
	Max float64 `json:"max"`
}

// Describe returns the distribution of v, which is not changed. There must be
// no NaN in it.
func Describe(v []float64) Distribution { return describe(slices.Clone(v)) }

// describe is Describe for numbers that may be put into another order.
func describe(v []float64) Distribution {
	if len(v) == 0 {
		return Distribution{}
	}
	d := Distribution{Mean: Mean(v), SD: SD(v), Min: slices.Min(v), Max: slices.Max(v)}
	// Each percentile is looked for among those beyond the one before.
	rest, before := v, 0
	for _, p := range [...]struct {
		percent float64
		to      *float64
	}{{50, &d.P50}, {95, &d.P95}, {99, &d.P99}} {
		k := rank(len(v), p.percent)
		*p.to = nth(rest, k-before)
		rest, before = rest[k-before:], k
	}
	return d
}

// rank is the place of the percentile p among n sorted numbers, from 0 on.
func rank(n int, p float64) int {
	return min(max(int(math.Ceil(p*float64(n)/100)), 1), n) - 1
}

// nth returns the number that would be at place k if v were sorted, and moves
// smaller ones before and larger ones behind it. It takes time in proportion
// to len(v) but for very odd v, which are sorted.
func nth(v []float64, k int) float64 {
	lo, hi := 0, len(v) // what is looked for is in v[lo:hi]
	for rounds := 0; hi-lo > 16; rounds++ {
		if rounds == 64 {
			break
		}
		pivot := median(v[lo], v[lo+(hi-lo)/2], v[hi-1])
		// v[lo:i] < pivot, v[i:at] == pivot, v[at:j] yet to be seen, v[j:hi] > pivot.
		i, at, j := lo, lo, hi
		for at < j {
			switch x := v[at]; {
			case x < pivot:
				v[at], v[i] = v[i], x
				i++
				at++
			case x > pivot:
				j--
				v[at], v[j] = v[j], x
			default:
				at++
			}
		}
		switch {
		case k < i:
			hi = i
		case k >= j:
			lo = j
		default:
			return pivot
		}
	}
	slices.Sort(v[lo:hi])
	return v[k]
}

func median(a, b, c float64) float64 { return max(min(a, b), min(max(a, b), c)) }

// Mean returns the mean of v, zero without any.
func Mean(v []float64) float64 {
	sum := 0.0
	for _, x := range v {
		sum += x
	}
	return sum / float64(max(len(v), 1))
}

// SD returns the standard deviation of v with the divisor n.
func SD(v []float64) float64 { return math.Sqrt(squares(v) / float64(max(len(v), 1))) }

// SampleSD returns the standard deviation of v with the divisor n−1, as for
// means over seeds or sites (spec 004 section 2.5); zero for fewer than two.
func SampleSD(v []float64) float64 {
	if len(v) < 2 {
		return 0
	}
	return math.Sqrt(squares(v) / float64(len(v)-1))
}

// squares returns the sum of the squared distances from the mean.
func squares(v []float64) float64 {
	mean, sum := Mean(v), 0.0
	for _, x := range v {
		sum += (x - mean) * (x - mean)
	}
	return sum
}
