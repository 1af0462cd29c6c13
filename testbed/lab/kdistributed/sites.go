package kdistributed

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"slices"
	"time"

	"kith/internal/job"
	"kith/meta"
	"kith/sitesched"
	"kith/testbed/federation"
	"kith/testbed/lab"
	"kith/testbed/metrics"
	"kith/testbed/workload"
)

// The set-up of spec 001 section 3.0: four sites of equal size in zones an hour
// apart, the second and the fourth with run times stretched.
const (
	paperSites      = 4
	paperProcessors = 430
	paperJobs       = 5000
	paperStretch    = 1.7
	// paperLoad is the offered load of a light site where jobs are generated:
	// the least at which all statements may be judged (C12, C16).
	paperLoad = 0.6
)

var paperNames = []job.SiteID{"site1", "site2", "site3", "site4"}

// heavySite reports whether run times are stretched at a site.
func heavySite(i int) bool { return i%2 == 1 }

// heavyOrigin is heavySite for a record.
func heavyOrigin(r *metrics.Record) bool {
	return r.Origin == paperNames[1] || r.Origin == paperNames[3]
}

// zoneOf is the zone of a site.
func zoneOf(i int) time.Duration { return time.Duration(i) * time.Hour }

// stream is what makes one seed differ from another.
type stream struct {
	seed uint64
	// shared is the trace that all sites have in common, distinct are four others.
	shared   *workload.Workload
	distinct [paperSites]*workload.Workload
	// load is the offered load of a light site with the shared trace.
	load float64
	// name says which jobs these are.
	name string
}

// mix is a way to make workloads of a stream.
type mix string

// The mixes (spec 001 sections 2.7 and 3.2).
const (
	sharedMix   mix = "shared"
	distinctMix mix = "distinct"
	perfectMix  mix = "perfect estimates"
	equalMix    mix = "equal width, perfect estimates"
)

// workloads returns the workloads of the four sites.
func (s *stream) workloads(t *trial) ([]*workload.Workload, error) {
	list := make([]*workload.Workload, paperSites)
	for i := range list {
		w := s.shared
		switch {
		case t.mix == distinctMix:
			w = s.distinct[i]
		case t.load > 0:
			var err error
			if w, err = w.ScaleLoad(t.load / s.load); err != nil {
				return nil, err
			}
		}
		if heavySite(i) {
			var err error
			if w, err = w.Stretch(paperStretch); err != nil {
				return nil, err
			}
		}
		list[i] = w
	}
	if t.mix == perfectMix || t.mix == equalMix {
		for i, w := range list {
			list[i] = w.PerfectEstimates()
		}
	}
	if t.mix == equalMix {
		width := workload.MeanWidth(list...)
		for i, w := range list {
			var err error
			if list[i], err = w.EqualWidth(width); err != nil {
				return nil, err
			}
		}
	}
	return list, nil
}

// generated returns the streams of the seeds.
func generated(env *lab.Env) ([]*stream, error) {
	model := workload.CTCLike{Jobs: env.JobsOr(paperJobs), Processors: env.ProcessorsOr(paperProcessors), Load: paperLoad}
	var list []*stream
	for _, seed := range env.SeedList() {
		s := &stream{seed: seed, name: fmt.Sprintf("seed %d", seed)}
		for i := range s.distinct {
			w, err := model.Generate(workload.NewRand(seed, uint64(i)))
			if err != nil {
				return nil, err
			}
			s.distinct[i] = w
		}
		s.shared = s.distinct[0]
		s.load = s.shared.OfferedLoad(model.Processors)
		list = append(list, s)
	}
	return list, nil
}

// The levels that the source's axes give for Independent (statement C19).
const (
	paperTurnaround = 25_000.0 // s
	paperSlowdown   = 25.0
)

