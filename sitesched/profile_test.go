package sitesched

import (
	"math/rand/v2"
	"testing"
	"time"

	"kith/internal/job"
)

// flat is a surface as an array, one number for each second.
type flat []int32

func (f flat) change(from, to int, delta int32) {
	for i := max(from, 0); i < min(to, len(f)); i++ {
		f[i] += delta
	}
}

func (f flat) fits(at int, procs int32, length int) bool {
	for i := at; i < min(at+length, len(f)); i++ {
		if f[i] < procs {
			return false
		}
	}
	return true
}

// earliest treats the seconds from reach on as free.
func (f flat) earliest(from int, procs int32, length, reach int) int {
	for at := from; at < reach; at++ {
		if f.fits(at, procs, min(length, reach-at)) {
			return at
		}
	}
	return reach
}

// TestProfile makes random surfaces of many hundred breakpoints, with copies
// placed, moved and taken back, and compares every answer with the array.
func TestProfile(t *testing.T) {
	const rounds = 1500
	for seed := range scaled(40) {
		rng := rand.New(rand.NewPCG(seed, 6))
		const end = 4000
		total := 1 + rng.Int32N(40)
		now, want := 0, make(flat, end+400)
		want.change(0, len(want), total)
		var f profile
		f.build(0, int64(total), &runSet{})
		type rect struct {
			at, length int
			procs      int32
		}
		var placed []rect
		for round := range rounds {
			procs, length := 1+rng.Int32N(total), 1+rng.IntN(1+rng.IntN(120))
			if rng.IntN(2) == 0 {
				procs = 1 + rng.Int32N((total+3)/4)
			}
			switch k := rng.IntN(10); {
			case k == 0 && len(placed) > 0: // ends or is withdrawn
				i := rng.IntN(len(placed))
				r := placed[i]
				from := max(r.at, now)
				f.change(at(from), at(r.at+r.length), r.procs)
				want.change(from, r.at+r.length, r.procs)
				placed[i] = placed[len(placed)-1]
				placed = placed[:len(placed)-1]
			case k == 1 && len(placed) > 0: // is looked for an earlier slot
				r := &placed[rng.IntN(len(placed))]
				if r.at <= now {
					continue
				}
				got, slot := f.earliest(at(now), r.procs, secs(r.length), at(r.at)), want.earliest(now, r.procs, r.length, r.at)
				if got != at(slot) {
					t.Fatalf("seed %d round %d: %+v can move to %d, want %d", seed, round, *r, got/second, slot)
				}
				f.change(at(r.at), at(r.at+r.length), r.procs)
				want.change(r.at, r.at+r.length, r.procs)
				r.at = slot
				f.place(at(r.at), r.procs, secs(r.length))
				want.change(r.at, r.at+r.length, -r.procs)
			case k == 2:
				now += rng.IntN(3)
				f.trim(at(now))
			default:
				from := now
				if k == 3 {
					from += rng.IntN(500)
				}
				slot := want.earliest(from, procs, length, len(want))
				if got := f.earliest(at(from), procs, secs(length), job.Never); got != at(slot) {
					t.Fatalf("seed %d round %d: %d × %d s from %d fits at %d, want %d", seed, round, procs, length, from, got/second, slot)
				}
				if slot+length < end {
					f.place(at(slot), procs, secs(length))
					want.change(slot, slot+length, -procs)
					placed = append(placed, rect{slot, length, procs})
				}
			}
			probe := now + rng.IntN(end-now)
			if got := f.fits(at(probe), procs, secs(length)); got != want.fits(probe, procs, length) {
				t.Fatalf("seed %d round %d: fits(%d, %d, %d) = %v", seed, round, probe, procs, length, got)
			}
			if round%50 == 0 {
				compareProfile(t, &f, want, now)
			}
		}
	}
}

func at(n int) job.Time { return job.Time(n) * second }

// compareProfile checks every second, the bounds of every span, that there is
// no needless breakpoint, and the window at now.
func compareProfile(t *testing.T, f *profile, want flat, now int) {
	t.Helper()
	for i := now; i < len(want); i++ {
		if got, _ := f.value(at(i)); got != want[i] {
			t.Fatalf("%d processors free at %d, want %d", got, i, want[i])
		}
	}
	last, first := int32(0), true
	for at, free := range f.each {
		if !first && free == last {
			t.Fatalf("nothing changes at breakpoint %d", at)
		}
		last, first = free, false
	}
	for k, s := range f.spans {
		f.measure(k)
		if f.spans[k] != s || s.from != f.chunks[s.chunk].at[0] {
			t.Fatalf("span %d is %+v, should be %+v", k, s, f.spans[k])
		}
	}
	var w window
	f.window(at(now), &w)
	for length := 1; length < 200; length += 7 {
		for procs := int32(1); procs < 40; procs += 3 {
			if got := w.admits(procs, at(now+length)); got != want.fits(now, procs, length) {
				t.Fatalf("window admits %d × %d s: %v", procs, length, got)
			}
		}
	}
}

// TestWindowTake checks the staircase against the surface it stands for.
func TestWindowTake(t *testing.T) {
	for seed := range uint64(2000) {
		rng := rand.New(rand.NewPCG(seed, 7))
		want := make(flat, 100)
		want.change(0, 100, 20)
		var f profile
		f.build(0, 20, &runSet{})
		for range 8 {
			from, length, procs := rng.IntN(60), 1+rng.IntN(40), 1+rng.Int32N(2)
			f.place(at(from), procs, secs(length))
			want.change(from, from+length, -procs)
		}
		var w window
		f.window(0, &w)
		for range 12 {
			procs, length := 1+rng.Int32N(8), 1+rng.IntN(99)
			got := w.admits(procs, at(length))
			if got != want.fits(0, procs, length) {
				t.Fatalf("seed %d: %d × %d s admitted: %v; window %v", seed, procs, length, got, w)
			}
			if got {
				w.take(procs, at(length))
				want.change(0, length, -procs)
			}
		}
	}
}

// TestHintsAreWorthIt makes sure that the test above has hints to go by.
func TestHintsAreWorthIt(t *testing.T) {
	var f profile
	f.build(0, 64, &runSet{})
	rng := rand.New(rand.NewPCG(1, 8))
	for range 3000 {
		procs, length := 1+rng.Int32N(64), time.Duration(1+rng.IntN(100))*time.Minute
		f.place(f.earliest(0, procs, length, job.Never), procs, length)
	}
	if len(f.spans) < 4*hintSpans || len(f.hints.list) < 5 {
		t.Fatalf("%d spans, %d hints", len(f.spans), len(f.hints.list))
	}
	before := f.visited
	for range 100 {
		f.earliest(0, 40, 50*time.Minute, job.Never)
	}
	if n := f.visited - before; n > 100*int64(len(f.spans))/4 {
		t.Errorf("100 searches looked at %d of %d spans each", n/100, len(f.spans))
	}
}

// each calls yield with every breakpoint and the free processors from there on.
func (f *profile) each(yield func(job.Time, int32) bool) {
	for _, s := range f.spans {
		c := &f.chunks[s.chunk]
		for j := range c.n {
			if !yield(c.at[j], c.free[j]+s.shift) {
				return
			}
		}
	}
}
