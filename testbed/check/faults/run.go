package faults

import (
	"fmt"
	"math/rand/v2"
	"runtime/debug"
	"strings"
	"time"

	"kith/internal/job"
	"kith/meta"
	"kith/sitesched"
	"kith/testbed/sim"
)

// Result is what came of a schedule.
type Result struct {
	// Violation is the first broken invariant, nil if all held.
	Violation *sim.Violation
	// Injected counts what went wrong, by kind: a fault whose moment never came
	// is not among them.
	Injected map[Kind]int
	// Acknowledged counts jobs that a client was told of, LostWithDisk those of
	// them whose only record was on a disk that was wiped, Starts the processes.
	// Refused counts submissions that got an error for an answer, Evicted the attempts that left for
	// a home job of their host.
	Acknowledged, LostWithDisk, Starts, Refused, Evicted int
	// Pushed counts the moves of waiting jobs inside a level.
	Pushed int
	// Messages that were sent between sites.
	Messages int64
	// Agreed is how long after the last fault all sites agreed again on who
	// holds what.
	Agreed time.Duration
	// Ended is when the last job had ended.
	Ended time.Duration
	// Jobs says what became of each submission, by its number.
	Jobs map[int]Fate
}

// Fate is what became of a submission.
type Fate struct {
	ID job.ID
	// State, Holder, Attempt are those of the record at the origin in the end.
	State   job.State
	Holder  job.SiteID
	Attempt uint32
	// Starts are when its processes began, Hosts where.
	Starts []time.Duration
	Hosts  []job.SiteID
}

// The times of the sites. Loads are told less often than a daemon does by
// default: they would be most of the work, and stale loads do no harm.
const (
	loadPeriod = 20 * time.Second
	maxLoadAge = 2 * time.Minute
	// patience is how long a client waits for an answer before it asks again.
	patience = 15 * time.Second
	// grace is how long after the last fault every job must have ended, beside
	// the time that they take one after another.
	grace = 20 * time.Minute
	// settling is how long after the last fault the sites must agree. They do as
	// soon as they are connected and have compared notes, which takes some round
	// trips, and clocks run wrong; the rounds of comparing come on top of that.
	settling = 20 * time.Second
	// settlingWithLiars is the same where one of the two had lied: what it said
	// is found out in the second round of comparing at the latest.
	settlingWithLiars = 2*time.Minute + settling
)

// Record plays a schedule with nobody watching, and has all that the engines are fed recorded.
func Record(s *Schedule, record func(*sim.Site, meta.Config) sim.Recorder) {
	x := &run{s: s, r: &Result{Injected: make(map[Kind]int), Jobs: make(map[int]Fate)}, rng: rand.New(rand.NewPCG(s.Seed, 0x72756e)), record: record}
	_ = x.play(nil) // nobody watches
}

// Run plays a schedule. trace receives a line for everything that happens; nil for none.
func Run(s *Schedule, trace func(line string)) (r *Result) {
	x := &run{s: s, r: &Result{Injected: make(map[Kind]int), Jobs: make(map[int]Fate)}, rng: rand.New(rand.NewPCG(s.Seed, 0x72756e))}
	defer func() {
		if p := recover(); p != nil {
			x.r.Violation = &sim.Violation{Invariant: "crash", At: x.since(), Seed: s.Seed, Text: fmt.Sprintf("%v at %s", p, panicPlace(debug.Stack()))}
			if trace != nil {
				trace("VIOLATION " + x.r.Violation.Error())
			}
		}
		r = x.r
	}()
	if v := x.play(trace); v != nil {
		x.r.Violation = v
		if trace != nil {
			trace("VIOLATION " + v.Error())
		}
	}
	return x.r
}

// panicPlace names the function of the engines that panicked.
func panicPlace(stack []byte) string {
	panicked := false
	for l := range strings.Lines(string(stack)) {
		if strings.HasPrefix(l, "panic(") {
			panicked = true
		} else if panicked && strings.HasPrefix(l, "kith/") {
			return strings.TrimSpace(l[:strings.LastIndexByte(l, '(')])
		}
	}
	return "an unknown place"
}

