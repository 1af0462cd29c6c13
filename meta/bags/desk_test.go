package bags

import (
	"math"
	"slices"
	"testing"
	"time"

	"kith/internal/job"
	"kith/store"
)

func TestAnswers(t *testing.T) {
	ask := Ask{Site: "beta", Shape: hour, Places: 5, Want: 100}
	for name, c := range map[string]struct {
		ask    func(*Ask)
		works  []Work
		change func(d *Desk, works []Work)
		want   []Share
	}{
		"nothing there":              {},
		"an idle host, long tasks":   {works: []Work{workOf(1, "ann", 10)}, want: []Share{{0, 5}}}, // spec 002, acceptance 2
		"what it wants":              {ask: func(a *Ask) { a.Want = 2 }, works: []Work{workOf(1, "ann", 10)}, want: []Share{{0, 2}}},
		"it wants none":              {ask: func(a *Ask) { a.Want = 0 }, works: []Work{workOf(1, "ann", 10)}},
		"no places":                  {ask: func(a *Ask) { a.Places = 0 }, works: []Work{workOf(1, "ann", 10)}},
		"half a stock":               {ask: func(a *Ask) { a.Stock = 7 }, works: []Work{workOf(1, "ann", 10)}, want: []Share{{0, 3}}},
		"a full stock":               {ask: func(a *Ask) { a.Stock = 10 }, works: []Work{workOf(1, "ann", 10)}},
		"all that waits":             {works: []Work{workOf(1, "ann", 3)}, want: []Share{{0, 3}}},
		"another shape":              {ask: func(a *Ask) { a.Shape.Processors = 2 }, works: []Work{workOf(1, "ann", 3)}},
		"a site without an offer":    {ask: func(a *Ask) { a.Site = "delta" }, works: []Work{workOf(1, "ann", 3)}},
		"one bag of a user by one":   {works: []Work{workOf(2, "ann", 9), workOf(1, "ann", 3)}, want: []Share{{1, 3}, {0, 2}}},
		"a billion tasks":            {ask: func(a *Ask) { a.Want, a.Places, a.Mean = 1e9, 1e9, 1 }, works: []Work{workOf(1, "ann", 1e7)}, want: slices.Repeat([]Share{{0, 256}}, 16)},
		"numbers below zero":         {ask: func(a *Ask) { a.Want, a.Places, a.Mean, a.Stock, a.Running = -1, -1, -1, -1, -1 }, works: []Work{workOf(1, "ann", 1e7)}},
		"short tasks, two seconds'":  {works: []Work{workOf(1, "ann", 1000)}, change: func(_ *Desk, w []Work) { w[0].Mean = 100 * time.Millisecond }, want: []Share{{0, 100}}},
		"the host knows how short":   {ask: func(a *Ask) { a.Mean = 200 * time.Millisecond }, works: []Work{workOf(1, "ann", 1000)}, want: []Share{{0, 50}}},
		"the bag knows better":       {ask: func(a *Ask) { a.Mean = time.Millisecond }, works: []Work{workOf(1, "ann", 1000)}, change: func(_ *Desk, w []Work) { w[0].Mean = time.Hour }, want: []Share{{0, 5}}},
		"at most so many at once":    {works: []Work{workOf(1, "ann", 10)}, change: func(_ *Desk, w []Work) { w[0].Room = 2 }, want: []Share{{0, 2}}},
		"no room, so the next":       {works: []Work{workOf(1, "ann", 10), workOf(2, "ann", 10)}, change: func(_ *Desk, w []Work) { w[0].Room = 0 }, want: []Share{{1, 5}}},
		"the higher priority":        {works: []Work{workOf(1, "ann", 10), workOf(2, "bob", 10)}, change: func(_ *Desk, w []Work) { w[1].Priority = 1 }, want: []Share{{1, 5}}},
		"the lower priority fills":   {works: []Work{workOf(1, "ann", 10), workOf(2, "bob", 2)}, change: func(_ *Desk, w []Work) { w[1].Priority = 1 }, want: []Share{{1, 2}, {0, 3}}},
		"priority before usage":      {works: []Work{workOf(1, "ann", 10), workOf(2, "bob", 9)}, change: func(d *Desk, w []Work) { w[1].Priority = 1; d.Usage.Add("bob", 1e9, 0) }, want: []Share{{1, 5}}},
		"who has used less":          {works: []Work{workOf(1, "ann", 10), workOf(2, "bob", 9)}, change: func(d *Desk, _ []Work) { d.Usage.Add("ann", 1, 0) }, want: []Share{{1, 5}}},
		"who has fewer with sites":   {works: []Work{workOf(1, "ann", 10), workOf(2, "bob", 9)}, change: func(_ *Desk, w []Work) { w[0].Given = 1 }, want: []Share{{1, 5}}},
		"of another shape, too":      {works: []Work{workOf(1, "ann", 10), workOf(2, "bob", 9), workOf(3, "ann", 1)}, change: func(_ *Desk, w []Work) { w[2].Given, w[2].Shape.Processors = 1, 8 }, want: []Share{{1, 5}}},
		"users take turns in an ask": {ask: func(a *Ask) { a.Places, a.Want = 1000, 700 }, works: []Work{workOf(1, "ann", 1000), workOf(2, "bob", 1000)}, want: []Share{{0, 256}, {1, 256}, {0, 188}}},
		"failed there, others first": {works: []Work{workOf(1, "ann", 4)}, change: func(d *Desk, w []Work) { d.Elsewhere.Failed(w[0].Bag, 3, "beta", 0) }, want: []Share{{0, 3}}},
		"failed at the only site": {works: []Work{workOf(1, "ann", 4)}, change: func(d *Desk, w []Work) {
			w[0].Sites = w[0].Sites[:1]
			d.Elsewhere.Failed(w[0].Bag, 3, "beta", 0)
		}, want: []Share{{0, 4}}},
	} {
		t.Run(name, func(t *testing.T) {
			a, d := ask, newDesk()
			if c.ask != nil {
				c.ask(&a)
			}
			if c.change != nil {
				c.change(d, c.works)
			}
			if got := d.Answer(a, c.works, 0); !slices.Equal(got, c.want) {
				t.Errorf("%v, want %v", got, c.want)
			}
		})
	}
}

