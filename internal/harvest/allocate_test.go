package harvest

import (
	"errors"
	"math"
	"slices"
	"testing"
)

// (6): all of the work is given away, and all machines end together in the mean.
func TestSpecCheck06MeanTimeAllocation(t *testing.T) {
	rng := seeded(10)
	for range 100 {
		ms := made(rng, 1+rng.IntN(50))
		works, err := MeanTime(ms, 12_345)
		if err != nil {
			t.Fatal(err)
		}
		sum := 0.0
		for i, w := range works {
			sum += w
			if a, b := w/ms[i].Rate(), works[0]/ms[0].Rate(); math.Abs(a/b-1) > 1e-9 {
				t.Errorf("machine %d ends at %v, the first at %v", i, a, b)
			}
		}
		if math.Abs(sum/12_345-1) > 1e-9 {
			t.Errorf("%v of 12345 is given away", sum)
		}
	}
}

// saving is what mean-time allocation saves over another one, if owners took their shares evenly.
func saving(t *testing.T, ms []Machine, other func([]Machine, float64) ([]float64, error)) float64 {
	last := func(works []float64, err error) float64 {
		if err != nil {
			t.Fatal(err)
		}
		end := 0.0
		for i, w := range works {
			end = max(end, w/ms[i].Rate())
		}
		return end
	}
	return 100 * (1 - last(MeanTime(ms, 1))/last(other(ms, 1)))
}

// Two machines, shares of 0.5 and 0.2, speeds of 1.33 and 1, either way round: the values of
// statement S6.
func TestSpecCheck07FluidSavings(t *testing.T) {
	for name, c := range map[string]struct {
		fast, slow          float64 // shares
		overEqual, overPace float64
	}{
		"the fast one is busy": {0.5, 0.2, 9.2, 20.5},
		"the fast one is idle": {0.2, 0.5, 36, 25.5},
	} {
		ms := []Machine{{Lambda: 0.01, Rho: c.fast, Speed: 1.33}, {Lambda: 0.01, Rho: c.slow, Speed: 1}}
		if got := saving(t, ms, Equal); math.Abs(got-c.overEqual) > 0.1 {
			t.Errorf("%s: saves %.2f %% over equal, want %v", name, got, c.overEqual)
		}
		if got := saving(t, ms, SpeedEqual); math.Abs(got-c.overPace) > 0.1 {
			t.Errorf("%s: saves %.2f %% over equal by speed, want %v", name, got, c.overPace)
		}
	}
}

// Owners that are always there get no work, and none at all is refused.
func TestAllocationAtTheEdges(t *testing.T) {
	always, never := Machine{Lambda: 1, Rho: 1, Speed: 4}, Machine{Speed: 1}
	if works, err := MeanTime([]Machine{always, never}, 10); err != nil || !slices.Equal(works, []float64{0, 10}) {
		t.Errorf("%v, %v", works, err)
	}
	if works, err := SpeedEqual([]Machine{always, never}, 10); err != nil || !slices.Equal(works, []float64{8, 2}) {
		t.Errorf("%v, %v", works, err)
	}
	for name, divide := range map[string]func() error{
		"all busy":         func() error { _, err := MeanTime([]Machine{always}, 10); return err },
		"none":             func() error { _, err := MeanTime(nil, 10); return err },
		"all busy, tasks":  func() error { _, err := MinMin([]Machine{always}, nil, []float64{1}); return err },
		"no machine, none": func() error { _, err := MaxMin(nil, nil, nil); return err },
	} {
		if err := divide(); !errors.Is(err, ErrNobody) {
			t.Errorf("%s: %v", name, err)
		}
	}
	for _, w := range []float64{-1, math.NaN(), math.Inf(1)} {
		if _, err := Equal([]Machine{never}, w); !errors.Is(err, ErrWork) {
			t.Errorf("work %v: %v", w, err)
		}
		if _, err := MinMin([]Machine{never}, nil, []float64{1, w}); !errors.Is(err, ErrWork) {
			t.Errorf("subtask %v: %v", w, err)
		}
		if _, err := MinMin([]Machine{never}, []float64{w}, []float64{1}); !errors.Is(err, ErrWork) {
			t.Errorf("a machine that has %v: %v", w, err)
		}
	}
	if _, err := MinMin([]Machine{never}, []float64{1, 1}, nil); !errors.Is(err, ErrWork) {
		t.Errorf("works of two machines for one: %v", err)
	}
	if _, err := Equal([]Machine{{}}, 1); !errors.Is(err, ErrMachine) {
		t.Errorf("no machine: %v", err)
	}
}

// slowMinMin is min-min by its definition: all pairs, each time.
func slowMinMin(ms []Machine, have, tasks []float64, largest bool) []int {
	got, where := slices.Clone(have), make([]int, len(tasks))
	for i := range where {
		where[i] = -1
	}
	for range tasks {
		task, machine, at := -1, -1, 0.0
		for i, w := range tasks {
			if where[i] >= 0 {
				continue
			}
			best, end := -1, math.Inf(1)
			for k, m := range ms {
				if m.Rate() > 0 && (got[k]+w)/m.Rate() < end {
					best, end = k, (got[k]+w)/m.Rate()
				}
			}
			if task < 0 || !largest && end < at || largest && end > at {
				task, machine, at = i, best, end
			}
		}
		where[task] = machine
		got[machine] += tasks[task]
	}
	return where
}

// Sorting finds what trying all pairs does.
func TestMinMinAgainstAllPairs(t *testing.T) {
	rng := seeded(11)
	for range 60 {
		ms := made(rng, 1+rng.IntN(6))
		ms[0].Rho *= 2 // now and then it has no time
		if ms[0].Rate() == 0 {
			ms = append(ms, Machine{Speed: 1})
		}
		tasks := make([]float64, rng.IntN(30))
		for i := range tasks {
			tasks[i] = math.Floor(100 * rng.Float64()) // some are alike, and some are none
		}
		for _, largest := range []bool{false, true} {
			do := MinMin
			if largest {
				do = MaxMin
			}
			have := make([]float64, len(ms))
			for k := range have {
				have[k] = 100 * rng.Float64()
			}
			got, err := do(ms, have, tasks)
			if want := slowMinMin(ms, have, tasks, largest); err != nil || !slices.Equal(got, want) {
				t.Errorf("largest first %t: %v (%v), want %v", largest, got, err, want)
			}
		}
	}
}
