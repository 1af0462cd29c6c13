package store_test

import (
	"maps"
	"math/rand/v2"
	"strconv"
	"testing"

	"kith/internal/hashed"
	"kith/store"
)

// An index is a map, whatever it remembers.
func TestIndexIsAMap(t *testing.T) {
	rng := rand.New(rand.NewPCG(0, 0))
	type record struct{ name hashed.Text }
	x, want := store.NewIndex(func(r *record) hashed.Text { return r.name }), make(map[hashed.Text]*record)
	for step := range 100_000 {
		name := hashed.Text(strconv.Itoa(rng.IntN(20)))
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
				t.Fatalf("step %d: Get(%s) = %v, want %v", step, name, x.Get(name), want[name])
			}
		}
		if x.Len() != len(want) {
			t.Fatalf("step %d: %d records, want %d", step, x.Len(), len(want))
		}
	}
	got := make(map[hashed.Text]*record)
	for r := range x.All {
		got[r.name] = r
	}
	if !maps.Equal(got, want) {
		t.Errorf("all records are %v, want %v", got, want)
	}
}
