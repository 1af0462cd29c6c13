package harvest

import (
	"math"
	"testing"
)

func TestSpecCheck01SamplesOfFormula5(t *testing.T) {
	if n := Samples(1); math.Abs(n-1536.64) > 1e-9 {
		t.Errorf("%v, want 1536.64", n)
	}
}

// hoursOf plays hours in which as many samples are taken as the hour before asked for, n in the
// first, and returns what each asks for.
func hoursOf(s *Sampler, n, hours int, draw func() float64) []int {
	var list []int
	for range hours {
		for range n {
			s.Add(draw())
		}
		n = s.EndHour()
		list = append(list, n)
	}
	return list
}

// Samples per hour fall by half within a day when an owner becomes steady, and rise within two
// hours after his share begins to vary.
func TestSpecCheck11AdaptiveSampling(t *testing.T) {
	rng := seeded(15)
	varying := func() float64 { return max(0, 0.4+0.4*rng.NormFloat64()) }
	steady := func() float64 { return max(0, 0.4+0.04*rng.NormFloat64()) }
	var s Sampler
	before := hoursOf(&s, MostSamples, 24, varying)
	calm := hoursOf(&s, before[23], 24, steady)
	after := hoursOf(&s, calm[23], 2, varying)
	t.Logf("varying %v, steady %v, varying again %v", before, calm, after)
	if last := calm[len(calm)-1]; 2*last > before[len(before)-1] {
		t.Errorf("%d samples after a steady day, %d before", last, before[len(before)-1])
	}
	if last := calm[len(calm)-1]; max(after[0], after[1]) <= last {
		t.Errorf("%v samples after a step, %d before", after, last)
	}
	// What nothing is known of is measured as often as may be, and less by the first day.
	var fresh Sampler
	if list := hoursOf(&fresh, MostSamples, 24, steady); 2*list[23] > MostSamples {
		t.Errorf("from nothing: %v", list)
	}
}

func TestSamplerAtTheEdges(t *testing.T) {
	same := func(x float64, n int) func(*Sampler) {
		return func(s *Sampler) {
			for range n {
				s.Add(x)
			}
		}
	}
	for name, c := range map[string]struct {
		fill func(*Sampler)
		want int
	}{
		"nothing":      {func(*Sampler) {}, MostSamples},
		"one":          {same(1, 1), MostSamples},
		"all 0":        {same(0, 50), LeastSamples},
		"all alike":    {same(0.3, 50), LeastSamples},
		"no numbers":   {same(math.NaN(), 50), MostSamples},
		"infinite":     {same(math.Inf(1), 50), MostSamples},
		"far too wide": {func(s *Sampler) { same(0, 1000)(s); s.Add(1) }, MostSamples},
	} {
		var s Sampler
		c.fill(&s)
		if got := s.EndHour(); got != c.want {
			t.Errorf("%s: %d, want %d", name, got, c.want)
		}
	}
	// What is older than a day is forgotten.
	var s Sampler
	s.Add(0)
	s.Add(1)
	for range dayHours {
		s.EndHour()
	}
	if got := s.EndHour(); got != MostSamples {
		t.Errorf("after a day without samples: %d", got)
	}
}
