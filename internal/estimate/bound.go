package estimate

import "math"

// Bound is the least of some upper bounds. The zero value knows nothing.
type Bound struct {
	least float64
	known bool
}

// Add takes one, and reports false for what is none: it must be finite, and 0 or more. One above the
// least so far changes nothing.
func (b *Bound) Add(work float64) bool {
	if !(work >= 0) || math.IsInf(work, 0) {
		return false
	}
	if !b.known || work < b.least {
		b.least, b.known = work, true
	}
	return true
}

// Least returns the bound, and whether there is one.
func (b *Bound) Least() (float64, bool) { return b.least, b.known }

// Exceeds reports whether more than most is left of the work when done is. Where more was done than
// the bound says, nothing is known.
func (b *Bound) Exceeds(done, most float64) bool { return b.known && b.least-done > most }
