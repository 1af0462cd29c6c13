package harvest

import (
	"errors"
	"math"
	"testing"
	"time"

	"kith/internal/job"
)

// A cycle of days and weekends, with noise, is predicted better for 12 h ahead by the three spaces
// together than by the past alone.
func TestSpecCheck10DaysAndWeeks(t *testing.T) {
	rng := seeded(14)
	rho := func(h Hour) float64 {
		day := 0.35 + 0.25*math.Sin(2*math.Pi*float64(h%24)/24)
		if h/24%7 >= 5 {
			day /= 3
		}
		return min(1, max(0, day+0.05*rng.NormFloat64()))
	}
	var u Usage
	var all, past float64
	n := 0.0
	for h := range Hour(60 * 24) {
		is := rho(h)
		if h >= 30*24 {
			now := h - 12
			off := math.Abs(u.Predict(now, h).Rho - is)
			sum := 0.0
			for i := range Hour(pastHours) {
				l, _ := u.of(now - i)
				sum += l.Rho / pastHours
			}
			all += off
			past += math.Abs(sum - is)
			n++
		}
		if err := u.Add(h-11, Load{Lambda: 0.01, Rho: rho(h - 11), Sigma: 30}); h >= 11 && err != nil {
			t.Fatal(err)
		}
	}
	t.Logf("mean error %.3f, with the past alone %.3f", all/n, past/n)
	if all >= past {
		t.Errorf("mean error %.3f, with the past alone %.3f", all/n, past/n)
	}
}

// Of each space what is known counts, and a space of which nothing is known leaves its third to
// the others.
func TestSpacesWithGaps(t *testing.T) {
	const now, at = 1000, 1001
	type hours map[Hour]float64
	for name, c := range map[string]struct {
		known           hours
		rho             float64
		past, day, week int
	}{
		"nothing":             {nil, 0.5, 0, 0, 0},
		"the last hour":       {hours{now: 0.2}, 0.2, 1, 0, 0},
		"two of the last":     {hours{now: 0.2, now - 23: 0.4}, 0.3, 2, 1, 0}, // now−23 is also the hour of yesterday
		"a week ago":          {hours{at - 168: 0.8}, 0.8, 0, 1, 1},
		"two weeks ago":       {hours{at - 336: 0.8}, 0.8, 0, 0, 1},
		"all but days":        {hours{now: 0.2, at - 336: 0.8}, 0.5, 1, 0, 1},
		"too old":             {hours{at - 5*168: 0.9}, 0.5, 0, 0, 0},
		"another hour":        {hours{now - 30: 0.9}, 0.5, 0, 0, 0},
		"of the future":       {hours{now + 5: 0.9}, 0.5, 0, 0, 0},
		"three days and past": {hours{at - 48: 0.6, at - 72: 0.4, now: 0.1}, 0.3, 1, 2, 0},
	} {
		var u Usage
		for h, rho := range c.known {
			if err := u.Add(h, Load{Lambda: 0.1, Rho: rho, Sigma: 10}); err != nil {
				t.Fatal(err)
			}
		}
		p := u.Predict(now, at)
		want := c.rho
		if name == "two of the last" { // past 0.3, day 0.4
			want = 0.35
		}
		if math.Abs(p.Rho-want) > 1e-9 || p.Past != c.past || p.Day != c.day || p.Week != c.week {
			t.Errorf("%s: %+v", name, p)
		}
		if err := p.Machine(1).Check(); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// Owners that are never or always there, that did not come while they were measured, and hours in
// which a clock was set back.
func TestPredictionsAtTheEdges(t *testing.T) {
	var never, always, stayed, back Usage
	for h := range Hour(48) {
		for _, x := range []struct {
			u *Usage
			l Load
		}{{&never, Load{}}, {&always, Load{Lambda: 0.01, Rho: 1, Sigma: 5}}, {&stayed, Load{Rho: 0.5}}} {
			if err := x.u.Add(h, x.l); err != nil {
				t.Fatal(err)
			}
		}
	}
	if p := never.Predict(47, 50); p.Load != (Load{}) || p.Spread != 0 {
		t.Errorf("never: %+v", p)
	}
	if p := always.Predict(47, 50); p.Rho != 1 || p.Machine(1).Rate() != 0 {
		t.Errorf("always: %+v", p)
	}
	if p := stayed.Predict(47, 50); p.Rho != 0.5 || p.Lambda <= 0 || p.Lambda > 1.0/3600 {
		t.Errorf("without arrivals: %+v", p)
	}
	for _, h := range []Hour{5000, 100, 100} { // the last replaces
		if err := back.Add(h, Load{Lambda: 1, Rho: float64(h) / 10_000, Sigma: 1}); err != nil {
			t.Fatal(err)
		}
	}
	if p := back.Predict(100, 101); p.Rho != 0.01 || p.Past != 1 {
		t.Errorf("set back: %+v", p)
	}
	if p := back.Predict(-50, -60); p.Past+p.Day+p.Week != 0 {
		t.Errorf("before the epoch: %+v", p)
	}
	nan := math.NaN()
	for _, l := range []Load{{Lambda: -1}, {Rho: 1.1}, {Rho: -0.1}, {Sigma: nan}, {Lambda: nan}, {Rho: nan}, {Lambda: math.Inf(1)}} {
		if err := back.Add(1, l); !errors.Is(err, ErrLoad) {
			t.Errorf("%+v: %v", l, err)
		}
	}
}

// A task over several hours meets the mean of them.
func TestPredictTask(t *testing.T) {
	var u Usage
	for h := range Hour(14 * 24) {
		l := Load{Lambda: 0.01, Rho: 0.1, Sigma: 10}
		if h%24 >= 12 {
			l.Rho = 0.7
		}
		if err := u.Add(h, l); err != nil {
			t.Fatal(err)
		}
	}
	const now = 14*24 - 1
	start := job.Time((now + 1) * time.Hour) // at midnight
	short, long := u.PredictTask(now, start, 60), u.PredictTask(now, start, 100*3600)
	// Half a third is the past's, of both halves of a day.
	if want := (0.4 + 0.1 + 0.1) / 3; math.Abs(short.Rho-want) > 1e-9 {
		t.Errorf("a minute: %v, want %v", short.Rho, want)
	}
	if math.Abs(long.Rho-0.4) > 0.02 {
		t.Errorf("days: %v, want 0.4", long.Rho)
	}
	var busy Usage
	if err := busy.Add(now, Load{Lambda: 1, Rho: 1}); err != nil {
		t.Fatal(err)
	}
	if p := busy.PredictTask(now, start, 3600); math.Abs(p.Rho-1) > 1e-9 {
		t.Errorf("always there: %+v", p)
	}
	var nothing Usage
	if p := nothing.PredictTask(now, start, 1e12); math.Abs(p.Rho-0.5) > 1e-9 || p.Spread < 0.2 {
		t.Errorf("nothing known: %+v", p)
	}
}

func TestHourOf(t *testing.T) {
	for _, c := range []struct {
		at   time.Duration
		want Hour
	}{{0, 0}, {time.Hour - 1, 0}, {time.Hour, 1}, {-1, -1}, {-time.Hour, -1}, {-time.Hour - 1, -2}} {
		if got := HourOf(job.Time(c.at)); got != c.want {
			t.Errorf("%v: hour %d, want %d", c.at, got, c.want)
		}
	}
}
