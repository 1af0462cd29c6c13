package cli

import (
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// A Column of a table for people.
type Column struct {
	// Title heads the column.
	Title string
	// Right aligns the column to the right, for numbers.
	Right bool
	// Elastic says that the column may be cut where the terminal is too narrow.
	Elastic bool
	// Most is how wide the column is at most, also where any width will do; 0
	// means as wide as its cells.
	Most int
	// Spare, if not 0, says that the column may be left out where the terminal is
	// still too narrow with all elastic columns cut; the lowest number goes first.
	Spare int
}

// A Grid is a table for people. Its cells are made clean.
type Grid struct {
	Columns []Column
	rows    [][]string
}

// Add adds a row: a cell for each column.
func (g *Grid) Add(cells ...string) {
	for i := range cells {
		cells[i] = Clean(cells[i])
	}
	g.rows = append(g.rows, cells)
}

// Render returns the table in lines of at most width columns as far as its
// elastic and spare columns permit; 0 means any width.
func (g *Grid) Render(width int) string {
	shown := Grid{Columns: g.Columns, rows: slices.Clone(g.rows)}
	g = &shown // the table itself keeps what is left out here
	widths, total := g.fit(width)
	for width > 0 && total > width && g.leaveOut() {
		widths, total = g.fit(width)
	}
	var b strings.Builder
	titles := make([]string, len(g.Columns))
	for i, c := range g.Columns {
		titles[i] = c.Title
	}
	g.line(&b, widths, titles)
	for _, row := range g.rows {
		g.line(&b, widths, row)
	}
	return b.String()
}

// Nothing stands for a value that is not there.
const Nothing = "-"

const (
	gap       = 2 // blanks between two columns
	narrowest = 8 // that an elastic column is cut to
	ellipsis  = "…"
	unprinted = '?' // stands for a character that is not printed
)

// leaveOut takes the column away that is spared first, and reports whether there
// was one.
func (g *Grid) leaveOut() bool {
	first := -1
	for i, c := range g.Columns {
		if c.Spare > 0 && (first < 0 || c.Spare < g.Columns[first].Spare) {
			first = i
		}
	}
	if first < 0 {
		return false
	}
	g.Columns = slices.Delete(slices.Clone(g.Columns), first, first+1)
	for i, row := range g.rows {
		g.rows[i] = slices.Delete(slices.Clone(row), first, first+1)
	}
	return true
}

// fit returns how wide each column is, and all together.
func (g *Grid) fit(width int) (widths []int, total int) {
	widths = make([]int, len(g.Columns))
	total = gap * (len(g.Columns) - 1)
	for i, c := range g.Columns {
		widths[i] = TextWidth(c.Title)
		for _, row := range g.rows {
			widths[i] = max(widths[i], TextWidth(row[i]))
		}
		if c.Most > 0 {
			widths[i] = min(widths[i], max(c.Most, TextWidth(c.Title)))
		}
		total += widths[i]
	}
	for width > 0 && total > width {
		widest := -1
		for i, c := range g.Columns {
			if c.Elastic && widths[i] > max(narrowest, TextWidth(c.Title)) && (widest < 0 || widths[i] > widths[widest]) {
				widest = i
			}
		}
		if widest < 0 {
			break
		}
		widths[widest]--
		total--
	}
	return widths, total
}

func (g *Grid) line(b *strings.Builder, widths []int, cells []string) {
	var line strings.Builder
	for i, cell := range cells {
		if i > 0 {
			line.WriteString(strings.Repeat(" ", gap))
		}
		cell = Cut(cell, widths[i])
		padding := strings.Repeat(" ", widths[i]-TextWidth(cell))
		if g.Columns[i].Right {
			line.WriteString(padding + cell)
		} else {
			line.WriteString(cell + padding)
		}
	}
	b.WriteString(strings.TrimRight(line.String(), " ") + "\n")
}

// Cut shortens a text to a width.
func Cut(s string, width int) string {
	if TextWidth(s) <= width {
		return s
	}
	used := 0
	for i, r := range s {
		if used+runeWidth(r) > width-1 {
			return s[:i] + ellipsis
		}
		used += runeWidth(r)
	}
	return s
}

// TextWidth returns how many columns of a terminal a clean text takes.
func TextWidth(s string) int {
	n := 0
	for _, r := range s {
		n += runeWidth(r)
	}
	return n
}

func runeWidth(r rune) int {
	switch {
	case r < 0x300:
		return 1
	case unicode.In(r, unicode.Mn, unicode.Me):
		return 0
	case unicode.In(r, unicode.Han, unicode.Hangul, unicode.Hiragana, unicode.Katakana), r >= 0xFF01 && r <= 0xFF60, r >= 0x1F300 && r <= 0x1FAFF:
		return 2
	}
	return 1
}

// Clean makes a text from elsewhere safe to print: one line, and nothing in it
// that a terminal would obey.
func Clean(s string) string {
	ok := utf8.ValidString(s)
	for _, r := range s {
		ok = ok && unicode.IsPrint(r)
	}
	if ok {
		return s
	}
	return strings.Map(func(r rune) rune {
		switch {
		case r == '\n' || r == '\t' || r == '\r':
			return ' '
		case r == utf8.RuneError || !unicode.IsPrint(r):
			return unprinted
		}
		return r
	}, s)
}
