package levels

import (
	"context"
	"fmt"
	"slices"
	"time"

	"kith/internal/forecast"
	"kith/internal/job"
	"kith/meta"
	"kith/sitesched"
	"kith/sitesched/level"
	"kith/testbed/federation"
	"kith/testbed/lab"
	"kith/testbed/metrics"
	"kith/testbed/workload"
)

// trial is a way to run the jobs.
type trial string

// The trials.
const (
	hierarchy trial = "levels, lengths unknown"
	limited   trial = "levels, users' limits"
	limits    trial = "flat, users' limits"
	predicted trial = "flat, predicted lengths, goes on"
	hard      trial = "flat, predicted lengths, stopped"
	perfect   trial = "flat, the truth"
)

func allTrials() []trial { return []trial{hierarchy, limited, limits, predicted, hard, perfect} }

const (
	machine  = 128 // processors of the largest site where jobs are generated
	jobs     = 4000
	load     = 0.8
	total    = 4.0 / 3 // the processors of all sites over those of the largest
	quantile = 0.9
	// saving is how long a job takes to save what it has done; it is asked askBefore its limit.
	saving, askBefore = 30 * time.Second, time.Minute
	// pieces is the most that a user's limit is divided into, so that 64 attempts do.
	pieces = 32
	// Jobs are short and long by what they really run.
	short, long = 10 * time.Minute, 3 * time.Hour
	oneRun      = 10 * time.Minute // of level 1
	twoRun      = 3 * time.Hour
)

// sites are three, in all trials: of a twelfth, a quarter and all of the processors of the log's machine.
func sites(p int32) []federation.Site {
	list := []federation.Site{{ID: "small", Processors: max(1, p/12)}, {ID: "middle", Processors: max(1, p/4)}, {ID: "large", Processors: p}}
	for i := range list {
		list[i].Backfill, list[i].Queues, list[i].Speed = sitesched.EASY, sitesched.Single, 1
	}
	return list
}

// ranks makes them levels. The last one stops nothing that a user's limit lets run.
func ranks(list []federation.Site) {
	for i, run := range []time.Duration{oneRun, twoRun, 30 * 24 * time.Hour} {
		l := &list[i].Level
		l.Rank, l.Run, l.Queue, l.Beta = i+1, run, 2*run, level.DefaultBound
	}
	last := &list[2].Level
	last.Queue = job.MaxWalltime
	for trigger := range last.Actions {
		last.Actions[trigger] = level.Off
	}
	last.Actions[level.Overdue] = level.Terminate
}

// part is what is measured of some jobs.
type part struct{ n, time, wait, slowdown float64 }

// outcome is what came of a trial with one seed. repeated and stopped are in percent of the processor time that
// jobs held; stoppedJobs in percent of the jobs.
type outcome struct {
	all, short, middle, long       part
	narrow                         part // short ones that fit the smallest site
	repeated, stopped, stoppedJobs float64
	demotions                      float64 // of a job
	work                           float64 // processor-seconds that jobs held
}

// jobsOf returns the jobs of a seed, and how large the largest site is. Together the sites are a third larger.
func jobsOf(env *lab.Env, seed uint64) (*workload.Workload, int32, error) {
	n, p := env.JobsOr(jobs), env.ProcessorsOr(machine)
	if env.Trace == nil {
		w, err := workload.CTCLike{Jobs: n, Processors: p, Load: load * total}.Generate(workload.NewRand(seed, 900))
		return w, p, err
	}
	if env.Processors == 0 && env.Trace.Processors > 0 {
		p = env.Trace.Processors
	}
	fit, err := env.Trace.Fit(p, workload.Kill)
	if err != nil {
		return nil, p, err
	}
	if n >= len(fit.Jobs) {
		return nil, p, fmt.Errorf("log %s has %d jobs for %d processors, and %d are wanted: choose fewer: %w", fit.Name, len(fit.Jobs), p, n, lab.ErrEnv)
	}
	windows := uint64(len(fit.Jobs) / n)
	w, err := fit.Window(int(seed%windows)*n, n) //nolint:gosec // Few.
	if err != nil {
		return nil, p, err
	}
	w, err = w.ScaleLoad(load * total / w.OfferedLoad(p))
	return w, p, err
}

