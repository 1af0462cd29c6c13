package chaos

import (
	"reflect"
	"slices"
	"testing"
	"time"
)

func TestPlanRepeats(t *testing.T) {
	plan := func(seed uint64) [][]Fault {
		p := newPlanner(&Options{Seed: seed, Sites: 4}, 3)
		return [][]Fault{p.round(30 * time.Second), p.round(30 * time.Second), p.upgrades(30 * time.Second)}
	}
	if !reflect.DeepEqual(plan(7), plan(7)) {
		t.Error("one seed made two plans")
	}
	if reflect.DeepEqual(plan(7), plan(8)) {
		t.Error("two seeds made one plan")
	}
}

// Faults do not meddle with each other, meet whom there is, and every kind comes up.
func TestPlan(t *testing.T) {
	for seed := range uint64(50) {
		sites := 2 + int(seed%5)
		p := newPlanner(&Options{Seed: seed, Sites: sites}, sites-1)
		seen := make(map[Kind]int)
		for range 6 {
			round := p.round(roundLength)
			if !slices.IsSortedFunc(round, func(a, b Fault) int { return int(a.At - b.At) }) {
				t.Fatalf("seed %d: faults are not in order: %v", seed, round)
			}
			until := make(map[string]time.Duration)
			for _, f := range round {
				seen[f.Kind]++
				if f.Site < 0 || f.Site >= sites || f.Other < 0 || f.Other >= sites || f.Other == f.Site || f.For < 0 || f.For > longest {
					t.Fatalf("seed %d: %+v", seed, f)
				}
				for _, name := range f.needs(sites) {
					if until[name] > f.At {
						t.Fatalf("seed %d: %+v comes before another fault of %s is over", seed, f, name)
					}
					until[name] = f.At + f.For
				}
			}
		}
		for _, k := range deck {
			if seen[k] == 0 {
				t.Errorf("seed %d: no %s in six rounds", seed, k)
			}
		}
	}
}

func TestPlanOfSomeKinds(t *testing.T) {
	p := newPlanner(&Options{Seed: 1, Sites: 3, Kinds: []string{string(CutAll), string(FullDisk)}}, -1)
	round := p.round(roundLength)
	if len(round) == 0 {
		t.Fatal("no faults")
	}
	for _, f := range round {
		if f.Kind != CutAll {
			t.Errorf("%s was not asked for, or cannot be had", f.Kind)
		}
	}
}

func TestOptions(t *testing.T) {
	good := Options{Duration: time.Minute, Sites: 3, Dir: "d"}
	for name, c := range map[string]struct {
		change func(*Options)
		ok     bool
	}{
		"good":          {func(*Options) {}, true},
		"a kind":        {func(o *Options) { o.Kinds = []string{"cut-all"} }, true},
		"no kind":       {func(o *Options) { o.Kinds = []string{"cut-none"} }, false},
		"one site":      {func(o *Options) { o.Sites = 1 }, false},
		"many sites":    {func(o *Options) { o.Sites = 17 }, false},
		"no time":       {func(o *Options) { o.Duration = 0 }, false},
		"no folder":     {func(o *Options) { o.Dir = "" }, false},
		"negative jobs": {func(o *Options) { o.JobsPerSecond = -1 }, false},
	} {
		o := good
		c.change(&o)
		if err := o.Validate(); (err == nil) != c.ok {
			t.Errorf("%s: %v", name, err)
		}
	}
}
