package storetest

import (
	"reflect"
	"testing"
	"time"

	"kith/internal/job"
	"kith/store"
)

// testForecasts checks that what is said of the start and the run time of a job is kept with
// it, and how forecasts did with the site; both are newest of all that was noted.
func testForecasts(t *testing.T, open Opener) {
	b := open(t)
	s := load(t, b)
	if s.Calibration() != nil {
		t.Error("a new site knows how forecasts did")
	}
	id := s.NextID()
	runs := [9]uint16{0, 1, 2, 300, 4000, 4000, 50000, 65534, 65535}
	apply(t, s, store.SubmitJob{ID: id, Request: job.Request{Name: "fit", User: "ada", Processors: 4, Walltime: time.Hour, Runs: runs}})
	guest := job.AttemptID{Job: job.ID{Origin: "beta", Generation: 1, Seq: 1}, Number: 1}
	apply(t, s, store.AcceptCopy{Attempt: guest, Request: job.Request{User: "bob", Processors: 1, Walltime: time.Minute, Runs: runs}})
	f := store.Forecast{
		Attempt: 1, Made: 77, Basis: 1, Raw: [9]time.Duration{0, 1, 2, 3, 4, 5, 6, 7, 8}, Told: [9]time.Duration{8: time.Hour}, Limit: -1,
		Sites: []store.SiteForecast{{Site: "alpha", Basis: 2, Waits: [9]time.Duration{3: time.Minute}}, {Site: "beta"}},
	}
	apply(t, s, store.NoteForecast{Job: id, Forecast: &f})
	apply(t, s, store.NoteCalibration{Book: []byte("first")})
	commit(t, b, s)
	g := f
	g.End, g.Waited = store.ForecastScored, 5*time.Minute
	apply(t, s, store.NoteForecast{Job: id, Forecast: &g})
	apply(t, s, store.NoteCalibration{Book: []byte("second")})
	if s.Apply(store.NoteForecast{Job: job.ID{Origin: "alpha", Generation: 9, Seq: 9}, Forecast: &f}) == nil {
		t.Error("a forecast of a job that is not known is kept")
	}
	if s.Apply(store.NoteCalibration{Book: make([]byte, store.MaxCalibration+1)}) == nil {
		t.Error("a calibration of any length is kept")
	}
	commit(t, b, s)
	closed(t, b)
	b = open(t)
	s = load(t, b)
	if got := s.Job(id); got == nil || !reflect.DeepEqual(got.Forecast, &g) || got.Request.Runs != runs {
		t.Errorf("the job is %+v with %+v, want %+v", got, got.Forecast, g)
	}
	if got := s.Copy(guest); got == nil || got.Request.Runs != runs {
		t.Errorf("the copy is %+v", got)
	}
	if string(s.Calibration()) != "second" {
		t.Errorf("how forecasts did is %q", s.Calibration())
	}
	closed(t, b)
}
