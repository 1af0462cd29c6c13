package meta

import (
	"fmt"
	"math"
	"testing"
	"time"

	"kith/cluster"
	"kith/internal/job"
	"kith/store"
)

// weightsOf returns what the stage gives five sites of the given speeds, the
// first k of them with a dual queue, for jobs of the origin-th.
func weightsOf(speeds []float64, k, origin int, a float64) []float64 {
	policy := func(i int) string {
		if i < k {
			return "none, dual-strict"
		}
		return "none, single"
	}
	e := &Engine{cfg: Config{
		Placement: Placement{Weight: a}, Self: Self{Processors: 4, Speed: speeds[origin], Policy: policy(origin)},
	}}
	list := make([]candidate, len(speeds))
	for i := range list {
		list[i] = candidate{Verdict: store.Verdict{Weight: 1, Score: 10}, eligible: true, own: i == origin}
		if i != origin {
			list[i].digest = &cluster.Digest{Processors: 4, Speed: speeds[i], Policy: policy(i)}
		}
	}
	e.weigh(list)
	weights := make([]float64, len(list))
	for i := range list {
		weights[i] = list[i].Weight
		if want := 10 * weights[i]; list[i].Score != want {
			panic(fmt.Sprintf("score %v with weight %v", list[i].Score, weights[i]))
		}
	}
	return weights
}

// Spec 004 section 5 no. 4: the cases and configurations in which weights act,
// and whom they then favour.
func TestWeightsActWhereDualQueuesPrevail(t *testing.T) {
	speeds := [][]float64{{500, 500, 500, 500, 500}, {700, 600, 500, 400, 300}, {300, 400, 500, 600, 700}}
	acts := []map[int]bool{{3: true, 4: true}, {2: true, 3: true, 4: true}, {4: true}}
	for c := range speeds {
		for k := range 6 {
			for origin := range 5 {
				for i, w := range weightsOf(speeds[c], k, origin, 1.3) {
					want := 1.0
					if acts[c][k] && (i < k) != (origin < k) {
						want = 1.3
					}
					if w != want {
						t.Errorf("case %d, Q%d, origin %d: site %d weighs %v, want %v", c+1, k, origin, i, w, want)
					}
				}
			}
		}
	}
}

// On a tie the rule is inactive, and a = 1 and a = 0 are none.
func TestWeightsThatDoNothing(t *testing.T) {
	for _, c := range []struct {
		speeds []float64
		k      int
		a      float64
	}{{[]float64{2, 2, 2, 2}, 2, 1.3}, {[]float64{9, 1}, 1, 1}, {[]float64{9, 1}, 1, 0}} {
		for i, w := range weightsOf(c.speeds, c.k, 0, c.a) {
			if w != 1 {
				t.Errorf("%+v: site %d weighs %v", c, i, w)
			}
		}
	}
}

// A site whose label is unknown, and one out of reach, do not count.
func TestWeightsIgnoreWhoCannotBeReached(t *testing.T) {
	e := &Engine{cfg: Config{Placement: Placement{Weight: 2}, Self: Self{Processors: 10, Speed: 1, Policy: "easy, dual-backfill, scope all"}}}
	list := []candidate{
		{Verdict: store.Verdict{Weight: 1}, eligible: true, own: true},
		{Verdict: store.Verdict{Weight: 1}, eligible: true, digest: &cluster.Digest{Processors: 4, Policy: "slurm"}},
		{Verdict: store.Verdict{Weight: 1, Reason: job.Unreachable}, digest: &cluster.Digest{Processors: 100, Policy: "slurm"}},
		{Verdict: store.Verdict{Weight: 1, Reason: job.UnknownLoad}},
	}
	e.weigh(list)
	if list[0].Weight != 1 || list[1].Weight != 2 {
		t.Errorf("weights %v and %v, want 1 and 2", list[0].Weight, list[1].Weight)
	}
}

// Spec 004 section 5 no. 11: the weight of a site that promises half of what
// it needs comes to 2 within 200 jobs, and back when it mends its ways.
func TestReliabilityFollowsThePromises(t *testing.T) {
	e := &Engine{cfg: Config{Placement: Placement{Adaptive: true}}}
	job1 := func(site job.SiteID, promised, actual time.Duration, kind job.OutcomeKind) {
		o := &openJob{rec: &store.Job{Holder: site}, promises: []promise{{site, promised}}, decided: 100}
		e.learn(job.Time(100).Add(actual), o, kind)
	}
	length := func(i int) time.Duration { return time.Duration(1+i*7919%1000) * time.Second }
	for i := range 200 {
		job1("honest", length(i), length(i), job.Success)
		job1("liar", length(i), 2*length(i), job.Failure)
		job1("honest", time.Second, time.Hour, job.Cancel) // says nothing
	}
	near := func(site job.SiteID, want float64) {
		t.Helper()
		if w := e.reliability(site); math.Abs(w-want) > 0.2*want {
			t.Errorf("%s weighs %v, want %v", site, w, want)
		}
	}
	near("liar", 2)
	near("honest", 1)
	near("stranger", 1.5)
	for i := range 200 {
		job1("liar", length(i), length(i), job.Success)
	}
	near("liar", 1)
}
