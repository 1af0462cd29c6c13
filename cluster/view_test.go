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
	v.Up(10, "c", 77, 5)
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

// A site whose numbers came from a clock that was ahead, or that lost its disk, is
// heard again as soon as it connects; what others still spread of its earlier life
// is not.
func TestAnotherLifeIsHeard(t *testing.T) {
	var v View
	v.Up(1, "b", 1, 1_000_000)
	if !v.Merge(1, digest("b", 1_000_000, 7)) {
		t.Fatal("its first digest is no news")
	}
	v.Down(2, "b")
	if v.Merge(3, digest("b", 3, 1)) {
		t.Error("a lower number counts without a stream")
	}
	v.Up(4, "b", 1, 3)
	if !v.Merge(4, digest("b", 3, 1)) {
		t.Error("what it says is not heard")
	}
	if v.Merge(5, digest("b", 1_000_000, 9)) {
		t.Error("what is spread of its earlier life counts")
	}
	if !v.Merge(6, digest("b", 3, 2)) || v.Merge(6, digest("b", 3, 2)) {
		t.Error("its digests are not told apart")
	}
	if v.Down(7, "b"); !v.Merge(8, digest("b", 4, 1)) {
		t.Error("a later life is not heard")
	}
	// A lost disk, and a count that happens to be the same.
	v.Up(9, "b", 2, 4)
	if !v.Merge(9, digest("b", 4, 1)) || v.Merge(10, digest("b", 4, 1)) {
		t.Error("another folder that counts alike is not heard, or not told apart")
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
	if v.Up(1, "one-more", 1, 0) != nil {
		t.Error("a site beyond the bound was recorded")
	}
}
