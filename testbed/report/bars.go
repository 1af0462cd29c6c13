package report

import (
	"fmt"
	"html"
	"math"
)

// groupLabels are the labels below the bars.
type groupLabels struct {
	lines  [][]string // of each group
	tilted bool
	slot   float64 // width of a group
	height float64
}

// layGroups decides how the labels stand: in lines, or tilted if there is no room.
func (d *drawing) layGroups() groupLabels {
	b := d.p.Bars
	g := groupLabels{slot: (d.right - d.left) / float64(len(b.Groups))}
	most := 1
	for _, name := range b.Groups {
		lines := wrap(name, 12, g.slot-6)
		for _, l := range lines {
			g.tilted = g.tilted || textWidth(l, 12) > g.slot+2
		}
		g.lines = append(g.lines, lines)
		most = max(most, len(lines))
	}
	g.height = 10 + 15*float64(most)
	if g.tilted || most > 3 {
		g.tilted = true
		widest := 0.0
		for _, name := range b.Groups {
			widest = max(widest, textWidth(name, 12))
		}
		g.height = 16 + min(widest, 200)*math.Sin(35*math.Pi/180)
	}
	return g
}

// bars draws all bars and the labels below.
func (d *drawing) bars(g *groupLabels) {
	b := d.p.Bars
	gap := min(0.22*g.slot, 26)
	width := (g.slot - gap) / float64(len(b.Series))
	labelled := d.labelsFit(width)
	base := d.bottom
	if !d.y.log {
		base = d.y.at(max(d.y.from, min(d.y.to, 0)))
	}
	for i, group := range b.Groups {
		left := d.left + float64(i)*g.slot + gap/2
		for k, s := range b.Series {
			v := s.Values[i]
			if !d.y.shows(v) {
				continue
			}
			x, y := left+float64(k)*width, d.y.at(v)
			inner := width - min(2, width/8)
			hint := fmt.Sprintf("%s, %s: %s", group, s.Name, Number(v))
			if s.Name == "" {
				hint = fmt.Sprintf("%s: %s", group, Number(v))
			}
			d.printf(`<rect class="f%d" x="%s" y="%s" width="%s" height="%s"><title>%s</title></rect>`, k, coordinate(x), coordinate(min(y, base)),
				coordinate(inner), coordinate(math.Abs(base-y)), html.EscapeString(hint))
			top := min(y, base)
			if s.Low != nil && d.y.shows(s.Low[i]) && d.y.shows(s.High[i]) {
				d.whisker("ink-line", x+inner/2, s.Low[i], s.High[i])
				top = min(top, d.y.at(s.High[i]))
			}
			if labelled {
				d.text("value ink", "middle", x+inner/2, max(top-4, d.top+8), Number(v))
			}
		}
	}
	d.printf("</g><g>") // labels are outside of the area
	for i, group := range b.Groups {
		x := d.left + (float64(i)+0.5)*g.slot
		if g.tilted {
			d.turned("soft", "end", x+4, d.bottom+14, -35, shorten(group, 12, min(x-edge, 200)/math.Cos(35*math.Pi/180)))
			continue
		}
		for n, l := range g.lines[i] {
			d.text("soft", "middle", x, d.bottom+18+15*float64(n), l)
		}
	}
}

// labelsFit reports whether every bar is wide enough for its value.
func (d *drawing) labelsFit(width float64) bool {
	for _, s := range d.p.Bars.Series {
		for _, v := range s.Values {
			if d.y.shows(v) && textWidth(Number(v), 10.5) > width+4 {
				return false
			}
		}
	}
	return true
}
