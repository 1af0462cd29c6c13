package forecast

import (
	"testing"
	"time"

	"kith/internal/job"
)

// line is a scene of one processor: a copy runs, some wait, and the last of them is asked for.
type line struct {
	copies int
	left   int64
	cost   int64
	never  bool
	plays  int
}

func (l *line) Copies(yield func(int32, job.Copy) bool) {
	for i := range l.copies {
		if !yield(int32(i), job.Copy{}) { //nolint:gosec // A few.
			return
		}
	}
}
func (l *line) Numbers() int { return l.copies }
func (l *line) Left() int64  { return l.left }

func (l *line) Play(d Draws) (job.Time, bool) {
	l.plays++
	if l.left -= l.cost; l.left < 0 {
		return 0, false
	}
	if l.never {
		return job.Never, true
	}
	at := job.Time(0)
	for i := range l.copies - 1 {
		at = at.Add(min(d.Run(int32(i), 0), time.Hour)) //nolint:gosec // A few.
	}
	return at, true
}

func inquiryOf(l *line) *Inquiry {
	q := &Inquiry{Scene: l, Seed: 7}
	for range l.copies {
		q.Roles = append(q.Roles, Role{Runs: Runs{1000, 2000, 4000, 8000, 10000, 20000, 30000, 40000, 50000}, Limit: time.Hour, User: "ada"})
	}
	return q
}

// The same state gives the same forecast, whatever the stage has played before.
func TestSameStateSameForecast(t *testing.T) {
	var fresh, used Stage
	other := inquiryOf(&line{copies: 3, left: 1000, cost: 1})
	other.Seed = 8
	used.Play(other)
	a, b := fresh.Play(inquiryOf(&line{copies: 9, left: 1000, cost: 1})), used.Play(inquiryOf(&line{copies: 9, left: 1000, cost: 1}))
	if a != b || a.Scenarios != DefaultScenarios || !a.LimitKnown || a.Limit != 8*time.Hour {
		t.Errorf("%+v\n%+v", a, b)
	}
	if c := fresh.Play(other); c.Waits == a.Waits {
		t.Error("another state has the same forecast")
	}
	if a.Waits[0] <= 0 || a.Waits[8] >= 4*8*time.Hour || a.Waits.Median() < a.Waits[0] {
		t.Errorf("waits %v", a.Waits)
	}
}

// A forecast whose steps are not enough for thirty scenarios ends soon, with what the limits
// say; one with enough for thirty, and not for fifty, is made of those.
func TestForecastsWithinTheirSteps(t *testing.T) {
	for name, c := range map[string]struct {
		left                       int64
		scenarios, least, mostPlay int
		limit                      bool
	}{
		"none at all":       {left: 0, mostPlay: 1},
		"the limits only":   {left: 10, scenarios: 0, mostPlay: 2, limit: true},
		"far from enough":   {left: 250, scenarios: probe, mostPlay: 1 + probe, limit: true},
		"enough for thirty": {left: 360, scenarios: 35, mostPlay: 37, limit: true},
		"enough":            {left: 1000, scenarios: DefaultScenarios, mostPlay: 51, limit: true},
	} {
		var s Stage
		l := &line{copies: 5, left: c.left, cost: 10}
		a := s.Play(inquiryOf(l))
		if a.Scenarios != c.scenarios || l.plays > c.mostPlay || a.LimitKnown != c.limit || (a.Waits != Waits{}) != (c.scenarios >= MinScenarios) {
			t.Errorf("%s: %+v after %d plays", name, a, l.plays)
		}
	}
}

// A copy that never starts has no forecast.
func TestNeverHasNoForecast(t *testing.T) {
	var s Stage
	if a := s.Play(inquiryOf(&line{copies: 2, left: 1000, never: true})); a.LimitKnown || a.Scenarios != 0 || a.Waits != (Waits{}) {
		t.Errorf("%+v", a)
	}
}

// Seeds are of the site, the attempt and the instant.
func TestSeeds(t *testing.T) {
	a := job.AttemptID{Job: job.ID{Origin: "alpha", Generation: 1, Seq: 2}, Number: 1}
	b := a
	b.Number = 2
	seeds := map[uint64]bool{SeedOf("alpha", a, 1): true, SeedOf("beta", a, 1): true, SeedOf("alpha", b, 1): true, SeedOf("alpha", a, 2): true}
	if again := SeedOf("alpha", a, 1); len(seeds) != 4 || !seeds[again] {
		t.Errorf("%v", seeds)
	}
}
