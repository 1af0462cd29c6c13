package gridbot

import (
	"math"
	"slices"
	"testing"
	"time"

	"kith/testbed/lab"
	"kith/testbed/lab/labtest"
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

// A small run is whole.
func TestSmall(t *testing.T) { labtest.Small(t, Experiment(), 1, 2) }

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
	for _, id := range []string{"G1", "G2", "G3", "G15", "G16", "G17", "G18", "G19"} {
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
	a := source()
	a.Outcomes[second.single(5)] = one(1, 1, 0, 0)
	if judge(a, "G16") != lab.Holds {
		t.Error("the second reading counts")
	}
}