// run is a schedule while it is played.
type run struct {
	s   *Schedule
	w   *sim.World
	r   *Result
	rng *rand.Rand
	// jobs are those of the schedule and of its streams, numbers their places.
	jobs    []Job
	numbers map[int]int
	ids     map[int]job.ID // of jobs that were acknowledged, by number
	bags    map[int]job.ID // of bags that were acknowledged, by number
	waits   []moment       // faults that begin right before an effect
	ghosts  []*haunting
	// strokes counts those of hostile sites, admitted how often one site admitted another.
	strokes, admitted int
	over              bool
	record            func(*sim.Site, meta.Config) sim.Recorder
	outlaws           map[[2]job.SiteID]bool // a site, and another one that it has revoked
}

func (x *run) since() time.Duration {
	if x.w == nil {
		return 0
	}
	return x.w.Now().Sub(sim.Start)
}

func (x *run) config(trace func(string)) sim.Config {
	cfg := sim.Config{
		Seed: x.s.Seed, Check: true, Trace: trace,
		Disk:        sim.DiskConfig{Keep: true, Sync: x.s.Sync, SyncJitter: x.s.SyncJitter},
		CrashBefore: x.before,
		Staging: func(number int) time.Duration {
			if j := x.job(number); j != nil {
				return j.Staging
			}
			if b := x.s.bag(-number); b != nil {
				return b.Staging
			}
			return 0
		},
		StagingBound: x.s.stagingBound(),
		Collecting: func(number int) time.Duration {
			if j := x.job(number); j != nil {
				return j.Collecting
			}
			return 0
		},
		Output: func(number int) time.Duration {
			if j := x.job(number); j != nil {
				return j.Output
			}
			if b := x.s.bag(-number); b != nil {
				return b.Output
			}
			return 0
		},
		Began: func(host job.SiteID, _ job.AttemptID, number int) {
			x.r.Starts++
			x.began(host, number)
		},
		Ended: func(_ job.SiteID, _ job.AttemptID, _ int, o *job.Outcome) {
			if o.Kind == job.Demoted && o.Cause == job.Evicted {
				x.r.Evicted++
			}
		},
	}
	cfg.Network.LinkConfig = sim.LinkConfig{Latency: x.s.Latency, Jitter: x.s.Jitter}
	for i := range x.s.Sites {
		site := &x.s.Sites[i]
		m := meta.Default()
		m.Placement.Scheme, m.Placement.Rank, m.Placement.MaxLoadAge = x.s.Scheme, x.s.Rank, maxLoadAge
		m.Placement.Conserve = false
		m.Forecasts = meta.Forecasts{Enabled: x.s.forecasts(), Arrivals: true, Bounds: x.s.leveled()}
		m.Timing.Load, m.Timing.ClockRate = loadPeriod, float64(MaxDrift)/1e6
		sc := sim.SiteConfig{
			ID: site.Name, Meta: m, Drift: site.Drift, ForecastSteps: forecastSteps, Members: site.Members, Clocks: site.Clocks,
			Scheduler: sitesched.Config{
				Processors: site.Processors, Backfill: site.Backfill, Queues: site.Queues, Scope: site.Scope, StartMargin: m.Timing.Claim,
				Patience: x.s.patience(),
			},
		}
		x.s.turn(&sc.Meta)
		x.s.evict(site, &sc.Meta)
		x.s.level(site, &sc.Meta)
		site.apply(&sc)
		cfg.Sites = append(cfg.Sites, sc)
	}
	x.widen(&cfg)
	x.s.saving(&cfg)
	if x.record != nil {
		cfg.Record, cfg.Check, cfg.Guard = x.record, false, false
	}
	return cfg
}

