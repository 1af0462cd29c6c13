package harvest

import (
	"errors"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
)

// somePlaces are places with a few slots, of owners as in the spec, that begin at once or later.
func somePlaces(rng *rand.Rand, n int) []Place {
	list := make([]Place, n)
	for i := range list {
		for range 1 + rng.IntN(2) {
			m := Machine{Speed: 0.5 + rng.Float64()}
			if rng.IntN(3) > 0 {
				m.Lambda, m.Rho, m.Sigma = 1.0/(30+600*rng.Float64()), 0.8*rng.Float64(), 100*rng.Float64()
			}
			list[i].Slots = append(list[i].Slots, Slots{m, 1 + rng.IntN(3)})
		}
		if rng.IntN(2) == 0 {
			list[i].After = 3000 * rng.Float64()
		}
	}
	return list
}

// A division is that of min-min over all slots one by one, and the distribution that of as many
// machines.
func TestSplitIsMinMinOverSlots(t *testing.T) {
	for seed := range uint64(40) {
		rng := rand.New(rand.NewPCG(seed, 1))
		places, b := somePlaces(rng, 1+rng.IntN(4)), Bag{Tasks: 1 + rng.IntN(60), Each: 100 + 1000*rng.Float64()}
		p := DefaultPolicy()
		got, err := p.SplitFixed(places, b, len(places))
		if err != nil {
			t.Fatal(err)
		}
		var ms []Machine
		var have []float64 // what is before the tasks, as work
		var after []float64
		var of []int
		for i, place := range places {
			for _, g := range place.Slots {
				for range g.N {
					ms, of, after = append(ms, g.Machine), append(of, i), append(after, place.After)
					have = append(have, place.After*g.Rate())
				}
			}
		}
		tasks := make([]float64, b.Tasks)
		for i := range tasks {
			tasks[i] = b.Each
		}
		where, err := MinMin(ms, have, tasks)
		if err != nil {
			t.Fatal(err)
		}
		works, counts := sums(len(ms), tasks, where), make([]int, len(places))
		for _, k := range where {
			counts[of[k]]++
		}
		var wanted, places2 []int
		for i, n := range counts {
			if n > 0 {
				wanted, places2 = append(wanted, n), append(places2, i)
			}
		}
		if !slices.Equal(got.Tasks, wanted) || !slices.Equal(got.Places, places2) {
			t.Errorf("seed %d: %v get %v, min-min gives %v %v", seed, got.Places, got.Tasks, places2, wanted)
			continue
		}
		// The distribution: the product over all slots.
		cdf := func(x float64) float64 {
			f := 1.0
			for k, m := range ms {
				if works[k] > 0 {
					one, err := NewFinish(m, works[k], Method{})
					if err != nil {
						t.Fatal(err)
					}
					f *= one.CDF(x - after[k])
				}
			}
			return f
		}
		for _, q := range []float64{0.1, 0.5, 0.9} {
			at := got.Quantile(q)
			if below, above := cdf(at*(1-1e-6)-1e-6), cdf(at*(1+1e-6)+1e-6); below > q+1e-6 || above < q-1e-6 {
				t.Errorf("seed %d: quantile %v is %v, where the product is %v to %v", seed, q, at, below, above)
			}
		}
	}
}

// A scan is never worse than a fixed number, bisection, or a single slot, and looks at all of them.
func TestSplitScanIsTheBestPrefix(t *testing.T) {
	for seed := range uint64(20) {
		rng := rand.New(rand.NewPCG(seed, 2))
		places, b := somePlaces(rng, 6), Bag{Tasks: 1 + rng.IntN(40), Each: 500}
		p := DefaultPolicy()
		scan, err := p.SplitScan(places, b)
		if err != nil {
			t.Fatal(err)
		}
		least := math.Inf(1)
		for n := range places {
			x, err := p.SplitFixed(places, b, n+1)
			if err != nil {
				t.Fatal(err)
			}
			least = min(least, x.Cost)
			sum := 0
			for _, k := range x.Tasks {
				sum += k
			}
			if sum != b.Tasks {
				t.Errorf("seed %d: %d of %d tasks are divided", seed, sum, b.Tasks)
			}
		}
		bisected, err := p.SplitBisection(places, b)
		if err != nil {
			t.Fatal(err)
		}
		if scan.Cost != least || scan.Evaluated != len(places) || bisected.Cost < scan.Cost {
			t.Errorf("seed %d: the scan costs %v after %d, the best prefix %v, bisection %v", seed, scan.Cost, scan.Evaluated, least, bisected.Cost)
		}
		if one, err := p.SplitOne(places, Bag{Tasks: 1, Each: 500}); err != nil || len(one.Places) != 1 || one.Tasks[0] != 1 {
			t.Errorf("seed %d: one slot: %+v, %v", seed, one, err)
		}
	}
}

