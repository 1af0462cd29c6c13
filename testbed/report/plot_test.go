package report

import (
	"bytes"
	"encoding/json"
	"encoding/xml"
	"errors"
	"io"
	"math"
	"math/rand/v2"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// samples has a plot of each kind.
func samples() []Plot {
	rng := rand.New(rand.NewPCG(1, 2)) //nolint:gosec // A test.
	var many []float64
	for range 5000 {
		many = append(many, rng.ExpFloat64())
	}
	return []Plot{
		{
			Name: "bars", Title: "Bars <&> \"quotes\"", X: Axis{Label: "scheme"}, Y: Axis{Label: "slowdown"}, Rules: []Rule{{At: 1, Label: "one"}},
			Bars: &Bars{Groups: []string{"a", "b & c"}, Series: []BarSeries{
				{Name: "x", Values: []float64{0.5, math.NaN()}, Low: []float64{0.4, 0}, High: []float64{0.6, 0}}, {Name: "<y>", Values: []float64{-1, 3}},
			}},
		},
		{
			Name: "tilted", Title: "Long names", Y: Axis{Label: "n", Log: true},
			Bars: &Bars{Groups: slices.Repeat([]string{"a-name-that-is-far-too-long-for-its-place"}, 12), Series: []BarSeries{{Values: slices.Repeat([]float64{7}, 12)}}},
		},
		{Name: "cdf", Title: "Shares", X: Axis{Label: "s", Log: true}, Y: Axis{Label: "%", From: 0, To: 100}, Series: []Series{CDF("all", many)}},
		{
			Name: "lines", Title: "Lines", X: Axis{Ticks: []Tick{{1, "one"}, {2, "two"}, {9, "outside"}}}, Y: Axis{Zero: true},
			Rules: []Rule{{At: 0.7, Label: "rule"}, {At: 1.5, Label: "here", Vertical: true}},
			Series: []Series{
				{Name: "a", Style: Line, X: []float64{1, 2, 3, 4}, Y: []float64{1, math.Inf(1), 0.5, 0.4}, Low: []float64{1, 1, 0.3, 0.3}, High: []float64{1, 1, 0.6, 0.6}},
				{Name: "b", Style: Scatter, X: []float64{1, 2}, Y: []float64{0, 1}},
			},
		},
		{Name: "nothing", Title: "Nothing to show", Series: []Series{{Name: "none", Style: Step}}},
		{Name: "flat", Title: "One value", Series: []Series{{Name: "a", Style: Step, X: []float64{3, 3}, Y: []float64{5, 5}}}},
		{Name: "long", Title: "Many points", Series: []Series{{Name: "a", Style: Line, X: many, Y: many}}},
	}
}

// wellFormed reads the elements of an XML document.
func wellFormed(t *testing.T, text string) {
	t.Helper()
	d := xml.NewDecoder(strings.NewReader(text))
	for {
		if _, err := d.Token(); errors.Is(err, io.EOF) {
			return
		} else if err != nil {
			t.Fatalf("not well formed: %v", err)
		}
	}
}

var number = regexp.MustCompile(`(?:NaN|Inf|e[+-]?[0-9])`)

func TestWriteSVG(t *testing.T) {
	for _, p := range samples() {
		var a, b bytes.Buffer
		if err := p.WriteSVG(&a); err != nil {
			t.Fatalf("%s: %v", p.Name, err)
		}
		if err := p.WriteSVG(&b); err != nil || !bytes.Equal(a.Bytes(), b.Bytes()) {
			t.Errorf("%s: a second drawing differs (%v)", p.Name, err)
		}
		wellFormed(t, a.String())
		for _, m := range regexp.MustCompile(` (?:x|y|x1|x2|y1|y2|width|height|points|d|cx|cy)="([^"]*)"`).FindAllStringSubmatch(a.String(), -1) {
			if number.MatchString(m[1]) {
				t.Errorf("%s: a place of %q", p.Name, m[1])
			}
		}
		if a.Len() > 200_000 {
			t.Errorf("%s: %d bytes for a plot whose points are bounded", p.Name, a.Len())
		}
		if !strings.Contains(a.String(), "prefers-color-scheme:dark") {
			t.Errorf("%s: no colours for the dark", p.Name)
		}
	}
}

// What a plot shows is where it should be: bars as high as their values.
func TestBarHeights(t *testing.T) {
	p := Plot{Name: "b", Y: Axis{From: 0, To: 10}, Bars: &Bars{Groups: []string{"a", "b"}, Series: []BarSeries{{Values: []float64{5, 10}}}}}
	body, _ := p.draw("", false)
	var heights []string
	for _, m := range regexp.MustCompile(`<rect class="f0"[^>]* height="([^"]*)"><title>`).FindAllStringSubmatch(body, -1) {
		heights = append(heights, m[1])
	}
	if want := []string{"145", "290"}; !slices.Equal(heights, want) {
		t.Errorf("heights %v, want %v: a half and the whole of the area", heights, want)
	}
}

func TestValidate(t *testing.T) {
	one := []Series{{Name: "a", Style: Line, X: []float64{1}, Y: []float64{1}}}
	for name, p := range map[string]Plot{
		"name":         {Name: "A b", Series: one},
		"neither":      {Name: "a"},
		"both":         {Name: "a", Series: one, Bars: &Bars{Groups: []string{"x"}, Series: []BarSeries{{Values: []float64{1}}}}},
		"lengths":      {Name: "a", Series: []Series{{Style: Line, X: []float64{1, 2}, Y: []float64{1}}}},
		"whiskers":     {Name: "a", Series: []Series{{Style: Line, X: []float64{1}, Y: []float64{1}, Low: []float64{1}}}},
		"style":        {Name: "a", Series: []Series{{X: []float64{1}, Y: []float64{1}}}},
		"too many":     {Name: "a", Series: slices.Repeat(one, MaxSeries+1)},
		"bars lengths": {Name: "a", Bars: &Bars{Groups: []string{"x", "y"}, Series: []BarSeries{{Values: []float64{1}}}}},
		"no bars":      {Name: "a", Bars: &Bars{}},
	} {
		var b bytes.Buffer
		if err := p.WriteSVG(&b); !errors.Is(err, ErrPlot) || b.Len() > 0 {
			t.Errorf("%s: error %v, %d bytes written", name, err, b.Len())
		}
	}
}

func TestTicks(t *testing.T) {
	labels := func(a Axis, low, high float64) string {
		_, ticks := axisScale(&a, extent{low, high, a.Log}, 6)
		var words []string
		for _, tick := range ticks {
			words = append(words, tick.Label)
		}
		return strings.Join(words, " ")
	}
	for _, c := range []struct {
		axis      Axis
		low, high float64
		want      string
	}{
		{Axis{}, 0, 1, "0.0 0.2 0.4 0.6 0.8 1.0"},
		{Axis{}, 0.2, 0.9, "0.2 0.4 0.6 0.8 1.0"},
		{Axis{Zero: true}, 300, 900, "0 200 400 600 800 1,000"},
		{Axis{}, -2, 7, "−2 0 2 4 6 8"},
		{Axis{}, 0, 1.4e7, "0 2,500,000 5,000,000 7,500,000 10,000,000 12,500,000 15,000,000"},
		{Axis{}, 5, 5, "4.4 4.6 4.8 5.0 5.2 5.4 5.6"},
		{Axis{From: 0, To: 100}, 3, 7, "0 20 40 60 80 100"},
		{Axis{Log: true}, 0.02, 700, "0.01 0.1 1 10 100 1,000"},
		{Axis{Log: true}, 2, 30, "2 3 5 7 10 15 20 30"},
		{Axis{Log: true, Ticks: []Tick{{1, "one"}, {60, "minute"}}}, 2, 300, "minute"},
	} {
		if got := labels(c.axis, c.low, c.high); got != c.want {
			t.Errorf("%+v over %v to %v: %s, want %s", c.axis, c.low, c.high, got, c.want)
		}
	}
}

// Whatever the extent, ticks are few, in order and within the axis.
func TestTicksProperty(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 4)) //nolint:gosec // A test.
	for range 20_000 {
		low := (rng.Float64() - 0.5) * math.Pow(10, float64(rng.IntN(16)-6))
		high := low + rng.Float64()*math.Pow(10, float64(rng.IntN(16)-6))
		a := Axis{Zero: rng.IntN(2) == 0, Log: rng.IntN(3) == 0}
		if a.Log {
			low, high = math.Abs(low)+1e-9, math.Abs(low)+1e-9+math.Abs(high-low)
		}
		s, ticks := axisScale(&a, extent{low, high, a.Log}, 6)
		slack := (high - low) * 1e-6
		if a.Log {
			slack = high * 2e-4 // too little to see
		}
		if s.from > low+slack || s.to < high-slack || !(s.from < s.to) {
			t.Fatalf("%+v over %v to %v: axis from %v to %v", a, low, high, s.from, s.to)
		}
		if len(ticks) < 2 || len(ticks) > 20 {
			t.Fatalf("%+v over %v to %v: %d ticks", a, low, high, len(ticks))
		}
		for i := range ticks {
			if ticks[i].At < s.from*(1-1e-6)-1e-9 && ticks[i].At < s.from-(s.to-s.from)*1e-6 || i > 0 && ticks[i].At <= ticks[i-1].At {
				t.Fatalf("%+v over %v to %v: ticks %v", a, low, high, ticks)
			}
		}
	}
}

