package cluster

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"kith/internal/job"
)

func digest(site job.SiteID, incarnation, sequence uint64) Digest {
	return Digest{Site: site, Incarnation: incarnation, Sequence: sequence, Processors: 4}
}

func TestMergeKeepsTheNewest(t *testing.T) {
	var v View
	steps := []struct {
		d    Digest
		news bool
	}{
		{digest("b", 10, 1), true},
		{digest("b", 10, 1), false}, // repeated
		{digest("b", 10, 3), true},
		{digest("b", 10, 2), false}, // late
		{digest("b", 9, 99), false}, // from before the restart
		{digest("b", 11, 1), true},  // after a restart
		{digest("a", 1, 1), true},
	}
	for i, s := range steps {
		if got := v.Merge(job.Time(i), s.d); got != s.news {
			t.Errorf("step %d: Merge(%d.%d) = %v, want %v", i, s.d.Incarnation, s.d.Sequence, got, s.news)
		}
	}
	b := v.Get("b")
	if b.Digest.Incarnation != 11 || b.SeenAt != 5 || b.Age(job.Time(5).Add(time.Second)) != time.Second {
		t.Errorf("b = %+v", b)
	}
	if got := v.Peers(); len(got) != 2 || got[0].Site != "a" || got[1].Site != "b" {
		t.Errorf("peers are not in the order of names: %v", got)
	}
}

// Whatever the order and number of deliveries, all views end alike.
func TestMergeIsOrderBlind(t *testing.T) {
	rng := rand.New(rand.NewPCG(0, 0))
	var all []Digest
	for s := range 5 {
		for i := range 20 {
			all = append(all, digest(job.SiteID(fmt.Sprint("s", s)), uint64(1+i/7), uint64(i%7)))
		}
	}
	want := map[job.SiteID]Digest{}
	for _, d := range all {
		if old, ok := want[d.Site]; !ok || d.Newer(&old) {
			want[d.Site] = d
		}
	}
	for round := range 100 {
		var v View
		deliveries := slices.Concat(all, all[:rng.IntN(len(all))])
		rng.Shuffle(len(deliveries), func(i, k int) { deliveries[i], deliveries[k] = deliveries[k], deliveries[i] })
		for i, d := range deliveries {
			v.Merge(job.Time(i), d)
		}
		for _, p := range v.Peers() {
			if p.Digest != want[p.Site] {
				t.Fatalf("seed 0, round %d: %s ended with %+v, want %+v", round, p.Site, p.Digest, want[p.Site])
			}
		}
	}
}

func TestStreamsComeAndGo(t *testing.T) {
	var v View
	v.Expect(5, "c")
	if p := v.Get("c"); p == nil || p.Known || p.Connected || p.Since != 5 {
		t.Fatalf("an expected site: %+v", p)
	}
	v.Up(10, "c", 77)
	v.Expect(11, "c")
	if p := v.Get("c"); !p.Connected || p.Since != 10 || p.Generation != 77 {
		t.Errorf("up: %+v", p)
	}
	v.Down(20, "c")
	v.Down(30, "c")
	if p := v.Get("c"); p.Connected || p.Since != 20 {
		t.Errorf("down: %+v", p)
	}
	if v.Down(1, "nobody") != nil || v.Get("nobody") != nil {
		t.Error("a site that nobody named appeared")
	}
}

func TestViewIsBounded(t *testing.T) {
	var v View
	for i := range MaxSites + 10 {
		v.Merge(1, digest(job.SiteID(fmt.Sprintf("s%d", i)), 1, 1))
	}
	if len(v.Peers()) != MaxSites {
		t.Errorf("%d sites, want %d", len(v.Peers()), MaxSites)
	}
	if v.Up(1, "one-more", 1) != nil {
		t.Error("a site beyond the bound was recorded")
	}
}
