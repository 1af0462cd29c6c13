package harm

import (
	"context"
	"fmt"
	"slices"
	"time"

	"kith/internal/job"
	"kith/meta"
	"kith/sitesched"
	"kith/sitesched/harm"
	"kith/testbed/federation"
	"kith/testbed/lab"
	"kith/testbed/metrics"
	"kith/testbed/workload"
)

// The home site is a little larger than the machine of the CTC log, as in the papers.
const (
	homeProcessors    = 430
	partnerProcessors = 100
	thirdProcessors   = 128
	homeJobs          = 10_000

	// leaving is how long a guest takes to save what it has done, and the grace that it has.
	leaving = time.Minute
)

// trial is a policy of the home site, with guests or in a federation. Equal trials are run once.
type trial struct {
	guests bool // of a site that has one processor of its own
	k      int32
	queues sitesched.Queues
	scope  sitesched.Scope
	limit  time.Duration // the longest of a guest, 0 for any
	// evicts has guests leave: at once, or with a bound when it is reached.
	evicts bool
	bound  time.Duration
	atOnce bool // they need no time to save
}

// String names the trial for people.
func (t trial) String() string {
	name := "guests: promise only"
	switch {
	case t.k > 1:
		name = fmt.Sprintf("federation, K = %d", t.k)
	case !t.guests:
		return "alone"
	}
	switch {
	case t.evicts && t.bound > 0:
		return fmt.Sprintf("guests: leave after %v", t.bound)
	case t.atOnce:
		return "guests: invisible, need no time to leave"
	case t.evicts:
		return "guests: invisible, leave at once"
	case t.queues == sitesched.DualStrict:
		name += ", strict queues"
	case t.scope == sitesched.ScopeHead:
		name += ", scope head"
	default:
		name += ", scope all"
	}
	if t.limit > 0 {
		name += fmt.Sprintf(", limits up to %v h", t.limit.Hours())
	}
	return name
}

func guests(scope sitesched.Scope, limit time.Duration) trial {
	return trial{guests: true, queues: sitesched.DualBackfill, scope: scope, limit: limit}
}

func federated(k int32, queues sitesched.Queues, limit time.Duration) trial {
	return trial{k: k, queues: queues, scope: sitesched.ScopeAll, limit: limit}
}

// The trials of the table.
var (
	alone     = trial{queues: sitesched.DualBackfill, scope: sitesched.ScopeAll}
	promise   = guests(sitesched.ScopeAll, 0)
	headOnly  = guests(sitesched.ScopeHead, 0)
	strict    = trial{guests: true, queues: sitesched.DualStrict, scope: sitesched.ScopeAll}
	caps      = []trial{guests(sitesched.ScopeAll, 4*time.Hour), guests(sitesched.ScopeAll, 2*time.Hour), guests(sitesched.ScopeAll, time.Hour)}
	invisible = trial{guests: true, queues: sitesched.DualPreempt, scope: sitesched.ScopeAll, evicts: true}
	atOnce    = trial{guests: true, queues: sitesched.DualPreempt, scope: sitesched.ScopeAll, evicts: true, atOnce: true}
	bounded   = trial{guests: true, queues: sitesched.DualBackfill, scope: sitesched.ScopeAll, evicts: true, bound: 10 * time.Minute}
	bounded1h = trial{guests: true, queues: sitesched.DualBackfill, scope: sitesched.ScopeAll, evicts: true, bound: time.Hour}
	joined2   = federated(2, sitesched.DualBackfill, 0)
	joined3   = federated(3, sitesched.DualBackfill, 0)
	joined3s  = federated(3, sitesched.DualStrict, 0)
	joined3c  = federated(3, sitesched.DualBackfill, 2*time.Hour)
	federates = []trial{joined2, joined3, joined3s, joined3c}
)

func allTrials() []trial {
	return slices.Concat([]trial{alone, promise, headOnly, strict}, caps, []trial{bounded1h, bounded, invisible, atOnce}, federates)
}

// outcome is what came of a trial with one seed, of the jobs of the home site.
type outcome struct {
	harm.Report
	// moved are promises to anybody at any site, guestLoad is the part of the home site's
	// processor time that guests had.
	moved     uint64
	guestLoad float64
	// evictions are those of a guest, on average; waited is how long guests did not run in all;
	// stranded is how many were evicted too often to be taken again.
	evictions, waited float64
	stranded          int
}

func (o *outcome) share(n int) float64 { return 100 * float64(n) / float64(max(o.All.Jobs, 1)) }

// source has the jobs of the home site, of the guests, and of a third site.
type source struct {
	env *lab.Env
}

// cut returns n jobs of a log that fit p processors, from the window of a seed on, and how long
// they are submitted.
func cut(w *workload.Workload, p int32, n int, seed uint64) (*workload.Workload, error) {
	fit, err := w.Fit(p, workload.Kill)
	if err != nil {
		return nil, err
	}
	from := int(seed) * n //nolint:gosec // Seeds are few.
	if from+n > len(fit.Jobs) {
		return nil, fmt.Errorf("log %s has %d jobs for %d processors, and window %d of %d is wanted: %w", w.Name, len(fit.Jobs), p, seed, n, lab.ErrEnv)
	}
	return rebased(fit, fit.Jobs[from:from+n], job.Never), nil
}

