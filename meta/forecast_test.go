package meta_test

import (
	"fmt"
	"testing"
	"time"

	"kith/cluster"
	"kith/internal/forecast"
	"kith/internal/harvest"
	"kith/internal/job"
	"kith/meta"
	"kith/sitesched"
	"kith/store"
)

// oracle is site "alpha", which makes forecasts, driven by hand: its clock stands until it is
// moved, and what has to be foreseen is foreseen at once unless it is held up.
type oracle struct {
	t       testing.TB
	engine  *meta.Engine
	state   *store.State
	now     job.Time
	stage   forecast.Stage
	heldUp  bool
	wanted  []meta.Foresee
	sent    []meta.Send
	replies []meta.Reply
}

func newOracle(t testing.TB, processors int32, change func(*meta.Config, *sitesched.Config)) *oracle {
	return newOracleOn(t, store.NewState("alpha", 1), processors, change)
}

// newOracleOn is newOracle at a site that has facts.
func newOracleOn(t testing.TB, facts *store.State, processors int32, change func(*meta.Config, *sitesched.Config)) *oracle {
	o := &oracle{t: t, state: facts, now: job.Time(1000 * time.Hour)}
	cfg := meta.Default()
	cfg.Forecasts = meta.Forecasts{Enabled: true, Arrivals: true}
	cfg.Self = meta.Self{Processors: processors, HomeJobs: cluster.HomeJobsOf(true), Speed: 1}
	sc := sitesched.Config{Processors: processors, Backfill: sitesched.EASY, Queues: sitesched.DualBackfill, Scope: sitesched.ScopeAll}
	if change != nil {
		change(&cfg, &sc)
	}
	sched, err := sitesched.New(sc)
	if err != nil {
		t.Fatal(err)
	}
	if o.engine, err = meta.New(cfg, o.state, sched); err != nil {
		t.Fatal(err)
	}
	o.carry(o.engine.Restore(o.now, nil))
	o.end()
	return o
}

// do gives the engine events that make an instant.
func (o *oracle) do(events ...meta.Event) {
	for _, ev := range events {
		o.carry(o.engine.Step(o.now, ev))
	}
	o.end()
}

func (o *oracle) end() { o.carry(o.engine.Step(o.now, meta.Pass{})) }

func (o *oracle) carry(effects []meta.Effect) {
	var next []meta.Event
	for _, f := range effects {
		switch f := f.(type) {
		case meta.Foresee:
			if o.wanted = append(o.wanted, f); !o.heldUp {
				next = append(next, o.foreseen())
			}
		case meta.Send:
			o.sent = append(o.sent, f)
		case meta.Reply:
			o.replies = append(o.replies, f)
		case meta.Launch:
			next = append(next, meta.AttemptStarted{Attempt: f.Attempt, At: o.now})
		}
	}
	for _, ev := range next {
		o.carry(o.engine.Step(o.now, ev))
	}
}

// foreseen answers the oldest inquiry.
func (o *oracle) foreseen() meta.Event {
	f := o.wanted[0]
	o.wanted = o.wanted[1:]
	return meta.Foreseen{Number: f.Number, Inquiry: f.Inquiry, Answer: o.stage.Play(f.Inquiry)}
}

func (o *oracle) later(d time.Duration) {
	o.now = o.now.Add(d)
	o.do(meta.Tick{})
}

// submit submits a job and returns its id.
func (o *oracle) submit(processors int32, walltime time.Duration) job.ID {
	id := o.state.NextID()
	o.do(meta.Submit{Request: job.Request{Name: "x", User: "ada", Processors: processors, Walltime: walltime}})
	if o.state.Job(id) == nil {
		o.t.Fatalf("job %v was refused", id)
	}
	return id
}

func (o *oracle) finish(id job.ID) {
	a := o.state.Job(id).AttemptID()
	o.do(meta.AttemptEnded{Attempt: a, Outcome: job.Outcome{Kind: job.Success, Start: o.state.Job(id).Started, End: o.now}})
}

// answers are the answers to start queries that were sent since the last call.
func (o *oracle) answers() (list []meta.StartAnswer) {
	for _, s := range o.sent {
		if a, ok := s.Message.(meta.StartAnswer); ok {
			list = append(list, a)
		}
	}
	o.sent = nil
	return list
}

