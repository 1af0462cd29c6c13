package place

import (
	"fmt"
	"testing"
	"time"

	"kith/cluster"
	"kith/internal/job"
)

// weightsOf returns the weights that five sites of the given speeds get, the
// first k of them with a dual queue, for jobs of the origin-th.
func weightsOf(t *testing.T, speeds []float64, k, origin int, a float64) []float64 {
	t.Helper()
	digest := func(i int) cluster.Digest {
		return cluster.Digest{
			Site: job.SiteID(fmt.Sprint("s", i)), Processors: 4, Speed: speeds[i], Load: job.Load{Work: 10}, HomeJobs: cluster.HomeJobsOf(i < k),
		}
	}
	var others []cluster.Digest
	for i := range speeds {
		if i != origin {
			others = append(others, digest(i))
		}
	}
	p := policyOf(Options{Scheme: Distributed, Weight: a})
	d := decide(Job{Request: &job.Request{Processors: 1, Walltime: time.Hour}}, viewOf(digest(origin), others...), 0, &p)
	weights := make([]float64, len(speeds))
	for _, v := range d.Sites {
		if v.Score != 10*v.Weight {
			t.Fatalf("%s: score %v with weight %v", v.Site, v.Score, v.Weight)
		}
		weights[v.Site[1]-'0'] = v.Weight
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
				for i, w := range weightsOf(t, speeds[c], k, origin, 1.3) {
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
		for i, w := range weightsOf(t, c.speeds, c.k, 0, c.a) {
			if w != 1 {
				t.Errorf("%+v: site %d weighs %v", c, i, w)
			}
		}
	}
}

// weighed returns the weight of each other site of an origin that starts its own
// jobs first, has 10 processors and uses weight 2.
func weighed(t *testing.T, v View) map[job.SiteID]float64 {
	t.Helper()
	v.Own = cluster.Digest{Site: "own", Processors: 10, Speed: 1, HomeJobs: cluster.HomeJobsFirst, Policy: "easy, dual-backfill, scope all"}
	p := policyOf(Options{Scheme: Distributed, Weight: 2})
	weights := map[job.SiteID]float64{}
	for _, v := range decide(Job{Request: &job.Request{Processors: 1}}, v, 0, &p).Sites {
		weights[v.Site] = v.Weight
	}
	if weights["own"] != 1 {
		t.Errorf("the origin weighs %v", weights["own"])
	}
	return weights
}

// A site that never told its load, and one out of reach, do not count.
func TestWeightsIgnoreSitesOutOfReach(t *testing.T) {
	v := viewOf(cluster.Digest{},
		cluster.Digest{Site: "batch", Processors: 4, HomeJobs: cluster.HomeJobsAlike},
		cluster.Digest{Site: "gone", Processors: 100, HomeJobs: cluster.HomeJobsAlike})
	v.Peers[1].Connected = false
	v.Peers = append(v.Peers, &cluster.Peer{Site: "silent", Connected: true})
	if w := weighed(t, v); w["batch"] != 2 {
		t.Errorf("weight %v, want 2", w["batch"])
	}
}

// What a site says in words decides nothing, whatever the words are.
func TestWordsOfAPeerDecideNothing(t *testing.T) {
	for _, words := range []string{"", "easy, single", "none, dual-strict", "easy, dual-backfill, scope all", "dual-", "we start your jobs first"} {
		for says, want := range map[cluster.HomeJobs]float64{cluster.HomeJobsAlike: 2, cluster.HomeJobsFirst: 1} {
			v := viewOf(cluster.Digest{}, cluster.Digest{Site: "liar", Processors: 4, HomeJobs: says, Policy: words})
			if w := weighed(t, v); w["liar"] != want {
				t.Errorf("a site with home jobs %d and the words %q weighs %v, want %v", says, words, w["liar"], want)
			}
		}
	}
}

// A site of an older version does not say whether its own jobs go first. It is
// taken to start them first, whatever its words are.
func TestOlderSitesStartTheirOwnJobsFirst(t *testing.T) {
	for _, words := range []string{"easy, single", "easy, dual-backfill, scope all"} {
		v := viewOf(cluster.Digest{},
			cluster.Digest{Site: "alike", Processors: 15, HomeJobs: cluster.HomeJobsAlike},
			cluster.Digest{Site: "older", Processors: 10, Policy: words})
		if w := weighed(t, v); w["older"] != 1 || w["alike"] != 2 {
			t.Errorf("weights %v: the older site and the origin are the group with more power", w)
		}
	}
}
