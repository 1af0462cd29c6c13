package meta

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"kith/internal/job"
	"kith/store"
)

// Whatever a decision tells of, it chooses the same sites in the same order as
// one that ranks them all.
func TestShortDecisionsChooseTheSameSites(t *testing.T) {
	rng := rand.New(rand.NewPCG(0, 0))
	for round := range 2000 {
		list := make([]candidate, 1+rng.IntN(100))
		own := rng.IntN(len(list))
		for i := range list {
			list[i] = candidate{
				Verdict: store.Verdict{Site: job.SiteID(fmt.Sprintf("s%03d", i)), Weight: 1, Score: float64(rng.IntN(20))},
				own:     i == own, eligible: rng.IntN(4) > 0, blind: rng.IntN(10) == 0, tie: float64(rng.IntN(2)),
			}
		}
		k, always := 1+rng.IntN(5), rng.IntN(2) == 0
		decide := func(verdicts int) []job.SiteID {
			e := &Engine{cfg: Config{Limits: Limits{Verdicts: verdicts}}}
			l := slices.Clone(list)
			e.choose(l, k, always)
			d := e.decision(l, RankWork)
			if n := max(verdicts, k); len(d.Verdicts) > n {
				t.Fatalf("round %d: %d verdicts, at most %d were wanted", round, len(d.Verdicts), n)
			}
			return chosen(d)
		}
		want := decide(store.MaxVerdicts)
		for _, verdicts := range []int{1, 2, 7} {
			if got := decide(verdicts); !slices.Equal(got, want) {
				t.Fatalf("round %d, K=%d, origin always %v, %d verdicts: chose %v, want %v", round, k, always, verdicts, got, want)
			}
		}
	}
}
