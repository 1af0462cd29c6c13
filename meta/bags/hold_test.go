package bags

import (
	"testing"

	"kith/internal/job"
	"kith/store"
)

func TestBagsThatOnlyFailAreHeld(t *testing.T) {
	type ended struct {
		site  job.SiteID
		kind  job.OutcomeKind
		tasks int
	}
	for name, c := range map[string]struct {
		sites int
		ended []ended
		then  func(t *testing.T, s *store.State, b *store.Bag)
		want  string
	}{
		"nothing yet":                {sites: 2},
		"at one of two":              {sites: 2, ended: []ended{{"beta", job.Failure, 60}}},
		"at two":                     {sites: 2, ended: []ended{{"beta", job.Failure, 49}, {"gamma", job.Timeout, 1}}, want: "the first 50 results, at 2 sites, are all failures"},
		"49":                         {sites: 2, ended: []ended{{"beta", job.Failure, 48}, {"gamma", job.Failure, 1}}},
		"at the only one":            {sites: 1, ended: []ended{{"beta", job.Failure, 51}}, want: "the first 51 results, at beta, are all failures"},
		"offered to none any more":   {sites: 0, ended: []ended{{"beta", job.Failure, 51}}, want: "the first 51 results, at beta, are all failures"},
		"one good one":               {sites: 1, ended: []ended{{"beta", job.Success, 1}, {"beta", job.Failure, 80}}},
		"lost with its host":         {sites: 1, ended: []ended{{"beta", job.Loss, 80}}},
		"stopped at its host":        {sites: 1, ended: []ended{{"beta", job.Cancel, 80}}},
		"its user has released it":   {sites: 1, ended: []ended{{"beta", job.Failure, 51}}, then: releaseBag},
		"held already":               {sites: 1, ended: []ended{{"beta", job.Failure, 51}}, then: func(t *testing.T, s *store.State, b *store.Bag) { must(t, s, store.HoldBag{Bag: b.ID}) }},
		"a good one that runs again": {sites: 1, ended: []ended{{"beta", job.Success, 1}, {"beta", job.Failure, 80}}, then: retryFirst},
	} {
		t.Run(name, func(t *testing.T) {
			s := store.NewState("alpha", 1)
			b := submit(t, s, 1000, nil)
			for _, e := range c.ended {
				end(t, s, give(t, s, b, e.site, e.tasks), e.kind)
			}
			if c.then != nil {
				c.then(t, s, b)
			}
			if got, hold := Hold(b, c.sites); got != c.want || hold != (c.want != "") {
				t.Errorf("%v, %q, want %q", hold, got, c.want)
			}
		})
	}
}

func releaseBag(t *testing.T, s *store.State, b *store.Bag) {
	must(t, s, store.HoldBag{Bag: b.ID})
	must(t, s, store.ReleaseBag{Bag: b.ID})
}

func retryFirst(t *testing.T, s *store.State, b *store.Bag) {
	must(t, s, store.RetryTasks{Bag: b.ID, Tasks: job.TaskRange(0, 1)})
}
