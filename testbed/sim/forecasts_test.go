package sim_test

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"testing"
	"time"

	"kith/internal/forecast"
	"kith/internal/job"
	"kith/meta"
	"kith/store"
	"kith/testbed/sim"
)

// foreseeing is a federation of three sites that make forecasts.
func foreseeing(seed uint64, on bool) sim.Config {
	cfg := federation(seed, 6, 4, 3)
	cfg.Disk.Keep = true
	for i := range cfg.Sites {
		cfg.Sites[i].Meta.Forecasts = meta.Forecasts{Enabled: on, Arrivals: true}
	}
	return cfg
}

// overload submits jobs of some users, more than fit, to all sites of a world.
func overload(w *sim.World, seed uint64, n int) {
	rng := rand.New(rand.NewPCG(seed, 9))
	at := time.Duration(0)
	for range n {
		at += time.Duration(rng.ExpFloat64() * float64(270*time.Second))
		user, run := rng.IntN(5), time.Duration(1+rng.ExpFloat64()*600)*time.Second
		r := request(1+rng.Int32N(3), 2*time.Duration(1+rng.IntN(4))*15*time.Minute)
		r.User = fmt.Sprint("user", user)
		w.Submit(sim.Start.Add(at), job.SiteID(fmt.Sprint("s", rng.IntN(3))), sim.Submission{Request: r, RunTime: run * time.Duration(1+user)})
	}
}

// run runs a world until all n jobs have ended, and returns when each began, and what was
// said of it.
func run(t *testing.T, cfg sim.Config, seed uint64, n int, meanwhile func(*sim.World)) (*sim.World, map[job.AttemptID]job.Time, map[job.ID]string) {
	t.Helper()
	starts := make(map[job.AttemptID]job.Time)
	var w *sim.World
	cfg.Began = func(_ job.SiteID, a job.AttemptID, _ int) { starts[a] = w.Now() }
	w = newWorld(t, cfg)
	overload(w, seed, n)
	if meanwhile != nil {
		meanwhile(w)
	}
	if err := w.RunWhile(sim.Start.Add(30*24*time.Hour), func() bool { return len(w.Acknowledged()) < n || !drained(w) }); err != nil {
		t.Fatal(err)
	}
	said := make(map[job.ID]string)
	for _, s := range cfg.Sites {
		for j := range w.Site(s.ID).State().Jobs(job.ID{}) {
			if j.Forecast != nil {
				said[j.ID] = fmt.Sprintf("%+v", *j.Forecast)
			}
		}
	}
	return w, starts, said
}

// Forecasts are made of jobs that wait, and of these only; each is scored once when its job
// starts, about four in five hold, and those of run times, too.
func TestForecastsAreMadeAndScored(t *testing.T) {
	const n = 400
	cfg := foreseeing(1, true)
	w, _, said := run(t, cfg, 1, n, nil)
	scored, others, starts, runs := 0, 0, forecast.Record{}, forecast.Record{}
	for _, s := range cfg.Sites {
		for j := range w.Site(s.ID).State().Jobs(job.ID{}) {
			f := j.Forecast
			switch {
			case j.Request.Runs == [9]uint16{}:
				t.Errorf("job %v has no expected run time", j.ID)
			case f == nil:
			case f.End == store.ForecastOpen:
				t.Errorf("job %v is %v, and what was said of its start is open", j.ID, j.State)
			case f.End == store.ForecastScored:
				if scored++; j.Started.Sub(f.Made) != f.Waited {
					t.Errorf("job %v waited %v, and is said to have waited %v", j.ID, j.Started.Sub(f.Made), f.Waited)
				}
			}
			if f != nil && f.Basis != uint8(forecast.ByScenarios) {
				others++
			}
		}
		v := w.Site(s.ID).Engine().Views().Forecasts()
		starts.Forecasts, starts.Held = starts.Forecasts+v.Starts[0].Forecasts, starts.Held+v.Starts[0].Held
		runs.Forecasts, runs.Held = runs.Forecasts+v.Runs[0].Forecasts, runs.Held+v.Runs[0].Held
		if v.Learnt < int64(n)/3 {
			t.Errorf("%s has learnt from %d run times", s.ID, v.Learnt)
		}
	}
	if scored != starts.Forecasts || scored < n/8 || len(said) < scored {
		t.Errorf("%d forecasts, %d scored by their jobs, %d by the sites", len(said), scored, starts.Forecasts)
	}
	if others > len(said)/10 {
		t.Errorf("%d of %d forecasts do not rest on scenarios", others, len(said))
	}
	if share := starts.Share(); share < .65 || share > .95 {
		t.Errorf("%.2f of %d starts held", share, starts.Forecasts)
	}
	if share := runs.Share(); share < .65 || share > .95 || runs.Forecasts < n {
		t.Errorf("%.2f of %d run times held", share, runs.Forecasts)
	}
}

// Two runs of one seed say the same, to the last digit.
func TestForecastsAreRepeatable(t *testing.T) {
	_, _, first := run(t, foreseeing(2, true), 2, 200, nil)
	_, _, again := run(t, foreseeing(2, true), 2, 200, nil)
	if len(first) < 20 || !maps.Equal(first, again) {
		t.Errorf("%d and %d forecasts, that are not the same", len(first), len(again))
	}
}

// Forecasts change no schedule: every job starts when it starts without them.
func TestForecastsChangeNoStart(t *testing.T) {
	_, with, said := run(t, foreseeing(3, true), 3, 200, nil)
	_, without, none := run(t, foreseeing(3, false), 3, 200, nil)
	if len(said) == 0 || len(none) != 0 || !maps.Equal(with, without) {
		t.Errorf("%d forecasts, %d without; %d and %d starts, that are not the same", len(said), len(none), len(with), len(without))
	}
}

// What is known of forecasts survives a restart, but for the tail; a site that lost its
// folder begins anew. Nothing that was open before stays open.
func TestForecastsOverARestart(t *testing.T) {
	for name, lose := range map[string]bool{"restart": false, "folder lost": true} {
		t.Run(name, func(t *testing.T) {
			var before, after meta.ForecastsView
			w, _, _ := run(t, foreseeing(4, true), 4, 300, func(w *sim.World) {
				w.At(sim.Start.Add(18*time.Hour), func() {
					s := w.Site("s0")
					before = s.Engine().Views().Forecasts()
					if s.Crash(); lose {
						s.LoseFolder()
					}
					if err := s.Restart(); err != nil {
						t.Error(err)
					}
					after = s.Engine().Views().Forecasts()
				})
			})
			const saved = 50
			if before.Learnt == 0 || before.Starts[0].Forecasts+before.Runs[0].Forecasts < saved+10 {
				t.Fatalf("before: %+v", before)
			}
			known := after.Starts[0].Forecasts + after.Runs[0].Forecasts
			switch {
			case lose && (after.Learnt != 0 || known != 0):
				t.Errorf("without its folder it knows of %d run times and %d outcomes", after.Learnt, known)
			case !lose && (after.Learnt != before.Learnt || known < before.Starts[0].Forecasts+before.Runs[0].Forecasts-saved):
				t.Errorf("before %+v, after %+v", before, after)
			}
			for j := range w.Site("s0").State().Jobs(job.ID{}) {
				if f := j.Forecast; f != nil && f.End == store.ForecastOpen {
					t.Errorf("job %v, %v: open", j.ID, j.State)
				}
			}
		})
	}
}
