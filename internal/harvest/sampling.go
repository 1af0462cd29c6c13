package harvest

import "math"

// Samples is how many are needed for a mean that is right within 5 % with a probability of 95 %,
// where the standard deviation is that many times the mean: 1536.64 times its square.
//
// Source: spec 003, formula (5).
func Samples(variation float64) float64 {
	const quantile, percent = 1.96, 5
	n := 100 * quantile / percent * variation
	return n * n
}

// Least and most samples that a [Sampler] takes in an hour. The specification has 1 for the least,
// which says nothing of how much the hour varied.
const (
	LeastSamples = 4
	MostSamples  = 360
)

// Sampler says how often to measure something, from what was measured in the last 24 hours. The
// zero value knows nothing and is ready.
type Sampler struct {
	hours [dayHours]moments // the current one is at now
	now   int
}

// moments are the sums of samples.
type moments struct{ n, sum, squares float64 }

// needed is how many samples a mean over a day needs: an hour's part of it.
func (m *moments) needed() int {
	mean := m.sum / m.n
	if mean == 0 {
		return LeastSamples
	}
	variance := max(0, (m.squares-m.n*mean*mean)/(m.n-1))
	return int(min(MostSamples, max(LeastSamples, math.Ceil(Samples(math.Sqrt(variance)/math.Abs(mean))/dayHours))))
}

// Add records a sample. What is not a finite number is no sample.
func (s *Sampler) Add(x float64) {
	if math.IsNaN(x) || math.IsInf(x, 0) {
		return
	}
	m := &s.hours[s.now]
	m.n++
	m.sum += x
	m.squares += x * x
}

// EndHour ends an hour and returns how many samples to take in the next one, from [LeastSamples]
// to [MostSamples]: a 24th of what a day needs that varies as the last one did; or as the last
// hour did, if that is more than three times as many, so that a change is met at once. Before there are two samples it is
// the most, as nothing is known; where the mean is 0 it is the least.
func (s *Sampler) EndHour() int {
	var all moments
	for _, m := range s.hours {
		all.n += m.n
		all.sum += m.sum
		all.squares += m.squares
	}
	last := s.hours[s.now]
	s.now = (s.now + 1) % dayHours
	s.hours[s.now] = moments{}
	if all.n < 2 {
		return MostSamples
	}
	n := all.needed()
	if last.n >= LeastSamples && last.needed() > 3*n {
		n = last.needed()
	}
	return n
}