// queries are the questions for forecasts that were sent to a site since the last call.
func (o *oracle) queries(to job.SiteID) (list []meta.StartQuery) {
	for _, s := range o.sent {
		if q, ok := s.Message.(meta.StartQuery); ok && s.To == to && q.Draws > 0 {
			list = append(list, q)
		}
	}
	o.sent = nil
	return list
}

func (o *oracle) unscored(why forecast.Unresolved) int64 {
	return o.engine.Views().Forecasts().Unscored[why]
}

// withBeta lets site "beta" be there, which takes copies.
func (o *oracle) withBeta() {
	o.do(meta.PeerUp{Site: "beta", Generation: 1, Incarnation: 1},
		meta.Receive{From: "beta", Message: meta.LoadDigest{Digest: cluster.Digest{
			Site: "beta", Incarnation: 1, Sequence: 1, Time: o.now, Processors: 64, Speed: 1, Load: job.Load{Work: 1},
		}}})
}

func (o *oracle) accept(a job.AttemptID) {
	o.do(meta.Receive{From: "beta", Message: meta.CopyAnswer{Attempt: a, Accepted: true}})
}

// A job that starts at once has no forecast; one that waits has, and is compared with its start.
func TestForecastOfAJobThatWaits(t *testing.T) {
	o := newOracle(t, 4, nil)
	first := o.submit(4, time.Hour)
	if o.state.Job(first).Forecast != nil || o.state.Job(first).Started == 0 {
		t.Errorf("the first: %+v", o.state.Job(first))
	}
	second := o.submit(4, time.Hour)
	f := o.state.Job(second).Forecast
	if f == nil || f.End != store.ForecastOpen || f.Made != o.now || f.Limit != time.Hour || len(f.Sites) != 1 || f.Basis != uint8(forecast.ByScenarios) || f.Told[4] <= 0 || f.Told[4] > time.Hour {
		t.Fatalf("the second: %+v", f)
	}
	o.later(f.Told[4])
	o.finish(first)
	if g := o.state.Job(second).Forecast; g.End != store.ForecastScored || g.Waited != f.Told[4] {
		t.Errorf("after its start: %+v", g)
	}
	v := o.engine.Views().Forecasts()
	if v.Starts[0].Forecasts != 1 || v.Starts[0].Held != 1 || v.Learnt != 1 || v.Runs[0].Forecasts != 1 {
		t.Errorf("%+v", v)
	}
}

// A job that is cancelled or held before it starts is counted apart, and so is one that had
// started before there was a forecast.
func TestForecastsThatAreNotScored(t *testing.T) {
	o := newOracle(t, 4, nil)
	first := o.submit(4, time.Hour)
	cancelled, held := o.submit(4, time.Hour), o.submit(4, time.Hour)
	o.do(meta.Cancel{Job: cancelled}, meta.Hold{Job: held})
	if a, b := o.state.Job(cancelled).Forecast, o.state.Job(held).Forecast; a.End != store.ForecastUnscored || b.End != store.ForecastUnscored {
		t.Errorf("%+v, %+v", a, b)
	}
	o.do(meta.Release{Job: held})
	if f := o.state.Job(held).Forecast; f.End != store.ForecastOpen || f.Attempt != 2 {
		t.Errorf("after its release: %+v", f)
	}
	o.heldUp = true
	late := o.submit(1, time.Hour)
	o.do(meta.Cancel{Job: held})
	o.finish(first)
	o.do(o.foreseen())
	if j := o.state.Job(late); j.Started == 0 || j.Forecast != nil {
		t.Errorf("the late one: %+v", j)
	}
	v := o.engine.Views().Forecasts()
	if v.Starts[0].Forecasts != 0 || v.Unscored[forecast.Cancelled] != 2 || v.Unscored[forecast.Held] != 1 || v.Unscored[forecast.AtOnce] != 1 {
		t.Errorf("%+v", v)
	}
}

