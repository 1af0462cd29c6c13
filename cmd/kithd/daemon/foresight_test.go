package daemon

import (
	"bytes"
	"context"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"kith/internal/forecast"
	"kith/internal/job"
	"kith/meta"
	"kith/meta/policy"
	"kith/sitesched"
	"kith/store"
	"kith/testbed/sim"
)

// twin is an engine that is told whatever that of a simulated site is told, but for forecasts: its
// own are handed to the worker of a daemon, and what comes back from it takes the place of what
// the simulator has played within the instant.
type twin struct {
	t      *testing.T
	engine *meta.Engine
	facts  *store.State
	worker chan<- meta.Foresee
	played <-chan meta.Event
	// answers are those of the worker that had enough scenarios.
	answers int
}

func newTwin(t *testing.T, s *sim.Site, c meta.Config, plan sitesched.Config) *twin {
	d := &Daemon{foresight: make(chan meta.Foresee, 1)}
	played := make(chan meta.Event, 1)
	ctx, stop := context.WithCancel(t.Context())
	over := make(chan struct{})
	go func() {
		defer close(over)
		d.foresee(ctx, func(ev meta.Event) { played <- ev })
	}()
	t.Cleanup(func() { stop(); <-over })
	scheduler, err := sitesched.New(plan)
	if err != nil {
		t.Fatal(err)
	}
	site := s.State().Site()
	x := &twin{t: t, facts: store.NewState(site.ID, site.Generation), worker: d.foresight, played: played}
	if err := store.Record(x.facts, store.BeginLife{}); err != nil {
		t.Fatal(err)
	}
	c.Forecasts.Forecaster, c.Policies = nil, policy.New()
	if x.engine, err = meta.New(c, x.facts, scheduler); err != nil {
		t.Fatal(err)
	}
	return x
}

func (x *twin) Restore(now job.Time, sites []job.SiteID) { x.do(x.engine.Restore(now, sites)) }

// Event takes in what the simulated engine is told.
func (x *twin) Event(now job.Time, ev meta.Event) {
	if f, is := ev.(meta.Foreseen); is {
		mine, ok := (<-x.played).(meta.Foreseen)
		if !ok || mine.Number != f.Number || mine.Answer != f.Answer {
			x.t.Fatalf("the worker of a daemon answers %+v, the simulator %+v", mine, f)
		}
		if mine.Answer.Scenarios >= forecast.MinScenarios {
			x.answers++
		}
		ev = mine
	}
	x.do(x.engine.Step(now, ev))
}

func (x *twin) do(effects []meta.Effect) {
	for _, f := range effects {
		if f, is := f.(meta.Foresee); is {
			x.worker <- f // one at a time, so that there is room
		}
	}
}

func (x *twin) Effects([]meta.Effect)   {}
func (x *twin) Wake(job.Time, job.Time) {}
func (x *twin) Sealed()                 {}
func (x *twin) Turn()                   {}

// said is all that is kept of the forecasts of a site.
func said(st *store.State) []byte {
	var b bytes.Buffer
	for j := range st.Jobs(job.ID{}) {
		if j.Forecast != nil {
			fmt.Fprintf(&b, "%v %+v\n", j.ID, *j.Forecast)
		}
	}
	fmt.Fprintf(&b, "%x\n", st.Calibration())
	return b.Bytes()
}

// The worker of a daemon and the simulator make the same forecasts of the same state with the same
// history and seed, to the last byte: of jobs of the site and, asked by another site, of its.
func TestDaemonAndSimulatorForecastAlike(t *testing.T) {
	t.Parallel()
	const jobs = 60
	cfg := sim.Config{Seed: 1, Check: true, Disk: sim.DiskConfig{Keep: true}}
	plan := sitesched.Config{Processors: 4, Backfill: sitesched.EASY, Queues: sitesched.DualBackfill, Scope: sitesched.ScopeAll}
	for _, id := range []job.SiteID{"alpha", "beta"} {
		c := meta.Default()
		c.Forecasts = meta.Forecasts{Enabled: true, Arrivals: true}
		cfg.Sites = append(cfg.Sites, sim.SiteConfig{ID: id, Scheduler: plan, Meta: c})
	}
	var twins []*twin
	var sites []*sim.Site
	cfg.Record = func(s *sim.Site, c meta.Config) sim.Recorder {
		x := newTwin(t, s, c, plan)
		twins, sites = append(twins, x), append(sites, s)
		return x
	}
	w, err := sim.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	rng, at := rand.New(rand.NewPCG(1, 9)), time.Duration(0)
	for range jobs {
		at += time.Duration(rng.ExpFloat64() * float64(6*time.Minute))
		r := job.Request{Name: "x", User: fmt.Sprint("user", rng.IntN(4)), Processors: 1 + rng.Int32N(3), Walltime: time.Duration(1+rng.IntN(4)) * 30 * time.Minute}
		w.Submit(sim.Start.Add(at), cfg.Sites[rng.IntN(2)].ID, sim.Submission{Request: r, RunTime: time.Duration(1+rng.ExpFloat64()*1500) * time.Second})
	}
	if err := w.RunWhile(sim.Start.Add(30*24*time.Hour), func() bool { return len(w.Acknowledged()) < jobs || w.CheckEnded() != nil }); err != nil {
		t.Fatal(err)
	}
	for i, x := range twins {
		mine, theirs := said(x.facts), said(sites[i].State())
		if !bytes.Equal(mine, theirs) {
			t.Errorf("%s:\n%s\nand simulated:\n%s", cfg.Sites[i].ID, mine, theirs)
		}
		if x.answers < jobs/8 || bytes.Count(mine, []byte("\n")) < jobs/8 {
			t.Errorf("%s: %d answers by scenarios, and only this was kept:\n%s", cfg.Sites[i].ID, x.answers, mine)
		}
	}
}
