package federation

import (
	"context"
	"fmt"
	"math"
	"time"

	"kith/internal/job"
	"kith/meta"
	"kith/store"
	"kith/testbed/metrics"
	"kith/testbed/sim"
	"kith/testbed/workload"
)

// Result is what came of a run.
type Result struct {
	// Records are in the order of the sites, and for each in that of its
	// workload. Instants count as in the workloads.
	Records []metrics.Record
	// Stranded is how many jobs of each site had not ended when all others had: evicted
	// [job.MaxEvictions] times, they are not waited for, as no site may be left that takes them.
	// They have no record.
	Stranded []int
	// Refused are the jobs that no site could ever run; they have no record.
	Refused  []Refusal
	Messages Messages
	// Events counts what was fed to the engines.
	Events int64
	// Hash is the SHA-256 of the event log, empty if [Config.Hash] was not set.
	Hash string
	// Sites are in the order of the configuration.
	Sites []SiteResult
	// Tasks is how many tasks of each bag ended well, in the order of the configuration.
	Tasks []uint32
}

// Refusal is a job that was not accepted.
type Refusal struct {
	// Site and Index are the place of its workload and its place there.
	Site, Index int
	Err         error
}

// Messages counts messages.
type Messages struct {
	// Logical is one claim and K-1 withdrawals a job, Wire those of them that
	// crossed between sites (spec 001 section 2.5).
	Logical, Wire int64
	// ByKind counts all that crossed between sites, acknowledgements, queries and
	// load digests included.
	ByKind map[string]int64
}

// SiteResult is what a site counted.
type SiteResult struct {
	ID       job.SiteID
	Counters meta.Counters
}

// noHarm is what the site does for the sake of its own jobs.
func (s *Site) noHarm(measure bool) meta.NoHarm {
	n := meta.NoHarm{Measure: measure || s.Bound > 0, GuestWalltime: s.GuestWalltime}
	if s.Bound > 0 {
		n.Mode, n.Bound = meta.HarmBounded, s.Bound
	}
	return n
}

// saves is [Config.Saves] as a world has it.
func (cfg *Config) saves() *time.Duration {
	if !cfg.Checkpoints {
		return nil
	}
	return &cfg.Saves
}

// never is a period that no run is long enough for.
const never = time.Duration(math.MaxInt64)

// Run runs workloads[i] at cfg.Sites[i] until all jobs have ended. Workloads are
// only read. The error wraps [ErrConfig] if the question was wrong, or is that
// of ctx; anything else is a broken invariant or an event log that could not be
// written.
func Run(ctx context.Context, cfg Config, workloads []*workload.Workload) (Result, error) {
	if err := cfg.normalise(len(workloads)); err != nil {
		return Result{}, err
	}
	r, err := newRun(&cfg, workloads)
	if err != nil {
		return Result{}, err
	}
	if err := r.run(ctx); err != nil {
		return Result{}, err
	}
	return r.result(), nil
}

// run is one run under way.
type run struct {
	cfg       *Config
	workloads []*workload.Workload
	w         *sim.World
	first     []int // of each workload, the index of its first record
	records   []metrics.Record
	refused   []Refusal
	done      int // of awaited
	awaited   int
	siteAt    map[job.SiteID]int
	bags      []bagRun
	open      int // bags whose end is waited for
}

func newRun(cfg *Config, workloads []*workload.Workload) (*run, error) {
	r := &run{cfg: cfg, workloads: workloads, siteAt: make(map[job.SiteID]int)}
	total := 0
	for i, w := range workloads {
		r.first = append(r.first, total)
		r.siteAt[cfg.Sites[i].ID] = i
		total += len(w.Jobs)
		if err := checkJobs(cfg.Sites[i].ID, w); err != nil {
			return nil, err
		}
	}
	r.records, r.awaited = make([]metrics.Record, total), total
	var err error
	if r.w, err = sim.New(r.world()); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrConfig, err)
	}
	return r, nil
}

// checkJobs returns an error unless the submissions are in order.
func checkJobs(site job.SiteID, w *workload.Workload) error {
	last := job.Time(0)
	for i := range w.Jobs {
		if at := w.Jobs[i].Submit; at < last {
			return fmt.Errorf("workload of site %s, job %d of %d: submitted %v before the one ahead: sort them: %w",
				site, i+1, len(w.Jobs), last.Sub(at), ErrConfig)
		} else {
			last = at
		}
	}
	return nil
}

