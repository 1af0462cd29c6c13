package forecast

import (
	"errors"
	"math"
	"math/rand/v2"
	"testing"
	"time"
)

// filledBook has outcomes of forecasts whose truth is twice what was said.
func filledBook(n int) *Book {
	b, rng := NewBook(), rand.New(rand.NewPCG(1, 2))
	for i := range n {
		base := time.Duration(1+rng.IntN(600)) * time.Minute
		raw := Waits{}
		for k := range raw {
			raw[k] = base * time.Duration(k+1) / 5
		}
		truth := CurveOf(&raw)
		wait := 2 * truth.Quantile(rng.Float64())
		told, _ := b.Tell(&raw)
		b.Started(&raw, &told, wait, rng)
		b.Waited(int32(1+i%9), wait, base*2, i%3 > 0) //nolint:gosec // A few.
		runs := Runs{1000, 2000, 4000, 8000, 10000, 20000, 30000, 40000, 50000}
		b.Ran(&runs, time.Hour, time.Duration(rng.Int64N(int64(time.Hour))), i, rng)
		b.Missed(Unresolved(i % 3)) //nolint:gosec // A few.
	}
	return b
}

// Forecasts that are wrong in the same way are told in another after a while, and hold.
func TestBookLearns(t *testing.T) {
	b := filledBook(3000)
	if share := b.Starts().All(); math.Abs(share.Share()-.8) > .04 || share.Forecasts != LedgerSize {
		t.Errorf("%v of %d held", share.Share(), share.Forecasts)
	}
	raw := Waits{1, 2, 3, 4, 5, 6, 7, 8, 9}
	for i := range raw {
		raw[i] *= time.Minute
	}
	if told, c := b.Tell(&raw); c != 0 || told[4] < 7*time.Minute || told[7] < told[4] || told[4] < told[1] {
		t.Errorf("%v is told as %v", raw, told)
	}
	if r := b.Runs().All(); math.Abs(r.Share()-.8) > .05 {
		t.Errorf("%v of the run times held", r.Share())
	}
}

// A book that was saved and read again tells the same, to the precision of single floats, and
// learns on.
func TestBookSurvives(t *testing.T) {
	for _, n := range []int{0, 1, 60, 1500} {
		b := filledBook(n)
		data := b.Encode()
		if len(data) > MaxBook || b.Outcomes() != 0 {
			t.Fatalf("%d bytes", len(data))
		}
		c, err := DecodeBook(data)
		if err != nil {
			t.Fatal(n, err)
		}
		raw := Waits{1, 2, 3, 4, 5, 6, 7, 8, 9}
		for i := range raw {
			raw[i] *= time.Hour
		}
		x, _ := b.Tell(&raw)
		y, _ := c.Tell(&raw)
		for i := range x {
			if d := x[i] - y[i]; d > time.Second || d < -time.Second {
				t.Errorf("%d outcomes: %v, then %v", n, x, y)
			}
		}
		p, ok := b.ByLimits(time.Hour)
		q, ok2 := c.ByLimits(time.Hour)
		if ok != ok2 || p != q || b.Unscored(Held) != c.Unscored(Held) {
			t.Errorf("%d outcomes: %v %v, then %v %v", n, p, ok, q, ok2)
		}
		if r, s := b.Starts().All(), c.Starts().All(); r.Forecasts != s.Forecasts || math.Abs(r.Held-s.Held) > 1e-3 {
			t.Errorf("%d outcomes: %+v, then %+v", n, r, s)
		}
		for _, bad := range [][]byte{nil, {2}, data[:len(data)-1], append(append([]byte(nil), data...), 0)} {
			if _, err := DecodeBook(bad); !errors.Is(err, ErrBook) {
				t.Errorf("%d bytes of %d are read: %v", len(bad), len(data), err)
			}
		}
	}
}

// However a book is damaged, it is read or refused.
func FuzzDecodeBook(f *testing.F) {
	f.Add(filledBook(30).Encode())
	f.Add([]byte{bookVersion})
	f.Fuzz(func(t *testing.T, data []byte) {
		b, err := DecodeBook(data)
		if err != nil {
			return
		}
		raw := Waits{1, 2, 3, 4, 5, 6, 7, 8, 9}
		if told, _ := b.Tell(&raw); told[7] < told[1] {
			t.Errorf("%v", told)
		}
	})
}

// While few outcomes are known there is nothing to fall back to.
func TestNothingToFallBackTo(t *testing.T) {
	b := NewBook()
	for range fewest - 1 {
		b.Waited(4, time.Hour, 2*time.Hour, true)
	}
	if _, ok := b.ByLimits(time.Hour); ok {
		t.Error("by limits")
	}
	if _, ok := b.ByPastWaits(4); ok {
		t.Error("by past waits")
	}
	b.Waited(4, time.Hour, 2*time.Hour, true)
	if w, ok := b.ByLimits(time.Hour); !ok || w.Median() != 30*time.Minute {
		t.Errorf("by limits: %v", w)
	}
	if w, ok := b.ByPastWaits(5); !ok || w.Median() != time.Hour {
		t.Errorf("by past waits: %v", w)
	}
	if _, ok := b.ByPastWaits(64); ok {
		t.Error("of jobs of another width")
	}
}

// A copy of arrivals does not change, and is made anew once much has come.
func TestCopyOfDays(t *testing.T) {
	var d Days
	d.Add(Arrival{At: 1})
	first := d.Copy()
	d.Ran(0, time.Hour)
	if d.Copy() != first || first.list[0].Run != 0 {
		t.Error("it is made anew for one change, or changes")
	}
	for range 2 * fewChanges {
		d.Add(Arrival{At: 2})
	}
	if c := d.Copy(); c == first || c.Len() != 1+2*fewChanges || c.list[0].Run != time.Hour {
		t.Errorf("%d arrivals", c.Len())
	}
}
