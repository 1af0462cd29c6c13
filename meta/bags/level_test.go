package bags

import (
	"math/rand/v2"
	"testing"
	"time"
)

func TestWants(t *testing.T) {
	for name, c := range map[string]struct {
		level Level
		want  int
	}{
		"no pilot":                       {Level{}, 0},
		"the first pilot":                {Level{Places: 1}, 2},
		"long tasks, all idle":           {Level{Places: 64, Mean: time.Hour}, 65},
		"long tasks, none ahead":         {Level{Places: 64, Running: 64, Mean: time.Hour}, 1},
		"long tasks, one ahead":          {Level{Places: 64, Running: 64, Stock: 1, Mean: time.Hour}, 0},
		"one idle takes the one ahead":   {Level{Places: 64, Running: 63, Stock: 1, Mean: time.Hour}, 1},
		"how long is not known":          {Level{Places: 64, Running: 64}, 1},
		"tasks of 5 ms":                  {Level{Places: 1, Running: 1, Mean: 5 * time.Millisecond}, 400},
		"a second ahead":                 {Level{Places: 1, Running: 1, Stock: 200, Mean: 5 * time.Millisecond}, 0},
		"less than that":                 {Level{Places: 1, Running: 1, Stock: 199, Mean: 5 * time.Millisecond}, 201},
		"no more than an ask gets":       {Level{Places: 1000, Mean: time.Millisecond}, MaxAsk},
		"more run than there are places": {Level{Places: 1, Running: 5, Mean: time.Hour}, 1},
	} {
		if got := c.level.Want(); got != c.want {
			t.Errorf("%s: %d, want %d", name, got, c.want)
		}
	}
}

// A host that gets what it asks for has a task for each place, and no more than its places
// use up in two seconds ahead; then it does not ask.
func TestWantsAreEnough(t *testing.T) {
	rng := rand.New(rand.NewPCG(9, 9))
	for range 20_000 {
		l := Level{Places: 1 + rng.IntN(100), Stock: rng.IntN(200), Mean: time.Duration(rng.Int64N(int64(10 * time.Second)))}
		l.Running = rng.IntN(l.Places + 1)
		before, n := l, l.Want()
		l.Stock += n
		ahead := l.Stock - (l.Places - l.Running)
		if n == MaxAsk || n == 0 {
			continue
		}
		if ahead < 1 || float64(ahead-1)*l.Mean.Seconds() > float64(l.Places)*Ahead.Seconds() || l.Want() != 0 {
			t.Fatalf("%+v wants %d tasks: %d are ahead then, and it wants %d", before, n, ahead, l.Want())
		}
	}
}

func TestMeans(t *testing.T) {
	var m Mean
	if m.Run() != 0 {
		t.Errorf("of nothing: %v", m.Run())
	}
	if m.Add(0); m.Run() != 1 {
		t.Errorf("of nothing long: %v", m.Run())
	}
	m = Mean{}
	m.Add(10 * time.Second)
	m.Add(20 * time.Second)
	if m.Run() != 15*time.Second {
		t.Errorf("of two: %v", m.Run())
	}
	for range 100 {
		m.Add(time.Second)
	}
	if got := m.Run(); got < time.Second || got > time.Second+10*time.Millisecond {
		t.Errorf("after a hundred of a second: %v", got)
	}
}
