package chaos

import (
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	kithv1 "kith/proto/gen/kith/v1"
)

// Some jobs damage their folders and are like the others else; none does where the sites may be
// of an earlier version.
func TestVandals(t *testing.T) {
	made := func(tame bool) (vandals int) {
		m := newMaker(&Options{Seed: 1, Sites: 3}, 0, 8, 20*time.Second, folders{ledger: "ledger", locks: "locks", secret: "secret"})
		m.tame = tame
		for range 400 {
			j := m.next()
			if !j.vandal {
				continue
			}
			vandals++
			if j.policy != kithv1.Job_ON_SITE_LOST_WAIT || j.code != 0 || j.duration > vandalPause || j.job.GetEnvironment()["CHAOS_SECRET"] != "secret" {
				t.Fatalf("%+v", j)
			}
		}
		return vandals
	}
	if n := made(false); n < 20 || n > 80 {
		t.Errorf("%d of 400 jobs damage their folders", n)
	}
	if n := made(true); n > 0 {
		t.Errorf("%d of tame jobs damage their folders", n)
	}
}

// All deeds come up.
func TestDamage(t *testing.T) {
	seen := make(map[string]bool)
	rng, all := rand.New(rand.NewPCG(1, 1)), len(vandalDeeds)+len(vandalFiles)*len(vandalPlants)
	for range 1000 * all {
		seen[damage(rng)] = true
	}
	if len(seen) != all {
		t.Errorf("%d deeds of %d are drawn", len(seen), all)
	}
	for _, file := range vandalFiles {
		if !slices.ContainsFunc(slices.Collect(maps.Keys(seen)), func(s string) bool { return strings.Contains(s, "$A/"+file+"\"") }) {
			t.Errorf("nothing is done to %s", file)
		}
	}
}