// The job's forecast is the least of the sites'. A site that does not answer, or without a
// forecast, costs it nothing but two seconds.
func TestForecastAcrossSites(t *testing.T) {
	soon := forecast.Waits{1, 2, 3, 4, 5, 6, 7, 8, 9}
	for i := range soon {
		soon[i] *= time.Second
	}
	for name, c := range map[string]struct {
		answer func(q meta.StartQuery) meta.Message
		wait   time.Duration
		sites  int
	}{
		"a forecast": {func(q meta.StartQuery) meta.Message {
			return meta.StartAnswer{Query: q.Query, Waits: soon, Basis: forecast.ByLimits}
		}, 0, 2},
		"would not start": {func(q meta.StartQuery) meta.Message {
			return meta.StartAnswer{Query: q.Query, Reason: job.WouldNotStart}
		}, 0, 1},
		"ask later":                   {func(q meta.StartQuery) meta.Message { return meta.StartAnswer{Query: q.Query, Reason: job.AskLater} }, 0, 1},
		"an earlier version: a limit": {func(q meta.StartQuery) meta.Message { return meta.StartAnswer{Query: q.Query, Wait: time.Minute} }, 0, 1},
		"another query": {func(q meta.StartQuery) meta.Message {
			return meta.StartAnswer{Query: q.Query + 7, Waits: soon, Basis: 1}
		}, 2 * time.Second, 1},
		"nothing": {nil, 2 * time.Second, 1},
	} {
		t.Run(name, func(t *testing.T) {
			o := newOracle(t, 4, nil)
			o.submit(4, time.Hour)
			o.withBeta()
			id := o.submit(4, time.Hour)
			a := o.state.Job(id).AttemptID()
			if len(o.queries("beta")) != 0 {
				t.Fatal("beta is asked before it has its copy")
			}
			o.accept(a)
			q := o.queries("beta")
			if len(q) != 1 || q[0].Attempt != a || q[0].Request.Runs == [9]uint16{} {
				t.Fatalf("beta is asked %+v", q)
			}
			if c.answer != nil {
				o.do(meta.Receive{From: "beta", Message: c.answer(q[0])})
			}
			if early := o.state.Job(id).Forecast; (early != nil) != (c.wait == 0) {
				t.Fatalf("before two seconds: %+v", early)
			}
			o.later(c.wait)
			f := o.state.Job(id).Forecast
			if f == nil || f.Made != o.now.Add(-c.wait) || len(f.Sites) != 2 {
				t.Fatalf("%+v", f)
			}
			known := 0
			for _, s := range f.Sites {
				if s.Basis != 0 {
					known++
				}
			}
			if known != c.sites || (f.Raw[4] <= 5*time.Second) != (c.sites == 2) {
				t.Errorf("%+v", f)
			}
		})
	}
}

// An answer that comes after the job has started, or twice, or from a site that was not
// asked, changes nothing.
func TestLateAnswersToStartQueries(t *testing.T) {
	o := newOracle(t, 4, nil)
	first := o.submit(4, time.Hour)
	o.withBeta()
	id := o.submit(4, time.Hour)
	a := o.state.Job(id).AttemptID()
	o.accept(a)
	q := o.queries("beta")[0]
	answer := meta.StartAnswer{Query: q.Query, Waits: forecast.Waits{8: time.Hour}, Basis: forecast.ByScenarios}
	o.do(meta.Receive{From: "gamma", Message: answer})
	if o.state.Job(id).Forecast != nil {
		t.Error("a site that was not asked was heard")
	}
	o.finish(first)
	if o.state.Job(id).Started == 0 {
		t.Fatal("it does not start")
	}
	for range 2 {
		o.do(meta.Receive{From: "beta", Message: answer})
	}
	o.later(time.Minute)
	if f := o.state.Job(id).Forecast; f != nil || o.unscored(forecast.AtOnce) != 1 {
		t.Errorf("%+v, %d at once", f, o.unscored(forecast.AtOnce))
	}
}

