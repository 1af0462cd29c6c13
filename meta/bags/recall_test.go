package bags

import (
	"math/rand/v2"
	"testing"
	"time"
)

func TestRecalls(t *testing.T) {
	idle := Ask{Site: "beta", Shape: hour, Places: 4, Want: 100}
	for name, c := range map[string]struct {
		ask      func(*Ask)
		holdings []Holding
		from, n  int
	}{
		"nobody has any":          {from: -1},
		"half of it":              {holdings: []Holding{{"gamma", "", 4, 6, time.Minute}}, n: 3},
		"by places":               {holdings: []Holding{{"gamma", "", 12, 12, time.Minute}}, n: 3},
		"the last one":            {holdings: []Holding{{"gamma", "", 64, 1, time.Hour}}, n: 1},
		"one place each":          {holdings: []Holding{{"gamma", "", 64, 60, time.Hour}, {"delta", "", 1, 10, time.Hour}}, from: 1, n: 4},
		"what lasts longest":      {holdings: []Holding{{"gamma", "", 4, 50, time.Second}, {"delta", "", 4, 6, time.Minute}}, from: 1, n: 3},
		"no pilot there":          {holdings: []Holding{{"gamma", "", 4, 50, time.Hour}, {"delta", "", 0, 3, time.Second}}, from: 1, n: 3},
		"about to begin":          {holdings: []Holding{{"gamma", "", 10, 100, 100 * time.Millisecond}}, from: -1},
		"its own":                 {holdings: []Holding{{"beta", "", 4, 50, time.Hour}}, from: -1},
		"of another node":         {holdings: []Holding{{"beta", "n1", 4, 50, time.Hour}}, n: 4},
		"what it wants":           {ask: func(a *Ask) { a.Want = 2 }, holdings: []Holding{{"gamma", "", 4, 6, time.Minute}}, n: 2},
		"it wants none":           {ask: func(a *Ask) { a.Want = 0 }, holdings: []Holding{{"gamma", "", 4, 6, time.Minute}}, from: -1},
		"no places":               {ask: func(a *Ask) { a.Places = 0 }, holdings: []Holding{{"gamma", "", 4, 6, time.Minute}}, from: -1},
		"more than a bundle":      {ask: func(a *Ask) { a.Places, a.Want = 1000, 1000 }, holdings: []Holding{{"gamma", "", 1, 1000, time.Hour}}, n: 256},
		"how long is not known":   {holdings: []Holding{{"gamma", "", 4, 6, 0}}, n: 3},
		"all of it is recalled":   {holdings: []Holding{{"gamma", "", 4, 0, time.Hour}, {"delta", "", 4, -3, time.Hour}}, from: -1},
		"numbers without a bound": {holdings: []Holding{{"gamma", "", 1 << 62, 1 << 62, 1 << 62}}, n: 4},
	} {
		t.Run(name, func(t *testing.T) {
			ask := idle
			if c.ask != nil {
				c.ask(&ask)
			}
			if from, n := Recall(ask, c.holdings); from != c.from || n != c.n {
				t.Errorf("%d tasks of %d, want %d of %d", n, from, c.n, c.from)
			}
		})
	}
}

// A recall takes no more than is there and wanted, and, but for one task, does not leave
// the asker with a longer stock than the one that gives: so tasks do not go to and fro.
func TestRecallsDoNotGoToAndFro(t *testing.T) {
	rng := rand.New(rand.NewPCG(6, 6))
	recalls := 0
	for range 20_000 {
		ask := Ask{Site: "beta", Places: 1 + rng.IntN(50), Want: 1 + rng.IntN(300)}
		h := Holding{"gamma", "", 1 + rng.IntN(50), rng.IntN(300), time.Duration(1 + rng.Int64N(int64(time.Minute)))}
		_, n := Recall(ask, []Holding{h})
		if n < 0 || n > h.Unstarted || n > ask.Want {
			t.Fatalf("%d tasks of %+v for %+v", n, h, ask)
		}
		if n > 0 {
			recalls++
			if (n-1)*h.Places > (h.Unstarted-n+1)*ask.Places {
				t.Fatalf("%d tasks of %+v for %+v: more than an equal share", n, h, ask)
			}
		}
	}
	if recalls < 5000 {
		t.Errorf("%d recalls", recalls)
	}
}

// The asks that got nothing have one recall each, the oldest first, when it is worth it.
func TestUnservedNodesHaveOneRecallEach(t *testing.T) {
	wide := hour
	wide.Processors = 2
	beta, delta := Ask{Site: "beta", Shape: hour, Places: 4, Want: 9}, Ask{Site: "delta", Shape: hour, Places: 1, Want: 9}
	short, long := []Holding{{"gamma", "", 4, 40, time.Millisecond}}, []Holding{{"gamma", "", 4, 40, time.Minute}}
	var h Unserved
	recall := func(what string, shape Shape, holdings []Holding, from, n int) {
		t.Helper()
		if gotFrom, got := h.Recall(shape, holdings); gotFrom != from || got != n {
			t.Errorf("%s: %d tasks of %d, want %d of %d", what, got, gotFrom, n, from)
		}
	}
	recall("nobody", hour, long, -1, 0)
	h.Answer(beta, 0)
	h.Answer(delta, 0)
	h.Answer(delta, 0)
	recall("not worth it", hour, short, -1, 0)
	recall("another shape", wide, long, -1, 0)
	recall("now it is", hour, long, 0, 4)
	recall("for the next one", hour, long, 0, 1)
	recall("each once", hour, long, -1, 0)
	h.Answer(beta, 0)
	h.Answer(beta, 3)
	recall("it got some", hour, long, -1, 0)
	h.Answer(beta, 0)
	h.Forget("beta")
	recall("it is gone", hour, long, -1, 0)
}
