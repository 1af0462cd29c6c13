package gossip

import (
	"flag"
	"math/rand/v2"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"kith/internal/job"
)

// ages returns how many seconds old the loads are that sites have of each other, in
// ascending order. A site that was never heard of counts as a day.
func ages(all []*site) (list []time.Duration) {
	now := job.Instant(time.Now())
	for _, a := range all {
		for _, b := range all {
			if a == b || a.Gossip == nil || b.Gossip == nil {
				continue
			}
			age := 24 * time.Hour
			if d := a.of(b.name); d.Time != 0 {
				age = now.Sub(d.Time)
			}
			list = append(list, age)
		}
	}
	slices.Sort(list)
	return list
}

var manySites = flag.Int("sites", 60, "sites of TestManySites, at least 20; 200 take two minutes of processor time")

// Many sites that all trust each other, each of which tells its load every five
// seconds. Some crash and come back, some are cut off from half of the others, one lies:
// the loads that the others have of each other stay fresh.
func TestManySites(t *testing.T) {
	if testing.Short() {
		t.Skip("left out with -short: it takes some seconds")
	}
	count := *manySites
	synctest.Test(t, func(t *testing.T) {
		n := newNetwork(t)
		defer n.end()
		began := time.Now()
		all := federation(n, count)
		t.Log("members after", until(t, 2*time.Minute, "all members of all", allAlive(all)))
		rounds := func(times int, what string, some []*site) {
			for range times {
				for _, s := range some {
					if s.Gossip != nil {
						s.advertise()
					}
					time.Sleep(5 * time.Second / time.Duration(len(some)))
				}
			}
			old := ages(some)
			at := func(p float64) time.Duration { return old[int(p*float64(len(old)-1))] }
			t.Logf("%s: loads are %v old in the middle, %v at 99 %%, %v at 99.9 %%, %v at most", what, at(0.5), at(0.99), at(0.999), at(1))
			if at(0.99) > 15*time.Second || at(0.999) > 30*time.Second {
				t.Errorf("%s: loads are too old", what)
			}
		}
		rounds(3, "at rest", all)
		r := rand.New(rand.NewPCG(1, 2))
		for _, i := range r.Perm(count)[:count/10] {
			all[i].crash()
		}
		rounds(3, "with a tenth gone", all)
		for _, s := range all {
			if s.Gossip == nil {
				s.begin()
			}
		}
		rounds(3, "with all back", all)
		for _, a := range all[:count/20] { // each is cut off from half of the others
			for i, b := range all {
				if a != b && i%2 == 1 {
					n.sever(a.name, b.name)
				}
			}
		}
		rounds(5, "with a twentieth half cut off", all)
		if found := n.refusals(); len(found) > 0 {
			t.Errorf("%d refusals among honest sites, first %+v", len(found), found[0])
		}
		liar := all[count-1]
		for range 50 {
			d := liar.digest()
			d.Load.Work = -1e300
			note, _, err := seal(liar, &d)
			if err != nil {
				t.Fatal(err)
			}
			liar.transport.tell(encoded(t, note))
		}
		rounds(2, "with a liar", all[:count-1])
		t.Log("virtual time", time.Since(began))
	})
}
