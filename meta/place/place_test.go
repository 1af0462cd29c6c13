package place

import (
	"fmt"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"kith/cluster"
	"kith/internal/harvest"
	"kith/internal/job"
	"kith/store"
)

// chosenOf returns the sites that a decision chose, in order.
func chosenOf(d *store.Decision) (sites []job.SiteID) {
	for _, v := range d.Sites {
		if v.Chosen {
			sites = append(sites, v.Site)
		}
	}
	return sites
}

// Whatever a decision tells of, it chooses the same sites in the same order as
// one that ranks them all.
func TestShortDecisionsChooseTheSameSites(t *testing.T) {
	rng := rand.New(rand.NewPCG(0, 0))
	for round := range 2000 {
		list := make([]Candidate, 1+rng.IntN(100))
		own := rng.IntN(len(list))
		for i := range list {
			list[i] = Candidate{
				SiteDecision: store.SiteDecision{Site: job.SiteID(fmt.Sprintf("s%03d", i)), Weight: 1, Score: float64(rng.IntN(20))},
				Own:          i == own, Eligible: rng.IntN(4) > 0, Blind: rng.IntN(10) == 0, Tie: float64(rng.IntN(2)),
			}
		}
		k, keepsOwn := 1+rng.IntN(5), rng.IntN(2) == 0
		decide := func(kept int) []job.SiteID {
			choose := best
			if keepsOwn {
				choose = ownAndBest
			}
			p := Policy{Choose: choose(func(*Round) int { return k }), Kept: kept}
			r := Round{Policy: &p, Sites: slices.Clone(list)}
			d := r.Decide()
			if n := max(kept, k); len(d.Sites) > n {
				t.Fatalf("round %d: %d sites, at most %d were wanted", round, len(d.Sites), n)
			}
			return chosenOf(d)
		}
		want := decide(store.MaxDecisionSites)
		for _, kept := range []int{1, 2, 7} {
			if got := decide(kept); !slices.Equal(got, want) {
				t.Fatalf("round %d, K=%d, keeps own %v, %d sites: chose %v, want %v", round, k, keepsOwn, kept, got, want)
			}
		}
	}
}

// Deciding changes nothing that it is given, and a round that was used before
// makes no difference.
func TestDecideChangesNothing(t *testing.T) {
	var r Round
	for _, s := range Schemes() {
		for _, weight := range []float64{0, 1.3} {
			p, v, before := policyOf(Options{Scheme: s, Rank: RankUnset, Weight: weight}), manySites(40), manySites(40)
			j := Job{Request: &job.Request{Processors: 16, Walltime: time.Hour, Copies: 3}, Tried: []job.SiteID{"s003"}}
			first := decide(j, v, 1, &p)
			r.Begin(j, v, 1, &p)
			if again := r.Decide(); !reflect.DeepEqual(first, again) {
				t.Errorf("%s: the same round decides %+v, then %+v", s, first, again)
			}
			if !reflect.DeepEqual(v, before) {
				t.Errorf("%s: the view has changed", s)
			}
		}
	}
}

// A round that is used again takes no memory but that of the decision.
func TestDecideAllocates(t *testing.T) {
	for _, s := range Schemes() {
		p, v, r := policyOf(Options{Scheme: s, Rank: RankUnset}), manySites(40), Round{}
		j := Job{Request: &job.Request{Processors: 16, Walltime: time.Hour}}
		n := testing.AllocsPerRun(100, func() {
			r.Begin(j, v, 1, &p)
			r.Decide()
		})
		if n > 2 {
			t.Errorf("%s: %v allocations a decision, want 2: it and its list of sites", s, n)
		}
	}
}

func TestTriedSitesGetNoCopy(t *testing.T) {
	p, v := policyOf(Options{Scheme: KDistributed}), manySites(4)
	v.Answers = nil
	j := Job{Request: &job.Request{Processors: 1}}
	for i := 0; ; i++ {
		var r Round
		r.Begin(j, v, 1, &p)
		next := r.Next()
		if next == "" {
			if i != 4 {
				t.Errorf("%d sites were tried, there are 4", i)
			}
			return
		}
		if slices.Contains(j.Tried, next) {
			t.Fatalf("%s is next, and was tried: %v", next, j.Tried)
		}
		j.Tried = append(j.Tried, next)
	}
}

