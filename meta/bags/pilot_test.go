package bags

import (
	"math/rand/v2"
	"testing"
	"time"

	"kith/internal/job"
)

func TestPilots(t *testing.T) {
	base := Moment{Left: 10 * time.Minute, Shortest: time.Minute, Yield: YieldTask}
	type m = *Moment
	for name, c := range map[string]struct {
		change func(m)
		act    Act
		why    Why
	}{
		"a task fits":                         {func(m m) { m.Fits, m.Stock = true, 1 }, Begin, NoReason},
		"it runs one":                         {func(m m) { m.Running, m.Fits, m.Stock = true, true, 1 }, Go, NoReason},
		"it runs its last":                    {func(m m) { m.Running, m.Left = true, 0 }, Go, NoReason},
		"no task, one is coming":              {func(m m) { m.Coming = true }, Go, NoReason},
		"no task":                             {func(m) {}, Finish, NoWork},
		"no task fits":                        {func(m m) { m.Stock = 1 }, Finish, TurnOver},
		"no task fits, others come":           {func(m m) { m.Stock, m.Coming = 1, true }, Finish, TurnOver},
		"none that comes can fit":             {func(m m) { m.Coming, m.Left = true, time.Minute }, Finish, TurnOver},
		"one that comes may fit":              {func(m m) { m.Coming, m.Left = true, time.Minute+1 }, Go, NoReason},
		"a drain, at once":                    {func(m m) { m.Draining, m.Fits, m.Stock, m.Coming = true, true, 1, true }, Finish, Drained},
		"a drain, after the task":             {func(m m) { m.Draining, m.Running = true, true }, Go, NoReason},
		"a home job waits":                    {func(m m) { m.HomeWaits, m.Fits, m.Stock = true, true, 1 }, Finish, Yielded},
		"a home job waits for the task's end": {func(m m) { m.HomeWaits, m.Running = true, true }, Go, NoReason},
		"a home job waits for nothing":        {func(m m) { m.HomeWaits, m.Running, m.Yield = true, true, YieldNow }, Stop, Yielded},
		"now, between tasks":                  {func(m m) { m.HomeWaits, m.Fits, m.Stock, m.Yield = true, true, 1, YieldNow }, Finish, Yielded},
		"now, without a home job":             {func(m m) { m.Running, m.Yield = true, YieldNow }, Go, NoReason},
		"never":                               {func(m m) { m.HomeWaits, m.Fits, m.Stock, m.Yield = true, true, 1, YieldNever }, Begin, NoReason},
		"never, and it runs one":              {func(m m) { m.HomeWaits, m.Running, m.Yield = true, true, YieldNever }, Go, NoReason},
	} {
		moment := base
		c.change(&moment)
		if act, why := moment.Next(); act != c.act || why != c.why {
			t.Errorf("%s: %d because %v, want %d because %v", name, act, why, c.act, c.why)
		}
	}
}

// A pilot has time for the longest task of its shape, even if the first one comes late, and
// one that waits for tasks has time for one that may come.
func TestPilotsHaveTimeForTasks(t *testing.T) {
	rng := rand.New(rand.NewPCG(10, 10))
	for range 20_000 {
		r := job.Request{Processors: 1, Walltime: 1 + time.Duration(rng.Int64N(int64(MaxTaskWalltime)>>rng.IntN(40)))}
		s, turn := ShapeOf(&r), time.Duration(rng.Int64N(int64(time.Hour)))
		w := s.PilotWalltime(turn)
		if w < r.Walltime+PilotSlack || w > job.MaxWalltime || w < min(turn, job.MaxWalltime) {
			t.Fatalf("a pilot of %v for tasks of %v with turns of %v", w, r.Walltime, turn)
		}
		if s.Shortest() >= r.Walltime {
			t.Fatalf("no task of the shape of %v is below %v", r.Walltime, s.Shortest())
		}
		if s.Shortest() < s.Walltime-s.Walltime/8-time.Minute {
			t.Fatalf("tasks of a shape of %v have %v to that", s.Walltime, s.Shortest())
		}
	}
}

func TestStocksGoBack(t *testing.T) {
	for name, c := range map[string]struct {
		pilots   int
		since    time.Duration
		draining bool
		back     bool
		again    job.Time
	}{
		"a pilot runs":         {pilots: 1, since: -time.Hour, again: job.Never},
		"it has just ended":    {again: job.Time(30 * time.Second)},
		"almost half a minute": {since: -29 * time.Second, again: job.Time(time.Second)},
		"half a minute":        {since: -30 * time.Second, back: true},
		"a drain":              {draining: true, back: true},
		"a drain with pilots":  {pilots: 1, draining: true, back: true},
	} {
		if back, again := GiveBack(c.pilots, job.Time(c.since), 0, c.draining); back != c.back || again != c.again {
			t.Errorf("%s: %v, look again at %v", name, back, again)
		}
	}
}
