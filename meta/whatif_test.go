package meta_test

import (
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"kith/internal/forecast"
	"kith/internal/job"
	"kith/meta"
	"kith/sitesched"
)

// ask asks what would be, and returns the answers so far.
func (o *oracle) ask(ev meta.ForecastJob) []meta.Reply {
	ev.Token = 7
	o.replies = nil
	o.do(ev)
	return o.replies
}

func asks(processors int32, walltime time.Duration) job.Request {
	return job.Request{Name: "x", User: "ada", Processors: processors, Walltime: walltime}
}

// reply waits for nothing but what this site says.
func (o *oracle) reply(ev meta.ForecastJob) *meta.JobForecast {
	o.t.Helper()
	list := o.ask(ev)
	if len(list) != 1 || list[0].Err != nil || list[0].Forecast == nil || list[0].Token != 7 {
		o.t.Fatalf("%+v", list)
	}
	return list[0].Forecast
}

// What would be is told shape by shape, and nothing is recorded, queued or sent.
func TestWhatIf(t *testing.T) {
	o := newOracle(t, 4, nil)
	first := o.submit(4, time.Hour)
	o.state.TakeChanges()
	before := fmt.Sprintf("%+v", *o.state.Job(first))
	f := o.reply(meta.ForecastJob{Request: asks(4, time.Hour), Shapes: []meta.Shape{{}, {Processors: 1}, {Walltime: 10 * time.Minute, Processors: 2}, {Processors: 5}}})
	if len(f.Shapes) != 4 || f.Made != o.now {
		t.Fatalf("%+v", f)
	}
	for i, x := range f.Shapes[:3] {
		if x.Err != nil || len(x.Spreads) != 1 || x.Spreads[0].Basis != forecast.ByScenarios || x.Sites[0].Site != "alpha" || x.Sites[0].Limit != time.Hour {
			t.Fatalf("shape %d: %+v", i, x)
		}
		w, e := x.Spreads[0].Waits, x.Spreads[0].Ends
		for k := range w {
			if w[k] > 4*time.Hour || e[k] < w[k] || k > 0 && (w[k] < w[k-1] || e[k] < e[k-1]) {
				t.Errorf("shape %d: waits %v, ends %v", i, w, e)
			}
		}
	}
	if s := f.Shapes[2].Request; s.Walltime != 10*time.Minute || s.Processors != 2 || s.User != "ada" {
		t.Errorf("%+v", s)
	}
	if !errors.Is(f.Shapes[3].Err, meta.ErrTooLarge) || len(f.Shapes[3].Spreads) > 0 {
		t.Errorf("what no site fits: %+v", f.Shapes[3])
	}
	if c := o.state.TakeChanges(); !c.Empty() || fmt.Sprintf("%+v", *o.state.Job(first)) != before || len(o.sent) > 0 {
		t.Errorf("something was recorded or sent: %+v, %+v", c, o.sent)
	}
	if v := o.engine.Views().Forecasts(); v.Starts[0].Forecasts != 0 {
		t.Errorf("it is scored: %+v", v)
	}
}

// A job of which a part is serial takes as long on other processors as Amdahl says; whatever the
// width if that part is not known.
func TestWhatIfOfASerialPart(t *testing.T) {
	o := newOracle(t, 4, nil)
	for n := range 20 {
		id := o.submit(4, 24*time.Hour)
		o.later(time.Duration(20+n) * time.Minute)
		o.finish(id)
	}
	median := func(serial *float64, processors int32) time.Duration {
		f := o.reply(meta.ForecastJob{Request: asks(4, 24*time.Hour), Serial: serial, Shapes: []meta.Shape{{Processors: processors}}})
		var d forecast.Dist
		f.Shapes[0].Runs.Dist(24*time.Hour, &d)
		return d.Quantile(0.5)
	}
	half, none, all := 0.5, 0.0, 1.0
	asIs := median(nil, 4)
	for name, c := range map[string]struct {
		serial     *float64
		processors int32
		part       float64
	}{
		"not known": {nil, 1, 1}, "as wide": {&half, 4, 1}, "half": {&half, 1, 1.6}, "none": {&none, 1, 4}, "all": {&all, 1, 1},
	} {
		if got := median(c.serial, c.processors).Seconds() / asIs.Seconds(); got < c.part*0.98 || got > c.part*1.02 {
			t.Errorf("%s: %v of the time, want %v", name, got, c.part)
		}
	}
}

