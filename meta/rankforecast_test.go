package meta_test

import (
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"kith/internal/forecast"
	"kith/internal/job"
	"kith/meta"
	"kith/sitesched"
)

// ranking is an oracle that sends one copy to where forecasts say that the job ends first.
func ranking(t *testing.T) *oracle {
	return newOracle(t, 4, func(c *meta.Config, _ *sitesched.Config) {
		c.Placement.Scheme, c.Placement.Rank, c.Placement.Copies = meta.KDistributed, meta.RankForecast, 1
	})
}

// waits is a forecast of a wait that is about w.
func waits(w time.Duration) (list forecast.Waits) {
	for i := range list {
		list[i] = w + time.Duration(i)*time.Second
	}
	return list
}

// With rank forecast every site is asked for one, this one too, and the job goes to where it ends
// first. Until all have answered it waits.
func TestRankForecastAsksAllSites(t *testing.T) {
	for name, c := range map[string]struct {
		answer meta.StartAnswer
		want   job.SiteID
	}{
		"sooner there":                {meta.StartAnswer{Waits: waits(time.Second), Basis: forecast.ByScenarios}, "beta"},
		"later there":                 {meta.StartAnswer{Waits: waits(10 * time.Hour), Basis: forecast.ByScenarios}, "alpha"},
		"an earlier version: a limit": {meta.StartAnswer{Wait: time.Second}, "beta"},
		"none there":                  {meta.StartAnswer{Reason: job.WouldNotStart}, "alpha"},
		"never there":                 {meta.StartAnswer{Wait: math.MaxInt64}, "alpha"},
		"in the past there":           {meta.StartAnswer{Wait: -time.Hour}, "beta"},
		"no time there":               {meta.StartAnswer{Reason: job.AskLater}, "alpha"},
	} {
		t.Run(name, func(t *testing.T) {
			o := ranking(t)
			o.submit(4, 5*time.Hour)
			o.withBeta()
			id := o.submit(4, time.Hour)
			q := o.queries("beta")
			if len(q) != 1 || !q[0].Predict || q[0].Attempt != (job.AttemptID{}) || q[0].Request.Runs == [9]uint16{} {
				t.Fatalf("beta is asked %+v", q)
			}
			if s := o.state.Job(id).State; s != job.Pending {
				t.Fatalf("it is %v before beta has answered", s)
			}
			c.answer.Query = q[0].Query
			o.do(meta.Receive{From: "beta", Message: c.answer})
			j := o.state.Job(id)
			if j.State != job.Queued || !slices.Equal(j.Sites, []job.SiteID{c.want}) {
				t.Errorf("it is %v at %v, want %s", j.State, j.Sites, c.want)
			}
		})
	}
}

// Whoever does not answer in time costs the job no more than that: this site, which had others
// to play first, counts with what its scheduler predicts. A late answer is nobody's.
func TestRankForecastTooLate(t *testing.T) {
	o := ranking(t)
	o.heldUp = true
	first := o.submit(4, 5*time.Hour)
	o.later(time.Second) // it had waited for two seconds
	o.later(time.Second)
	o.withBeta()
	id := o.submit(4, time.Hour)
	if q := o.queries("beta"); len(q) != 1 {
		t.Fatalf("beta is asked %+v", q)
	}
	o.later(meta.Default().Placement.QueryTimeout)
	j := o.state.Job(id)
	if j.State != job.Queued || !slices.Equal(j.Sites, []job.SiteID{"alpha"}) {
		t.Fatalf("it is %v at %v", j.State, j.Sites)
	}
	for len(o.wanted) > 0 {
		o.do(o.foreseen())
	}
	if k := o.state.Job(id); k.Attempt != j.Attempt || !slices.Equal(k.Sites, j.Sites) {
		t.Errorf("after the late answers it is at %v", k.Sites)
	}
	if o.state.Job(first).Started == 0 {
		t.Error("the first did not start")
	}
}