// rebased returns jobs of w that are submitted before an instant after the first of them.
func rebased(w *workload.Workload, jobs []workload.Job, until job.Time) *workload.Workload {
	out := *w
	out.Jobs = nil
	for _, j := range jobs {
		if j.Submit -= jobs[0].Submit; j.Submit >= until {
			break
		}
		out.Jobs = append(out.Jobs, j)
	}
	return &out
}

// workloads returns the jobs of the home site, those of its partner in the same time, and those
// of a third site.
func (s *source) workloads(seed uint64) ([]*workload.Workload, error) {
	n := s.env.JobsOr(homeJobs)
	home, err := workload.CTCLike{Jobs: n, Processors: homeProcessors, Load: 0.59}.Generate(workload.NewRand(seed, 1))
	if s.env.Trace != nil {
		home, err = cut(s.env.Trace, homeProcessors, n, seed)
	}
	if err != nil {
		return nil, err
	}
	until := home.Jobs[len(home.Jobs)-1].Submit
	partner, err := workload.Lublin{Jobs: 2 * n, Processors: partnerProcessors, Load: 0.69}.Generate(workload.NewRand(seed, 2))
	if s.env.Guests != nil {
		partner, err = s.env.Guests.Fit(partnerProcessors, workload.Kill)
	}
	if err != nil {
		return nil, err
	}
	third, err := workload.CTCLike{Jobs: 2 * n, Processors: thirdProcessors, Load: 0.7}.Generate(workload.NewRand(seed, 3))
	if err != nil {
		return nil, err
	}
	return []*workload.Workload{home, rebased(partner, partner.Jobs, until), rebased(third, third.Jobs, until)}, nil
}

// shorter returns the jobs that a site with that limit for guests takes.
func shorter(w *workload.Workload, limit time.Duration) *workload.Workload {
	if limit == 0 {
		return w
	}
	out := *w
	out.Jobs = slices.DeleteFunc(slices.Clone(w.Jobs), func(j workload.Job) bool { return j.Estimate > limit })
	return &out
}

// federation returns what a trial runs.
func (t trial) federation(seed uint64, ws []*workload.Workload) (federation.Config, []*workload.Workload) {
	cfg := federation.Config{Seed: seed, Harm: true, Guard: true, Placement: meta.Placement{Scheme: meta.KDual, Copies: max(t.k, 1), Rank: meta.RankWork}}
	site := func(id job.SiteID, processors int32) {
		cfg.Sites = append(cfg.Sites, federation.Site{ID: id, Processors: processors, Backfill: sitesched.EASY, Queues: t.queues, Scope: t.scope})
	}
	site("home", homeProcessors)
	switch {
	case t.k > 1:
		site("partner", partnerProcessors)
		site("third", thirdProcessors)
		for i := range cfg.Sites {
			cfg.Sites[i].GuestWalltime = t.limit
		}
		cfg.LoadPeriod = 30 * time.Second
		return cfg, ws
	case t.guests:
		// The guests' own site can run hardly any of them; home jobs have one copy, at home.
		site("partner", 1)
		cfg.Placement.Copies = 2
		cfg.CopiesOf = func(site, _ int) int32 { return int32(site) + 1 } //nolint:gosec // 0 or 1
		if t.evicts {
			if cfg.Checkpoints, cfg.Saves, cfg.Grace = true, leaving, leaving; t.atOnce {
				cfg.Saves, cfg.Grace = 0, 1
			}
			cfg.Sites[0].Bound, cfg.Sites[1].Queues = t.bound, sitesched.DualBackfill
		}
		return cfg, []*workload.Workload{ws[0], shorter(ws[1], t.limit)}
	}
	return cfg, ws[:1]
}

// run runs the trial with the jobs of a seed.
func (t trial) run(ctx context.Context, src *source, seed uint64) (*outcome, error) {
	ws, err := src.workloads(seed)
	if err != nil {
		return nil, err
	}
	cfg, ws := t.federation(seed, ws)
	r, err := federation.Run(ctx, cfg, ws)
	if err != nil {
		return nil, fmt.Errorf("%v, seed %d: %w", t, seed, err)
	}
	return measure(&r, &cfg.Sites[0])
}

// measure sums up what came of the jobs of the home site.
func measure(r *federation.Result, home *federation.Site) (*outcome, error) {
	o, guests := &outcome{}, 0.0
	until := job.Time(0)
	for i := range r.Records {
		if x := &r.Records[i]; x.Origin == home.ID {
			until = max(until, x.Submit)
		}
	}
	for i := range r.Records {
		x := &r.Records[i]
		o.moved += uint64(x.Moved)
		if x.Origin != home.ID && x.Site == home.ID {
			held := max(min(x.End, until).Sub(x.Start), 0)
			if x.Evicted > 0 {
				held = min(held, x.Run)
			}
			o.guestLoad += float64(x.Procs) * held.Seconds()
			o.evictions += float64(x.Evicted)
			o.waited += x.Waited().Seconds()
			guests++
		}
	}
	o.evictions, o.waited, o.stranded = o.evictions/max(guests, 1), o.waited/max(guests, 1), r.Stranded[len(r.Stranded)-1]
	o.guestLoad /= float64(home.Processors) * time.Duration(until).Seconds()
	q := metrics.HarmQuestion{Site: home.ID, Config: home.Scheduler(), Speed: home.Speed}
	var err error
	o.Report, err = q.Compare(r.Records)
	return o, err
}