// segments returns the streams of a log: windows of it, those first whose levels
// under Independent are nearest to the source's. This is how spec 001 statement C19
// says to choose; nothing else about a window matters.
func segments(ctx context.Context, env *lab.Env) ([]*stream, error) {
	p, n := env.ProcessorsOr(paperProcessors), env.JobsOr(paperJobs)
	log, err := env.Trace.Fit(p, workload.Raise)
	if err != nil {
		return nil, err
	}
	count := len(log.Jobs) / n
	if last := env.FirstSeed + uint64(env.Seeds) - 1; env.FirstSeed > lab.MaxSeeds || last >= uint64(count) || count < paperSites { //nolint:gosec // Few.
		return nil, fmt.Errorf("log %s has %d windows of %d jobs for %d processors, seeds %d to %d and %d sites need more: choose fewer seeds or jobs: %w",
			env.Trace.Name, count, n, p, env.FirstSeed, last, paperSites, lab.ErrEnv)
	}
	windows := make([]*workload.Workload, count)
	for i := range windows {
		if windows[i], err = log.Window(i*n, n); err != nil {
			return nil, err
		}
	}
	type level struct {
		index    int
		distance float64
	}
	levels, err := lab.Map(ctx, env, count, func(ctx context.Context, i int) (level, error) {
		s := &stream{shared: windows[i]}
		o, err := s.run(ctx, env, trial{mix: sharedMix, scheme: independent})
		if err != nil {
			return level{}, err
		}
		return level{i, math.Abs(math.Log(o.turnaround.Mean/paperTurnaround)) + math.Abs(math.Log(o.slowdown.Mean/paperSlowdown))}, nil
	})
	if err != nil {
		return nil, err
	}
	slices.SortFunc(levels, func(a, b level) int {
		return cmp.Or(cmp.Compare(a.distance, b.distance), cmp.Compare(a.index, b.index))
	})
	var list []*stream
	for _, seed := range env.SeedList() {
		at := levels[seed].index
		s := &stream{seed: seed, shared: windows[at], name: fmt.Sprintf("jobs %d to %d", at*n+1, (at+1)*n)}
		for i := range s.distinct {
			if s.distinct[i], err = sameClock(windows[(at+i)%count], windows[at]); err != nil {
				return nil, err
			}
		}
		s.load = s.shared.OfferedLoad(p)
		list = append(list, s)
	}
	return list, nil
}

// sameClock delays w so that its days agree with those of o.
func sameClock(w, o *workload.Workload) (*workload.Workload, error) {
	const day = 24 * time.Hour
	return w.Shift(((timeOfDay(w)-timeOfDay(o))%day + day) % day)
}

// timeOfDay returns the local time of day of w's instant 0; zero if unknown.
func timeOfDay(w *workload.Workload) time.Duration {
	h, m, s := w.Start.Clock()
	return time.Duration(h)*time.Hour + time.Duration(m)*time.Minute + time.Duration(s)*time.Second
}

// federationOf returns the sites of a trial.
func federationOf(env *lab.Env, t *trial) federation.Config {
	cfg := federation.Config{
		Placement: meta.Placement{Copies: max(t.k, 1), Rank: t.rank}, LoadPeriod: t.period,
	}
	queues := sitesched.Single
	switch t.scheme {
	case independent:
		cfg.Placement.Scheme = meta.Independent
	case hierarchical:
		cfg.Placement.Scheme = meta.Hierarchical
	case distributed:
		cfg.Placement.Scheme = meta.Distributed
	case kDist:
		cfg.Placement.Scheme = meta.KDistributed
	case kDual:
		cfg.Placement.Scheme = meta.KDual
		queues = sitesched.DualBackfill
	case unified, centralised:
	}
	if t.transfer {
		cfg.Transfer = federation.PaperTransfer()
	}
	scope := sitesched.ScopeAll
	if t.scopeHead {
		scope = sitesched.ScopeHead
	}
	for i, name := range paperNames {
		cfg.Sites = append(cfg.Sites, federation.Site{
			ID: name, Processors: env.ProcessorsOr(paperProcessors), Backfill: sitesched.EASY, Queues: queues, Scope: scope, Zone: zoneOf(i),
		})
	}
	return cfg
}