// predictions are what the forecasts of run times say when each job is submitted: the quantile of what its user's
// earlier jobs took, of those that had ended if they had started at once.
func predictions(w *workload.Workload) []time.Duration {
	history, list := forecast.NewHistory(), make([]time.Duration, len(w.Jobs))
	ends := make([]int, len(w.Jobs))
	for i := range ends {
		ends[i] = i
	}
	end := func(i int) job.Time { return w.Jobs[i].Submit.Add(w.Jobs[i].Run) }
	slices.SortStableFunc(ends, func(a, b int) int { return int(min(1, max(-1, end(a)-end(b)))) })
	next := 0
	for i := range w.Jobs {
		j := &w.Jobs[i]
		for ; next < len(ends) && end(ends[next]) <= j.Submit; next++ {
			x := &w.Jobs[ends[next]]
			history.Ended(&forecast.Past{User: x.User, Procs: x.Procs, Limit: x.Estimate, Run: x.Run, Stopped: x.Run >= x.Estimate})
		}
		var d forecast.Dist
		history.Runs(&forecast.Question{User: j.User, Procs: j.Procs, Limit: j.Estimate}, &d)
		list[i] = min(max(d.Quantile(quantile), 2*askBefore), j.Estimate)
	}
	return list
}

// shape changes a request to what the trial knows of the length of a job.
func (t trial) shape(w *workload.Workload) func(_, i int, r *job.Request) {
	var known []time.Duration
	if t == predicted || t == hard {
		known = predictions(w)
	}
	return func(_, i int, r *job.Request) {
		switch j := &w.Jobs[i]; t {
		case hierarchy:
			r.Checkpoint, r.Unknown, r.Level, r.Walltime = true, true, 1, job.MaxWalltime
		case limited:
			r.Checkpoint, r.Level = true, 1
		case predicted:
			if r.Walltime = max(known[i], j.Estimate/pieces).Round(time.Second); r.Walltime < j.Estimate {
				r.Checkpoint, r.AskSeconds = true, uint16(askBefore.Seconds())
			}
		case hard:
			r.Walltime = known[i].Round(time.Second)
		case perfect:
			r.Walltime = max(j.Run, time.Second)
		case limits:
		}
	}
}

// run runs the trial with the jobs of a seed, all of which are submitted at the largest site.
func (t trial) run(ctx context.Context, env *lab.Env, seed uint64) (*outcome, error) {
	w, p, err := jobsOf(env, seed)
	if err != nil {
		return nil, err
	}
	cfg := federation.Config{
		Seed: seed, LoadPeriod: time.Minute, LoadMessages: true, Placement: meta.Placement{Scheme: meta.KDistributed, Copies: 3, Rank: meta.RankWork},
		Sites: sites(p), Saves: saving, Grace: askBefore, Checkpoints: true, Shape: t.shape(w),
	}
	if t == hierarchy || t == limited {
		ranks(cfg.Sites)
	}
	o := &outcome{}
	cfg.Ended = func(_, i int, r *metrics.Record) { o.add(&w.Jobs[i], r, cfg.Sites[0].Processors) }
	r, err := federation.Run(ctx, cfg, []*workload.Workload{{}, {}, w})
	if err == nil && len(r.Refused) > 0 {
		err = fmt.Errorf("%d jobs were refused, the first: %w", len(r.Refused), r.Refused[0].Err)
	}
	if err != nil {
		return nil, fmt.Errorf("%s, seed %d: %w", t, seed, err)
	}
	o.settle()
	return o, nil
}

// add takes in a job that has ended; sums are divided by settle.
func (o *outcome) add(j *workload.Job, r *metrics.Record, small int32) {
	parts := []*part{&o.all, &o.middle}
	switch {
	case j.Run <= short:
		parts[1] = &o.short
	case j.Run > long:
		parts[1] = &o.long
	}
	if j.Run <= short && j.Procs <= small {
		parts = append(parts, &o.narrow)
	}
	took := r.Turnaround()
	for _, x := range parts {
		x.n++
		x.time += took.Seconds()
		x.wait += r.Waited().Seconds()
		x.slowdown += max(1, took.Seconds()/max(j.Run, metrics.Floor).Seconds())
	}
	procs := float64(j.Procs)
	o.demotions += float64(r.Demoted)
	if r.Stopped && r.Run < j.Run {
		o.stoppedJobs++
		o.stopped += procs * r.Run.Seconds()
	} else {
		o.repeated += procs * max(0, r.Run-j.Run).Seconds()
	}
	o.work += procs * r.Run.Seconds()
}

func (o *outcome) settle() {
	for _, x := range []*part{&o.all, &o.short, &o.middle, &o.long, &o.narrow} {
		n := max(x.n, 1)
		x.time, x.wait, x.slowdown = x.time/n, x.wait/n, x.slowdown/n
	}
	work, n := max(o.work, 1), max(o.all.n, 1)
	o.repeated, o.stopped, o.stoppedJobs, o.demotions = 100*o.repeated/work, 100*o.stopped/work, 100*o.stoppedJobs/n, o.demotions/n
}
