package gridbot

import (
	"math"
	"slices"
	"testing"
	"time"

	"kith/meta/bags"
	"kith/testbed/lab"
	"kith/testbed/lab/labtest"
	"kith/testbed/sim"
)

// Up times are such that the share of the figure is preempted, over the hosts of a grid.
func TestGenerator(t *testing.T) {
	for _, alike := range []bool{false, true} {
		for _, s := range newSlots(grids[:1], 1, alike, 3) {
			if len(s.hosts) == 0 {
				t.Fatal("a slot has no host")
			}
		}
		within, all := 0, 0
		for _, s := range newSlots(grids[:1], 1, alike, 3) {
			for range 20 {
				if _, up := s.client(); up < preemptedWithin {
					within++
				}
				all++
			}
		}
		if share := float64(within) / float64(all); math.Abs(share-grids[0].preempted) > 0.03 {
			t.Errorf("alike %t: %.3f of the clients vanish within %v, want %.2f", alike, share, preemptedWithin, grids[0].preempted)
		}
	}
	community := 0.0
	slots := newSlots(grids[4:], 1, false, 3)
	for _, s := range slots {
		community += 1 / s.hosts[0].slow
	}
	if mean := community / float64(len(slots)); math.Abs(mean-0.3) > 0.03 {
		t.Errorf("community ratios are %.3f on average, want 0.3", mean)
	}
	if a, b := runTime(1, 0, 7, time.Minute, time.Hour), runTime(1, 0, 7, time.Minute, time.Hour); a != b || a < time.Minute || a > time.Hour {
		t.Errorf("run times %v and %v", a, b)
	}
}

// Whoever dispatches, each task counts once, and the world is the same.
func TestDispatchers(t *testing.T) {
	size := sizeOf(60)
	for _, x := range []trial{naive, policies, short, queued, first.single(1), second.single(1), second.single(4)} {
		o, err := x.run(t.Context(), size, 1)
		if err != nil {
			t.Fatal(err)
		}
		b := &o.bags[0]
		want := size.tasks(sourceTasks)
		if x.work == "madison" {
			want = size.tasks(3000)
		}
		counted := 0
		for _, n := range o.counted {
			counted += n
		}
		if len(b.ends) != int(want) || counted != int(want) || !slices.IsSorted(b.ends) || b.allSent > b.span() {
			t.Errorf("%v: %d of %d tasks ended, %d counted, in %v h, all sent after %v h", x, len(b.ends), want, counted, b.span(), b.allSent)
		}
		if x.rules == "P4" && b.replicas > 0 {
			t.Errorf("%v: %d replicas", x, b.replicas)
		}
		again, err := x.run(t.Context(), size, 1)
		if err != nil || !slices.Equal(again.bags[0].ends, b.ends) {
			t.Errorf("%v: another run has other ends (%v)", x, err)
		}
	}
}

// What replicates makes replicas: with many tasks per host and a tail.
func TestReplicas(t *testing.T) {
	size := sizeOf(600)
	for _, x := range []trial{first.single(1), second.single(1)} {
		o, err := x.run(t.Context(), size, 1)
		if err != nil {
			t.Fatal(err)
		}
		if o.bags[0].replicas == 0 {
			t.Errorf("%v by %d: no replicas", x, x.by)
		}
	}
}

// Hosts that reach nobody keep their results, and the bag ends.
func TestOutage(t *testing.T) {
	for _, by := range []serverKind{byEngine, byPlain} {
		x := outage
		x.by = by
		o, err := x.run(t.Context(), sizeOf(600), 1)
		if err != nil {
			t.Fatal(err)
		}
		if quiet := rate(o, outageAt.Hours()+0.01, (outageAt + outageFor).Hours()); quiet != 0 {
			t.Errorf("by %d: %v results an hour came in the outage", by, quiet)
		}
		if rate(o, (outageAt+outageFor).Hours(), (outageAt+outageFor).Hours()+0.1) == 0 {
			t.Errorf("by %d: nothing came after the outage", by)
		}
	}
}

// The source's server gives a host as many tasks as the first bag allows, and no more for the
// bags behind it (spec 002 section 5, checks 2 and 3).
func TestConcurrency(t *testing.T) {
	for _, c := range []struct {
		first, other string
		want         int
	}{{"5", "", 5}, {"1", "10", 1}, {"3", "2", 3}} {
		w, err := sim.New(sim.Config{})
		if err != nil {
			t.Fatal(err)
		}
		list := []*bag{{tasks: 10, priority: 1, most: time.Hour}, {tasks: 10, most: time.Hour}}
		list[0].policies.Texts[bags.Concurrency], list[1].policies.Texts[bags.Concurrency] = c.first, c.other
		p := newPlain()
		p.f = newFloor(w, nil, list, 0)
		p.f.d = p
		for i, b := range list {
			if err := p.submit(i, b); err != nil {
				t.Fatal(err)
			}
		}
		s := newSlots(madison, 100, true, 0)[0]
		client := &client{slot: s, host: s.hosts[0], up: true}
		p.ask(client)
		if len(client.runs) != c.want {
			t.Errorf("concurrency %s before %q gives %d tasks, want %d", c.first, c.other, len(client.runs), c.want)
		}
	}
}