// Few tasks stay with those that end them soon, many go everywhere, and a busy owner or a long
// queue keeps them away.
func TestSplitChoosesPlaces(t *testing.T) {
	quick, slow := Place{Slots: []Slots{{Machine{Speed: 1}, 4}}}, Place{Slots: []Slots{{Machine{Speed: 0.25}, 4}}}
	busy := Place{Slots: []Slots{{Machine{Speed: 1, Lambda: 0.01, Rho: 0.95, Sigma: 50}, 4}}}
	queued := Place{Slots: []Slots{{Machine{Speed: 1}, 4}}, After: 5000}
	p := DefaultPolicy()
	for name, c := range map[string]struct {
		tasks int
		want  []int
	}{"few": {4, []int{0}}, "some": {20, []int{0, 1}}, "many": {100, []int{0, 1, 3}}} {
		x, err := p.SplitScan([]Place{quick, slow, busy, queued}, Bag{c.tasks, 1000})
		if err != nil || !slices.Equal(x.Places, c.want) {
			t.Errorf("%s: %v get %v, want %v: %v", name, x.Places, x.Tasks, c.want, err)
		}
	}
	if _, err := p.SplitScan([]Place{busy}, Bag{1, 1}); !errors.Is(err, ErrNobody) {
		t.Errorf("busy owners only: %v", err)
	}
	x, err := p.SplitScan([]Place{quick, slow}, Bag{1 << 40, 1})
	if err != nil || x.Tasks[0]+x.Tasks[1] != 1<<40 {
		t.Errorf("a million million tasks: %v, %v", x.Tasks, err)
	}
}

func TestPlaceOfAnOwnersMachine(t *testing.T) {
	loads := []Load{{Lambda: 1, Rho: 0.1}, {Lambda: 2, Rho: 0.2}, {Lambda: 3, Rho: 0.3}}
	for name, c := range map[string]struct {
		loads             []Load
		processors, width int32
		want              []int
	}{
		"one":        {loads, 1, 1, []int{1}},
		"eight":      {loads, 8, 1, []int{1, 3, 4}},
		"eight by 2": {loads, 8, 2, []int{2, 2}},
		"eight by 8": {loads, 8, 8, []int{1}},
		"too wide":   {loads, 8, 9, nil},
		"no owner":   {nil, 8, 3, []int{2}},
	} {
		p := PlaceOf(c.loads, 1, c.processors, c.width, 0)
		var got []int
		for _, g := range p.Slots {
			got = append(got, g.N)
		}
		if !slices.Equal(got, c.want) {
			t.Errorf("%s: %v, want %v", name, got, c.want)
		}
	}
	if p := PlaceOf(loads, 1, 8, 8, 0); p.Slots[0].Rho != 0.3 {
		t.Errorf("a slot of all is %+v", p.Slots[0])
	}
}

func TestBadSplits(t *testing.T) {
	good := []Place{{Slots: []Slots{{Machine{Speed: 1}, 1}}}}
	p := DefaultPolicy()
	for name, c := range map[string]struct {
		places []Place
		bag    Bag
		want   error
	}{
		"no tasks":       {good, Bag{0, 1}, ErrWork},
		"too many":       {good, Bag{MostTasks + 1, 1}, ErrWork},
		"no work":        {good, Bag{1, 0}, ErrWork},
		"NaN":            {good, Bag{1, math.NaN()}, ErrWork},
		"no places":      {nil, Bag{1, 1}, ErrNobody},
		"no slots":       {[]Place{{}}, Bag{1, 1}, ErrNobody},
		"too many slots": {[]Place{{Slots: []Slots{{Machine{Speed: 1}, MostSlots + 1}}}}, Bag{1, 1}, ErrMachine},
		"no machine":     {[]Place{{Slots: []Slots{{Machine{Speed: -1}, 1}}}}, Bag{1, 1}, ErrMachine},
		"before now":     {[]Place{{Slots: good[0].Slots, After: -1}}, Bag{1, 1}, ErrMachine},
	} {
		if _, err := p.SplitScan(c.places, c.bag); !errors.Is(err, c.want) {
			t.Errorf("%s: %v, want %v", name, err, c.want)
		}
	}
	if _, err := p.SplitFixed(good, Bag{1, 1}, 0); !errors.Is(err, ErrMachine) {
		t.Errorf("none of the places: %v", err)
	}
}

// BenchmarkSplit is what a stage ahead of placement takes.
func BenchmarkSplit(b *testing.B) {
	rng := rand.New(rand.NewPCG(1, 2))
	places, bag := somePlaces(rng, 20), Bag{Tasks: 10_000, Each: 500}
	p := DefaultPolicy()
	for name, f := range map[string]func([]Place, Bag) (Split, error){"bisection": p.SplitBisection, "scan": p.SplitScan} {
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				if _, err := f(places, bag); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
