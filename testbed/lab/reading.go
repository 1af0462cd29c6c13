package lab

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"kith/testbed/metrics"
	"kith/testbed/report"
)

// Spread is a figure for each seed.
type Spread []float64

// Mean returns the mean over the seeds.
func (s Spread) Mean() float64 { return metrics.Mean(s) }

// Text writes the mean, and the range over the seeds if there is one.
func (s Spread) Text(unit string) string {
	sep := ""
	if unit != "" {
		sep = " "
	}
	text := report.Number(s.Mean())
	if len(s) > 1 {
		if low, high := report.Number(slices.Min(s)), report.Number(slices.Max(s)); low != high {
			return fmt.Sprintf("%s%s%s (%s to %s)", text, sep, unit, low, high)
		}
	}
	return text + sep + unit
}

// Unbounded is the end of a band that has none.
var Unbounded = math.Inf(1)

// Reading is one part of a finding.
type Reading struct {
	Name string
	// V is what was read, nil if Name says it all.
	V    Spread
	Unit string
	// Met says whether this part is as it should be. A part that is not judged
	// is always met.
	Met bool
}

// Within is a reading that must lie in a band in the mean.
func Within(name string, v Spread, low, high float64) Reading {
	return Reading{Name: name, V: v, Met: v.Mean() >= low && v.Mean() <= high}
}

// Below is a reading that must be less than a bound in the mean.
func Below(name string, v Spread, bound float64) Reading {
	return Reading{Name: name, V: v, Met: v.Mean() < bound}
}

// Above is a reading that must be more than a bound in the mean.
func Above(name string, v Spread, bound float64) Reading {
	return Reading{Name: name, V: v, Met: v.Mean() > bound}
}

// Check is a reading that is met or not, by the caller's own rule.
func Check(name string, v Spread, unit string, met bool) Reading { return Reading{name, v, unit, met} }

// Shown is a reading that is only reported.
func Shown(name string, v Spread, unit string) Reading { return Reading{name, v, unit, true} }

// Conclude puts readings together: the statement holds if all parts do.
func Conclude(parts ...Reading) Finding {
	f := Finding{}
	ok := true
	var texts []string
	for _, p := range parts {
		text := p.Name
		if len(p.V) > 0 {
			text += " " + p.V.Text(p.Unit)
			f.Values = append(f.Values, Value{Name: p.Name, Value: p.V.Mean(), Unit: p.Unit})
		}
		if !p.Met {
			text += " [not met]"
		}
		ok = ok && p.Met
		texts = append(texts, text)
	}
	f.Measured = strings.Join(texts, "; ")
	f.Result = ResultOf(ok)
	return f
}

// Noted adds a note, and one more for the case that the statement fails.
func (f Finding) Noted(always, failing string) Finding {
	f.Note = always
	if f.Result == Fails && failing != "" {
		f.Note = strings.TrimSpace(always + " " + failing)
	}
	return f
}

// Differing says that the source says something else, if it does.
func (f Finding) Differing(does bool, text string) Finding {
	if does {
		f.Differs = strings.TrimSpace(f.Differs + " " + text)
	}
	return f
}

// AddPoint adds a point at x: the mean of v with its range.
func AddPoint(s *report.Series, x float64, v Spread) {
	s.X, s.Y = append(s.X, x), append(s.Y, v.Mean())
	s.Low, s.High = append(s.Low, slices.Min(v)), append(s.High, slices.Max(v))
}

// AddBar adds a bar: the mean of v with its range.
func AddBar(s *report.BarSeries, v Spread) {
	s.Values = append(s.Values, v.Mean())
	s.Low, s.High = append(s.Low, slices.Min(v)), append(s.High, slices.Max(v))
}

// CountTicks are ticks at 1 to n.
func CountTicks(n int) []report.Tick {
	var ticks []report.Tick
	for i := 1; i <= n; i++ {
		ticks = append(ticks, report.Tick{At: float64(i), Label: fmt.Sprint(i)})
	}
	return ticks
}