// The same state has the same answer.
func TestWhatIfIsRepeatable(t *testing.T) {
	answers := make([]*meta.JobForecast, 2)
	for i := range answers {
		o := newOracle(t, 4, nil)
		o.submit(4, time.Hour)
		o.submit(3, time.Hour)
		answers[i] = o.reply(meta.ForecastJob{Request: asks(2, time.Hour)})
		if again := o.reply(meta.ForecastJob{Request: asks(2, time.Hour)}); !reflect.DeepEqual(again, answers[i]) {
			t.Errorf("asked twice:\n%+v\n%+v", answers[i], again)
		}
	}
	if !reflect.DeepEqual(answers[0], answers[1]) {
		t.Errorf("%+v\n%+v", answers[0], answers[1])
	}
}

// Without shapes they are chosen by what is known of such jobs: what it asks for, what 95 % of
// them stay below, and twice that; and the chance to be stopped follows.
func TestWhatIfChoosesShapes(t *testing.T) {
	o := newOracle(t, 4, nil)
	f := o.reply(meta.ForecastJob{Request: asks(1, 24*time.Hour)})
	if len(f.Shapes) != 1 || f.Shapes[0].RunBasis != forecast.LimitOnly {
		t.Fatalf("of jobs that nothing is known of: %+v", f)
	}
	for n := range 20 {
		id := o.submit(4, 24*time.Hour)
		o.later(time.Duration(20+n) * time.Minute)
		o.finish(id)
	}
	f = o.reply(meta.ForecastJob{Request: asks(4, 24*time.Hour)})
	var times []time.Duration
	for _, x := range f.Shapes {
		times = append(times, x.Request.Walltime)
		if x.RunBasis != forecast.SimilarJobs || x.Stopped > 0.1 {
			t.Errorf("%v: %v, stopped with %v", x.Request.Walltime, x.RunBasis, x.Stopped)
		}
	}
	if want := []time.Duration{24 * time.Hour, 40 * time.Minute, 80 * time.Minute}; !slices.Equal(times, want) {
		t.Errorf("%v, want %v", times, want)
	}
	f = o.reply(meta.ForecastJob{Request: asks(4, 24*time.Hour), Shapes: []meta.Shape{{Walltime: 25 * time.Minute}, {Walltime: time.Minute}}})
	if a, b := f.Shapes[0].Stopped, f.Shapes[1].Stopped; a < 0.4 || a > 0.99 || b < 0.9 {
		t.Errorf("limits of 25 min and of 1 min stop it with %v and %v", a, b)
	}
}