// judge is a policy that gives what it is; where it is not Yes the bag must not run.
type judge Verdict

func (j judge) Verdict(*Scene) Verdict        { return Verdict(j) }
func (j judge) Offer(*Scene) bool             { return true }
func (judge) Deadline(*Scene) (float64, bool) { return 0, false }
func (j judge) Replicate(*Scene) bool         { return false }
func (j judge) Cost(Text) int                 { return 0 }
func (j judge) Explain(*Scene) []Given        { return nil }
func (j judge) Forget()                       {}

// What requirements refuse gets nothing. Ranks order the bags of a user (spec 002 section 2.1)
// and put none before those of others; nor does what one user allows bind others.
func TestPoliciesDecide(t *testing.T) {
	works := []Work{workOf(1, "ann", 1), workOf(2, "ann", 1), workOf(3, "cid", 1), workOf(4, "dan", 1), workOf(5, "eve", 1), workOf(6, "fay", 1), workOf(7, "ann", 1)}
	works[4].Priority = -1
	for i, rank := range []float64{0, 1, 0, 1e10, 1e10, 0, 2} {
		works[i].Judge = judge{Yes: i != 2, Rank: rank, Most: math.Inf(1)}
	}
	works[5].Judge = judge{Yes: true}
	if got, want := newDesk().Answer(Ask{Site: "beta", Shape: hour, Places: 9, Want: 9}, works, 0), []Share{{6, 1}, {3, 1}, {1, 1}, {0, 1}, {4, 1}}; !slices.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
}

// Concurrency bounds what a host has, and the bag that comes first bounds those behind it
// (spec 002 section 2.2, acceptance 2 and 3).
func TestConcurrency(t *testing.T) {
	for name, c := range map[string]struct {
		most           []float64 // of bags of ten tasks, by rank
		running, stock int
		want           []Share
	}{
		"an idle host":                 {[]float64{5}, 0, 0, []Share{{0, 5}}},
		"a host with as many":          {[]float64{5}, 5, 0, nil},
		"a host with as many in stock": {[]float64{5}, 2, 3, nil},
		"a host with some":             {[]float64{5}, 2, 1, []Share{{0, 2}}},
		"a low rank allows more":       {[]float64{1, 10}, 0, 0, []Share{{0, 1}}},
		"a low rank allows less":       {[]float64{12, 11, 30}, 0, 0, []Share{{0, 10}, {1, 1}}},
		"a low rank allows far less":   {[]float64{12, 2}, 0, 0, []Share{{0, 10}}},
		"none":                         {[]float64{0}, 0, 0, nil},
		"less than none":               {[]float64{-1e300}, 0, 0, nil},
		"a half":                       {[]float64{1.5}, 0, 0, []Share{{0, 1}}},
		"no bound":                     {[]float64{math.Inf(1), math.Inf(1)}, 3, 3, []Share{{0, 10}, {1, 10}}},
	} {
		var works []Work
		for i, most := range c.most {
			w := workOf(uint64(i), "ann", 10)
			w.Judge = judge{Yes: true, Rank: -float64(i), Most: most}
			works = append(works, w)
		}
		a := Ask{Site: "beta", Shape: hour, Places: 40, Running: c.running, Stock: c.stock, Want: 20}
		if got := newDesk().Answer(a, works, 0); !slices.Equal(got, c.want) {
			t.Errorf("%s: %v, want %v", name, got, c.want)
		}
	}
}

// A host with thousands of bags of one task gets a bounded answer.
func TestAnswersHaveFewBundles(t *testing.T) {
	var works []Work
	for i := range uint64(10_000) {
		works = append(works, workOf(i, "ann", 1))
	}
	if got := newDesk().Answer(Ask{Site: "beta", Shape: hour, Places: 5000, Want: 5000}, works, 0); len(got) != MaxBundles || got[63] != (Share{63, 1}) {
		t.Errorf("%d bundles: %v", len(got), got)
	}
}

func TestWorkOfABag(t *testing.T) {
	s := store.NewState("alpha", 1)
	b := submit(t, s, 100, func(c *store.SubmitBag) { c.MaxRunning, c.Priority = 20, 3 })
	id := give(t, s, b, "beta", 8)
	w := WorkOf(b, 0, []job.SiteID{"beta"})
	if w.Waiting != 92 || w.Room != 12 || w.Given != 8 || w.Tasks() != 12 || w.Mean != 0 || w.Priority != 3 || w.User != "ann" || w.Shape != hour || w.Walltime != time.Hour {
		t.Errorf("%+v", w)
	}
	end(t, s, id, job.Success)
	if w = WorkOf(b, 0, nil); w.Mean != 3*time.Second || w.Room != 20 || w.Given != 0 {
		t.Errorf("after results: %+v", w)
	}
	must(t, s, store.HoldBag{Bag: b.ID})
	if w = WorkOf(b, 0, nil); w.Tasks() != 0 {
		t.Errorf("held: %d tasks", w.Tasks())
	}
}