// world is the federation for package sim.
func (r *run) world() sim.Config {
	cfg := r.cfg
	c := sim.Config{
		Seed: cfg.Seed, Network: cfg.Network, Check: cfg.Invariants, Guard: cfg.Guard, Log: cfg.EventLog, Hash: cfg.Hash,
		Saves: cfg.saves(), Transfers: cfg.Transfer != nil, Began: r.began, Ended: r.ended, Refused: r.refuse,
		Loads: sim.LoadConfig{
			Shared: !cfg.LoadMessages, Period: cfg.LoadPeriod, Delay: cfg.LoadDelay, Staggered: cfg.Staggered,
		},
	}
	timing := meta.Default().Timing
	timing.AntiEntropy, timing.Load = never, never
	if cfg.AntiEntropy > 0 {
		timing.AntiEntropy = cfg.AntiEntropy
	}
	if cfg.LoadMessages {
		timing.Load = cfg.LoadPeriod
	}
	for i := range cfg.Sites {
		s := &cfg.Sites[i]
		c.Sites = append(c.Sites, sim.SiteConfig{
			ID: s.ID, Scheduler: s.Scheduler(),
			Meta: meta.Config{
				Placement: cfg.Placement, Timing: timing, Bags: cfg.Guests, Forecasts: meta.Forecasts{Enabled: cfg.Placement.Rank == meta.RankForecast, Arrivals: true}, Self: meta.Self{Speed: s.Speed}, ReferenceTimes: true,
				NoHarm: s.noHarm(cfg.Harm), MaxGrace: cfg.Grace, Level: s.Level,
				// What is asked is what the federation would do, not where it would refuse.
				// An ended job is forgotten at once: all there is to know has been recorded.
				Limits: meta.Limits{Jobs: math.MaxInt32, CopiesPerOrigin: math.MaxInt32, Copies: math.MaxInt32, ClosedFor: never, DecisionSites: 1},
			},
		})
	}
	return c
}

// run submits everything and lets time pass until all has ended.
func (r *run) run(ctx context.Context) error {
	for i, s := range r.cfg.Sites {
		r.w.SubmitAll(s.ID, r.submissions(i))
	}
	r.submitBags()
	if r.cfg.Sample != nil {
		r.sampleAt(sim.Start)
	}
	instants, stopped := 0, false
	err := r.w.RunWhile(job.Never, func() bool {
		if r.cfg.Watch != nil && instants > 0 {
			r.cfg.Watch(&Instant{r.w.Now(), r})
		}
		if instants++; instants%4096 == 0 {
			stopped = ctx.Err() != nil
			if r.cfg.Progress != nil {
				r.cfg.Progress(r.done, r.awaited)
			}
		}
		return !stopped && (r.done < r.awaited || r.open > 0)
	})
	if err == nil {
		err = r.refusedBag()
	}
	switch {
	case err != nil:
		return fmt.Errorf("federation, seed %d: %w", r.cfg.Seed, err)
	case stopped:
		return fmt.Errorf("federation stopped with %d of %d jobs ended: %w", r.done, r.awaited, context.Cause(ctx))
	case r.open > 0 && r.done == r.awaited:
		return fmt.Errorf("federation, seed %d: %d bags have not ended and nothing more can happen", r.cfg.Seed, r.open)
	case r.done < r.awaited:
		return fmt.Errorf("federation, seed %d: %d of %d jobs have ended and nothing more can happen", r.cfg.Seed, r.done, r.awaited)
	}
	// What the last end brings about in its instant has happened; with latency
	// the last acknowledgements are still under way, and are not waited for.
	if r.cfg.Progress != nil {
		r.cfg.Progress(r.done, r.awaited)
	}
	if err := r.w.CloseLog(); err != nil {
		return fmt.Errorf("federation: event log: %w", err)
	}
	return nil
}

// submissions yields the jobs of workload i.
func (r *run) submissions(i int) func() (job.Time, sim.Submission, bool) {
	jobs, site := r.workloads[i].Jobs, &r.cfg.Sites[i]
	var transfer func() time.Duration
	if t := r.cfg.Transfer; t != nil {
		transfer = t.Times(r.cfg.Seed, i)
	}
	next := 0
	return func() (job.Time, sim.Submission, bool) {
		if next == len(jobs) {
			return 0, sim.Submission{}, false
		}
		j := &jobs[next]
		sub := sim.Submission{
			Request: job.Request{Processors: j.Procs, MemoryBytes: j.MemoryBytes, Walltime: j.Estimate, Checkpoint: r.cfg.Checkpoints},
			RunTime: j.Run, Tag: r.first[i] + next,
		}
		if r.cfg.CopiesOf != nil {
			sub.Request.Copies = r.cfg.CopiesOf(i, next)
		}
		if r.cfg.Shape != nil {
			r.cfg.Shape(i, next, &sub.Request)
		}
		if transfer != nil {
			sub.Transfer = transfer()
		}
		next++
		return sim.Start.Add(site.Zone + time.Duration(j.Submit)), sub, true
	}
}

