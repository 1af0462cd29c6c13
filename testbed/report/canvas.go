package report

import (
	"fmt"
	"html"
	"strconv"
	"strings"
)

// canvas collects the elements of an SVG.
type canvas struct{ b strings.Builder }

// coordinate writes a place on the canvas to a tenth of a unit.
func coordinate(v float64) string {
	s := strconv.FormatFloat(v, 'f', 1, 64)
	s = strings.TrimSuffix(s, ".0")
	if s == "-0" {
		return "0"
	}
	return s
}

func (c *canvas) printf(format string, args ...any) { fmt.Fprintf(&c.b, format, args...) }

func (c *canvas) line(class string, x1, y1, x2, y2 float64) {
	c.printf(`<line class="%s" x1="%s" y1="%s" x2="%s" y2="%s"/>`, class, coordinate(x1), coordinate(y1), coordinate(x2), coordinate(y2))
}

// text writes s at a place; anchor is start, middle or end.
func (c *canvas) text(class, anchor string, x, y float64, s string) {
	c.printf(`<text class="%s" text-anchor="%s" x="%s" y="%s">%s</text>`, class, anchor, coordinate(x), coordinate(y), html.EscapeString(s))
}

// turned writes s turned by degrees around its place.
func (c *canvas) turned(class, anchor string, x, y, degrees float64, s string) {
	c.printf(`<text class="%s" text-anchor="%s" transform="translate(%s %s) rotate(%s)">%s</text>`,
		class, anchor, coordinate(x), coordinate(y), coordinate(degrees), html.EscapeString(s))
}

// marker draws the mark of series k at a place, with a hint under the pointer.
func (c *canvas) marker(k int, x, y float64, hint string) {
	const r = 3.6
	pts := func(p ...float64) string {
		var b strings.Builder
		for i := 0; i < len(p); i += 2 {
			b.WriteString(coordinate(x+p[i]*r) + "," + coordinate(y+p[i+1]*r) + " ")
		}
		return strings.TrimSpace(b.String())
	}
	class := fmt.Sprintf("f%d", k)
	title := ""
	if hint != "" {
		title = "<title>" + html.EscapeString(hint) + "</title>"
	}
	switch k % 6 {
	case 0:
		c.printf(`<circle class="%s" cx="%s" cy="%s" r="%s">%s</circle>`, class, coordinate(x), coordinate(y), coordinate(r), title)
	case 1:
		c.printf(`<polygon class="%s" points="%s">%s</polygon>`, class, pts(-1, -1, 1, -1, 1, 1, -1, 1), title)
	case 2:
		c.printf(`<polygon class="%s" points="%s">%s</polygon>`, class, pts(0, -1.25, 1.2, 0.95, -1.2, 0.95), title)
	case 3:
		c.printf(`<polygon class="%s" points="%s">%s</polygon>`, class, pts(0, -1.4, 1.4, 0, 0, 1.4, -1.4, 0), title)
	case 4:
		c.printf(`<polygon class="%s" points="%s">%s</polygon>`, class, pts(0, 1.25, 1.2, -0.95, -1.2, -0.95), title)
	default:
		c.printf(`<polygon class="%s" points="%s">%s</polygon>`, class,
			pts(-0.4, -1.2, 0.4, -1.2, 0.4, -0.4, 1.2, -0.4, 1.2, 0.4, 0.4, 0.4, 0.4, 1.2, -0.4, 1.2, -0.4, 0.4, -1.2, 0.4, -1.2, -0.4, -0.4, -0.4), title)
	}
}

// textWidth estimates how wide s is in a sans-serif font of a size. It is
// rather too wide than too narrow, as fonts differ.
func textWidth(s string, size float64) float64 {
	w := 0.0
	for _, r := range s {
		switch {
		case strings.ContainsRune("iljtfrI.,:;|!'()[] ", r):
			w += 0.36
		case strings.ContainsRune("mwMW%@", r):
			w += 0.92
		case r >= 'A' && r <= 'Z':
			w += 0.7
		default:
			w += 0.6
		}
	}
	return w * size
}

