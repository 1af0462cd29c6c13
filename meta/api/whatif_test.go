package api

import (
	"context"
	"errors"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/durationpb"

	"kith/internal/forecast"
	"kith/internal/job"
	"kith/meta"
	kithv1 "kith/proto/gen/kith/v1"
)

// asked is a node that is asked what would be.
type asked struct {
	Node
	events []meta.ForecastJob
	reply  meta.JobForecast
}

func (n *asked) Ask(_ context.Context, make func(token uint64) meta.Event) (meta.Reply, error) {
	n.events = append(n.events, make(1).(meta.ForecastJob))
	return meta.Reply{Token: 1, Forecast: &n.reply}, nil
}

// What makes no sense is refused before anybody is asked: a job without processors, no job or
// two, a walltime beyond ten years, too many alternatives.
func TestBadForecastRequests(t *testing.T) {
	s := testServer()
	s.Node = untouched{t: t}
	long := durationpb.New(job.MaxWalltime + time.Second)
	flat := goodJob()
	flat.Processors = 0
	endless := goodJob()
	endless.Walltime = long
	alternatives := func(n int, change func(i int, a *kithv1.JobAlternative)) (list []*kithv1.JobAlternative) {
		for i := range n {
			a := &kithv1.JobAlternative{}
			change(i, a)
			list = append(list, a)
		}
		return list
	}
	for name, c := range map[string]struct {
		r     *kithv1.ForecastJobRequest
		field string
	}{
		"no job":             {&kithv1.ForecastJobRequest{}, "job"},
		"two jobs":           {&kithv1.ForecastJobRequest{Job: goodJob(), JobId: "alpha.1.1"}, "job_id"},
		"no id":              {&kithv1.ForecastJobRequest{JobId: "Not An Id"}, "job_id"},
		"no processors":      {&kithv1.ForecastJobRequest{Job: flat}, "job.processors"},
		"more than 10 years": {&kithv1.ForecastJobRequest{Job: endless}, "job.walltime"},
		"10,000 alternatives": {&kithv1.ForecastJobRequest{Job: goodJob(), Alternatives: alternatives(10_000, func(i int, a *kithv1.JobAlternative) {
			a.Walltime = durationpb.New(time.Duration(i+1) * time.Minute)
		})}, "alternatives"},
		"too many shapes": {&kithv1.ForecastJobRequest{Job: goodJob(), Alternatives: alternatives(17, func(i int, a *kithv1.JobAlternative) { a.Processors = int32(i + 1) })}, "alternatives"},
		"a walltime of more than 10 years": {&kithv1.ForecastJobRequest{Job: goodJob(), Alternatives: alternatives(2, func(i int, a *kithv1.JobAlternative) {
			if i == 1 {
				a.Walltime = long
			}
		})}, "alternatives[1].walltime"},
		"no walltime":          {&kithv1.ForecastJobRequest{Job: goodJob(), Alternatives: alternatives(1, func(_ int, a *kithv1.JobAlternative) { a.Walltime = durationpb.New(0) })}, "alternatives[0].walltime"},
		"negative processors":  {&kithv1.ForecastJobRequest{Job: goodJob(), Alternatives: alternatives(1, func(_ int, a *kithv1.JobAlternative) { a.Processors = -1 })}, "alternatives[0].processors"},
		"more serial than all": {&kithv1.ForecastJobRequest{Job: goodJob(), SerialFraction: proto.Float64(1.5)}, "serial_fraction"},
		"serial in no number":  {&kithv1.ForecastJobRequest{Job: goodJob(), SerialFraction: proto.Float64(math.NaN())}, "serial_fraction"},
		"too many copies":      {&kithv1.ForecastJobRequest{Job: goodJob(), Alternatives: alternatives(1, func(_ int, a *kithv1.JobAlternative) { a.Copies = 17 })}, "alternatives[0].copies"},
	} {
		_, err := s.ForecastJob(t.Context(), c.r)
		if !names(err, c.field) {
			t.Errorf("%s: %v, want one about %s", name, err, c.field)
		}
	}
}

