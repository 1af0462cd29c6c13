package report

import (
	"fmt"
	"html"
	"io"
	"math"
)

// Sizes of a plot, in units of the canvas.
const (
	plotWidth  = 660.0
	areaHeight = 290.0
	edge       = 14.0 // around everything
	rowHeight  = 20.0 // of a legend
	inset      = 14.0 // of the first and last marks
)

// WriteSVG writes p as a file of its own, with its title. It follows the light
// or dark of the reader's system where the viewer knows of it. The error wraps
// [ErrPlot] if p cannot be drawn.
func (p *Plot) WriteSVG(w io.Writer) error {
	if err := p.Validate(); err != nil {
		return err
	}
	body, height := p.draw("", true)
	_, err := fmt.Fprintf(w, `<svg xmlns="http://www.w3.org/2000/svg" class="plot" viewBox="0 0 %s %s" width="%s" height="%s" role="img" aria-label="%s">`+
		"\n<style>%s%s@media (prefers-color-scheme:dark){%s}</style>\n%s</svg>\n",
		coordinate(plotWidth), coordinate(height), coordinate(plotWidth), coordinate(height), html.EscapeString(p.Title),
		shapes(".plot"), colours("", false), colours("", true), body)
	return err
}

// inline returns p as an element of a page, which has its title and its rules
// of style. id is unique on the page.
func (p *Plot) inline(id string) (string, error) {
	if err := p.Validate(); err != nil {
		return "", err
	}
	body, height := p.draw(id, false)
	return fmt.Sprintf(`<svg xmlns="http://www.w3.org/2000/svg" class="plot" viewBox="0 0 %s %s" role="img" aria-label="%s">%s</svg>`,
		coordinate(plotWidth), coordinate(height), html.EscapeString(p.Title), body), nil
}

// drawing is a plot on its way to a canvas.
type drawing struct {
	*canvas
	p    *Plot
	x, y scale
	// left, right, top and bottom are the edges of the area of the data.
	left, right, top, bottom float64
}

// draw returns the elements of the plot and the height of the canvas.
func (p *Plot) draw(id string, titled bool) (body string, height float64) {
	d := &drawing{canvas: &canvas{}, p: p, right: plotWidth - edge - 4, top: edge}
	if titled {
		d.top += 20
	}
	names := p.names()
	rows := legendRows(names)
	d.top += float64(len(rows))*rowHeight + 10
	var xTicks, yTicks []Tick
	d.y, yTicks = axisScale(&p.Y, p.heights(), 6)
	widest := 0.0
	for _, t := range yTicks {
		widest = max(widest, textWidth(t.Label, 12))
	}
	d.left = edge + 18 + widest + 8
	d.bottom = d.top + areaHeight
	d.y.a, d.y.b = d.bottom, d.top
	var below float64
	var groups groupLabels
	if p.Bars != nil {
		groups = d.layGroups()
		below = groups.height
	} else {
		d.x, xTicks = axisScale(&p.X, p.places(), 8)
		d.x.a, d.x.b = d.left, d.right
		if d.anyMarks() { // marks at the ends want room
			d.x.a, d.x.b = d.left+inset, d.right-inset
		}
		below = 22
	}
	height = d.bottom + below + edge
	if p.X.Label != "" {
		height += 18
	}

	d.printf(`<rect class="back" width="%s" height="%s"/>`, coordinate(plotWidth), coordinate(height))
	if titled {
		d.text("title ink", "start", edge, edge+14, p.Title)
	}
	d.legend(names, rows, d.top-float64(len(rows))*rowHeight-2)
	for _, t := range yTicks {
		y := d.y.at(t.At)
		d.line("grid", d.left, y, d.right, y)
		d.text("soft", "end", d.left-7, y+4, t.Label)
	}
	for _, t := range xTicks {
		x := d.x.at(t.At)
		d.line("grid", x, d.top, x, d.bottom)
		d.text("soft", "middle", x, d.bottom+18, t.Label)
	}
	d.turned("label ink", "middle", edge+10, (d.top+d.bottom)/2, -90, p.Y.Label)
	d.text("label ink", "middle", (d.left+d.right)/2, height-edge+2, p.X.Label)

	clip := "area" + id
	d.printf(`<clipPath id="%s"><rect x="%s" y="%s" width="%s" height="%s"/></clipPath>`, clip,
		coordinate(d.left), coordinate(d.top-4), coordinate(d.right-d.left+4), coordinate(d.bottom-d.top+8))
	d.printf(`<g clip-path="url(#%s)">`, clip)
	if p.Bars != nil {
		d.bars(&groups)
	} else {
		for k := range p.Series {
			d.series(k)
		}
	}
	d.printf("</g>")
	d.line("axis", d.left, d.bottom, d.right, d.bottom)
	d.line("axis", d.left, d.top, d.left, d.bottom)
	for _, r := range p.Rules {
		d.rule(r)
	}
	return d.b.String(), height
}

