package meta

import (
	"fmt"

	"kith/internal/identity"
	"kith/internal/job"
	"kith/store"
)

// SetBudget replaces the budget of a bag. Tasks that run go on; with a budget that is used
// up those that have not begun come back from their sites.
type SetBudget struct {
	Token  uint64
	Bag    job.ID
	Budget uint64 // processor-seconds, 0 for none
	Actor  identity.Actor
}

func (SetBudget) event() {}

func (bo *bagOrigin) setBudget(now job.Time, ev SetBudget) {
	o := bo.findOpen(ev.Token, ev.Bag)
	if o == nil {
		return
	}
	err := store.Record(bo.st, store.SetBudget{Bag: ev.Bag, Budget: ev.Budget, Actor: ev.Actor, Time: now})
	switch {
	case err == nil:
		bo.changed(o)
		bo.stopAt(now, o, "")
	case o.rec.CancelRequested:
		err = fmt.Errorf("bag %v: %w", ev.Bag, ErrBagCancelling)
	default:
		err = fmt.Errorf("%w: %w", ErrInvalid, err)
	}
	bo.reply(ev.Token, ev.Bag, 0, err)
}