// names reports whether an error says something of a field.
func names(err error, field string) bool {
	if one, ok := errors.AsType[*FieldError](err); ok {
		return one.Field == field
	}
	list, ok := errors.AsType[fieldErrors](err)
	return ok && slices.ContainsFunc(list, func(e *FieldError) bool { return e.Field == field })
}

// Alternatives become shapes and numbers of copies, and the answer is in their order.
func TestForecastJob(t *testing.T) {
	made := job.Time(1e18)
	waits := forecast.Waits{1e9, 2e9, 3e9, 4e9, 5e9, 6e9, 7e9, 8e9, 9e9}
	ends := waits
	for i := range ends {
		ends[i] += time.Hour
	}
	n := &asked{reply: meta.JobForecast{Made: made, Record: forecast.Record{Forecasts: 10, Held: 8}, Shapes: []meta.ShapeForecast{
		{
			Request: job.Request{Walltime: time.Hour, Processors: 2}, RunBasis: forecast.SimilarJobs, Stopped: 0.25,
			Sites: []meta.SiteForecast{
				{Site: "alpha", Basis: forecast.ByScenarios, Waits: waits, Ends: ends, Limit: time.Minute, Age: time.Second},
				{Site: "beta", Reason: job.AskLater, Limit: -1},
			},
			Spreads: []meta.SpreadForecast{{Copies: 1, Sites: []int{0}, Waits: waits, Ends: ends, Basis: forecast.ByScenarios}, {Copies: 2, Sites: []int{0, 1}, Waits: waits, Ends: ends, Basis: forecast.ByScenarios}},
		},
		{Request: job.Request{Walltime: time.Hour, Processors: 99}, Err: meta.ErrTooLarge},
	}}}
	s := testServer()
	s.Node = n
	r, err := s.ForecastJob(t.Context(), &kithv1.ForecastJobRequest{Job: goodJob(), Alternatives: []*kithv1.JobAlternative{{Copies: 2}, {Processors: 99}, {Copies: 1}}})
	if err != nil {
		t.Fatal(err)
	}
	if ev := n.events[0]; len(ev.Shapes) != 2 || ev.Shapes[1].Processors != 99 || !slices.Equal(ev.Copies, []int32{0, 1, 2}) || ev.Request.Processors != goodJob().GetProcessors() || ev.Request.User != s.User {
		t.Errorf("asked %+v", ev)
	}
	list := r.GetAlternatives()
	if len(list) != 3 || list[0].GetCopies() != 2 || list[2].GetCopies() != 1 || !strings.Contains(list[1].GetRefused(), "no known site") && list[1].GetRefused() == "" || r.GetScored() != 10 || r.GetHeldShare() != 0.8 {
		t.Fatalf("%v", r)
	}
	a := list[0]
	if a.GetStartMedian().AsTime() != stamp(made.Add(5*time.Second)).AsTime() || a.GetEndHigh().AsTime() != stamp(made.Add(8*time.Second+time.Hour)).AsTime() ||
		a.GetStoppedShare() != 0.25 || a.GetRunBasis() != "similar jobs" || a.GetBasis() != "scenarios" || a.GetMeanWaitSeconds() < 4 || a.GetMeanWaitSeconds() > 6 {
		t.Errorf("%v", a)
	}
	if x := a.GetSites(); len(x) != 2 || x[0].GetLatest() == nil || x[0].GetLoadAge().AsDuration() != time.Second || x[1].GetStartMedian() != nil || x[1].GetReason() == "" || x[1].GetBasis() != "unknown" {
		t.Errorf("%v", x)
	}
	// Without alternatives the site's own are told.
	if r, err = s.ForecastJob(t.Context(), &kithv1.ForecastJobRequest{JobId: "alpha.1.1"}); err != nil || len(r.GetAlternatives()) != 3 || n.events[1].Job.Seq != 1 {
		t.Errorf("%v, %v", r, err)
	}
}
