package job

import (
	"errors"
	"fmt"
	"time"
)

// Progress is what a job of a hierarchy has done in earlier attempts, as its next one is told.
// That of a job of none has only Last.
// Work is in processor-seconds of the reference.
type Progress struct {
	// Used is how long those at the level that the job is at ran together.
	Used time.Duration
	// Done is what all of them did.
	Done float64
	// Bound is the least upper bound of all that the job does, 0 if there is none.
	Bound float64
	// Last says of any job that no attempt may follow the one that is told: however it ends, the
	// job has what it left.
	Last bool
}

// MostWork is more than any job does, in processor-seconds of the reference.
const MostWork = 1e18

// SaneBound returns a bound of work that came from outside, in processor-seconds of the reference,
// or 0, which is none, for what is no bound: not above 0, infinite, no number, or above [MostWork].
func SaneBound(work float64) float64 {
	if work > 0 && work <= MostWork {
		return work
	}
	return 0
}

var errProgress = errors.New("used, done and bound must be finite and not negative")

// Validate returns what is wrong with p, or nil.
func (p *Progress) Validate() error {
	if p.Used >= 0 && p.Done >= 0 && p.Done <= MostWork && p.Bound >= 0 && p.Bound <= MostWork {
		return nil
	}
	return fmt.Errorf("used %v, done %v, bound %v: %w", p.Used, p.Done, p.Bound, errProgress)
}