// A peer that asks for a thousand forecasts in a second gets some, one after the other, and is
// told to ask later; the site's own jobs have theirs.
func TestAThousandForecastsASecond(t *testing.T) {
	o := newOracle(t, 4, nil)
	o.submit(4, time.Hour)
	o.withBeta()
	o.answers()
	o.heldUp = true
	r := job.Request{Name: "x", User: "bob", Processors: 1, Walltime: time.Hour}
	for n := range uint64(1000) {
		o.do(meta.Receive{From: "beta", Message: meta.StartQuery{Query: n, Request: r, Draws: 65535}})
	}
	later := 0
	for _, a := range o.answers() {
		if a.Reason == job.AskLater {
			later++
		}
	}
	if later < 960 || later > 980 || len(o.wanted) != 1 {
		t.Fatalf("%d are told to ask later, %d are played at once", later, len(o.wanted))
	}
	id := o.submit(4, time.Hour)
	played := 0
	for ; len(o.wanted) > 0; played++ {
		if d := o.wanted[0].Inquiry.Draws; d > 1000 {
			t.Fatalf("%d scenarios are played", d)
		}
		o.do(o.foreseen())
	}
	o.later(2 * time.Second) // beta has not taken its copy
	if f := o.state.Job(id).Forecast; f == nil || played != 1000-later+1 {
		t.Errorf("%d were played, and the site's own job has %+v", played, f)
	}
	for _, a := range o.answers() {
		if a.Basis != forecast.ByScenarios || a.Waits[8] < a.Waits[0] || a.Waits[0] < 0 {
			t.Errorf("%+v", a)
		}
	}
}

// What cannot start has no forecast: a site that drains, a copy that is too wide, quantiles
// that fall.
func TestQueriesWithoutAForecast(t *testing.T) {
	good := job.Request{Name: "x", User: "bob", Processors: 1, Walltime: time.Hour}
	wide, falling := good, good
	wide.Processors, falling.Runs = 5, [9]uint16{5, 4}
	for name, c := range map[string]struct {
		request job.Request
		drain   bool
		want    job.Reason
	}{
		"draining": {good, true, job.Draining}, "too wide": {wide, false, job.TooNarrow}, "falling": {falling, false, job.BadRequest},
	} {
		o := newOracle(t, 4, nil)
		o.withBeta()
		o.answers()
		if c.drain {
			o.do(meta.SetDrain{On: true})
		}
		o.do(meta.Receive{From: "beta", Message: meta.StartQuery{Query: 3, Request: c.request, Draws: 50}})
		if a := o.answers(); len(a) != 1 || a[0].Reason != c.want || a[0].Query != 3 || a[0].Basis != forecast.NoStart {
			t.Errorf("%s: %+v", name, a)
		}
		if name == "falling" {
			a := job.AttemptID{Job: job.ID{Origin: "beta", Generation: 1, Seq: 1}, Number: 1}
			o.do(meta.Receive{From: "beta", Message: meta.PlaceCopy{Attempt: a, Request: c.request}})
			if o.state.Copy(a) != nil {
				t.Error("a copy with quantiles that fall was taken")
			}
		}
	}
}

// A site that drains has no forecast of what waits there, and makes them again afterwards.
func TestForecastsWhileASiteDrains(t *testing.T) {
	o := newOracle(t, 4, nil)
	o.submit(4, time.Hour)
	o.heldUp = true
	waits := o.submit(4, time.Hour)
	o.do(meta.SetDrain{On: true})
	o.do(o.foreseen()) // of the state before the drain
	if f := o.state.Job(waits).Forecast; f == nil {
		t.Error("what was foreseen before the drain is lost")
	}
	next := o.submit(4, time.Hour)
	o.later(5 * time.Second)
	if f := o.state.Job(next).Forecast; f != nil || len(o.wanted) > 0 {
		t.Errorf("while it drains: %+v, %d to be foreseen", f, len(o.wanted))
	}
	o.do(meta.SetDrain{On: false})
	o.later(10 * time.Second)
	if o.submit(4, time.Hour); len(o.wanted) == 0 {
		t.Error("after the drain nothing is foreseen")
	}
}