func (x *run) play(trace func(string)) *sim.Violation {
	x.ids, x.bags, x.outlaws = make(map[int]job.ID), make(map[int]job.ID), make(map[[2]job.SiteID]bool)
	x.list()
	cfg := x.config(trace)
	for i := range x.s.Faults {
		if x.s.Faults[i].Kind == Ghosts {
			cfg.Tap = x.tap
		}
	}
	w, err := sim.New(cfg)
	if err != nil {
		return &sim.Violation{Text: err.Error()}
	}
	x.w = w
	for i := range x.s.Sites {
		if x.s.Sites[i].Drift != 0 {
			x.r.Injected[Drift]++
		}
	}
	for i := range x.s.Sites {
		x.admitAll(x.s.Sites[i].Name, false)
	}
	for i := range x.jobs {
		x.at(x.jobs[i].At, func() { x.submit(&x.jobs[i]) })
	}
	for i := range x.s.Bags {
		x.at(x.s.Bags[i].At, func() { x.submitBag(&x.s.Bags[i]) })
	}
	for i := range x.s.Acts {
		x.at(x.s.Acts[i].At, func() { x.act(&x.s.Acts[i]) })
	}
	for i := range x.s.Faults {
		f := &x.s.Faults[i]
		if f.Kind == Lie || f.Kind == Hostile {
			w.Distrust(f.Site)
		}
		if f.Before != nil {
			x.waits = append(x.waits, moment{fault: f})
		} else {
			x.at(f.At, func() { x.begin(f) })
		}
	}
	x.at(x.s.End, x.mend)
	x.at(x.s.End+time.Minute, x.release)
	arrivals := x.s.End + max(x.s.Watch, time.Minute)
	err = w.RunWhile(sim.Start.Add(x.s.End+x.s.Watch+x.work()+grace), func() bool { return x.since() <= arrivals || !w.Ended() })
	if err == nil {
		err = w.CheckEnded()
	}
	if err == nil {
		err = x.unanswered()
	}
	x.r.Ended = x.since()
	x.r.Acknowledged, x.r.LostWithDisk = len(w.Acknowledged())+len(w.Bags())+w.LostWithDisk(), w.LostWithDisk()
	x.r.Messages, _ = w.Messages()
	x.fates()
	if v, ok := err.(*sim.Violation); ok { //nolint:errorlint // the world returns nothing else
		return v
	}
	return nil
}

// work is how long all jobs take one after another, with one attempt in vain each.
func (x *run) work() time.Duration {
	var sum time.Duration
	for i := range x.jobs {
		j := &x.jobs[i]
		tries := max(1, j.Pieces)
		if j.Level > 0 {
			tries = levelTries
		}
		if j.Every > 0 {
			tries = max(tries, 1+lostHosts)
		}
		sum += time.Duration(tries) * (2*(min(j.Run, j.Walltime)+j.Staging+j.Collecting+x.s.estimating(j)) + j.Output)
	}
	for i := range x.s.Bags {
		sum += x.s.Bags[i].work()
	}
	return sum
}

func (x *run) at(after time.Duration, do func()) { x.w.At(sim.Start.Add(after), do) }

// in does something after a while, but not later than when all faults end.
func (x *run) in(after time.Duration, do func()) { x.at(min(x.since()+after, x.s.End), do) }

// submit has a client submit a job, again and again until there is an answer.
func (x *run) submit(j *Job) {
	if _, known := x.ids[j.Number]; known || x.since() > x.s.End+time.Hour || x.w.Site(j.From).Gone() {
		return
	}
	after, known := x.after(&j.Waits)
	if !known {
		x.at(x.since()+retry, func() { x.submit(j) })
		return
	}
	request := job.Request{
		Name: j.named(fmt.Sprint("job-", j.Number)), User: "ada", Processors: j.Processors, Copies: j.Copies, Walltime: j.Walltime, OnSiteLost: j.OnSiteLost,
		MemoryBytes: j.Memory, Checkpoint: j.Pieces > 0, SaveSeconds: uint32(j.Every / time.Second), //nolint:gosec // seconds of a schedule
	}
	j.asks(&request)
	x.w.Submit(x.w.Now(), j.From, sim.Submission{
		Request: request,
		Pieces:  j.Pieces, Estimators: j.Estimators,
		RunTime: j.Run, RequestID: fmt.Sprint("job-", j.Number), Tag: j.Number, Fills: j.Fills, After: after,
		Done: func(id job.ID, err error) {
			if err == nil {
				x.ids[j.Number] = id
			} else if id.IsZero() && x.w.Site(j.From).Up() {
				x.ids[j.Number] = id // refused for good
				x.r.Refused++
			}
		},
	})
	x.at(x.since()+patience, func() { x.submit(j) })
}

// unanswered returns an error if a client still waits for the answer to a
// submission, though its site was up and the client patient.
func (x *run) unanswered() error {
	for i := range x.jobs {
		j := &x.jobs[i]
		if _, ok := x.ids[j.Number]; !ok && j.At <= x.s.End && !x.w.Distrusted(j.From) && !x.w.Site(j.From).Gone() {
			x.w.Violate("L1: the submission of job %d at %s was never answered", j.Number, j.From)
			return x.w.CheckEnded()
		}
	}
	for i := range x.s.Bags {
		b := &x.s.Bags[i]
		if _, ok := x.bags[b.Number]; !ok && b.At <= x.s.End && !x.w.Distrusted(b.From) && !x.w.Site(b.From).Gone() {
			x.w.Violate("L1: the submission of bag %d at %s was never answered", b.Number, b.From)
			return x.w.CheckEnded()
		}
	}
	return nil
}

