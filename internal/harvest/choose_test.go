package harvest

import (
	"errors"
	"math"
	"slices"
	"testing"
)

// Over 50 seeds of ten machines the prefixes cost little more than the best of all sets, and few
// are looked at; each machine of several has work worth four jobs of an owner.
func TestSpecCheck08HeuristicsAgainstExhaustive(t *testing.T) {
	policy := DefaultPolicy()
	const seeds, q = 50, 10
	var means, worst [2]float64
	for seed := range uint64(seeds) {
		rng := seeded(100 + seed)
		ms, j := made(rng, q), Divisible(q*(100+900*rng.Float64()))
		best, err := policy.Exhaustive(ms, j)
		if err != nil {
			t.Fatal(err)
		}
		for i, choose := range []func([]Machine, Job) (Choice, error){policy.Bisection, policy.PrefixScan} {
			c, err := choose(ms, j)
			if err != nil {
				t.Fatal(err)
			}
			ratio := c.Cost / best.Cost
			if ratio < 1-1e-9 {
				t.Errorf("seed %d: a prefix costs %v, the best of all %v", seed, c.Cost, best.Cost)
			}
			means[i] += ratio / seeds
			worst[i] = max(worst[i], ratio)
			if i == 0 && float64(c.Evaluated) > 2*math.Log2(q)+2 {
				t.Errorf("seed %d: bisection looks at %d sets", seed, c.Evaluated)
			}
			demand := 0.0
			candidates := usable(ms, policy.Busiest)
			for _, k := range candidates {
				demand += ms[k].Speed * ms[k].service() / float64(len(candidates))
			}
			if p := float64(len(c.Machines)); p > 1 && float64(j)/(p*demand) < 4 {
				t.Errorf("seed %d: %v machines have work worth %v jobs each", seed, p, float64(j)/(p*demand))
			}
		}
	}
	t.Logf("bisection %.3f, worst %.3f; prefix scan %.3f, worst %.3f", means[0], worst[0], means[1], worst[1])
	if means[0] > 1.15 || means[1] > 1.08 {
		t.Errorf("bisection costs %.3f times the best, a prefix scan %.3f", means[0], means[1])
	}
}

// The first look leaves out no set that would have been best.
func TestExhaustiveAgainstAllSets(t *testing.T) {
	rng := seeded(12)
	for _, risk := range []float64{0, 1} {
		policy := DefaultPolicy()
		policy.Risk = risk
		for range 10 {
			ms := made(rng, 6)
			for _, j := range []Job{Divisible(3000), Tasks{500, 400, 300, 200, 900, 100, 50, 20}} {
				best, bySize := math.Inf(1), make(map[int]float64)
				for mask := 1; mask < 1<<len(ms); mask++ {
					var set []int
					for i := range ms {
						if mask>>i&1 == 1 {
							set = append(set, i)
						}
					}
					c, err := policy.Evaluate(ms, j, set...)
					if err != nil {
						t.Fatal(err)
					}
					if old, ok := bySize[len(set)]; !ok || c.Cost < old {
						bySize[len(set)] = c.Cost
					}
					best = min(best, c.Cost)
				}
				got, err := policy.Exhaustive(ms, j)
				if err != nil || math.Abs(got.Cost/best-1) > 1e-12 {
					t.Errorf("risk %v: best of all sets %v (%v), want %v", risk, got.Cost, err, best)
				}
				for size, want := range bySize {
					got, err := policy.Fixed(ms, j, size)
					if err != nil || math.Abs(got.Cost/want-1) > 1e-12 || len(got.Machines) != size {
						t.Errorf("risk %v: best of %d machines %v (%v), want %v", risk, size, got, err, want)
					}
				}
			}
		}
	}
}

// Nor does that by a table, for many machines.
func TestExhaustiveByTable(t *testing.T) {
	rng := seeded(16)
	policy := DefaultPolicy()
	for range 3 {
		ms, j := made(rng, 13), Divisible(13*(100+900*rng.Float64()))
		got, err := policy.Exhaustive(ms, j)
		if err != nil {
			t.Fatal(err)
		}
		best, most := math.Inf(1), 0.0
		table := newTable(ms, usable(ms, 1), float64(j), &policy)
		for mask := 1; mask < 1<<len(ms); mask++ {
			var set []int
			for i := range ms {
				if mask>>i&1 == 1 {
					set = append(set, i)
				}
			}
			c, err := policy.Evaluate(ms, j, set...)
			if err != nil {
				t.Fatal(err)
			}
			best = min(best, c.Cost)
			if c.Cost < 1.2*got.Cost {
				most = max(most, math.Abs(table.cost(set)/c.Cost-1))
			}
		}
		t.Logf("the table is up to %.4f off for good sets", most)
		if math.Abs(got.Cost/best-1) > 1e-12 || got.Evaluated != 1<<len(ms)-1 {
			t.Errorf("best of all sets %v of %d, want %v", got.Cost, got.Evaluated, best)
		}
		if most > roughError/2 {
			t.Errorf("the table is %.3f off", most)
		}
	}
}