// wrap breaks s at blanks into lines of at most a width, as far as words permit.
func wrap(s string, size, width float64) []string {
	var lines []string
	line := ""
	for _, word := range strings.Fields(s) {
		if line != "" && textWidth(line+" "+word, size) > width {
			lines = append(lines, line)
			line = ""
		}
		if line != "" {
			line += " "
		}
		line += word
	}
	return append(lines, line)
}

// shorten cuts s to a width.
func shorten(s string, size, width float64) string {
	if textWidth(s, size) <= width {
		return s
	}
	r := []rune(s)
	for len(r) > 1 && textWidth(string(r)+"…", size) > width {
		r = r[:len(r)-1]
	}
	return string(r) + "…"
}

// colours returns the rules of a plot's classes, each with a prefix, so that
// those of a page touch nothing else. dark chooses the colours.
func colours(prefix string, dark bool) string {
	ink, soft, grid, back, series := "#1f2328", "#57606a", "#d8dee4", "#ffffff", lightSeries
	if dark {
		ink, soft, grid, back, series = "#e6edf3", "#9aa4af", "#30363d", "#0d1117", darkSeries
	}
	var b strings.Builder
	fmt.Fprintf(&b, "%[1]s.back{fill:%[2]s}%[1]s.ink{fill:%[3]s}%[1]s.soft{fill:%[4]s}%[1]s.grid{stroke:%[5]s}%[1]s.axis{stroke:%[4]s}%[1]s.rule{stroke:%[3]s}%[1]s.ink-line{stroke:%[3]s}",
		prefix, back, ink, soft, grid)
	fmt.Fprintf(&b, "%[1]s.halo{fill:%[2]s;stroke:%[3]s}", prefix, soft, back)
	for k, c := range series {
		fmt.Fprintf(&b, "%[1]s.s%[2]d{stroke:%[3]s}%[1]s.f%[2]d{fill:%[3]s}", prefix, k, c)
	}
	return b.String()
}

// shapes returns the rules that do not depend on light and dark.
func shapes(prefix string) string {
	const font = `font-family:system-ui,-apple-system,"Segoe UI",Roboto,"Helvetica Neue","DejaVu Sans",sans-serif`
	var b strings.Builder
	fmt.Fprintf(&b, `%[1]s text{%[2]s;font-size:12px}%[1]s .title{font-size:15px;font-weight:600}%[1]s .label{font-size:13px}%[1]s .value{font-size:10.5px}`, prefix, font)
	fmt.Fprintf(&b, `%[1]s .grid,%[1]s .axis,%[1]s .whisker{stroke-width:1}%[1]s .rule{stroke-width:1;stroke-dasharray:3 3;opacity:.75}`, prefix)
	fmt.Fprintf(&b, `%[1]s .curve{fill:none;stroke-width:2;stroke-linejoin:round}%[1]s .halo{stroke-width:3;paint-order:stroke}`, prefix)
	for k, d := range dashes {
		if d != "" {
			fmt.Fprintf(&b, `%s .d%d{stroke-dasharray:%s}`, prefix, k, d)
		}
	}
	return b.String()
}

// The colours follow Okabe and Ito; the yellow, which is lost on white, is
// replaced, and all are lighter on a dark page.
var (
	lightSeries = [MaxSeries]string{"#0072b2", "#d55e00", "#009e73", "#e69f00", "#cc79a7", "#56b4e9", "#555555", "#882255"}
	darkSeries  = [MaxSeries]string{"#4ba3e3", "#ff8a4c", "#2bc79a", "#f2b53a", "#e59cc4", "#9ad4fb", "#c4c9cf", "#e0709e"}
	dashes      = [MaxSeries]string{"", "7 3", "2 3", "9 3 2 3", "", "5 3", "1 3", "12 4"}
)
