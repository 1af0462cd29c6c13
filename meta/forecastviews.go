package meta

import (
	"kith/internal/forecast"
	"kith/store"
)

// ForecastsView is how the forecasts of a site did.
type ForecastsView struct {
	Enabled bool
	// Starts and Runs are how the latest ranges did: all of them first, then by class.
	Starts [1 + forecast.StartClasses]forecast.Record
	Runs   [1 + forecast.RunClasses]forecast.Record
	// Unscored counts forecasts of starts by why they were not scored.
	Unscored map[forecast.Unresolved]int64
	// Learnt is how many run times are known.
	Learnt int64
	// Begun says that what was kept of earlier outcomes could not be read: the records
	// begin with this daemon.
	Begun bool
}

// Forecasts returns how forecasts did.
func (v Views) Forecasts() ForecastsView {
	s := v.origin.seer
	if s == nil {
		return ForecastsView{}
	}
	f := ForecastsView{Enabled: true, Learnt: s.learnt, Begun: s.lost, Unscored: make(map[forecast.Unresolved]int64)}
	f.Starts[0], f.Runs[0] = s.book.Starts().All(), s.book.Runs().All()
	for c := range forecast.Class(forecast.StartClasses) {
		f.Starts[1+c] = s.book.Starts().Of(c)
	}
	for c := range forecast.Class(forecast.RunClasses) {
		f.Runs[1+c] = s.book.Runs().Of(c)
	}
	for _, why := range []forecast.Unresolved{forecast.Cancelled, forecast.Held, forecast.Replaced, forecast.AtOnce, forecast.NotMade} {
		f.Unscored[why] = s.book.Unscored(why)
	}
	return f
}

// recordOf returns how the latest forecasts of the class of one did.
func (v Views) recordOf(f *store.Forecast) forecast.Record {
	s := v.origin.seer
	if s == nil || f == nil {
		return forecast.Record{}
	}
	raw := forecast.Waits(f.Raw)
	return s.book.Starts().Of(forecast.StartClass(raw.Median()))
}
