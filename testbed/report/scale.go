package report

import (
	"math"
	"strconv"
	"strings"
)

// scale maps values onto a stretch of the canvas.
type scale struct {
	from, to float64 // values
	a, b     float64 // places on the canvas
	log      bool
}

// at returns the place of v.
func (s *scale) at(v float64) float64 {
	from, to := s.from, s.to
	if s.log {
		from, to, v = math.Log10(from), math.Log10(to), math.Log10(v)
	}
	return s.a + (v-from)/(to-from)*(s.b-s.a)
}

// shows reports whether v has a place.
func (s *scale) shows(v float64) bool {
	return !math.IsNaN(v) && !math.IsInf(v, 0) && (!s.log || v > 0)
}

// extent is the range of values to be shown.
type extent struct {
	low, high float64
	log       bool
}

func newExtent(log bool) extent { return extent{math.Inf(1), math.Inf(-1), log} }

func (e *extent) add(values ...float64) {
	for _, v := range values {
		if math.IsNaN(v) || math.IsInf(v, 0) || (e.log && v <= 0) {
			continue
		}
		e.low, e.high = min(e.low, v), max(e.high, v)
	}
}

// axisScale returns the scale of an axis over e, and its ticks. about is how
// many ticks there is room for.
func axisScale(a *Axis, e extent, about int) (scale, []Tick) {
	if e.low > e.high { // nothing to show
		e.low, e.high = 0, 1
		if a.Log {
			e.low = 0.1
		}
	}
	s := scale{from: e.low, to: e.high, log: a.Log}
	if a.Zero && !a.Log {
		s.from, s.to = min(s.from, 0), max(s.to, 0)
	}
	fixed := a.From != a.To && (!a.Log || a.From > 0)
	if fixed {
		s.from, s.to = a.From, a.To
	}
	if s.to-s.from <= 1e-9*max(math.Abs(s.from), math.Abs(s.to)) { // one value, as far as ticks can tell
		if s.log {
			s.from, s.to = s.from/2, s.to*2
		} else {
			d := max(math.Abs(s.from)/10, 0.5)
			s.from, s.to = s.from-d, s.to+d
		}
	}
	var ticks []Tick
	if s.log {
		ticks = logTicks(&s, fixed)
	} else {
		ticks = linearTicks(&s, about, fixed)
	}
	if a.Ticks != nil {
		ticks = nil
		for _, t := range a.Ticks {
			if s.shows(t.At) && t.At >= s.from && t.At <= s.to {
				ticks = append(ticks, t)
			}
		}
	}
	return s, ticks
}

// linearTicks places ticks at round numbers, and widens s to the next ones
// unless it is fixed.
func linearTicks(s *scale, about int, fixed bool) []Tick {
	rough := (s.to - s.from) / float64(max(about, 2))
	power := math.Pow(10, math.Floor(math.Log10(rough)))
	step := 10 * power
	for _, m := range []float64{1, 2, 2.5, 5} {
		if m*power >= rough*0.999 {
			step = m * power
			break
		}
	}
	first, last := math.Ceil(s.from/step-1e-9), math.Floor(s.to/step+1e-9)
	if !fixed {
		first, last = math.Floor(s.from/step+1e-9), math.Ceil(s.to/step-1e-9)
		s.from, s.to = first*step, last*step
	}
	var ticks []Tick
	for k := first; k <= last; k++ {
		v := k * step
		ticks = append(ticks, Tick{v, tickLabel(v, step)})
	}
	return ticks
}

// logTicks places ticks at powers of ten, and between them if there are few.
func logTicks(s *scale, fixed bool) []Tick {
	steps := []float64{1}
	if decades := math.Log10(s.to / s.from); decades < 1.5 {
		steps = []float64{1, 1.5, 2, 3, 5, 7}
	} else if decades < 3.5 {
		steps = []float64{1, 2, 5}
	}
	var all []float64
	for p := math.Floor(math.Log10(s.from)) - 1; p <= math.Log10(s.to)+1; p++ {
		for _, m := range steps {
			all = append(all, m*math.Pow(10, p))
		}
	}
	if !fixed {
		from, to := s.from, s.to
		for _, v := range all {
			if v <= from*1.0001 {
				s.from = v
			}
		}
		for i := len(all) - 1; i >= 0; i-- {
			if all[i] >= to*0.9999 {
				s.to = all[i]
			}
		}
	}
	var ticks []Tick
	for _, v := range all {
		if v >= s.from*0.9999 && v <= s.to*1.0001 {
			ticks = append(ticks, Tick{v, tickLabel(v, v)})
		}
	}
	return ticks
}

// tickLabel writes v with the digits that a step makes necessary.
func tickLabel(v, step float64) string {
	if math.Abs(v) < step/1e6 {
		v = 0
	}
	if m := math.Abs(v); m >= 1e9 || (m > 0 && m < 1e-4) {
		return strconv.FormatFloat(v, 'g', 3, 64)
	}
	decimals := 0
	for step = math.Abs(step); decimals < 6; decimals++ {
		if r := step * math.Pow(10, float64(decimals)); math.Abs(r-math.Round(r)) < 1e-6*r {
			break
		}
	}
	return grouped(strconv.FormatFloat(v, 'f', decimals, 64))
}

// Number writes v for people: about three digits, thousands apart.
func Number(v float64) string {
	switch m := math.Abs(v); {
	case math.IsNaN(v):
		return "–"
	case math.IsInf(v, 0):
		return strconv.FormatFloat(v, 'g', -1, 64)
	case m >= 1e12 || (m > 0 && m < 1e-3):
		return strconv.FormatFloat(v, 'g', 3, 64)
	case m >= 99.95:
		return grouped(strconv.FormatFloat(v, 'f', 0, 64))
	case m >= 9.995:
		return strconv.FormatFloat(v, 'f', 1, 64)
	case m == 0:
		return "0.00" // whatever its sign
	default:
		return strconv.FormatFloat(v, 'f', 2, 64)
	}
}

// grouped sets commas between thousands.
func grouped(s string) string {
	sign, digits := "", s
	if strings.HasPrefix(s, "-") {
		sign, digits = "−", s[1:]
	}
	whole, fraction, dot := strings.Cut(digits, ".")
	for i := len(whole) - 3; i > 0; i -= 3 {
		whole = whole[:i] + "," + whole[i:]
	}
	if dot {
		whole += "." + fraction
	}
	return sign + whole
}