// One machine: that of the least cost; of several the one with the least share.
func TestSingle(t *testing.T) {
	policy := DefaultPolicy()
	always := Machine{Lambda: 1, Rho: 1, Speed: 100}
	for name, c := range map[string]struct {
		ms   []Machine
		want int
	}{
		"the faster":         {[]Machine{{Speed: 1}, {Speed: 2}}, 1},
		"the quieter":        {[]Machine{machineOf(10, 0.5, 1), machineOf(10, 0.1, 1)}, 1},
		"the steadier":       {[]Machine{machineOf(10, 0.5, 3), machineOf(10, 0.5, 1)}, 1},
		"a tie":              {[]Machine{{Lambda: 1, Rho: 0, Speed: 1}, {Speed: 1}}, 0},
		"one always taken":   {[]Machine{always, {Speed: 1}}, 1},
		"busy but only that": {[]Machine{machineOf(10, 0.99, 1)}, 0},
	} {
		got, err := policy.Single(c.ms, 1000)
		if err != nil || !slices.Equal(got.Machines, []int{c.want}) || !slices.Equal(got.Works, []float64{1000}) {
			t.Errorf("%s: %+v, %v", name, got, err)
		}
	}
}

// Machines that are too busy are left out of prefixes; where nobody has time, or sets are too
// many, or the question is none, that is said.
func TestChoicesAtTheEdges(t *testing.T) {
	policy := DefaultPolicy()
	always, busy, never := Machine{Lambda: 1, Rho: 1, Speed: 9}, Machine{Lambda: 1, Rho: 0.95, Speed: 90}, Machine{Speed: 1}
	for name, choose := range map[string]func([]Machine, Job) (Choice, error){
		"bisection": policy.Bisection, "scan": policy.PrefixScan, "exhaustive": policy.Exhaustive,
		"single": func(ms []Machine, j Job) (Choice, error) { return policy.Single(ms, j.total()) },
		"fixed":  func(ms []Machine, j Job) (Choice, error) { return policy.Fixed(ms, j, 1) },
	} {
		for what, c := range map[string]struct {
			ms   []Machine
			j    Job
			want error
		}{
			"no machines":     {nil, Divisible(10), ErrNobody},
			"all taken":       {[]Machine{always, always}, Divisible(10), ErrNobody},
			"no such machine": {[]Machine{{}}, Divisible(10), ErrMachine},
			"work below 0":    {[]Machine{never}, Divisible(-1), ErrWork},
			"work not known":  {[]Machine{never}, Tasks{1, math.NaN()}, ErrWork},
		} {
			if got, err := choose(c.ms, c.j); !errors.Is(err, c.want) {
				t.Errorf("%s, %s: %+v, %v", name, what, got, err)
			}
		}
		c, err := choose([]Machine{always, never}, Divisible(0))
		if err != nil || c.Cost != 0 {
			t.Errorf("%s, no work: %+v, %v", name, c, err)
		}
		c, err = choose([]Machine{never}, Divisible(50))
		if err != nil || c.Mean != 50 || c.SD != 0 || !slices.Equal(c.Machines, []int{0}) {
			t.Errorf("%s, a quiet machine: %+v, %v", name, c, err)
		}
		if name != "bisection" && name != "scan" {
			continue
		}
		if c, err = choose([]Machine{busy, never}, Divisible(50)); err != nil || !slices.Equal(c.Machines, []int{1}) {
			t.Errorf("%s, a busy machine: %+v, %v", name, c, err)
		}
	}
	many := slices.Repeat([]Machine{never}, MostSets+1)
	if _, err := policy.Exhaustive(many, Divisible(1)); !errors.Is(err, ErrTooMany) {
		t.Errorf("21 machines: %v", err)
	}
	if _, err := policy.Exhaustive(append(many[:2:2], slices.Repeat([]Machine{always}, 30)...), Divisible(1)); err != nil {
		t.Errorf("2 machines beside 30 that have no time: %v", err)
	}
	if _, err := policy.Fixed(many[:3], Divisible(1), 4); !errors.Is(err, ErrNobody) {
		t.Errorf("4 of 3 machines: %v", err)
	}
	if _, err := policy.Fixed(many[:3], Divisible(1), 0); !errors.Is(err, ErrMachine) {
		t.Errorf("0 of 3 machines: %v", err)
	}
	for _, set := range [][]int{{3}, {-1}, {1, 1}} {
		if _, err := policy.Evaluate(many[:3], Divisible(1), set...); !errors.Is(err, ErrMachine) {
			t.Errorf("set %v: %v", set, err)
		}
	}
	if _, err := policy.Evaluate(many[:3], Divisible(1)); !errors.Is(err, ErrNobody) {
		t.Errorf("the empty set: %v", err)
	}
}

// Subtasks are divided by min-min: all are given away.
func TestChoiceOfSubtasks(t *testing.T) {
	policy := DefaultPolicy()
	ms := made(seeded(13), 8)
	tasks := Tasks{}
	for i := range 40 {
		tasks = append(tasks, float64(100+10*i))
	}
	c, err := policy.PrefixScan(ms, tasks)
	if err != nil {
		t.Fatal(err)
	}
	if sum := Tasks(c.Works).total(); math.Abs(sum-tasks.total()) > 1e-6 || len(c.Works) != len(c.Machines) {
		t.Errorf("%v of %v is given away: %+v", sum, tasks.total(), c)
	}
}