// A clock that is set back makes no wait, and none that is negative.
func TestForecastsAndAClockThatIsSetBack(t *testing.T) {
	o := newOracle(t, 4, nil)
	first := o.submit(4, time.Hour)
	o.withBeta()
	id := o.submit(4, time.Hour)
	a := o.state.Job(id).AttemptID()
	o.accept(a)
	o.do(meta.Receive{From: "beta", Message: meta.StartAnswer{Query: o.queries("beta")[0].Query, Reason: job.WouldNotStart}})
	o.later(10 * time.Minute)
	o.do(meta.Receive{From: "beta", Message: meta.Claim{Attempt: a, Stamp: 1, Sent: 1}})
	o.later(time.Second)
	o.do(meta.Receive{From: "beta", Message: meta.Started{Attempt: a, At: o.now.Add(-100 * time.Hour)}})
	if f := o.state.Job(id).Forecast; f.End != store.ForecastScored || f.Waited != 10*time.Minute {
		t.Errorf("beta's clock is four days behind, and the job waited %+v", f)
	}
	o.finish(first)
}

// While a thousand jobs wait for answers no more are asked about: their forecasts are not made.
func TestForecastsUnderAFlood(t *testing.T) {
	o := newOracle(t, 4, nil)
	o.submit(4, time.Hour)
	o.heldUp = true
	for range 1500 {
		o.submit(4, time.Hour)
	}
	if n := o.unscored(forecast.NotMade); n < 1000 || len(o.wanted) != 1 {
		t.Errorf("%d were not made, %d are played at once", n, len(o.wanted))
	}
	made := 0
	for ; len(o.wanted) > 0; made++ {
		o.do(o.foreseen())
	}
	if made < 200 || made > 300 {
		t.Errorf("%d were made", made)
	}
}

// A site with ten thousand copies in its queues, own ones and others, with guarantees for all,
// hands nothing out: forecasts rest on limits once it is known what these are worth.
func TestForecastsOfALongQueue(t *testing.T) {
	o := newOracle(t, 4, func(c *meta.Config, _ *sitesched.Config) { c.Limits.CopiesPerOrigin = 20_000 })
	var known []job.ID
	for range 12 {
		known = append(known, o.submit(4, time.Hour))
	}
	for _, id := range known {
		o.later(30 * time.Minute)
		o.finish(id)
	}
	o.withBeta()
	o.submit(4, time.Hour)
	for n := range uint64(10_000) {
		a := job.AttemptID{Job: job.ID{Origin: "beta", Generation: 1, Seq: n + 1}, Number: 1}
		o.carry(o.engine.Step(o.now, meta.Receive{From: "beta", Message: meta.PlaceCopy{Attempt: a, Request: job.Request{User: "bob", Processors: 1, Walltime: time.Hour}}}))
	}
	o.end()
	id := o.submit(4, time.Hour)
	o.later(2 * time.Second) // for beta
	f := o.state.Job(id).Forecast
	if f == nil || f.Basis != uint8(forecast.ByLimits) || f.Limit < time.Hour || f.Raw[4] >= f.Limit || f.Raw[4] < f.Limit/4 {
		t.Errorf("%+v", f)
	}
}

// A job that was cancelled while its forecast waited for its turn, or that is told without it
// after two seconds, is played no more: what is played then is the next that somebody waits for.
func TestForecastsThatNobodyWaitsFor(t *testing.T) {
	t.Parallel()
	o := newOracle(t, 1, nil)
	o.submit(1, time.Hour)
	o.heldUp = true
	o.submit(1, time.Hour) // is played, for long
	var ids []job.ID
	for range 5 {
		ids = append(ids, o.submit(1, time.Hour))
	}
	o.do(meta.Cancel{Job: ids[0]})
	o.later(3 * time.Second)
	last := o.submit(1, time.Hour)
	if len(o.wanted) != 1 {
		t.Fatalf("%d are played at a time", len(o.wanted))
	}
	played := 0
	for len(o.wanted) > 0 {
		played++
		o.do(o.foreseen())
	}
	if o.state.Job(last).Forecast == nil {
		t.Error("the last job has no forecast")
	}
	if played != 2 { // the first, and the last
		t.Errorf("%d were played for 2 that were waited for", played)
	}
}

