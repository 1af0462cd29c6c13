package api

import (
	"context"
	"time"

	"google.golang.org/protobuf/types/known/timestamppb"

	"kith/internal/forecast"
	"kith/internal/job"
	"kith/meta"
	kithv1 "kith/proto/gen/kith/v1"
	"kith/store"
)

// GetForecasts implements kithv1.SiteServiceServer.
func (s *Server) GetForecasts(ctx context.Context, _ *kithv1.GetForecastsRequest) (*kithv1.GetForecastsResponse, error) {
	var f meta.ForecastsView
	if err := s.Node.Glance(ctx, func(_ job.Time, v meta.Views) { f = v.Forecasts() }); err != nil {
		return nil, err
	}
	r := &kithv1.GetForecastsResponse{Enabled: f.Enabled, Learnt: f.Learnt, BegunAnew: f.Begun}
	if !f.Enabled {
		return r, nil
	}
	r.Unscored = &kithv1.UnscoredForecasts{
		Cancelled: f.Unscored[forecast.Cancelled], Held: f.Unscored[forecast.Held], Replaced: f.Unscored[forecast.Replaced],
		AtOnce: f.Unscored[forecast.AtOnce], NotMade: f.Unscored[forecast.NotMade],
	}
	for i := range f.Starts {
		name := "all"
		if i > 0 {
			name = forecast.StartClassName(forecast.Class(i - 1)) //nolint:gosec // A few classes.
		}
		r.Starts = append(r.Starts, forecastRecord(name, &f.Starts[i]))
	}
	for i := range f.Runs {
		name := "all"
		if i > 0 {
			name = forecast.RunClassName(forecast.Class(i - 1)) //nolint:gosec // A few classes.
		}
		r.Runs = append(r.Runs, forecastRecord(name, &f.Runs[i]))
	}
	return r, nil
}

func forecastRecord(class string, r *forecast.Record) *kithv1.ForecastRecord {
	return &kithv1.ForecastRecord{
		Class: class, Forecasts: int32(r.Forecasts), Held: r.Held, Earlier: r.Below, Later: r.Above, //nolint:gosec // At most 1,000.
		PinballSeconds: r.Pinball, WidthSeconds: r.Width,
	}
}

// startForecast is what was said of the start of a job; nil if nothing was.
func startForecast(f *store.Forecast, state job.State, record *forecast.Record) *kithv1.StartForecast {
	if f == nil {
		return nil
	}
	told, basis := forecast.Waits(f.Told), forecast.StartBasis(f.Basis)
	r := told.Range()
	m := &kithv1.StartForecast{
		MadeTime: stamp(f.Made), Attempt: int32(f.Attempt), Basis: basis.String(), //nolint:gosec // As in JobStatus.
		Low: laterBy(f.Made, r.Low), Median: laterBy(f.Made, r.Median), High: laterBy(f.Made, r.High),
		Scored: int32(record.Forecasts), HeldShare: record.Share(), //nolint:gosec // At most 1,000.
	}
	if f.Limit >= 0 {
		m.Latest = laterBy(f.Made, f.Limit)
	}
	for i := range f.Sites {
		s := &f.Sites[i]
		x := &kithv1.SiteStartForecast{SiteId: string(s.Site), Basis: forecast.StartBasis(s.Basis).String()}
		if s.Basis != 0 {
			w := forecast.Waits(s.Waits)
			r := w.Range()
			x.Low, x.Median, x.High = laterBy(f.Made, r.Low), laterBy(f.Made, r.Median), laterBy(f.Made, r.High)
		}
		m.Sites = append(m.Sites, x)
	}
	switch {
	case f.End == store.ForecastScored:
		m.StartTime = laterBy(f.Made, f.Waited)
		switch {
		case f.Waited < r.Low:
			m.End = kithv1.StartForecast_END_EARLIER
		case f.Waited > r.High:
			m.End = kithv1.StartForecast_END_LATER
		default:
			m.End = kithv1.StartForecast_END_HELD
		}
	case f.End == store.ForecastOpen && !state.Terminal():
		m.End = kithv1.StartForecast_END_OPEN
	default:
		m.End = kithv1.StartForecast_END_UNSCORED
	}
	return m
}

// laterBy is an instant some time after another.
func laterBy(t job.Time, wait time.Duration) *timestamppb.Timestamp { return stamp(t.Add(wait)) }
