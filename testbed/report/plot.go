package report

import (
	"errors"
	"fmt"
	"math"
	"regexp"
	"slices"
	"sync"
)

// Plot is one figure: either series of points or groups of bars.
type Plot struct {
	// Name is that of the file without .svg, and the anchor on a page: lower
	// case letters, digits and hyphens.
	Name string `json:"name"`
	// Title is a short heading, Caption what to see, in a sentence or two.
	Title   string `json:"title"`
	Caption string `json:"caption,omitempty"`
	X       Axis   `json:"x"`
	Y       Axis   `json:"y"`
	// Series are drawn over each other in order.
	Series []Series `json:"series,omitempty"`
	// Bars take the place of Series; X then has only a label.
	Bars *Bars `json:"bars,omitempty"`
	// Rules are lines across the plot to compare with.
	Rules []Rule `json:"rules,omitempty"`
}

// Axis is one direction of a plot.
type Axis struct {
	// Label says what is shown, with its unit in brackets: "waiting time (h)".
	Label string `json:"label"`
	// From and To limit the axis. If they are equal, the data do.
	From float64 `json:"from,omitempty"`
	To   float64 `json:"to,omitempty"`
	// Zero makes an axis that the data limit begin at zero.
	Zero bool `json:"zero,omitempty"`
	// Log is for a logarithmic axis; values of 0 and less are left out.
	Log bool `json:"log,omitempty"`
	// Ticks replace those that the axis would choose.
	Ticks []Tick `json:"ticks,omitempty"`
}

// Tick is a labelled place on an axis.
type Tick struct {
	At    float64 `json:"at"`
	Label string  `json:"label"`
}

// Style is how a series is drawn.
type Style string

// The styles.
const (
	// Line joins the points and marks them if they are few.
	Line Style = "line"
	// Step goes on at the height of a point until the next one.
	Step Style = "step"
	// Scatter marks the points only.
	Scatter Style = "scatter"
)

// Series is points in order. Points that are not finite interrupt a line.
type Series struct {
	Name  string    `json:"name"`
	Style Style     `json:"style"`
	X     []float64 `json:"x"`
	Y     []float64 `json:"y"`
	// Low and High are the ends of a whisker at each point; nil for none.
	Low  []float64 `json:"low,omitempty"`
	High []float64 `json:"high,omitempty"`
}

// Bars are bars in groups: Values[i] of each series stands in Groups[i].
type Bars struct {
	Groups []string    `json:"groups"`
	Series []BarSeries `json:"series"`
}

// BarSeries is one bar of each group. A value that is not finite leaves its
// place empty.
type BarSeries struct {
	Name   string    `json:"name"`
	Values []float64 `json:"values"`
	// Low and High are the ends of a whisker on each bar; nil for none.
	Low  []float64 `json:"low,omitempty"`
	High []float64 `json:"high,omitempty"`
}

// Rule is a line across the whole plot.
type Rule struct {
	At float64 `json:"at"`
	// Label stands at the line.
	Label string `json:"label,omitempty"`
	// Vertical makes At a place on the X axis.
	Vertical bool `json:"vertical,omitempty"`
}

// Bounds on a plot.
const (
	// MaxSeries is the most series of a plot: as many as there are colours.
	MaxSeries = 8
	// MaxPoints is the most points that a series is drawn with; of more, the
	// lowest and the highest of each stretch are kept.
	MaxPoints = 2000
)

// ErrPlot is wrapped by the error of a plot that cannot be drawn.
var ErrPlot = errors.New("cannot be drawn")

var nameForm = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^[a-z0-9]+(-[a-z0-9]+)*$`) })

// Validate returns what is wrong with p, wrapping [ErrPlot].
func (p *Plot) Validate() error {
	bad := func(format string, args ...any) error {
		return fmt.Errorf("plot %q: %s: %w", p.Name, fmt.Sprintf(format, args...), ErrPlot)
	}
	if !nameForm().MatchString(p.Name) {
		return bad("the name must be lower case letters, digits and single hyphens")
	}
	if (p.Bars == nil) == (len(p.Series) == 0) {
		return bad("it needs either series or bars")
	}
	if p.Bars != nil {
		if len(p.Bars.Series) == 0 || len(p.Bars.Series) > MaxSeries || len(p.Bars.Groups) == 0 {
			return bad("%d series of %d groups: choose 1 to %d of at least 1", len(p.Bars.Series), len(p.Bars.Groups), MaxSeries)
		}
		for _, s := range p.Bars.Series {
			if n := len(p.Bars.Groups); len(s.Values) != n || !whiskered(n, s.Low, s.High) {
				return bad("series %q: %d values for %d groups", s.Name, len(s.Values), n)
			}
		}
		return nil
	}
	if len(p.Series) > MaxSeries {
		return bad("%d series: choose at most %d", len(p.Series), MaxSeries)
	}
	for _, s := range p.Series {
		if len(s.X) != len(s.Y) || !whiskered(len(s.X), s.Low, s.High) {
			return bad("series %q: %d places for %d heights", s.Name, len(s.X), len(s.Y))
		}
		if s.Style != Line && s.Style != Step && s.Style != Scatter {
			return bad("series %q: style %q: choose line, step or scatter", s.Name, s.Style)
		}
	}
	return nil
}

func whiskered(n int, low, high []float64) bool {
	return (len(low) == 0 && len(high) == 0) || (len(low) == n && len(high) == n)
}

// CDF returns the share of values at or below each place, in percent, as a
// series of at most 400 points. values are not changed.
func CDF(name string, values []float64) Series {
	const most = 400
	sorted := slices.Clone(values)
	slices.Sort(sorted)
	s := Series{Name: name, Style: Step}
	n := min(most, len(sorted))
	for i := range n {
		rank := int(math.Ceil(float64(i+1) / float64(n) * float64(len(sorted))))
		s.X = append(s.X, sorted[rank-1])
		s.Y = append(s.Y, 100*float64(rank)/float64(len(sorted)))
	}
	return s
}