func TestNumber(t *testing.T) {
	for v, want := range map[float64]string{
		0: "0.00", 0.123456: "0.12", 9.994: "9.99", 9.996: "10.0", 43.21: "43.2", 99.96: "100", 1234.5: "1,234", 1e6: "1,000,000", -1234567: "−1,234,567",
		2e-5: "2e-05", 3e13: "3e+13", math.Inf(1): "+Inf",
	} {
		if got := Number(v); got != want {
			t.Errorf("Number(%v) = %s, want %s", v, got, want)
		}
	}
	if got := Number(math.Copysign(0, -1)); got != "0.00" {
		t.Errorf("Number(-0) = %s", got)
	}
	if got := Number(math.NaN()); got != "–" {
		t.Errorf("Number(NaN) = %s", got)
	}
}

func TestCDF(t *testing.T) {
	values := []float64{4, 1, 3, 2}
	s := CDF("x", values)
	if !slices.Equal(s.X, []float64{1, 2, 3, 4}) || !slices.Equal(s.Y, []float64{25, 50, 75, 100}) || values[0] != 4 {
		t.Errorf("%v %v", s.X, s.Y)
	}
	var many []float64
	for i := range 100_000 {
		many = append(many, float64(i))
	}
	s = CDF("x", many)
	if len(s.X) != 400 || s.X[399] != 99_999 || s.Y[399] != 100 || s.X[0] != 249 || s.Y[0] != 0.25 {
		t.Errorf("%d points from %v %v to %v %v", len(s.X), s.X[0], s.Y[0], s.X[len(s.X)-1], s.Y[len(s.Y)-1])
	}
	if s := CDF("none", nil); len(s.X) != 0 {
		t.Errorf("%v", s)
	}
}