// A rank that is not set is that of the scheme, or else load; one that is set
// stays, and is refused where the scheme has another.
func TestUnsetRankIsNotWork(t *testing.T) {
	for scheme, want := range map[Scheme]Rank{MCT: RankCompletion, Hierarchical: RankStart, KDual: RankWork} {
		o := Default()
		o.Scheme, o.Rank = scheme, RankUnset
		if err := wrong(&o); err != nil || o.rank() != want {
			t.Errorf("%s without a rank: %v, %v; want %v", scheme, o.rank(), err, want)
		}
		o.Rank = RankWork
		err := wrong(&o)
		if _, implied := scheme.ImpliedRank(); implied != (err != nil) || (err != nil && !strings.Contains(err.Error(), "rank work: scheme")) {
			t.Errorf("%s with rank work: %v", scheme, err)
		}
	}
}

// With equal starts the Hierarchical scheme goes by load, and where no site was
// asked, loads have to do.
func TestEstimates(t *testing.T) {
	own := cluster.Digest{Site: "a", Processors: 1, Load: job.Load{Work: 9, Procs: 1}}
	v := viewOf(own, cluster.Digest{Site: "b", Processors: 1, Load: job.Load{Work: 5, Procs: 2}})
	asked := v
	asked.Answers = []Answer{{Site: "b", Known: true, Wait: time.Second}, {Site: "a", Known: true, Wait: time.Second}}
	silent := v
	silent.Answers = []Answer{{Site: "a", Known: true, Wait: time.Second}, {Site: "b", Awaited: true}}
	for _, c := range []struct {
		name string
		o    Options
		v    View
		want job.SiteID
		rank Rank
	}{
		{"load work", Options{Scheme: Distributed}, v, "b", RankWork},
		{"load procs", Options{Scheme: Distributed, Rank: RankProcs}, v, "a", RankProcs},
		{"start, then load", Options{Scheme: Hierarchical, Rank: RankUnset}, asked, "b", RankStart},
		{"start, then origin", Options{Scheme: Distributed, Rank: RankStart}, asked, "a", RankStart},
		{"no answer", Options{Scheme: Hierarchical, Rank: RankUnset}, silent, "a", RankStart},
		{"no site was asked", Options{Scheme: MCT, Rank: RankUnset}, v, "b", RankWork},
		{"no site was asked for a forecast", Options{Scheme: Distributed, Rank: RankForecast}, v, "b", RankWork},
	} {
		p := policyOf(c.o)
		d := decide(Job{Request: &job.Request{Processors: 1, Walltime: time.Hour}}, c.v, 0, &p)
		if got := chosenOf(d); !slices.Equal(got, []job.SiteID{c.want}) || Rank(d.Rank) != c.rank {
			t.Errorf("%s: chose %v by %v, want %s by %v", c.name, got, Rank(d.Rank), c.want, c.rank)
		}
	}
}

// A site whose owner leaves a job no time is refused by name; of others the time is expected
// that he leaves.
func TestOwnersOfSites(t *testing.T) {
	ownerOf := func(rho float64) *cluster.Owner {
		o := new(cluster.Owner)
		for i := range o.Loads {
			o.Loads[i] = harvest.Load{Lambda: 0.01, Rho: rho, Sigma: 10}
		}
		return o
	}
	v := viewOf(cluster.Digest{Site: "alpha", Processors: 4, Speed: 1},
		cluster.Digest{Site: "busy", Processors: 4, Speed: 8, Owner: ownerOf(0.95)},
		cluster.Digest{Site: "half", Processors: 4, Speed: 1, Owner: ownerOf(0.5)})
	v.Answers = []Answer{{Site: "alpha", Known: true, Wait: 90 * time.Minute}, {Site: "busy", Known: true}, {Site: "half", Known: true}}
	p := policyOf(Options{Scheme: MCT, Rank: RankUnset})
	var r Round
	r.Begin(Job{Request: &job.Request{Processors: 1, Walltime: time.Hour, Copies: 1}}, v, 0, &p)
	d := r.Decide()
	for i := range r.Sites {
		switch c := &r.Sites[i]; {
		case c.Site == "busy" && c.Reason != job.BusyOwner:
			t.Errorf("busy: %v", c.Reason)
		case c.Site == "half" && c.Promised != 2*time.Hour:
			t.Errorf("half is expected to take %v", c.Promised)
		}
	}
	if got := chosenOf(d); !slices.Equal(got, []job.SiteID{"half"}) {
		t.Errorf("chose %v", got)
	}
}
