package forecast

import (
	"errors"
	"math"
	"math/rand/v2"
	"strings"
	"testing"
	"time"
)

// What is no list of quantiles is refused, and it is said which number is wrong.
func TestParseWaits(t *testing.T) {
	good := []int64{0, 0, 1, 2, 3, 4, 5, 6, 7}
	if w, err := ParseWaits(good); err != nil || w[8] != 7 {
		t.Errorf("%v, %v", w, err)
	}
	change := func(i int, x int64) []int64 {
		list := append([]int64(nil), good...)
		list[i] = x
		return list
	}
	for name, c := range map[string]struct {
		sent []int64
		says string
	}{
		"none": {nil, "0 numbers"}, "ten": {make([]int64, 10), "10 numbers"}, "the past": {change(0, -1), "number 1 is -1, in the past"},
		"never": {change(8, math.MaxInt64), "number 9"}, "falls": {change(4, 1), "number 5 is 1, less"},
	} {
		if w, err := ParseWaits(c.sent); !errors.Is(err, ErrWaits) || !strings.Contains(err.Error(), c.says) || w != (Waits{}) {
			t.Errorf("%s: %v, %v", name, w, err)
		}
	}
}

// The least of several waits is what drawing them again and again comes to.
func TestLeastWaitsAgainstDraws(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 1))
	all := make([]Waits, 3)
	for i := range all {
		at := time.Duration(0)
		for k := range all[i] {
			at += time.Duration(rng.Int64N(int64(20 * time.Minute)))
			all[i][k] = at
		}
	}
	least := LeastWaits(all)
	var d Dist
	for range 40_000 {
		x := time.Duration(math.MaxInt64)
		for i := range all {
			c := CurveOf(&all[i])
			x = min(x, c.Quantile(rng.Float64()))
		}
		d.Add(x, 1)
	}
	for i, p := range Levels {
		if below, _ := d.PIT(least[i]); math.Abs(below-p) > .01 {
			t.Errorf("level %v: %v, below which %v of the draws lie", p, least[i], below)
		}
	}
	if LeastWaits(nil) != (Waits{}) || LeastWaits(all[:1]) != all[0] {
		t.Error("of none and of one")
	}
}
