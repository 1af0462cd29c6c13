package store_test

import (
	"maps"
	"math/rand/v2"
	"testing"

	"kith/store"
)

// An index is a map, whatever it remembers.
func TestIndexIsAMap(t *testing.T) {
	rng := rand.New(rand.NewPCG(0, 0))
	type record struct{ name int }
	x, want := store.NewIndex(func(r *record) int { return r.name }), make(map[int]*record)
	for step := range 100_000 {
		name := rng.IntN(20)
		switch rng.IntN(4) {
		case 0:
			r := &record{name}
			x.Put(r)
			want[name] = r
		case 1:
			x.Delete(name)
			delete(want, name)
		default:
			if x.Get(name) != want[name] {
				t.Fatalf("step %d: Get(%d) = %v, want %v", step, name, x.Get(name), want[name])
			}
		}
		if x.Len() != len(want) {
			t.Fatalf("step %d: %d records, want %d", step, x.Len(), len(want))
		}
	}
	got := make(map[int]*record)
	for r := range x.All {
		got[r.name] = r
	}
	if !maps.Equal(got, want) {
		t.Errorf("all records are %v, want %v", got, want)
	}
}
