package forecasts

import (
	"math/rand/v2"
	"time"

	"kith/internal/forecast"
	"kith/internal/job"
	"kith/sitesched"
	"kith/testbed/federation"
	"kith/testbed/metrics"
	"kith/testbed/workload"
)

// wait is what was said of a job that had to wait, at its submission.
type wait struct {
	site, index int
	// all is the start anywhere, samples of the least wait; own that at the origin.
	all, own forecast.Samples
	// latest is the least WhatIf of all sites, ownLatest that of the origin.
	latest, ownLatest time.Duration
}

// observer watches a federation and makes forecasts, as the daemons of its sites would: each
// origin knows its users, and tells the others nine quantiles of the run time of a job.
type observer struct {
	workloads []*workload.Workload
	draws     int
	seed      uint64
	// part is which of the jobs that wait are looked at.
	part int

	next    []int
	history []*forecast.History
	days    []forecast.Days
	open    [][]*openJob
	free    []*openJob
	fresh   []*openJob
	order   []int // sites in the order in which they are asked, the origin first
	waiting int

	player sitesched.Player
	cast   forecast.Cast
	pcg    rand.PCG
	rng    *rand.Rand
	stream forecast.Stream
	waits  []wait
	// failed counts forecasts that came to no start within their steps.
	failed int
}

// openJob is a job that has not ended.
type openJob struct {
	site, index int
	job         *workload.Job
	user        string // together with its origin
	// own is what its origin knows of its run time, told what the others do.
	own, told forecast.Dist
	// number is that of its arrival at each site, -1 where it has no copy.
	number []int64
}

func newObserver(workloads []*workload.Workload, draws int, seed uint64) *observer {
	o := &observer{
		workloads: workloads, draws: draws, seed: seed, next: make([]int, len(workloads)), days: make([]forecast.Days, len(workloads)),
	}
	for _, w := range workloads {
		o.history = append(o.history, forecast.NewHistory())
		o.open = append(o.open, make([]*openJob, len(w.Jobs)))
	}
	o.rng = rand.New(&o.pcg) //nolint:gosec // A simulation, no secret.
	return o
}

// watch hooks the observer in.
func (o *observer) watch(cfg *federation.Config) { cfg.Watch, cfg.Ended = o.instant, o.ended }

// ended learns of a job that has ended.
func (o *observer) ended(site, index int, r *metrics.Record) {
	x := o.open[site][index]
	if x == nil {
		return // it ended in the instant of its submission
	}
	limit := x.job.Estimate
	o.history[site].Ended(&forecast.Past{User: x.job.User, Procs: x.job.Procs, Limit: limit, Run: r.Run, Stopped: r.Run >= limit})
	for s, n := range x.number {
		if n >= 0 {
			o.days[s].Ran(n, r.Run)
		}
	}
	o.open[site][index] = nil
	o.free = append(o.free, x)
}

// instant takes in what was submitted, and makes the forecasts of what has to wait.
func (o *observer) instant(x *federation.Instant) {
	o.fresh = o.fresh[:0]
	for site, w := range o.workloads {
		for ; o.next[site] < len(w.Jobs) && federation.Zero.Add(time.Duration(w.Jobs[o.next[site]].Submit)) <= x.Now; o.next[site]++ {
			o.fresh = append(o.fresh, o.submitted(x, site, o.next[site]))
		}
	}
	for _, j := range o.fresh {
		o.ask(x, j)
	}
}

