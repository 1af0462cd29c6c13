package main

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// A column of a table for people.
type column struct {
	title string
	right bool // aligned to the right, for numbers
	// elastic says that the column may be cut where the terminal is too narrow.
	elastic bool
}

// A grid is a table for people. Its cells are made clean.
type grid struct {
	columns []column
	rows    [][]string
}

// add adds a row: a cell for each column.
func (g *grid) add(cells ...string) {
	for i := range cells {
		cells[i] = clean(cells[i])
	}
	g.rows = append(g.rows, cells)
}

// render returns the table in lines of at most width columns as far as its
// elastic columns permit; 0 means any width.
func (g *grid) render(width int) string {
	widths := g.fit(width)
	var b strings.Builder
	titles := make([]string, len(g.columns))
	for i, c := range g.columns {
		titles[i] = c.title
	}
	g.line(&b, widths, titles)
	for _, row := range g.rows {
		g.line(&b, widths, row)
	}
	return b.String()
}

const (
	gap         = 2 // blanks between two columns
	narrowest   = 8 // that an elastic column is cut to
	ellipsis    = "…"
	nothing     = "-" // stands for a value that is not there
	replacement = '?' // stands for a character that is not printed
)

// fit returns how wide each column is.
func (g *grid) fit(width int) []int {
	widths := make([]int, len(g.columns))
	total := gap * (len(g.columns) - 1)
	for i, c := range g.columns {
		widths[i] = textWidth(c.title)
		for _, row := range g.rows {
			widths[i] = max(widths[i], textWidth(row[i]))
		}
		total += widths[i]
	}
	for width > 0 && total > width {
		widest := -1
		for i, c := range g.columns {
			if c.elastic && widths[i] > max(narrowest, textWidth(c.title)) && (widest < 0 || widths[i] > widths[widest]) {
				widest = i
			}
		}
		if widest < 0 {
			break
		}
		widths[widest]--
		total--
	}
	return widths
}

func (g *grid) line(b *strings.Builder, widths []int, cells []string) {
	var line strings.Builder
	for i, cell := range cells {
		if i > 0 {
			line.WriteString(strings.Repeat(" ", gap))
		}
		cell = cut(cell, widths[i])
		padding := strings.Repeat(" ", widths[i]-textWidth(cell))
		if g.columns[i].right {
			line.WriteString(padding + cell)
		} else {
			line.WriteString(cell + padding)
		}
	}
	b.WriteString(strings.TrimRight(line.String(), " ") + "\n")
}

// cut shortens a text to a width.
func cut(s string, width int) string {
	if textWidth(s) <= width {
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

// textWidth returns how many columns of a terminal a clean text takes.
func textWidth(s string) int {
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

// clean makes a text from elsewhere safe to print: one line, and nothing in it
// that a terminal would obey.
func clean(s string) string {
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
			return replacement
		}
		return r
	}, s)
}