// sampleAt takes a sample at an instant, and others after it as long as
// something else is to come: samples alone would go on for ever where a job is
// stuck.
func (r *run) sampleAt(at job.Time) {
	r.w.At(at, func() {
		for _, s := range r.cfg.Sites {
			l := r.w.Site(s.ID).Load()
			r.cfg.Sample(Sample{At: at - sim.Start, Site: s.ID, Load: l})
		}
		if !r.w.Idle() {
			r.sampleAt(at.Add(r.cfg.SampleEvery))
		}
	})
}

func (r *run) began(host job.SiteID, _ job.AttemptID, tag int) {
	if tag >= len(r.records) {
		return
	}
	x := &r.records[tag]
	if x.Site = host; x.Demoted == 0 {
		x.Start = r.w.Now() - sim.Start
	}
}

func (r *run) ended(host job.SiteID, a job.AttemptID, tag int, outcome *job.Outcome) {
	if tag >= len(r.records) {
		r.taskEnded(tag-len(r.records), outcome)
		return
	}
	x := &r.records[tag]
	x.Run += outcome.End.Sub(outcome.Start)
	if outcome.Kind == job.Demoted {
		if x.Demoted++; outcome.Cause == job.Evicted {
			if x.Evicted++; x.Evicted == job.MaxEvictions {
				r.awaited--
			}
		}
		return
	}
	x.Stopped = outcome.Kind == job.Timeout
	if rec := r.w.Site(a.Job.Origin).State().Job(a.Job); rec != nil && rec.Level > 0 {
		x.Pushed, x.Lowered = rec.Pushes(), lowered(rec)
	}
	i, k := r.place(tag, a.Job.Origin)
	j := &r.workloads[i].Jobs[k]
	x.Job, x.Origin, x.User, x.Group = j.ID, a.Job.Origin, j.User, j.Group
	x.Submit = j.Submit.Add(r.cfg.Sites[i].Zone)
	x.End, x.Estimate, x.Procs = outcome.End-sim.Start, j.Estimate, j.Procs
	if host != a.Job.Origin {
		x.Run -= r.w.Transfer(a.Job)
		x.Reference = job.Scaled(min(j.Run, j.Estimate), r.cfg.Sites[i].Speed)
	}
	if r.cfg.Harm {
		h := r.w.Site(a.Job.Origin).Engine().Views().Harm(r.w.Now(), a.Job)
		x.Blocked, x.Moved = h.Blocked, h.Moved
	}
	if r.cfg.Ended != nil {
		r.cfg.Ended(i, k, x)
	}
	if x.Evicted < job.MaxEvictions {
		r.done++
	}
}

// lowered counts how often a job went down from its queue, not as one that is too wide for a level is passed over.
func lowered(j *store.Job) (n int) {
	for i := range j.Events {
		if e := &j.Events[i]; e.Kind == store.ClaimLowered && e.Reason != job.Level {
			n++
		}
	}
	return n
}

// place returns the workload and the place there of the job with a tag.
func (r *run) place(tag int, origin job.SiteID) (site, index int) {
	site = r.siteAt[origin]
	return site, tag - r.first[site]
}

func (r *run) refuse(origin job.SiteID, tag int, err error) {
	site, index := r.place(tag, origin)
	r.refused = append(r.refused, Refusal{Site: site, Index: index, Err: err})
	r.done++
}

func (r *run) result() Result {
	res := Result{Records: r.records, Refused: r.refused, Events: r.w.Steps(), Hash: r.w.Hash()}
	res.Stranded = make([]int, len(r.cfg.Sites))
	for i, w := range r.workloads {
		for k := range w.Jobs {
			if x := &r.records[r.first[i]+k]; x.Site != "" && x.End == 0 {
				res.Stranded[i]++
			}
		}
	}
	if len(r.refused) > 0 || r.awaited < len(r.records) {
		kept := res.Records[:0]
		for _, x := range r.records {
			if x.End != 0 {
				kept = append(kept, x)
			}
		}
		res.Records = kept
	}
	for i := range r.bags {
		res.Tasks = append(res.Tasks, r.bags[i].done)
	}
	res.Messages.ByKind = r.w.MessagesByKind()
	for _, s := range r.cfg.Sites {
		c := r.w.Site(s.ID).Engine().Views().Counters()
		res.Messages.Logical += c.ClaimMessagesLogical
		res.Messages.Wire += c.ClaimMessagesWire
		res.Sites = append(res.Sites, SiteResult{ID: s.ID, Counters: c})
	}
	return res
}
