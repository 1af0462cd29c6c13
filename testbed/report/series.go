package report

import (
	"fmt"
	"strings"
)

// manyPoints is from how many points on a line is drawn without marks.
const manyPoints = 40

// marks reports whether the points of series k are marked.
func (d *drawing) marks(k int) bool {
	s := &d.p.Series[k]
	return s.Style == Scatter || (s.Style == Line && len(s.X) < manyPoints)
}

func (d *drawing) anyMarks() bool {
	for k := range d.p.Series {
		if d.marks(k) {
			return true
		}
	}
	return false
}

// beside returns by how much the whiskers of series k stand aside, so that
// those of several series at one place do not hide each other.
func (d *drawing) beside(k int) float64 {
	n, before := 0, 0
	for i := range d.p.Series {
		if len(d.p.Series[i].Low) > 0 {
			n++
			if i < k {
				before++
			}
		}
	}
	return 4 * (float64(before) - float64(n-1)/2)
}

// series draws series k.
func (d *drawing) series(k int) {
	s := &d.p.Series[k]
	if s.Style != Scatter {
		d.curve(k)
	}
	for i := range s.Low {
		if d.visible(s, i) && d.y.shows(s.Low[i]) && d.y.shows(s.High[i]) {
			d.whisker(fmt.Sprintf("s%d", k), d.x.at(s.X[i])+d.beside(k), s.Low[i], s.High[i])
		}
	}
	if !d.marks(k) {
		return
	}
	points := thin(s.X, s.Y)
	for _, i := range points {
		if d.visible(s, i) {
			hint := fmt.Sprintf("%s: %s at %s", s.Name, Number(s.Y[i]), d.place(s.X[i]))
			d.marker(k, d.x.at(s.X[i]), d.y.at(s.Y[i]), strings.TrimPrefix(hint, ": "))
		}
	}
}

// place names a place on the X axis for a hint.
func (d *drawing) place(x float64) string {
	for _, t := range d.p.X.Ticks {
		if t.At == x {
			return t.Label
		}
	}
	return Number(x)
}

func (d *drawing) visible(s *Series, i int) bool { return d.x.shows(s.X[i]) && d.y.shows(s.Y[i]) }

// curve draws the line of series k, in pieces where points are missing.
func (d *drawing) curve(k int) {
	s := &d.p.Series[k]
	var path strings.Builder
	broken := true
	lastY := 0.0
	for _, i := range thin(s.X, s.Y) {
		if !d.visible(s, i) {
			broken = true
			continue
		}
		x, y := d.x.at(s.X[i]), d.y.at(s.Y[i])
		switch {
		case broken:
			fmt.Fprintf(&path, "M%s %s", coordinate(x), coordinate(y))
		case s.Style == Step:
			fmt.Fprintf(&path, "L%s %sL%s %s", coordinate(x), coordinate(lastY), coordinate(x), coordinate(y))
		default:
			fmt.Fprintf(&path, "L%s %s", coordinate(x), coordinate(y))
		}
		broken, lastY = false, y
	}
	if path.Len() > 0 {
		d.printf(`<path class="curve s%d d%d" d="%s"/>`, k, k, path.String())
	}
}

// whisker draws the range from low to high in the colour of a class.
func (d *drawing) whisker(class string, x, low, high float64) {
	a, b := d.y.at(low), d.y.at(high)
	if a-b < 1 {
		return
	}
	d.line("whisker "+class, x, a, x, b)
	d.line("whisker "+class, x-3, a, x+3, a)
	d.line("whisker "+class, x-3, b, x+3, b)
}

// thin returns the indexes of at most about [MaxPoints] points: all, or the
// first, the lowest and the highest of each stretch, and the last.
func thin(x, y []float64) []int {
	n := len(x)
	if n <= MaxPoints {
		all := make([]int, n)
		for i := range all {
			all[i] = i
		}
		return all
	}
	const stretches = MaxPoints / 3
	var kept []int
	add := func(i int) {
		if len(kept) == 0 || kept[len(kept)-1] < i {
			kept = append(kept, i)
		}
	}
	for b := range stretches {
		from, to := b*n/stretches, (b+1)*n/stretches
		low, high := from, from
		for i := from; i < to; i++ {
			if y[i] < y[low] {
				low = i
			}
			if y[i] > y[high] {
				high = i
			}
		}
		add(from)
		add(min(low, high))
		add(max(low, high))
	}
	add(n - 1)
	return kept
}