// A job that is cancelled while sites are asked is asked about no more.
func TestRankForecastCancelled(t *testing.T) {
	o := ranking(t)
	o.submit(4, 5*time.Hour)
	o.withBeta()
	o.heldUp = true
	id, next := o.submit(4, time.Hour), o.submit(4, time.Hour)
	o.do(meta.Cancel{Job: id})
	for len(o.wanted) > 0 {
		o.do(o.foreseen())
	}
	for _, q := range o.queries("beta") {
		o.do(meta.Receive{From: "beta", Message: meta.StartAnswer{Query: q.Query, Waits: waits(time.Second), Basis: forecast.ByScenarios}})
	}
	if a, b := o.state.Job(id).State, o.state.Job(next); a != job.Cancelled || !slices.Equal(b.Sites, []job.SiteID{"beta"}) {
		t.Errorf("the first is %v, the second at %v", a, b.Sites)
	}
}

// A host answers a flood of jobs that are to be placed with predictions, which cost next to
// nothing: it plays 8 of them ahead of what it is asked next, and 60 at once of one site.
func TestRankForecastFlood(t *testing.T) {
	o := newOracle(t, 4, nil)
	o.submit(4, time.Hour)
	o.withBeta()
	o.heldUp, o.sent = true, nil
	r := job.Request{User: "bob", Processors: 4, Walltime: time.Hour}
	ask := func(n int) {
		for i := range n {
			o.do(meta.Receive{From: "beta", Message: meta.StartQuery{Query: uint64(1000 + i), Request: r, Predict: true, Draws: 50}})
		}
	}
	ask(70)
	list := o.answers()
	if len(list) != 70-9 { // one is played, eight wait
		t.Fatalf("%d answers at once", len(list))
	}
	for _, a := range list {
		if a.Reason != job.NoReason || a.Wait != time.Hour || a.Basis != forecast.NoStart {
			t.Fatalf("%+v", a)
		}
	}
	for len(o.wanted) > 0 {
		o.do(o.foreseen())
	}
	if list = o.answers(); len(list) != 9 || list[0].Basis != forecast.ByScenarios {
		t.Errorf("%d forecasts, the first %+v", len(list), list[0])
	}
}

// The rank needs forecasts, and the risk the rank.
func TestRankForecastMistakes(t *testing.T) {
	c := meta.Default()
	c.Self = meta.Self{Processors: 1, Speed: 1}
	c.Placement.Rank = meta.RankForecast
	if err := c.Validate(); err == nil || !strings.Contains(err.Error(), "placement.rank forecast: set forecast.enabled") {
		t.Errorf("without forecasts: %v", err)
	}
	c.Forecasts.Enabled, c.Placement.Risk = true, 1
	if err := c.Validate(); err != nil {
		t.Error(err)
	}
	c.Placement.Rank = meta.RankCompletion
	if err := c.Validate(); err == nil || !strings.Contains(err.Error(), "placement.risk 1: rank completion knows no deviations") {
		t.Errorf("a risk: %v", err)
	}
}

// A site that says that a job would never start there, or in the past, is not the first by that,
// whatever sites are ranked by.
func TestOddWaits(t *testing.T) {
	for _, rank := range []meta.Rank{meta.RankStart, meta.RankCompletion, meta.RankForecast} {
		o := newOracle(t, 4, func(c *meta.Config, _ *sitesched.Config) {
			c.Placement.Scheme, c.Placement.Rank, c.Placement.Copies = meta.KDistributed, rank, 1
		})
		o.submit(4, 5*time.Hour)
		o.withBeta()
		for _, wait := range []time.Duration{math.MaxInt64, math.MaxInt64 - time.Hour, 10 * job.MaxWalltime} {
			o.sent = nil
			id := o.submit(4, time.Hour)
			for _, s := range o.sent {
				if q, ok := s.Message.(meta.StartQuery); ok {
					o.do(meta.Receive{From: "beta", Message: meta.StartAnswer{Query: q.Query, Wait: wait}})
				}
			}
			if j := o.state.Job(id); !slices.Equal(j.Sites, []job.SiteID{"alpha"}) {
				t.Errorf("rank %v: with a wait of %d at beta the job is at %v", rank, wait, j.Sites)
			}
		}
	}
}