// Other sites are asked about a copy that would come; copies add up, and who does not answer
// costs two seconds.
func TestWhatIfAcrossSites(t *testing.T) {
	o := newOracle(t, 4, nil)
	o.submit(4, time.Hour)
	o.withBeta()
	o.sent = nil
	if list := o.ask(meta.ForecastJob{Request: asks(4, time.Hour)}); len(list) > 0 {
		t.Fatalf("beta has not answered, and the answer is %+v", list)
	}
	q := o.queries("beta")
	if len(q) != 1 || q[0].Attempt != (job.AttemptID{}) || q[0].Request.Runs == ([9]uint16{}) {
		t.Fatalf("beta is asked %+v", q)
	}
	waits := forecast.Waits{}
	for i := range waits {
		waits[i] = time.Duration(1+i) * time.Minute
	}
	o.do(meta.Receive{From: "gamma", Message: meta.StartAnswer{Query: q[0].Query, Waits: waits, Basis: forecast.ByLimits}})
	o.do(meta.Receive{From: "beta", Message: meta.StartAnswer{Query: q[0].Query, Waits: waits, Basis: forecast.ByLimits, Wait: time.Hour}})
	if len(o.replies) != 1 || o.replies[0].Err != nil {
		t.Fatalf("%+v", o.replies)
	}
	x := o.replies[0].Forecast.Shapes[0]
	if len(x.Spreads) != 2 || x.Spreads[0].Copies != 1 || x.Spreads[1].Copies != 2 || len(x.Spreads[1].Sites) != 2 || x.Spreads[1].Basis != forecast.ByLimits {
		t.Fatalf("%+v", x)
	}
	if one, two := x.Spreads[0].Waits.Mean(), x.Spreads[1].Waits.Mean(); two > one || two <= 0 {
		t.Errorf("with one copy it waits %v, with two %v", one, two)
	}
	for _, s := range x.Sites {
		if s.Site == "beta" && (s.Waits != waits || s.Limit != time.Hour || s.Ends[4] <= waits[4]) {
			t.Errorf("%+v", s)
		}
	}
	o.do(meta.Receive{From: "beta", Message: meta.StartAnswer{Query: q[0].Query, Waits: waits, Basis: forecast.ByLimits}}) // once more
	if len(o.replies) != 1 {
		t.Errorf("answered again: %+v", o.replies)
	}
	for name, gone := range map[string]func(){
		"nothing": func() { o.later(2 * time.Second) },
		"ask later": func() {
			o.do(meta.Receive{From: "beta", Message: meta.StartAnswer{Query: o.queries("beta")[0].Query, Reason: job.AskLater}})
		},
		"gone": func() { o.do(meta.PeerDown{Site: "beta"}) },
	} {
		if list := o.ask(meta.ForecastJob{Request: asks(4, time.Hour)}); len(list) > 0 {
			t.Fatalf("%s: %+v", name, list)
		}
		gone()
		if len(o.replies) != 1 || o.replies[0].Err != nil || o.replies[0].Forecast.Shapes[0].Spreads[1].Basis != forecast.ByScenarios {
			t.Fatalf("%s: %+v", name, o.replies)
		}
		for _, s := range o.replies[0].Forecast.Shapes[0].Sites {
			if s.Site == "beta" && s.Reason == job.NoReason {
				t.Errorf("%s: beta has no reason: %+v", name, s)
			}
		}
		if name == "gone" {
			o.withBeta()
		}
		o.sent = nil
	}
}

// A job that waits would be replaced: it does not stand in its own way, neither here nor at
// another site, which is told which copy would go. One that has started cannot be.
func TestWhatIfOfAJobThatWaits(t *testing.T) {
	o := newOracle(t, 4, nil)
	first := o.submit(4, time.Hour)
	second := o.submit(4, time.Hour)
	o.later(time.Minute)
	o.submit(4, time.Hour)
	o.later(time.Minute)
	limit := func(s ...meta.Shape) (list []time.Duration) {
		for _, x := range o.reply(meta.ForecastJob{Job: second, Shapes: s}).Shapes {
			list = append(list, x.Sites[0].Limit)
		}
		return list
	}
	// As it is it keeps its place; what asks for something else comes last, without the old one.
	if got, want := limit(meta.Shape{}, meta.Shape{Walltime: 2 * time.Hour}), []time.Duration{58 * time.Minute, 118 * time.Minute}; !slices.Equal(got, want) {
		t.Errorf("it waits at most %v, want %v", got, want)
	}
	for id, want := range map[job.ID]error{
		first: meta.ErrJobStarted, {Origin: "alpha", Generation: 1, Seq: 99}: meta.ErrUnknownJob, {Origin: "beta", Generation: 1, Seq: 1}: meta.ErrForeignJob,
	} {
		if list := o.ask(meta.ForecastJob{Job: id}); len(list) != 1 || !errors.Is(list[0].Err, want) {
			t.Errorf("%v: %+v, want %v", id, list, want)
		}
	}
	o.do(meta.Cancel{Job: second})
	if list := o.ask(meta.ForecastJob{Job: second}); len(list) != 1 || !errors.Is(list[0].Err, meta.ErrJobEnded) {
		t.Errorf("an ended job: %+v", list)
	}
}

