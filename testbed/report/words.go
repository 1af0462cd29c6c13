package report

import (
	"fmt"
	"math"
	"strings"
	"time"
)

// Span writes seconds for people, with two units at most.
func Span(seconds float64) string {
	d := time.Duration(seconds * float64(time.Second)).Round(time.Second)
	switch {
	case d < 2*time.Minute:
		return fmt.Sprintf("%d s", d/time.Second)
	case d < 2*time.Hour:
		return fmt.Sprintf("%d min", d.Round(time.Minute)/time.Minute)
	case d < 48*time.Hour:
		d = d.Round(time.Minute)
		return strings.TrimSuffix(fmt.Sprintf("%d h %d min", d/time.Hour, d%time.Hour/time.Minute), " 0 min")
	}
	d = d.Round(time.Hour)
	return strings.TrimSuffix(fmt.Sprintf("%d d %d h", d/(24*time.Hour), d%(24*time.Hour)/time.Hour), " 0 h")
}

// Change writes a change in percent with its sign.
func Change(percent float64) string {
	switch {
	case percent <= -0.05:
		return "−" + Number(-percent) + "%"
	case percent >= 0.05:
		return "+" + Number(percent) + "%"
	}
	return "0%"
}

// Share writes a share of 1 in percent.
func Share(v float64) string { return fmt.Sprintf("%.0f%%", 100*v) }

// Arrow writes what became of a figure.
func Arrow(from, to string) string { return from + " → " + to }

// Whole writes a number without a fraction.
func Whole(v float64) string {
	if v < 99.5 {
		return fmt.Sprintf("%.0f", v)
	}
	return Number(math.Round(v))
}

// Count writes how many there are of what has a name: "no site", "1 site", "2 sites".
func Count(n int, one, many string) string {
	switch n {
	case 0:
		return "no " + one
	case 1:
		return "1 " + one
	}
	return fmt.Sprintf("%d %s", n, many)
}

// Columns are those of a table: left ones, then right ones.
func Columns(left []string, right ...string) []Column {
	var list []Column
	for _, t := range left {
		list = append(list, Column{Title: t})
	}
	for _, t := range right {
		list = append(list, Column{Title: t, Right: true})
	}
	return list
}

// Cells are plain fields of a row.
func Cells(texts ...string) []Cell {
	row := make([]Cell, len(texts))
	for i, t := range texts {
		row[i].Text = t
	}
	return row
}
