package forecast

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"
)

func newRand(seed uint64) *rand.Rand { return rand.New(rand.NewPCG(seed, 1)) }

// slowDist is a distribution as its definition has it.
type slowDist []struct {
	at     time.Duration
	weight float64
}

func (d slowDist) share(counts func(time.Duration) bool) float64 {
	sum, all := 0.0, 0.0
	for _, p := range d {
		all += p.weight
		if counts(p.at) {
			sum += p.weight
		}
	}
	return sum / all
}

func (d slowDist) quantile(p float64) time.Duration {
	best := time.Duration(math.MaxInt64)
	for _, x := range d {
		if x.at < best && d.share(func(y time.Duration) bool { return y <= x.at }) >= p-1e-12 {
			best = x.at
		}
	}
	return best
}

// drawn returns a distribution with ties, and the same by definition.
func drawn(rng *rand.Rand) (*Dist, slowDist) {
	d, s := &Dist{}, slowDist(nil)
	d.Reset()
	for range 1 + rng.IntN(30) {
		at, w := time.Duration(rng.IntN(20))*time.Second, 1+rng.Float64()
		d.Add(at, w)
		s = append(s, struct {
			at     time.Duration
			weight float64
		}{at, w})
	}
	return d, s
}

func TestDistAgainstDefinition(t *testing.T) {
	for seed := range uint64(300) {
		rng := newRand(seed)
		d, s := drawn(rng)
		for _, p := range append([]float64{0, 1, rng.Float64()}, Levels[:]...) {
			if got, want := d.Quantile(p), s.quantile(p); got != want {
				t.Fatalf("seed %d: quantile %v is %v, want %v", seed, p, got, want)
			}
		}
		for y := -time.Second; y < 21*time.Second; y += 500 * time.Millisecond {
			below, upto := d.PIT(y)
			wantBelow := s.share(func(x time.Duration) bool { return x < y })
			wantUpto := s.share(func(x time.Duration) bool { return x <= y })
			if math.Abs(below-wantBelow) > 1e-9 || math.Abs(upto-wantUpto) > 1e-9 {
				t.Fatalf("seed %d: PIT of %v is %v to %v, want %v to %v", seed, y, below, upto, wantBelow, wantUpto)
			}
		}
	}
}

// The residual is the quantile of what is longer; where nothing is, all that is left is as likely.
func TestResidualAgainstDefinition(t *testing.T) {
	for seed := range uint64(300) {
		rng := newRand(seed)
		d, s := drawn(rng)
		const limit = 19 * time.Second
		for elapsed := time.Duration(0); elapsed < 25*time.Second; elapsed += 700 * time.Millisecond {
			p := rng.Float64()
			got := d.Residual(elapsed, limit, p)
			rest := slices.DeleteFunc(slices.Clone(s), func(x struct {
				at     time.Duration
				weight float64
			}) bool {
				return elapsed > 0 && x.at <= elapsed
			})
			want := min(elapsed+time.Duration(p*float64(max(limit-elapsed, 0))), limit)
			if len(rest) > 0 {
				want = min(rest.quantile(p), limit)
			}
			if got != want {
				t.Fatalf("seed %d: after %v at %v: %v, want %v", seed, elapsed, p, got, want)
			}
			if got > limit || elapsed > 0 && elapsed < limit && got < elapsed {
				t.Fatalf("seed %d: after %v: %v", seed, elapsed, got)
			}
		}
	}
}

// Without samples there is nothing to say, and nothing breaks.
func TestEmptyDist(t *testing.T) {
	var d Dist
	below, upto := d.PIT(time.Second)
	if d.Quantile(.5) != 0 || below != 0 || upto != 1 || d.Residual(time.Second, time.Minute, 1) != time.Minute {
		t.Errorf("%v, %v to %v, %v", d.Quantile(.5), below, upto, d.Residual(time.Second, time.Minute, 1))
	}
	d.Add(time.Second, 0)
	d.Add(time.Second, math.NaN())
	d.Add(time.Second, -1)
	if d.Len() != 0 {
		t.Error("a sample without a weight was kept")
	}
	var o Dist
	d.Add(3*time.Second, 2)
	d.CopyTo(&o)
	d.Reset()
	if o.Quantile(0.3) != 3*time.Second || d.Len() != 0 {
		t.Error("a copy is not a copy")
	}
}
