package store_test

import (
	"testing"

	"kith/internal/job"
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

// A drain that has ended is among what is past, in parts if its reason has changed; one that took no
// time, or began by a clock that was set back since, is not.
func TestDrainsAreRemembered(t *testing.T) {
	st := store.NewState("alpha", 1)
	for _, c := range []store.SetDrain{
		{Draining: true, Reason: "disk", Time: 10}, {Draining: true, Time: 12}, {Draining: true, Reason: "lunch", Time: 15}, {Time: 20},
		{Draining: true, Time: 30}, {Time: 30}, {Draining: true, Time: 40}, {Time: 35}, {Time: 50},
	} {
		must(t, st, c)
	}
	changes := st.TakeChanges()
	if len(changes.Past) != 2 {
		t.Fatalf("%+v", changes.Past)
	}
	for i, want := range [][2]job.Time{{10, 15}, {15, 20}} {
		p := &changes.Past[i]
		if !p.Drained() || p.Learnt() || p.Site != "alpha" || p.Started != want[0] || p.Ended != want[1] || p.Number != uint64(i)+1 {
			t.Errorf("drain %d: %+v, want %v", i, *p, want)
		}
	}
}
