package store

import (
	"errors"
	"fmt"
	"time"

	"kith/internal/job"
)

// Forecast is when a job would start, as its origin said when it was placed. It is replaced,
// never changed in place. No decision hangs on it.
type Forecast struct {
	Attempt uint32
	// Made is when, by the origin's clock. Waits are from then on.
	Made job.Time
	// Basis is what it rests on, a number of package forecast.
	Basis uint8
	// Raw are nine quantiles of the wait as they came out, Told those that were told.
	Raw, Told [9]time.Duration
	// Limit is how long the job waits at most by the limits of those ahead; negative if it
	// is not known.
	Limit time.Duration
	// Sites are what the sites said, at most [MaxForecastSites].
	Sites []SiteForecast
	// End is what became of it, and Waited how long the job waited if it was scored.
	End    ForecastEnd
	Waited time.Duration
}

// MaxForecastSites is how many sites a forecast tells of.
const MaxForecastSites = 16

// SiteForecast is when a job would start at one site, as that site said.
type SiteForecast struct {
	Site  job.SiteID
	Basis uint8
	// Waits are nine quantiles; all zero if the site did not answer, with Basis 0.
	Waits [9]time.Duration
}

// ForecastEnd is what became of a forecast.
type ForecastEnd uint8

// The ends. The numbers are stored; they are frozen.
const (
	ForecastOpen     ForecastEnd = 0 // the job waits
	ForecastScored   ForecastEnd = 1 // it started, and the forecast was compared with that
	ForecastUnscored ForecastEnd = 2 // it was cancelled, held or placed anew, or started at once
)

// MaxCalibration is the most bytes of [NoteCalibration].
const MaxCalibration = 256 << 10

// ErrTooLong is returned for a calibration of too many bytes.
var ErrTooLong = errors.New("more bytes than are kept")

// Calibration returns how forecasts did, as it was noted last; nil if it never was. It is
// only read.
func (s *State) Calibration() []byte { return s.calibration }

// RestoreCalibration sets what a back end has read.
func (s *State) RestoreCalibration(book []byte) { s.calibration = book }

func (c NoteForecast) apply(s *State) error {
	j, err := s.known(c.Job)
	if err != nil {
		return err
	}
	j.Forecast = c.Forecast
	s.touchJob(j)
	return nil
}

func (c NoteCalibration) apply(s *State) error {
	if len(c.Book) > MaxCalibration {
		return fmt.Errorf("calibration of %d bytes: %w", len(c.Book), ErrTooLong)
	}
	s.calibration, s.changes.Calibration = c.Book, true
	return nil
}
