package bags

import (
	"maps"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"kith/internal/job"
)

// key names what a site knows of a shape.
type key struct {
	site  job.SiteID
	shape Shape
}

func everywhere(job.SiteID) bool { return true }

func TestOffers(t *testing.T) {
	works := []Work{workOf(1, "ann", 100), workOf(2, "bob", 50)}
	works[1].Sites = works[1].Sites[:1]
	wide := ShapeOf(&job.Request{Processors: 2, Walltime: time.Hour})
	var b Board
	for i, c := range []struct {
		change func()
		want   []Offer
	}{
		{func() {}, []Offer{{"beta", hour, 150}, {"gamma", hour, 100}}},
		{func() {}, nil},
		{func() { works[0].Waiting = 60 }, nil},
		{func() { works[0].Waiting = 25 }, []Offer{{"beta", hour, 75}, {"gamma", hour, 25}}},
		{func() { works[0].Waiting = 49 }, nil},
		{func() { works[0].Waiting = 50 }, []Offer{{"gamma", hour, 50}}},
		{func() { works[0].Room = 0 }, []Offer{{"gamma", hour, 0}}},
		{func() { works[1].Shape = wide }, []Offer{{"beta", hour, 0}, {"beta", wide, 50}}},
		{func() { b.Repeat() }, []Offer{{"beta", wide, 50}}},
		{func() {}, nil},
		{func() { b.Repeat(); works[1].Room = 0 }, []Offer{{"beta", wide, 0}}}, // wide schedule 10046115
		{func() { works[1].Room = 50 }, []Offer{{"beta", wide, 50}}},
		{func() { b.Forget("beta"); b.Forget("gamma") }, []Offer{{"beta", wide, 50}}},
	} {
		c.change()
		if got := b.Due(works, everywhere); !slices.Equal(got, c.want) {
			t.Errorf("%d: %v, want %v", i, got, c.want)
		}
	}
}

// Whatever happens, a site that is connected knows whether there is work of a shape, and
// how much but for a factor of two; the others know nothing.
func TestSitesKnowOfWork(t *testing.T) {
	rng := rand.New(rand.NewPCG(5, 5))
	var b Board
	known := map[key]int{}
	up := map[job.SiteID]bool{"beta": true}
	sent := 0
	for range 3000 {
		site := []job.SiteID{"beta", "gamma"}[rng.IntN(2)]
		if rng.IntN(10) == 0 {
			up[site] = !up[site]
			b.Forget(site)
			maps.DeleteFunc(known, func(k key, _ int) bool { return k.site == site })
		}
		if rng.IntN(5) == 0 {
			b.Repeat()
		}
		works := randomWorks(rng, rng.IntN(5))
		for _, o := range b.Due(works, func(site job.SiteID) bool { return up[site] }) {
			sent++
			if !up[o.Site] {
				t.Fatalf("%+v to a site that is not there", o)
			}
			known[key{o.Site, o.Shape}] = o.Tasks
		}
		want := map[key]int{}
		for i := range works {
			for _, site := range works[i].Sites {
				want[key{site, works[i].Shape}] += works[i].Tasks()
			}
		}
		for _, site := range []job.SiteID{"beta", "gamma"} {
			for _, w := range append(works, workOf(0, "", 0)) {
				k := key{site, w.Shape}
				n := want[k]
				if !up[site] {
					n = 0
				}
				if got := known[k]; (got == 0) != (n == 0) || got > 2*n || 2*got < n {
					t.Fatalf("%v knows of %d tasks, there are %d", k, got, n)
				}
			}
		}
	}
	if sent < 1000 {
		t.Errorf("%d offers", sent)
	}
}
