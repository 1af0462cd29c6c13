package localpriority

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"kith/internal/job"
	"kith/sitesched"
	"kith/testbed/report"
	"kith/testbed/workload"
)

// frozenStates is how many states are tried under each discipline.
const frozenStates = 1000

// judgePredictions compares predictions on frozen states with what comes of
// them when nothing more arrives (spec 004 section 5 no. 2).
func judgePredictions(a *answers) *reading {
	f := &reading{}
	for i, d := range []struct {
		name string
		cfg  sitesched.Config
	}{
		{"single queue", sitesched.Config{}},
		{"strict dual queues", sitesched.Config{Queues: sitesched.DualStrict}},
		{"EASY, single queue", sitesched.Config{Backfill: sitesched.EASY}},
	} {
		d.cfg.Processors = workload.PriorityNodes
		n, wrong := 0, 0
		for state := range frozenStates {
			rng := workload.NewRand(a.env.FirstSeed, uint64(1+i)<<32|uint64(state))
			asked, missed, err := frozenState(rng, d.cfg)
			if err != nil {
				f.must(false, "%s: %v", d.name, err)
				continue
			}
			n, wrong = n+asked, wrong+missed
		}
		f.note(d.name, float64(n), "predictions")
		f.must(wrong == 0, "%s: %d of %d predictions are wrong", d.name, wrong, n)
		f.say("%s: %s of %s right", d.name, report.Number(float64(n-wrong)), report.Number(float64(n)))
	}
	return f
}

// frozenState lets a site run for a while and returns how many starts were
// then predicted and how many of those wrongly.
func frozenState(rng *rand.Rand, cfg sitesched.Config) (asked, missed int, err error) {
	scheduler, err := sitesched.New(cfg)
	if err != nil {
		return 0, 0, err
	}
	p := &playedSite{s: scheduler, ends: make(map[job.AttemptID]job.Time), walltimes: make(map[job.AttemptID]time.Duration)}
	now := job.Time(0)
	for i := range 5 + rng.IntN(60) {
		now = now.Add(time.Duration(400 * rng.ExpFloat64() * float64(time.Second)))
		p.until(now)
		p.enqueue(now, randomCopy(rng, &cfg, i, now))
		p.pass(now)
	}
	type guess struct {
		id    job.AttemptID
		start job.Time
	}
	var guesses []guess
	for c := range p.s.Queued {
		x, err := p.s.WhatIf(now, job.Copy{ID: c.Copy.ID})
		if err != nil {
			return 0, 0, fmt.Errorf("prediction for %v: %w", c.Copy.ID, err)
		}
		guesses = append(guesses, guess{c.Copy.ID, x.Start})
	}
	guest := randomCopy(rng, &cfg, 1000, now)
	x, err := p.s.WhatIf(now, guest)
	if err != nil {
		return 0, 0, fmt.Errorf("prediction for a guest: %w", err)
	}
	starts := p.clone().playOut(now)
	for _, g := range guesses {
		missed += btoi(starts[g.id] != g.start)
	}
	with := p.clone()
	with.enqueue(now, guest)
	missed += btoi(with.playOut(now)[guest.ID] != x.Start)
	return len(guesses) + 1, missed, nil
}

// randomCopy makes a job like those of the source; under EASY some are wider.
func randomCopy(rng *rand.Rand, cfg *sitesched.Config, n int, now job.Time) job.Copy {
	c := job.Copy{
		ID:      job.AttemptID{Job: job.ID{Origin: "a", Generation: 1, Seq: uint64(n) + 1}, Number: 1},
		Arrival: now, Remote: rng.IntN(2) == 0,
		Request: job.Request{Processors: 1, Walltime: max(time.Second, time.Duration(2000*rng.ExpFloat64()*float64(time.Second)))},
	}
	if cfg.Backfill == sitesched.EASY {
		c.Request.Processors = 1 + rng.Int32N(cfg.Processors)
	}
	return c
}

// playedSite is a site whose jobs run for exactly their estimates.
type playedSite struct {
	s    *sitesched.Scheduler
	ends map[job.AttemptID]job.Time
	// walltimes are those of all jobs; clones share them.
	walltimes map[job.AttemptID]time.Duration
	// starts are those of the jobs that started.
	starts map[job.AttemptID]job.Time
}

func (p *playedSite) clone() *playedSite {
	c := &playedSite{s: p.s.Clone(), ends: make(map[job.AttemptID]job.Time), starts: make(map[job.AttemptID]job.Time), walltimes: p.walltimes}
	for id, end := range p.ends {
		c.ends[id] = end
	}
	return c
}

func (p *playedSite) enqueue(now job.Time, c job.Copy) {
	p.walltimes[c.ID] = c.Request.Walltime
	p.s.Enqueue(now, c)
}

// pass starts what may start now.
func (p *playedSite) pass(now job.Time) {
	for _, id := range p.s.Pass(now) {
		p.s.Confirm(now, id, now)
		p.ends[id] = now.Add(p.walltimes[id])
		if p.starts != nil {
			p.starts[id] = now
		}
	}
}

// until lets everything happen that comes before now or at it.
func (p *playedSite) until(now job.Time) {
	for {
		next := job.Never
		for _, end := range p.ends {
			next = min(next, end)
		}
		if next > now || next == job.Never {
			return
		}
		var ended []job.AttemptID
		for id, end := range p.ends {
			if end == next {
				ended = append(ended, id)
			}
		}
		slices.SortFunc(ended, job.AttemptID.Compare)
		for _, id := range ended {
			p.s.Finish(next, id)
			delete(p.ends, id)
		}
		p.pass(next)
	}
}

// playOut lets the site run until nothing is left and returns when jobs started.
func (p *playedSite) playOut(now job.Time) map[job.AttemptID]job.Time {
	p.pass(now)
	p.until(job.Never - 1)
	return p.starts
}
