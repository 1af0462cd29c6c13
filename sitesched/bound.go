package sitesched

import (
	"math"
	"math/bits"
	"time"

	"kith/internal/job"
)

// bound is what a scan knows of many places without looking at them: the least
// charge, and for each class of charges the least walltime of copies of that
// class and all narrower ones. Charges of a class have the same number of bits,
// so that most widths, being powers of two, have a class of their own; the
// widest share the last one. It errs to the safe side only: no copy is narrower
// or shorter than its bound says. It fills a cache line.
type bound struct {
	charge int32
	stale  bool // something was removed: the bound may be lower than need be
	elder  bool // there may be a copy whose origin can never run it
	// wall is in seconds, rounded down; forever where there is no copy.
	wall [classes]int32
}

const (
	classes = 14
	forever = math.MaxInt32
)

// nothing is the bound of places without copies.
var nothing = func() bound {
	b := bound{charge: unfit}
	for i := range b.wall {
		b.wall[i] = forever
	}
	return b
}()

// classOf returns the class of a charge.
func classOf(charge int32) int { return min(max(bits.Len32(uint32(charge)), 1), classes) - 1 }

// wholeSeconds rounds d down, and what is beyond any walltime to just below forever.
func wholeSeconds(d time.Duration) int32 {
	return int32(min(d/time.Second, forever-1))
}

// add makes b cover a copy.
func (b *bound) add(charge int32, wall time.Duration) {
	b.charge = min(b.charge, charge)
	seconds := wholeSeconds(wall)
	// Once a class has no more than that, no wider one has.
	for c := classOf(charge); c < classes && b.wall[c] > seconds; c++ {
		b.wall[c] = seconds
	}
}

// cover makes b cover these copies and no others.
func (b *bound) cover(charges []int32, walls []time.Duration) {
	*b = nothing
	for i, charge := range charges {
		if charge != unfit {
			b.charge = min(b.charge, charge)
			c := classOf(charge)
			b.wall[c] = min(b.wall[c], wholeSeconds(walls[i]))
		}
	}
	for c := 1; c < classes; c++ {
		b.wall[c] = min(b.wall[c], b.wall[c-1])
	}
}

// include makes b cover all that o covers.
func (b *bound) include(o *bound) {
	b.charge = min(b.charge, o.charge)
	b.elder = b.elder || o.elder
	for c := range b.wall {
		b.wall[c] = min(b.wall[c], o.wall[c])
	}
}

// covers reports whether b is right about a copy.
func (b *bound) covers(charge int32, wall time.Duration) bool {
	return b.charge <= charge && b.wall[classOf(charge)] <= wholeSeconds(wall)
}

// demand is what a scan looks for: copies that need at most free processors and
// besides either at most extra processors or at most window time.
type demand struct {
	free, extra int32
	window      time.Duration
	class       int   // of free
	seconds     int32 // of window
}

func newDemand(free, extra int32, window time.Duration) demand {
	return demand{free, min(free, extra), window, classOf(free), wholeSeconds(window)}
}

// at reports whether there may be such a copy where b holds.
func (w *demand) at(b *bound) bool { return b.charge <= w.extra || b.wall[w.class] <= w.seconds }

// admitted reports whether a copy that v admits may be where b holds.
func (b *bound) admitted(now job.Time, v *window) bool {
	free := v.free()
	if b.charge > free {
		return false
	}
	for c := classOf(b.charge); c <= classOf(free); c++ {
		least := max(b.charge, 1<<c)
		if b.wall[c] != forever && least <= free && v.admits(least, now.Add(time.Duration(b.wall[c])*time.Second)) {
			return true
		}
	}
	return false
}