func (x *run) act(act *Act) {
	switch {
	case act.Kind == Forget:
		x.forget(act.Site)
		return
	case act.Bag > 0:
		x.actOnBag(act)
		return
	}
	id, site := x.ids[act.Job], act.Site
	if act.Job > 0 {
		if id.IsZero() {
			return
		}
		site = id.Origin
	}
	x.w.Ask(site, func(token uint64) meta.Event {
		switch act.Kind {
		case Cancel:
			return meta.Cancel{Token: token, Job: id}
		case Hold:
			return meta.Hold{Token: token, Job: id}
		case Release:
			return meta.Release{Token: token, Job: id}
		case Checkpoint:
			return meta.CheckpointJob{Token: token, Job: id, Actor: "ada"}
		default:
			return meta.SetDrain{Token: token, On: act.Kind == Drain, Reason: "an act"}
		}
	}, func(r meta.Reply) {
		if act.Kind == Cancel && r.Err == nil {
			x.w.Cancelled(id)
		}
	})
}

// mend ends all faults.
func (x *run) mend() {
	x.over = true
	x.waits, x.ghosts = nil, nil
	for i := range x.s.Faults {
		if f := &x.s.Faults[i]; f.Kind == Lie || f.Kind == Hostile {
			// Its lies about itself end with the life of its daemon.
			x.w.Site(f.Site).Crash()
		}
	}
	for i := range x.s.Sites {
		site := x.w.Site(x.s.Sites[i].Name)
		site.SlowDisk(0)
		site.FillDisk(false)
		site.Unstartable(false)
		site.LowDisk(false, 0)
		site.KillShims(false)
		site.Thaw()
		site.JoinMembers()
		x.restart(site.ID())
		x.admitAll(site.ID(), true)
	}
	x.everyLink(func(a, b job.SiteID) { x.w.SetLink(a, b, nil) })
	x.everyPair(func(a, b job.SiteID) {
		x.w.Heal(a, b)
		x.w.Break(a, b) // what is hours late on the old stream never comes
	})
	x.release()
	x.releaseBags()
	x.forgetGone()
	x.admitAgain(2)
	x.at(x.since()+time.Second, x.lookForStrays(x.since()))
}

// release lets held jobs go and ends drains, so that every job can end.
func (x *run) release() {
	for _, j := range x.jobs {
		if id, ok := x.ids[j.Number]; ok && !id.IsZero() {
			x.act(&Act{Kind: Release, Job: j.Number})
		}
	}
	for i := range x.s.Sites {
		x.act(&Act{Kind: Resume, Site: x.s.Sites[i].Name})
	}
}

func (x *run) restart(id job.SiteID) {
	if x.w.Site(id).Gone() {
		return
	}
	if err := x.w.Site(id).Restart(); err != nil {
		panic(err) // the disk holds what an engine wrote
	}
	x.admitAll(id, false) // whom it does not know, as its disk is empty, has no stream to it
}

func (x *run) everyPair(do func(a, b job.SiteID)) {
	for i := range x.s.Sites {
		for k := i + 1; k < len(x.s.Sites); k++ {
			do(x.s.Sites[i].Name, x.s.Sites[k].Name)
		}
	}
}

func (x *run) everyLink(do func(from, to job.SiteID)) {
	x.everyPair(func(a, b job.SiteID) {
		do(a, b)
		do(b, a)
	})
}

func (x *run) began(host job.SiteID, n int) {
	f := x.r.Jobs[n]
	f.Starts, f.Hosts = append(f.Starts, x.since()), append(f.Hosts, host)
	x.r.Jobs[n] = f
}

// fates reads what became of the jobs.
func (x *run) fates() {
	for n, id := range x.ids {
		f := x.r.Jobs[n]
		f.ID = id
		if s := x.w.Site(id.Origin); s != nil && s.Up() {
			if j := s.State().Job(id); j != nil {
				f.State, f.Holder, f.Attempt = j.State, j.Holder, j.Attempt
				x.r.Pushed += j.Pushes()
			}
		}
		x.r.Jobs[n] = f
	}
}
