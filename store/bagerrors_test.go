package store_test

import (
	"errors"
	"math/rand/v2"
	"slices"
	"testing"

	"kith/store"
	"kith/store/storetest"
)

// Every error of a command about bags wraps a sentinel that callers can tell apart.
func TestBagErrorsAreSentinels(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	s := store.NewState("alpha", 3)
	for range 3000 {
		err := s.Apply(storetest.WalkBags(rng, s))
		if err == nil {
			continue
		}
		is := func(want error) bool { return errors.Is(err, want) }
		if !slices.ContainsFunc([]error{store.ErrUnknown, store.ErrExists, store.ErrStale, store.ErrNotWaiting, store.ErrBeside, store.ErrState, store.ErrBounds, store.ErrFull}, is) {
			t.Errorf("%v wraps no sentinel", err)
		}
	}
}