// While forecasts are off no message and no record tells of any.
func TestWithoutForecasts(t *testing.T) {
	o := newOracle(t, 4, func(c *meta.Config, _ *sitesched.Config) { c.Forecasts = meta.Forecasts{} })
	o.submit(4, time.Hour)
	o.withBeta()
	id := o.submit(4, time.Hour)
	o.accept(o.state.Job(id).AttemptID())
	if j := o.state.Job(id); j.Forecast != nil || j.Request.Runs != [9]uint16{} || len(o.wanted) != 0 || len(o.queries("beta")) != 0 {
		t.Errorf("%+v", j)
	}
	o.do(meta.Receive{From: "beta", Message: meta.StartQuery{Query: 1, Request: job.Request{Name: "x", Processors: 1, Walltime: time.Hour}, Draws: 50}})
	if a := o.answers(); len(a) != 1 || a[0].Basis != forecast.NoStart || a[0].Reason != job.NoReason {
		t.Errorf("a query for a forecast is answered %+v", a)
	}
	if o.engine.Views().Forecasts().Enabled {
		t.Error("it says that it makes forecasts")
	}
}

// benchOracle has a site with as many waiting jobs, a fifth of them its own.
func benchOracle(b *testing.B, queued int) (*oracle, job.Request) {
	o := newOracle(b, 1000, func(c *meta.Config, _ *sitesched.Config) { c.Limits.CopiesPerOrigin = 100_000 })
	r := job.Request{Name: "x", User: "ada", Processors: 4, Walltime: time.Hour}
	o.heldUp = true
	for range 250 {
		o.carry(o.engine.Step(o.now, meta.Submit{Request: r}))
	}
	o.end()
	o.withBeta()
	for n := range queued {
		r.User = fmt.Sprint("user", n%50)
		if n%5 == 0 {
			o.carry(o.engine.Step(o.now, meta.Submit{Request: r}))
			continue
		}
		a := job.AttemptID{Job: job.ID{Origin: "beta", Generation: 1, Seq: uint64(n) + 1}, Number: 1}
		o.carry(o.engine.Step(o.now, meta.Receive{From: "beta", Message: meta.PlaceCopy{Attempt: a, Request: r}}))
	}
	o.end()
	for len(o.wanted) > 0 {
		f := o.wanted[0]
		o.wanted = o.wanted[1:]
		o.carry(o.engine.Step(o.now, meta.Foreseen{Number: f.Number, Inquiry: f.Inquiry}))
	}
	o.sent = nil
	return o, r
}

// BenchmarkForesee is the time for which a forecast holds up the loop: the copy is handed
// out, with what is known of all that waits, and the answer is taken.
func BenchmarkForesee(b *testing.B) {
	for _, n := range []int{100, 1000, 3800, 10_000} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			o, r := benchOracle(b, n)
			query := meta.Receive{From: "beta", Message: meta.StartQuery{Query: 1, Request: r, Draws: 50}}
			b.ReportAllocs()
			for b.Loop() {
				o.carry(o.engine.Step(o.now, query))
				if len(o.wanted) > 0 { // else the queue is too long
					f := o.wanted[0]
					o.wanted = o.wanted[:0]
					o.carry(o.engine.Step(o.now, meta.Foreseen{Number: f.Number, Inquiry: f.Inquiry}))
				}
				o.sent = o.sent[:0]
			}
		})
	}
}

// BenchmarkForecast is one forecast as a worker makes it.
func BenchmarkForecast(b *testing.B) {
	for _, n := range []int{100, 1000, 3800} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			o, r := benchOracle(b, n)
			query := meta.Receive{From: "beta", Message: meta.StartQuery{Query: 1, Request: r, Draws: 50}}
			scenarios := 0
			for b.Loop() {
				b.StopTimer()
				o.carry(o.engine.Step(o.now, query))
				f := o.wanted[0]
				o.wanted = o.wanted[:0]
				b.StartTimer()
				a := o.stage.Play(f.Inquiry)
				b.StopTimer()
				scenarios = a.Scenarios
				o.carry(o.engine.Step(o.now, meta.Foreseen{Number: f.Number, Inquiry: f.Inquiry, Answer: a}))
				o.sent = o.sent[:0]
				b.StartTimer()
			}
			b.ReportMetric(float64(scenarios), "scenarios")
		})
	}
}

