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

// Faults of different kinds meet at one site, as they do in life. Those that
// would undo each other, or leave no site that could keep a promise, do not.
func TestFaultsMeet(t *testing.T) {
	met := make(map[[2]Kind]int) // the first one began first
	var frozen, down []Fault
	for seed := range uint64(60) {
		p := newPlanner(&Options{Seed: seed, Sites: 3}, 2)
		for range 4 {
			round := merge(p.round(roundLength), p.upgrades(roundLength))
			for i, a := range round {
				for _, b := range round[i+1:] {
					sameSite := a.Site == b.Site || a.Kind == KillAll || b.Kind == KillAll
					if a.Kind.onLinks() || b.Kind.onLinks() || !sameSite || b.At > a.At+a.For {
						continue
					}
					met[[2]Kind{a.Kind, b.Kind}]++
					for _, f := range []Fault{a, b} {
						switch f.Kind {
						case FreezeShim:
							frozen = append(frozen, f)
						case KillDaemon, RestartDaemon, KillAll:
							down = append(down, f)
						}
					}
					if len(frozen) > 0 && len(down) > 0 && down[0].For > briefly {
						t.Errorf("seed %d: a daemon is down for %v while a shim is frozen", seed, down[0].For)
					}
					frozen, down = nil, nil
				}
			}
		}
	}
	for _, pair := range [][2]Kind{
		{FreezeShim, RestartDaemon}, {FreezeShim, KillDaemon}, {FreezeShim, KillAll}, {FreezeDaemon, KillDaemon}, {FreezeDaemon, KillShim},
		{KillDaemon, KillShim}, {RestartDaemon, KillShim}, {FreezeShim, KillShim}, {FullDisk, KillDaemon}, {FullDisk, FreezeShim}, {FullDisk, FreezeDaemon},
	} {
		if met[pair] == 0 {
			t.Errorf("%s is never there when %s comes", pair[0], pair[1])
		}
	}
	for _, pair := range [][2]Kind{
		{KillDaemon, KillDaemon}, {KillDaemon, RestartDaemon}, {FreezeDaemon, FreezeDaemon}, {FreezeDaemon, FreezeShim}, {FreezeShim, FreezeShim},
		{FreezeDaemon, RestartDaemon}, {FullDisk, FullDisk},
	} {
		if n := met[pair] + met[[2]Kind{pair[1], pair[0]}]; n > 0 {
			t.Errorf("%s and %s meet %d times", pair[0], pair[1], n)
		}
	}
}

// onLinks reports whether a fault is between sites.
func (k Kind) onLinks() bool {
	switch k {
	case CutLink, ResetLink, CutOneWay, FlapLink, CutSite, CutAll, SlowLink:
		return true
	}
	return false
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

// A disk that hangs must be asked for, and is that of a site without the small one.
// Nothing ends the daemon there meanwhile.
func TestPlanOfAHangingDisk(t *testing.T) {
	const sites = 4
	for seed := range uint64(20) {
		for _, f := range newPlanner(&Options{Seed: seed, Sites: sites}, sites-1).round(roundLength) {
			if f.Kind == HungDisk {
				t.Fatal("it was not asked for")
			}
		}
		o := &Options{Seed: seed, Sites: sites, Kinds: []string{string(HungDisk), string(KillDaemon), string(FewFiles)}}
		var hangs, kills []Fault
		for _, f := range newPlanner(o, sites-1).round(roundLength) {
			switch f.Kind {
			case HungDisk:
				hangs = append(hangs, f)
			case KillDaemon:
				kills = append(kills, f)
			}
		}
		if len(hangs) == 0 {
			t.Fatal("no disk hangs")
		}
		for _, h := range hangs {
			if h.Site != sites-2 || h.For > 8*time.Second {
				t.Errorf("seed %d: %+v", seed, h)
			}
			for _, k := range kills {
				if k.Site == h.Site && k.At < h.At+h.For && h.At < k.At+k.For {
					t.Errorf("seed %d: %+v during %+v", seed, k, h)
				}
			}
		}
	}
}

// A site's descriptors are taken by one fault at a time: the second would give back
// the few that the first had left.
func TestPlanTakesFilesOnceAtATime(t *testing.T) {
	for seed := range uint64(20) {
		until := make(map[int]time.Duration)
		for _, f := range newPlanner(&Options{Seed: seed, Sites: 3, Kinds: []string{string(FewFiles)}}, 2).round(roundLength) {
			if f.At < until[f.Site] {
				t.Errorf("seed %d: %+v, and another until %v", seed, f, until[f.Site])
			}
			until[f.Site] = f.At + f.For
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
		"demotions":     {func(o *Options) { o.Demotions, o.Sites = true, 4 }, true},
		"few levels":    {func(o *Options) { o.Demotions, o.Sites = true, 3 }, false},
		"two versions":  {func(o *Options) { o.Demotions, o.Sites, o.UpgradeFrom = true, 4, "kithd" }, false},
		"negative jobs": {func(o *Options) { o.JobsPerSecond = -1 }, false},
	} {
		o := good
		c.change(&o)
		if err := o.Validate(); (err == nil) != c.ok {
			t.Errorf("%s: %v", name, err)
		}
	}
}
