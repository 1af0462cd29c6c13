package hashed_test

import (
	"math/rand/v2"
	"slices"
	"testing"

	"kith/internal/hashed"
)

// thing has a name of few values, so that names come and go in long runs.
type thing struct {
	name   name
	number int
}

type name int

func (n name) HashParts() (text string, a, b uint64) { return "", uint64(n), 0 }

func nameOf(t *thing) name { return t.name }

// A table does what a map does, whatever is added and deleted in which order.
func TestTableIsAMap(t *testing.T) {
	rng := rand.New(rand.NewPCG(0, 0))
	for _, names := range []int{1, 7, 20, 500, 5000} {
		x, want := hashed.New[name, *thing](), make(map[name]*thing)
		for step := range 50_000 {
			name := name(rng.IntN(names))
			switch rng.IntN(5) {
			case 0, 1:
				v := &thing{name, step}
				x.Put(v, nameOf)
				want[name] = v
			case 2:
				x.Delete(name, nameOf)
				delete(want, name)
			default:
				if got, ok := x.Get(name, nameOf); got != want[name] || ok != (got != nil) {
					t.Fatalf("step %d of %d names: Get(%d) = %v, %v, want %v", step, names, name, got, ok, want[name])
				}
			}
			if x.Len() != len(want) {
				t.Fatalf("step %d of %d names: %d things, want %d", step, names, x.Len(), len(want))
			}
		}
		clone := hashed.New[name, *thing]()
		clone.CopyFrom(&x)
		for _, v := range slices.Collect(x.All) {
			x.Delete(v.name, nameOf)
		}
		if x.Len() != 0 || len(slices.Collect(x.All)) != 0 {
			t.Errorf("%d names: %d things are left of none", names, x.Len())
		}
		seen := 0
		for v := range clone.All {
			seen++
			if want[v.name] != v {
				t.Errorf("%d names: %v is not what was added last", names, v)
			}
		}
		if seen != len(want) || clone.Len() != len(want) {
			t.Errorf("%d names: the clone has %d things, want %d", names, seen, len(want))
		}
	}
}