// BenchmarkSubmitStart is what the engine does for a job from its submission to its start at
// an idle site, and to its end.
func BenchmarkSubmitStart(b *testing.B) {
	for _, on := range []bool{false, true} {
		b.Run(map[bool]string{false: "without", true: "with forecasts"}[on], func(b *testing.B) {
			o := newOracle(b, 4, func(c *meta.Config, _ *sitesched.Config) {
				c.Forecasts.Enabled, c.Limits.ClosedJobs = on, 100
			})
			b.ReportAllocs()
			for n := 0; b.Loop(); n++ {
				o.now = o.now.Add(time.Second)
				id := o.state.NextID()
				o.do(meta.Submit{Request: job.Request{Name: "x", User: fmt.Sprint("user", n%50), Processors: 1, Walltime: time.Hour}})
				o.finish(id)
				o.state.DropChanges()
				o.sent = o.sent[:0]
			}
		})
	}
}

// A user who runs two programs, one short and one long, is told apart by what is run, also after
// a restart; other sites are not told.
func TestForecastsKnowScripts(t *testing.T) {
	o := newOracle(t, 4, nil)
	var past []store.Past
	run := func(script uint64, d time.Duration) {
		id := o.state.NextID()
		o.do(meta.Submit{Request: job.Request{User: "ada", Script: script, Processors: 4, Walltime: 4 * time.Hour}})
		o.now = o.now.Add(d)
		o.finish(id)
		past = append(past, o.state.TakeChanges().Past...)
	}
	for range 30 {
		run(7, time.Minute)
		run(8, 2*time.Hour)
	}
	median := func(o *oracle, script uint64) time.Duration {
		id := o.state.NextID()
		o.do(meta.Submit{Request: job.Request{User: "ada", Script: script, Processors: 4, Walltime: 4 * time.Hour}})
		runs := forecast.Runs(o.state.Job(id).Request.Runs)
		curve := runs.Curve(4 * time.Hour)
		return curve.Quantile(0.5)
	}
	check := func(o *oracle, when string) {
		if a, b := median(o, 7), median(o, 8); a > 10*time.Minute || b < time.Hour {
			t.Errorf("%s: the short one is expected to run for %v, the long one for %v", when, a, b)
		}
	}
	check(o, "now")
	again := newOracle(t, 4, nil)
	if err := again.engine.Recall(func(yield func(store.Past, error) bool) {
		for _, p := range past {
			if !yield(p, nil) {
				return
			}
		}
	}); err != nil || len(past) != 60 {
		t.Fatalf("%d are past, %v", len(past), err)
	}
	check(again, "after a restart")
}

// A run time is learnt as on a processor of speed 1, and expected as on one of the site.
func TestForecastsAtASiteOfAnotherSpeed(t *testing.T) {
	for _, speed := range []float64{0.5, 1, 2} {
		o := newOracle(t, 4, func(c *meta.Config, _ *sitesched.Config) { c.Self.Speed = speed })
		here := job.Scaled(time.Hour, speed)
		for range 30 {
			id := o.submit(4, 8*time.Hour)
			o.now = o.now.Add(here)
			o.finish(id)
		}
		o.submit(4, 8*time.Hour)
		f := o.state.Job(o.submit(4, 8*time.Hour)).Forecast
		if f == nil || f.Raw[4] < here*8/10 || f.Raw[4] > here*12/10 {
			t.Errorf("speed %v: jobs run for %v, and one that waits for one of them is to wait for %+v", speed, here, f)
		}
	}
}

// A clean stop keeps how forecasts did; a crash forgets what came after it was last kept.
func TestStoppingKeepsHowForecastsDid(t *testing.T) {
	o := newOracle(t, 4, nil)
	for range 3 {
		id := o.submit(4, time.Hour)
		o.now = o.now.Add(time.Minute)
		o.finish(id)
	}
	if o.state.Calibration() != nil {
		t.Fatal("it is kept after three outcomes")
	}
	o.do(meta.Stopping{})
	book, err := forecast.DecodeBook(o.state.Calibration())
	if err != nil {
		t.Fatal(err)
	}
	if r := book.Runs().All(); r.Forecasts != 3 {
		t.Errorf("%+v is kept", r)
	}
	o.state.TakeChanges()
	o.do(meta.Stopping{})
	if o.state.TakeChanges().Calibration {
		t.Error("what has not changed is kept again")
	}
	newOracle(t, 4, func(c *meta.Config, _ *sitesched.Config) { c.Forecasts.Enabled = false }).do(meta.Stopping{})
}

