package level

import (
	"errors"
	"fmt"

	"kith/internal/estimate"
)

// Bound is the least upper bound of the work of a task that any estimate has given. It belongs to
// the task and goes with it from level to level. The zero value knows nothing.
type Bound struct {
	bound estimate.Bound
}

// ErrBound is returned for an estimate that is not a bound.
var ErrBound = errors.New("not an upper bound of work: it must be a finite number of processor-seconds, 0 or more")

// Add takes an estimate of all the work of the task. One above the least so far changes nothing: a bound may
// only shrink (spec 000 section 2.2). What makes no sense is not taken; the error wraps [ErrBound].
func (b *Bound) Add(c Complexity) error {
	if !b.bound.Add(float64(c)) {
		return fmt.Errorf("estimate %v: %w", float64(c), ErrBound)
	}
	return nil
}

// Least returns the bound, and whether there is one.
func (b *Bound) Least() (Complexity, bool) {
	least, known := b.bound.Least()
	return Complexity(least), known
}

// Task returns what is left of the work when used is done, for a task with its own share β, or 0
// for that of the level. A task that has used more than its bound was estimated too low: nothing is known then.
func (b *Bound) Task(used Complexity, share float64) Task {
	least, known := b.Least()
	if !known || used > least {
		return Task{Unknown: true, Bound: share}
	}
	return Task{Left: least - used, Bound: share}
}