// Thinning keeps the first, the last, the lowest and the highest point.
func TestThin(t *testing.T) {
	rng := rand.New(rand.NewPCG(5, 6)) //nolint:gosec // A test.
	x, y := make([]float64, 50_000), make([]float64, 50_000)
	for i := range y {
		x[i], y[i] = float64(i), rng.NormFloat64()
	}
	kept := thin(x, y)
	low, high := slices.Index(y, slices.Min(y)), slices.Index(y, slices.Max(y))
	if len(kept) > MaxPoints+1 || !slices.IsSorted(kept) || kept[0] != 0 || kept[len(kept)-1] != len(y)-1 || !slices.Contains(kept, low) || !slices.Contains(kept, high) {
		t.Errorf("%d points kept, from %d to %d; lowest %t, highest %t", len(kept), kept[0], kept[len(kept)-1], slices.Contains(kept, low), slices.Contains(kept, high))
	}
}

// Gaps in a plot are null in JSON, and a plot that was written and read is
// drawn the same.
func TestJSON(t *testing.T) {
	p := Plot{Series: []Series{{Name: "a", Style: Line, X: []float64{1, 2}, Y: []float64{math.NaN(), 3}}}, Bars: &Bars{Series: []BarSeries{{Values: []float64{math.Inf(1), 0.5}}}}}
	b, err := json.Marshal(p)
	if err != nil || !strings.Contains(string(b), `"x":[1,2],"y":[null,3]`) || !strings.Contains(string(b), `"values":[null,0.5]`) {
		t.Errorf("%s, %v", b, err)
	}
	for _, p := range samples() {
		b, err := json.Marshal(p)
		if err != nil {
			t.Fatal(err)
		}
		var q Plot
		if err := json.Unmarshal(b, &q); err != nil {
			t.Fatal(err)
		}
		var was, is bytes.Buffer
		if err := errors.Join(p.WriteSVG(&was), q.WriteSVG(&is)); err != nil || !bytes.Equal(was.Bytes(), is.Bytes()) {
			t.Errorf("%s differs after a trip through JSON (%v)", p.Name, err)
		}
	}
}