// Where an owner comes first, a forecast counts with the longer limits that copies have there, and
// with as much longer run times.
func TestForecastsBesideAnOwner(t *testing.T) {
	o := newOracle(t, 4, nil)
	owner := new(cluster.Owner)
	for i := range owner.Loads {
		owner.Loads[i] = harvest.Load{Lambda: 0.5 / 60, Rho: 0.5, Sigma: 60}
	}
	o.do(meta.OwnerSeen{Owner: owner})
	o.withBeta()
	o.submit(4, time.Hour)
	o.heldUp = true
	r := job.Request{User: "bob", Processors: 4, Walltime: time.Hour}
	o.do(meta.Receive{From: "beta", Message: meta.StartQuery{Query: 7, Request: r, Draws: 50}})
	limits := 0
	for _, x := range o.wanted[0].Inquiry.Roles {
		if x.Limit == 0 {
			continue
		}
		if limits++; x.Limit < 2*time.Hour {
			t.Errorf("the limit of %q counts as %v", x.User, x.Limit)
		}
		// Of ada nothing is known but that she asked for an hour: half of it takes all of it here.
		if run := time.Duration(float64(x.Runs[4]) / 65535 * float64(x.Limit)); x.User == "ada" && (run < 55*time.Minute || run > 65*time.Minute) {
			t.Errorf("ada's job is expected to run for %v", run)
		}
	}
	if limits != 2 {
		t.Fatalf("%d copies are in the scene", limits)
	}
}

// Facts of an earlier version have neither forecasts nor what is expected of run times, and what was
// kept of forecasts by a later one cannot be read: figures begin anew, which is said, and jobs that
// wait have forecasts by what is known now.
func TestForecastsOnOtherFacts(t *testing.T) {
	for name, book := range map[string][]byte{"none": nil, "of a later version": {0xff, 1, 2}, "torn": forecast.NewBook().Encode()[:7]} {
		old := newOracle(t, 4, func(c *meta.Config, _ *sitesched.Config) { c.Forecasts.Enabled = false })
		first, second := old.submit(4, time.Hour), old.submit(4, time.Hour)
		if book != nil {
			old.state.RestoreCalibration(book)
		}
		o := newOracleOn(t, old.state, 4, nil)
		v := o.engine.Views().Forecasts()
		if v.Begun != (book != nil) || v.Starts[0].Forecasts+v.Runs[0].Forecasts != 0 {
			t.Errorf("%s: %+v", name, v)
		}
		if o.state.Job(second).Forecast != nil {
			t.Errorf("%s: a job of the earlier version has a forecast", name)
		}
		o.do(meta.AttemptEnded{Attempt: o.state.Job(first).AttemptID(), Outcome: job.Outcome{Kind: job.Success, Start: old.now, End: o.now.Add(time.Minute)}})
		o.now = o.now.Add(time.Minute)
		o.finish(second)
		third := o.submit(4, time.Hour)
		f := o.state.Job(o.submit(4, time.Hour)).Forecast
		if o.state.Job(third).Started == 0 || f == nil || f.Basis != uint8(forecast.ByScenarios) {
			t.Errorf("%s: %+v", name, f)
		}
	}
}

// Jobs that end in the instant in which they start are learnt from, and break nothing.
func TestForecastsOfJobsThatEndAtOnce(t *testing.T) {
	o := newOracle(t, 4, nil)
	for range 40 {
		o.finish(o.submit(4, time.Hour))
	}
	if v := o.engine.Views().Forecasts(); v.Learnt != 40 || v.Runs[0].Forecasts != 40 {
		t.Errorf("%+v", v)
	}
	first := o.submit(4, time.Hour)
	id := o.submit(4, time.Hour)
	f := o.state.Job(id).Forecast
	if f == nil || f.Told[4] < 0 || f.Told[4] > time.Minute {
		t.Fatalf("%+v", f)
	}
	o.finish(first)
	if g := o.state.Job(id); g.Started == 0 || g.Forecast.End != store.ForecastUnscored {
		t.Errorf("%+v", g.Forecast)
	}
}