// A small run is whole.
func TestSmall(t *testing.T) { labtest.Small(t, Experiment(), 2, 8) }

// Bands accept the source's own numbers and refuse those just outside.
func TestBands(t *testing.T) {
	one := func(hours, allSent float64, replicas, wasted int) []*outcome {
		b := bagOutcome{ends: make([]float64, 100), allSent: allSent, replicas: replicas, wasted: wasted}
		b.ends[99] = hours
		return []*outcome{{bags: []bagOutcome{b}}}
	}
	source := func() *answers {
		a := &answers{Outcomes: make(lab.Outcomes[trial, *outcome]), env: &lab.Env{Seeds: 1}, size: sizeOf(3000)}
		a.Outcomes[naive], a.Outcomes[policies] = one(280, 20, 0, 0), one(8, 5, 0, 0)
		a.Outcomes[short], a.Outcomes[queued] = one(53.0/60, 0.5, 1, 0), one(170.0/60, 2, 0, 0)
		for i, p := range [][3]float64{{4.1, 58, 30}, {3.2, 11, 7}, {4.2, 73, 57}, {5.1, 0, 0}, {5.8, 0, 0}} {
			for _, r := range []reading{first, second} {
				a.Outcomes[r.single(i+1)] = one(p[0], 2, int(p[1]), int(p[2]))
			}
		}
		even := func(n int, from, to float64) (ends []float64) {
			for i := range n {
				ends = append(ends, from+(to-from)*float64(i+1)/float64(n))
			}
			return ends
		}
		a.Outcomes[long] = []*outcome{{slots: 10, bags: []bagOutcome{{ends: append(even(1000, 0, 50), even(10, 51, 60)...), allSent: 49, open: 20}}}}
		a.Outcomes[outage] = []*outcome{{bags: []bagOutcome{{ends: slices.Concat(even(400, 0, 20), even(14, 26, 26.4), even(500, 27, 50)), allSent: 49}}}}
		ranks := &outcome{}
		for i := range rankedBags {
			at := float64(rankedBags - i)
			ranks.bags = append(ranks.bags, bagOutcome{ends: even(12, at, at+1), firstSent: at})
		}
		a.Outcomes[ranked] = []*outcome{ranks}
		for i, h := range []float64{1, 2, 1.5, 1} {
			a.Outcomes[bundled(i+1)] = one(h, 1, 0, 0)
		}
		looks := func(n float64) []*outcome { return []*outcome{{looks: []float64{n}}} }
		for _, by := range []serverKind{byEngine, byPlain} {
			a.Outcomes[amid("buffer", 1500, by)], a.Outcomes[amid("buffer", 15_000, by)] = looks(1), looks(1.2)
		}
		a.Outcomes[amid("buffer", 1500, byBuffer)], a.Outcomes[amid("buffer", 15_000, byBuffer)] = looks(1500), looks(15_000)
		a.Outcomes[amid("queue", 1000, byEngine)], a.Outcomes[amid("queue", 1_000_000, byEngine)] = looks(10), looks(12)
		for _, r := range []reading{first, second} {
			for rules, hours := range map[string]float64{whole: 1, split: 0.2} {
				b := bagOutcome{ends: even(100, 0, 100*hours), allSent: 50 * hours, ran: make([]float64, 100)}
				for i := range b.ran {
					b.ran[i] = hours
				}
				a.Outcomes[r.load(rules)] = []*outcome{{bags: []bagOutcome{b}, bulk: 50, bulkAsks: 10, handed: []float64{93 * 60}, rushes: []float64{18 * 60}}}
			}
		}
		a.Outcomes[recalled] = one(1.05, 1, 0, 0)
		for x, hours := range map[trial]float64{absolute: 3, relative: 2, spoilt: 2} {
			b := one(9, 1, 0, 0)[0].bags[0]
			b.sent = make([]bool, len(b.ends))
			for i := range b.ends {
				b.ends[i] = hours
			}
			a.Outcomes[x] = []*outcome{{bags: []bagOutcome{{}, b}, shunned: hours / 10}}
		}
		a.Outcomes[sourceLate], a.Outcomes[engineEarly] = one(4.3, 2, 40, 0), one(4, 2, 4, 0)
		for _, r := range []reading{first, second} {
			for _, rules := range []string{asItStands, later, dynamic} {
				four := &outcome{}
				for i, x := range [][2]int{{188, 105}, {129, 75}, {49, 25}, {35, 21}} {
					b := one(float64(8-i), 1, x[0], x[1])[0].bags[0]
					if rules != asItStands {
						b = one(4.9, 1, x[0], x[1])[0].bags[0]
					}
					four.bags = append(four.bags, b)
				}
				a.Outcomes[r.four(rules)] = []*outcome{four}
			}
		}
		return a
	}
	judge := func(a *answers, id string) lab.Result {
		for _, q := range questions() {
			if q.ID == id {
				return q.Judge(a).Result
			}
		}
		t.Fatalf("no question %s", id)
		return ""
	}
	for _, id := range []string{"G1", "G2", "G3", "G4", "G5", "G6", "G7", "G8", "G9", "G10", "G11", "G12", "G14", "O1", "O2", "O3", "G20", "G21", "G22", "G23", "G15", "G16", "G17", "G18", "G19"} {
		if judge(source(), id) != lab.Holds {
			t.Errorf("%s fails with the source's numbers", id)
		}
	}
	for _, c := range []struct {
		id    string
		trial trial
		now   []*outcome
	}{
		{"G1", policies, one(57, 5, 0, 0)}, {"G1", naive, one(280, 141, 0, 0)}, {"G2", queued, one(1.3, 1, 0, 0)}, {"G3", short, one(1, 1, 6, 0)},
		{"G15", first.single(4), one(3.1, 1, 0, 0)}, {"G15", first.single(1), one(3.5, 1, 58, 30)}, {"G16", first.single(5), one(5, 1, 0, 0)}, {"G16", first.single(5), one(8.1, 1, 0, 0)},
		{"G17", first.single(2), one(3.2, 1, 24, 7)}, {"G18", first.single(3), one(4, 1, 70, 29)}, {"G18", first.single(2), one(4, 1, 11, 0)}, {"G19", first.single(5), one(5.8, 1, 1, 0)},
	} {
		a := source()
		a.Outcomes[c.trial] = c.now
		if judge(a, c.id) != lab.Fails {
			t.Errorf("%s holds with %v", c.id, c.trial)
		}
	}
	for _, c := range []struct {
		id    string
		spoil func(a *answers)
	}{
		{"G4", func(a *answers) {
			b := &a.Outcomes[long][0].bags[0]
			b.ends[999], b.ends[998] = 400, 400
			b.allSent = 500
		}},
		{"G5", func(a *answers) { a.Outcomes[long][0].bags[0].allSent = 51 }},
		{"G6", func(a *answers) { b := &a.Outcomes[outage][0].bags[0]; b.ends = slices.Delete(b.ends, 400, 404) }},
		{"G9", func(a *answers) {
			bags := a.Outcomes[ranked][0].bags
			bags[0], bags[49] = bags[49], bags[0]
		}},
		{"G10", func(a *answers) {
			for i := range 25 {
				b := &a.Outcomes[ranked][0].bags[i]
				b.ends[11] += 0.2
			}
		}},
		{"G7", func(a *answers) { a.Outcomes[amid("buffer", 15_000, byEngine)][0].looks[0] = 1.21 }},
		{"G7", func(a *answers) { a.Outcomes[amid("buffer", 15_000, byBuffer)][0].looks[0] = 7400 }},
		{"G8", func(a *answers) { a.Outcomes[amid("queue", 1_000_000, byEngine)][0].looks[0] = 13 }},
		{"G11", func(a *answers) { a.Outcomes[first.load(whole)][0].bulk = 44 }},
		{"G11", func(a *answers) { a.Outcomes[first.load(whole)][0].bulk = 56 }},
		{"G12", func(a *answers) { a.Outcomes[first.load(split)][0].bags[0].ran = make([]float64, 100) }},
		{"O1", func(a *answers) { a.Outcomes[recalled] = one(1.06, 1, 0, 0) }},
		{"O2", func(a *answers) { a.Outcomes[relative] = a.Outcomes[absolute] }},
		{"O3", func(a *answers) { a.Outcomes[sourceLate] = one(4.4, 2, 40, 0) }},
		{"O3", func(a *answers) { a.Outcomes[sourceLate] = one(4, 2, 58, 0) }},
		{"G14", func(a *answers) { a.Outcomes[bundled(4)] = one(1.06, 1, 0, 0) }},
		{"G14", func(a *answers) { a.Outcomes[bundled(3)] = one(2.1, 1, 0, 0) }},
		{"G20", func(a *answers) { a.Outcomes[first.four(asItStands)][0].bags[3].replicas = 49 }},
		{"G20", func(a *answers) { a.Outcomes[first.four(asItStands)][0].bags[1].wasted = 105 }},
		{"G21", func(a *answers) { a.Outcomes[first.four(asItStands)][0].bags[2].wasted = 6 }},
		{"G22", func(a *answers) { a.Outcomes[first.four(asItStands)][0].bags[2].ends[99] = 9 }},
		{"G23", func(a *answers) { a.Outcomes[first.four(later)][0].bags[3].ends[99] = 5.1 }},
		{"G23", func(a *answers) { a.Outcomes[first.four(dynamic)][0].bags[3].ends[99] = 5.1 }},
	} {
		a := source()
		c.spoil(a)
		if judge(a, c.id) != lab.Fails {
			t.Errorf("%s holds with what is outside", c.id)
		}
	}
	a := source()
	a.Outcomes[second.single(5)] = one(1, 1, 0, 0)
	if judge(a, "G16") != lab.Holds {
		t.Error("the second reading counts")
	}
}
