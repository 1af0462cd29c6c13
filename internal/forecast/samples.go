package forecast

import "time"

// Samples are waits that were drawn, one for each scenario, in the order in which they were
// drawn.
type Samples []time.Duration

// MinScenarios is how many scenarios a forecast needs at least, DefaultScenarios how many it
// has. With far fewer the levels are too coarse for ranges of 80 %.
const (
	MinScenarios     = 30
	DefaultScenarios = 50
)

// Min makes each sample the less of it and the one of o in its place: the start at the first
// of two sites. It returns s, which is as long as the shorter of the two.
func (s Samples) Min(o Samples) Samples {
	s = s[:min(len(s), len(o))]
	for i := range s {
		s[i] = min(s[i], o[i])
	}
	return s
}

// Dist makes d the distribution of the samples, with tails: three more beyond either end,
// together as heavy as one sample. The truth may well lie outside of what was drawn.
func (s Samples) Dist(d *Dist) {
	d.Reset()
	if len(s) == 0 {
		return
	}
	least, most := s[0], s[0]
	for _, x := range s {
		d.Add(x, 1)
		least, most = min(least, x), max(most, x)
	}
	const each = 1.0 / 3
	for _, f := range [3]float64{.25, .5, .75} {
		d.Add(time.Duration(f*float64(least)), each)
	}
	for _, f := range [3]float64{4. / 3, 2, 4} {
		d.Add(time.Duration(f*float64(most)), each)
	}
	d.Settle()
}
