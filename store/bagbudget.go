package store

import (
	"fmt"
	"math"

	"kith/internal/identity"
	"kith/internal/job"
)

// MaxBudget bounds [Bag.Budget], in processor-seconds.
const MaxBudget = 1 << 53

// Used is what the runs of the bag's tasks have taken, those in vain included, in
// processor-seconds. Of what was lost with a host nobody knows how long it ran.
func (b *Bag) Used() float64 {
	return (b.Sums.RunTime + b.Sums.WastedTime) * float64(b.Request.Processors)
}

// Spent reports whether the budget of the bag is used up.
func (b *Bag) Spent() bool { return b.Budget > 0 && b.Used() >= float64(b.Budget) }

// Affords returns how many more runs of tasks the budget of the bag pays for beside those
// that sites have, the last one perhaps in part: each counts as long as the mean of the runs
// that have ended, before any has as its walltime. So no more is used than the budget and
// what runs when it is spent.
func (b *Bag) Affords() int {
	switch {
	case b.Budget == 0:
		return math.MaxInt
	case b.Spent():
		return 0
	}
	each := b.Request.Walltime.Seconds()
	if b.Sums.Runs > 0 {
		each = b.Sums.RunTime / float64(b.Sums.Runs)
	}
	runs := math.Ceil((float64(b.Budget) - b.Used()) / (each * float64(b.Request.Processors)))
	return max(0, int(min(runs, math.MaxInt32))-b.Runs())
}

// Room returns how many more runs sites may have, by MaxRunning and by the budget. It may
// be below 0.
func (b *Bag) Room() int {
	room := b.Affords()
	if b.MaxRunning > 0 {
		room = min(room, int(b.MaxRunning)-b.Runs())
	}
	return room
}

// SetBudget replaces the budget of a bag, in processor-seconds, 0 for none. It fails with
// [ErrState] if the bag has ended or is being cancelled, and with [ErrBounds].
type SetBudget struct {
	Bag    job.ID
	Budget uint64
	Actor  identity.Actor
	Time   job.Time
}

func (c SetBudget) apply(s *State) error {
	b, err := s.knownBag(c.Bag)
	switch {
	case err != nil:
		return err
	case c.Budget > MaxBudget:
		return fmt.Errorf("budget of %d processor-seconds, it may have %d: %w", c.Budget, uint64(MaxBudget), ErrBounds)
	case b.State.Terminal() || b.State == job.BagCancelling || b.CancelRequested:
		return fmt.Errorf("bag %v is %v: %w", b.ID, b.State, ErrState)
	case c.Budget == b.Budget: // repeated
		return nil
	}
	b.Budget = c.Budget
	b.Acts = withAct(b.Acts, Act{Time: c.Time, Kind: ActBudget, Actor: c.Actor})
	s.touchBag(b)
	return nil
}
