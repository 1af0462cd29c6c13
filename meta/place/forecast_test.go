package place

import (
	"slices"
	"testing"
	"time"

	"kith/cluster"
	"kith/internal/forecast"
	"kith/internal/job"
)

// With rank forecast a job goes where the median of its end is first, runs being shorter where
// processors are faster; with a risk a site that may keep it for long ranks behind one that is
// certain; a site that makes no forecast counts with its own word, and one that says nothing is
// behind all.
func TestRankForecast(t *testing.T) {
	minutes := func(m ...int) *forecast.Waits {
		w := new(forecast.Waits)
		for i := range w {
			w[i] = time.Duration(m[min(i, len(m)-1)]) * time.Minute
		}
		return w
	}
	hour := job.Request{Processors: 1, Walltime: time.Hour, Copies: 1}
	for i := range hour.Runs { // it will run for about half of its limit
		hour.Runs[i] = 1<<15 + uint16(i) //nolint:gosec // Nine levels.
	}
	told := func(site job.SiteID, w *forecast.Waits) Answer {
		return Answer{Site: site, Known: true, Wait: w.Median(), Waits: w}
	}
	wide := minutes(0, 0, 1, 5, 10, 60, 120, 300, 900)
	for name, c := range map[string]struct {
		speed   float64
		risk    float64
		answers []Answer
		want    job.SiteID
		rank    Rank
		score   time.Duration
	}{
		"the sooner median":        {1, 0, []Answer{told("a", minutes(25)), told("b", wide)}, "b", RankForecast, 47 * time.Minute},
		"with a risk the surer":    {1, 1, []Answer{told("a", minutes(25)), told("b", wide)}, "a", RankForecast, 55 * time.Minute},
		"the faster processors":    {4, 0, []Answer{told("a", minutes(25)), told("b", minutes(30))}, "b", RankForecast, 37*time.Minute + 30*time.Second},
		"as slow":                  {1, 0, []Answer{told("a", minutes(25)), told("b", minutes(30))}, "a", RankForecast, 55 * time.Minute},
		"a word without forecast":  {1, 0, []Answer{told("a", minutes(25)), {Site: "b", Known: true, Wait: time.Minute}}, "b", RankForecast, 31 * time.Minute},
		"no answer is behind":      {1, 0, []Answer{told("a", minutes(900)), {Site: "b", Awaited: true}}, "a", RankForecast, 930 * time.Minute},
		"nobody answers, so loads": {1, 0, []Answer{{Site: "a", Reason: job.WouldNotStart}, {Site: "b", Awaited: true}}, "b", RankWork, 5 * time.Second},
	} {
		v := viewOf(cluster.Digest{Site: "a", Processors: 1, Speed: 1, Load: job.Load{Work: 9}}, cluster.Digest{Site: "b", Processors: 1, Speed: c.speed, Load: job.Load{Work: 5}})
		v.Answers = c.answers
		p := policyOf(Options{Scheme: Distributed, Rank: RankForecast, Risk: c.risk})
		var r Round
		r.Begin(Job{Request: &hour}, v, 0, &p)
		d := r.Decide()
		off := time.Duration(r.Sites[0].Score*float64(time.Second)) - c.score
		if got := chosenOf(d); !slices.Equal(got, []job.SiteID{c.want}) || Rank(d.Rank) != c.rank || off.Abs() > time.Minute {
			t.Errorf("%s: chose %v by %v with score %v s, want %s by %v with %v", name, got, Rank(d.Rank), r.Sites[0].Score, c.want, c.rank, c.score)
		}
	}
}