// Another site's question about a copy that would come in place of one that waits here.
func TestWhatIfOfACopyOfAnotherSite(t *testing.T) {
	o := newOracle(t, 4, nil)
	o.submit(4, time.Hour)
	o.withBeta()
	a := job.AttemptID{Job: job.ID{Origin: "beta", Generation: 1, Seq: 5}, Number: 1}
	r := job.Request{Name: "x", User: "bob", Processors: 4, Walltime: time.Hour}
	o.do(meta.Receive{From: "beta", Message: meta.PlaceCopy{Attempt: a, Request: r}})
	o.later(time.Minute)
	o.answers()
	wide := r
	wide.Walltime = 2 * time.Hour
	for n, q := range []meta.StartQuery{{Request: r, Attempt: a}, {Request: wide, Attempt: a}, {Request: wide}} {
		q.Query, q.Draws = uint64(n+1), 50
		o.do(meta.Receive{From: "beta", Message: q})
		list := o.answers()
		if want := []time.Duration{59 * time.Minute, 59 * time.Minute, 119 * time.Minute}[n]; len(list) != 1 || list[0].Wait != want || list[0].Basis != forecast.ByScenarios {
			t.Errorf("query %d: %+v, want %v", n, list, want)
		}
	}
}

// Questions are bounded: 60 at once and one a second from then on, for users here and for each
// other site. Those about copies that wait here do not count.
func TestWhatIfIsBounded(t *testing.T) {
	o := newOracle(t, 4, nil)
	o.submit(4, time.Hour)
	shapes := make([]meta.Shape, meta.MaxShapes)
	for i := range shapes {
		shapes[i].Walltime = time.Duration(i+1) * time.Hour
	}
	asked := func(n int) error {
		list := o.ask(meta.ForecastJob{Request: asks(4, time.Hour), Shapes: shapes[:n]})
		if len(list) != 1 {
			t.Fatalf("%+v", list)
		}
		return list[0].Err
	}
	for _, n := range []int{16, 16, 16, 12} {
		if err := asked(n); err != nil {
			t.Fatal(err)
		}
	}
	if err := asked(10); !errors.Is(err, meta.ErrManyQuestions) || !strings.Contains(err.Error(), "ask again in 11 s") {
		t.Errorf("more than 60: %v", err)
	}
	o.later(10 * time.Second)
	if err := asked(10); err != nil {
		t.Errorf("ten seconds later: %v", err)
	}
	for name, ev := range map[string]meta.ForecastJob{
		"too many shapes":            {Request: asks(1, time.Hour), Shapes: make([]meta.Shape, meta.MaxShapes+1)},
		"too many numbers of copies": {Request: asks(1, time.Hour), Copies: make([]int32, meta.MaxSpreads+1)},
		"no processors":              {Request: asks(0, time.Hour)},
		"ten years and a day":        {Request: asks(1, job.MaxWalltime+24*time.Hour)},
	} {
		if list := o.ask(ev); len(list) != 1 || !errors.Is(list[0].Err, meta.ErrInvalid) {
			t.Errorf("%s: %+v", name, list)
		}
	}
	if list := o.ask(meta.ForecastJob{Request: asks(5, time.Hour)}); len(list) != 1 || !errors.Is(list[0].Err, meta.ErrTooLarge) {
		t.Errorf("a job that no site fits: %+v", list)
	}

	o.withBeta()
	o.answers()
	later := func(n int, q meta.StartQuery) (refused int) {
		for range n {
			q.Query, q.Draws = q.Query+1, 50
			o.do(meta.Receive{From: "beta", Message: q})
		}
		for _, x := range o.answers() {
			if x.Reason == job.AskLater {
				refused++
			}
		}
		return refused
	}
	r := job.Request{Name: "x", User: "bob", Processors: 1, Walltime: time.Hour}
	if n := later(100, meta.StartQuery{Request: r}); n != 40 {
		t.Errorf("of 100 questions of beta %d are refused", n)
	}
	a := job.AttemptID{Job: job.ID{Origin: "beta", Generation: 1, Seq: 5}, Number: 1}
	o.do(meta.Receive{From: "beta", Message: meta.PlaceCopy{Attempt: a, Request: r}})
	o.answers()
	if n := later(100, meta.StartQuery{Request: r, Attempt: a}); n != 0 {
		t.Errorf("of 100 about a copy that waits here %d are refused", n)
	}
}

// A site that makes no forecasts says so.
func TestWhatIfWithoutForecasts(t *testing.T) {
	o := newOracle(t, 4, func(c *meta.Config, _ *sitesched.Config) { c.Forecasts.Enabled = false })
	if list := o.ask(meta.ForecastJob{Request: asks(1, time.Hour)}); len(list) != 1 || !errors.Is(list[0].Err, meta.ErrNoForecasts) {
		t.Errorf("%+v", list)
	}
}
