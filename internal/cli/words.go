package cli

import (
	"fmt"
	"math"
	"strings"
	"time"

	"kith/internal/job"
)

// Span writes a duration as [D-]HH:MM:SS; what is left of a second is dropped.
func Span(d time.Duration) string {
	const day = 24 * time.Hour
	d = max(0, d)
	h, m, s := int(d%day/time.Hour), int(d%time.Hour/time.Minute), int(d%time.Minute/time.Second)
	if d >= day {
		return fmt.Sprintf("%d-%02d:%02d:%02d", d/day, h, m, s)
	}
	return fmt.Sprintf("%02d:%02d:%02d", h, m, s)
}

// Seconds writes a number of seconds as [D-]HH:MM:SS.
func Seconds(s float64) string {
	if math.IsNaN(s) {
		return Nothing
	}
	const most = float64(job.MaxWalltime/time.Second) * 10
	return Span(time.Duration(min(max(s, 0), most) * float64(time.Second)))
}

// Plural writes a number of things.
func Plural(n int64, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%d %s", n, many)
}

// Number shows three digits or more.
func Number(v float64) string {
	switch {
	case v >= 100:
		return fmt.Sprintf("%.0f", v)
	case v >= 10:
		return strings.TrimSuffix(fmt.Sprintf("%.1f", v), ".0")
	}
	return strings.TrimRight(strings.TrimRight(fmt.Sprintf("%.2f", v), "0"), ".")
}
