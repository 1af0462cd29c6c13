package store_test

import (
	"testing"

	"kith/store"
)

// An operator who drains a site again and gives no reason keeps the one before.
func TestDrainKeepsItsReason(t *testing.T) {
	st := store.NewState("a", 1)
	for i, c := range []struct {
		command store.SetDrain
		want    string
	}{
		{store.SetDrain{Draining: true, Reason: "lunch", Actor: "ada", Time: 1}, "lunch"},
		{store.SetDrain{Draining: true, Actor: "bob", Time: 2}, "lunch"},
		{store.SetDrain{Draining: true, Reason: "disk", Actor: "bob", Time: 3}, "disk"},
		{store.SetDrain{Actor: "ada", Time: 4}, ""},
		{store.SetDrain{Draining: true, Actor: "ada", Time: 5}, ""},
	} {
		if err := st.Apply(c.command); err != nil {
			t.Fatal(err)
		}
		if s := st.Site(); s.Draining != c.command.Draining || s.DrainReason != c.want {
			t.Errorf("step %d: draining %v for %q, want %q", i, s.Draining, s.DrainReason, c.want)
		}
	}
}
