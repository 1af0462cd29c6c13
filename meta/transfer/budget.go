package transfer

import (
	"context"
)

// A budget bounds how much of something its users hold together. Who takes
// several units gets them at once and in turn, so that two takers cannot each
// hold half of what both need.
type budget struct {
	turn  chan struct{}
	units chan struct{}
}

// newBudget returns a budget of n units.
func newBudget(n int) *budget {
	return &budget{turn: make(chan struct{}, 1), units: make(chan struct{}, n)}
}

// take waits until n units are free and takes them. n is at most the budget.
func (b *budget) take(ctx context.Context, n int) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case b.turn <- struct{}{}:
	}
	defer func() { <-b.turn }()
	for i := range n {
		select {
		case <-ctx.Done():
			b.give(i)
			return ctx.Err()
		case b.units <- struct{}{}:
		}
	}
	return nil
}

// give returns n units.
func (b *budget) give(n int) {
	for range n {
		<-b.units
	}
}