// rule draws a line to compare with.
func (d *drawing) rule(r Rule) {
	if r.Vertical {
		if d.p.Bars != nil || !d.x.shows(r.At) || r.At < d.x.from || r.At > d.x.to {
			return
		}
		x := d.x.at(r.At)
		d.line("rule", x, d.top, x, d.bottom)
		anchor, dx := "start", 5.0
		if x > (d.left+d.right)/2 {
			anchor, dx = "end", -5
		}
		d.text("halo", anchor, x+dx, d.top+14, r.Label)
		return
	}
	if !d.y.shows(r.At) || r.At < d.y.from || r.At > d.y.to {
		return
	}
	y := d.y.at(r.At)
	d.line("rule", d.left, y, d.right, y)
	anchor, x, base := d.roomAt(y, textWidth(r.Label, 12))
	d.text("halo", anchor, x, base, r.Label)
}

// roomAt returns where a text of a width hides least of the curves, above or
// below a line at height y, at its right or left end.
func (d *drawing) roomAt(y, width float64) (anchor string, x, base float64) {
	fewest := -1
	for _, c := range []struct {
		anchor  string
		x, base float64
	}{{"end", d.right - 4, y - 5}, {"start", d.left + 6, y - 5}, {"end", d.right - 4, y + 15}, {"start", d.left + 6, y + 15}} {
		from := c.x
		if c.anchor == "end" {
			from -= width
		}
		hidden := d.crossings(from-4, from+width+4, c.base-14, c.base+6)
		if c.base > d.bottom || c.base-12 < d.top-14 {
			hidden += 1000 // outside
		}
		if fewest < 0 || hidden < fewest {
			fewest, anchor, x, base = hidden, c.anchor, c.x, c.base
		}
	}
	return anchor, x, base
}

// crossings measures how much of the curves and whiskers lies in a box.
func (d *drawing) crossings(x0, x1, y0, y1 float64) int {
	if d.p.Bars != nil {
		return 0
	}
	const steps = 12 // between two points
	n := 0
	for k := range d.p.Series {
		s := &d.p.Series[k]
		for i := range s.Low {
			if x := d.x.at(s.X[i]) + d.beside(k); d.visible(s, i) && x >= x0 && x <= x1 && d.y.at(s.High[i]) <= y1 && d.y.at(s.Low[i]) >= y0 {
				n += 2
			}
		}
		points := thin(s.X, s.Y)
		for j := 1; j < len(points); j++ {
			a, b := points[j-1], points[j]
			if !d.visible(s, a) || !d.visible(s, b) {
				continue
			}
			for step := range steps {
				t := float64(step) / steps
				x := d.x.at(s.X[a])*(1-t) + d.x.at(s.X[b])*t
				y := d.y.at(s.Y[a])*(1-t) + d.y.at(s.Y[b])*t
				if x >= x0 && x <= x1 && y >= y0 && y <= y1 {
					n++
				}
			}
		}
	}
	return n
}

// names are those of the series, for the legend.
func (p *Plot) names() []string {
	var names []string
	if p.Bars != nil {
		for _, s := range p.Bars.Series {
			names = append(names, s.Name)
		}
	}
	for _, s := range p.Series {
		names = append(names, s.Name)
	}
	if len(names) == 1 && names[0] == "" {
		return nil
	}
	return names
}

// legendRows says how many entries stand in each row.
func legendRows(names []string) []int {
	var rows []int
	used := math.Inf(1)
	for _, name := range names {
		w := entryWidth(name)
		if used+w > plotWidth-2*edge {
			rows = append(rows, 0)
			used = 0
		}
		rows[len(rows)-1]++
		used += w
	}
	return rows
}

func entryWidth(name string) float64 { return 30 + textWidth(name, 12) + 16 }

func (d *drawing) legend(names []string, rows []int, top float64) {
	k := 0
	for i, n := range rows {
		x, y := edge, top+float64(i)*rowHeight
		for range n {
			switch {
			case d.p.Bars != nil:
				d.printf(`<rect class="f%d" x="%s" y="%s" width="20" height="11" rx="2"/>`, k, coordinate(x+2), coordinate(y-5.5))
			default:
				if d.p.Series[k].Style != Scatter {
					d.line(fmt.Sprintf("curve s%d d%d", k, k), x, y, x+24, y)
				}
				if d.marks(k) {
					d.marker(k, x+12, y, "")
				}
			}
			d.text("ink", "start", x+30, y+4, names[k])
			x += entryWidth(names[k])
			k++
		}
	}
}

// heights is the extent of the Y axis.
func (p *Plot) heights() extent {
	e := newExtent(p.Y.Log)
	for _, s := range p.Series {
		e.add(s.Y...)
		e.add(s.Low...)
		e.add(s.High...)
	}
	if p.Bars != nil {
		for _, s := range p.Bars.Series {
			e.add(s.Values...)
			e.add(s.Low...)
			e.add(s.High...)
			room := 1.04 // for labels
			if p.Y.Log {
				room = 1.2
			}
			for i, v := range s.Values {
				if len(s.High) > 0 {
					v = max(v, s.High[i])
				}
				e.add(v * room)
			}
		}
		if !p.Y.Log {
			e.add(0) // a bar begins there
		}
	}
	for _, r := range p.Rules {
		if !r.Vertical {
			e.add(r.At)
		}
	}
	return e
}

// places is the extent of the X axis.
func (p *Plot) places() extent {
	e := newExtent(p.X.Log)
	for _, s := range p.Series {
		e.add(s.X...)
	}
	return e
}
