package harvest

import (
	"fmt"
	"math"
	"time"

	"kith/internal/job"
)

// Hour is an interval of measurement, in hours since the Unix epoch.
type Hour int64

// HourOf returns the hour in which t lies.
func HourOf(t job.Time) Hour {
	h := Hour(t / job.Time(time.Hour))
	if t < 0 && t%job.Time(time.Hour) != 0 {
		h--
	}
	return h
}

// Load is what was measured of an owner in an hour; the fields are those of [Machine].
type Load struct{ Lambda, Rho, Sigma float64 }

// Check returns an error that wraps [ErrLoad] unless it can be. A share is at most 1.
func (l Load) Check() error {
	for _, f := range []struct {
		name        string
		value, most float64
	}{{"lambda", l.Lambda, math.MaxFloat64}, {"rho", l.Rho, 1}, {"sigma", l.Sigma, math.MaxFloat64}} {
		if !(f.value >= 0 && f.value <= f.most) {
			return fmt.Errorf("%s %v: give a number from 0 to %v: %w", f.name, f.value, f.most, ErrLoad)
		}
	}
	return nil
}

// How far the three spaces of [Usage] reach back. The source leaves it open.
const (
	pastHours = 24
	sameDays  = 7
	sameWeeks = 4
	dayHours  = 24
	weekHours = 7 * dayHours
	keptHours = sameWeeks * weekHours
)

// Usage is what was measured of an owner in the last four weeks, hour by hour; hours may be
// missing. It takes 27 KB. The zero value knows nothing and is ready. Days are 24 hours: where
// clocks change for the summer, habits are an hour off for a while.
type Usage struct {
	hours [keptHours]struct {
		at    Hour
		known bool
		load  Load
	}
}

// Add records the load of an hour, in place of what was known of it and of the hour four weeks
// before or after it. The error wraps [ErrLoad].
func (u *Usage) Add(at Hour, l Load) error {
	if err := l.Check(); err != nil {
		return fmt.Errorf("hour %d: %w", at, err)
	}
	e := &u.hours[place(at)]
	e.at, e.known, e.load = at, true, l
	return nil
}

func place(at Hour) int { return int((at%keptHours + keptHours) % keptHours) }

// of returns what is known of an hour.
func (u *Usage) of(at Hour) (l Load, ok bool) {
	e := &u.hours[place(at)]
	return e.load, e.known && e.at == at
}

// Prediction is what an owner is expected to do.
type Prediction struct {
	// Load is never such that a machine with it fails its check.
	Load
	// Spread is the standard deviation of Rho over the hours that it rests on.
	Spread float64
	// Past, Day and Week are how many hours of each space are known. All are 0 at a cold start,
	// where nothing is known: then the owner takes half, and much is possible.
	Past, Day, Week int
}

// Machine is the machine of a speed with such an owner.
func (p Prediction) Machine(speed float64) Machine {
	return Machine{Lambda: p.Lambda, Rho: p.Rho, Sigma: p.Sigma, Speed: speed}
}

// unknown is an owner of whom nothing is known: half of the time, in jobs of 5 min in the mean
// that vary three times as much as exponential ones; the share may be any.
var unknown = Prediction{Load: Load{Lambda: 0.5 / 300, Rho: 0.5, Sigma: 900}, Spread: 1 / math.Sqrt(12)}

// space sums up hours of a kind.
type space struct {
	n, busy            int // hours, and those with arrivals: others have no service time
	lambda, rho, sigma float64
}

func (s *space) add(l Load) {
	s.n++
	s.lambda += l.Lambda
	s.rho += l.Rho
	if l.Lambda > 0 {
		s.busy++
		s.sigma += l.Sigma
	}
}

// Predict says what the owner does in an hour after now, the latest that was measured: the mean
// of the last day, of the same hour of the last seven days, and of the same hour of the week in
// the last four weeks, each counting a third. A space of which nothing is known leaves its part
// to the others. Where few jobs are long, most hours have none of them, so that the mean of their
// deviations is less than the deviation of all jobs, and ranges come out narrow.
//
// Source: spec 003 section 2.3.
func (u *Usage) Predict(now, at Hour) Prediction {
	at = max(at, now+1)
	var spaces [3]space
	var sum, squares float64
	n := 0
	take := func(s *space, h Hour) {
		if l, ok := u.of(h); ok {
			s.add(l)
			sum += l.Rho
			squares += l.Rho * l.Rho
			n++
		}
	}
	for i := range Hour(pastHours) {
		take(&spaces[0], now-i)
	}
	each := func(s *space, period Hour, count int) {
		// The latest hour of the kind that was measured, and those before.
		latest := at - (at-now+period-1)/period*period
		for i := range Hour(count) {
			take(s, latest-i*period)
		}
	}
	each(&spaces[1], dayHours, sameDays)
	each(&spaces[2], weekHours, sameWeeks)
	if n == 0 {
		return unknown
	}
	p := Prediction{Past: spaces[0].n, Day: spaces[1].n, Week: spaces[2].n}
	known, varied := 0.0, 0.0
	for _, s := range spaces {
		if s.n == 0 {
			continue
		}
		known++
		p.Lambda += s.lambda / float64(s.n)
		p.Rho += s.rho / float64(s.n)
		if s.busy > 0 {
			varied++
			p.Sigma += s.sigma / float64(s.busy)
		}
	}
	p.Lambda, p.Rho = p.Lambda/known, p.Rho/known
	if varied > 0 {
		p.Sigma /= varied
	}
	if p.Lambda == 0 && p.Rho > 0 {
		// What took the time had come before all that was measured.
		p.Lambda = 1 / (float64(n) * time.Hour.Seconds())
	}
	mean := sum / float64(n)
	p.Spread = math.Sqrt(max(0, squares/float64(n)-mean*mean))
	return p
}

// PredictTask says what the owner does while a task runs that takes dedicated seconds without
// one and begins at start: the mean over the hours up to its end, which is estimated twice. It
// looks no further than four weeks ahead.
func (u *Usage) PredictTask(now Hour, start job.Time, dedicated float64) Prediction {
	first := HourOf(start)
	p := u.Predict(now, first)
	for range 2 {
		hours := float64(keptHours)
		if p.Rho < 1 {
			offset := float64(start%job.Time(time.Hour)) / float64(time.Hour)
			hours = min(hours, max(1, math.Ceil(offset+dedicated/(1-p.Rho)/time.Hour.Seconds())))
		}
		next := Prediction{Past: p.Past, Day: p.Day, Week: p.Week}
		for i := range Hour(hours) {
			q := u.Predict(now, first+i)
			next.Lambda += q.Lambda / hours
			next.Rho += q.Rho / hours
			next.Sigma += q.Sigma / hours
			next.Spread += q.Spread / hours
		}
		p = next
	}
	return p
}