// submitted notes a job.
func (o *observer) submitted(x *federation.Instant, site, index int) *openJob {
	var j *openJob
	if n := len(o.free); n > 0 {
		j, o.free = o.free[n-1], o.free[:n-1]
	} else {
		j = &openJob{}
	}
	w := &o.workloads[site].Jobs[index]
	j.site, j.index, j.job, j.user = site, index, w, string(rune('a'+site))+w.User
	o.history[site].Runs(&forecast.Question{User: w.User, Procs: w.Procs, Limit: w.Estimate}, &j.own)
	runs := forecast.RunsOf(&j.own, w.Estimate)
	runs.Dist(w.Estimate, &j.told)
	o.reseed(j, len(o.workloads))
	guess := j.own.Quantile(o.rng.Float64())
	j.number = j.number[:0]
	for s := range o.workloads {
		number := int64(-1)
		if x.Scheduler(s).Has(x.Attempt(site, index)) {
			number = o.days[s].Add(forecast.Arrival{At: x.Now, Procs: w.Procs, MemoryBytes: w.MemoryBytes, Limit: w.Estimate, Run: guess, Remote: s != site})
		}
		j.number = append(j.number, number)
	}
	o.open[site][index] = j
	return j
}

// reseed makes randomness that belongs to a job and a site.
func (o *observer) reseed(j *openJob, site int) {
	o.pcg.Seed(o.seed, uint64(j.index)<<16|uint64(j.site)<<8|uint64(site)) //nolint:gosec // Small numbers.
}

// ask makes the forecast of a job that was just submitted, if it waits.
func (o *observer) ask(x *federation.Instant, j *openJob) {
	id := x.Attempt(j.site, j.index)
	for s, n := range j.number {
		if n >= 0 && x.Scheduler(s).Started(id) {
			return
		}
	}
	if o.waiting++; o.waiting%parts != o.part {
		return
	}
	f := wait{site: j.site, index: j.index, latest: job.MaxWalltime, ownLatest: job.MaxWalltime}
	o.order = append(o.order[:0], j.site)
	for s := range j.number {
		if s != j.site {
			o.order = append(o.order, s)
		}
	}
	for _, s := range o.order {
		if j.number[s] < 0 {
			continue
		}
		samples := o.play(x, j, s, id, f.all)
		latest := job.MaxWalltime
		if p, err := x.Scheduler(s).WhatIf(x.Now, job.Copy{ID: id}); err == nil && p.Start != job.Never {
			latest = p.Start.Sub(x.Now)
		}
		if s == j.site {
			f.own, f.ownLatest = append(forecast.Samples(nil), samples...), latest
		}
		f.latest = min(f.latest, latest)
		if f.all == nil {
			f.all = samples
		} else {
			f.all = f.all.Min(samples)
		}
	}
	if len(f.all) < forecast.MinScenarios {
		o.failed++
		return
	}
	o.waits = append(o.waits, f)
}

// draws are those of one scenario.
type draws struct {
	*forecast.Cast
	*forecast.Stream
}

// play returns samples of the wait of a job at a site. Where samples of other sites are given,
// the least of them is what counts: a scenario is played no further than theirs.
func (o *observer) play(x *federation.Instant, j *openJob, site int, id job.AttemptID, others forecast.Samples) forecast.Samples {
	p := &o.player
	if err := x.Scheduler(site).Prepare(x.Now, &job.Copy{ID: id}, 0, p); err != nil {
		return nil
	}
	o.cast.Reset(p.Numbers())
	for number, c := range p.Copies {
		at, index := x.Job(c.ID.Job)
		y := o.open[at][index]
		if y == nil {
			continue
		}
		d := &y.told
		if at == site {
			d = &y.own
		}
		o.cast.Set(number, d, y.job.Estimate, y.user)
	}
	o.reseed(j, site)
	samples := make(forecast.Samples, 0, o.draws)
	for i := range o.draws {
		o.cast.Begin(o.rng)
		o.days[site].Draw(x.Now, o.rng, &o.stream)
		until := job.Never
		if i < len(others) {
			until = x.Now.Add(others[i])
		}
		start, ok := p.PlayUntil(draws{&o.cast, &o.stream}, until)
		if !ok {
			break
		}
		if start != job.Never {
			samples = append(samples, start.Sub(x.Now))
		}
	}
	return samples
}
