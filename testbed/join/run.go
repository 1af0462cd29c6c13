package join

import (
	"cmp"
	"context"
	"fmt"
	"runtime"
	"slices"
	"sync"
	"time"

	"kith/meta"
	"kith/sitesched"
	"kith/testbed/federation"
	"kith/testbed/metrics"
	"kith/testbed/pool"
	"kith/testbed/sim"
)

// plan is a way to place copies.
type plan struct {
	scheme meta.Scheme
	copies int32
}

// String names the plan for people.
func (p plan) String() string {
	switch {
	case p.scheme == meta.Independent:
		return "alone"
	case placesCopies(p.scheme):
		return fmt.Sprintf("%s, K = %d", p.scheme, p.copies)
	}
	return string(p.scheme)
}

// plans are what the study runs: each site alone first.
func (s *Study) plans() []plan {
	list := []plan{{meta.Independent, 1}}
	for _, k := range s.cfg.copies() {
		list = append(list, plan{meta.Scheme(s.cfg.Placement.Scheme), k})
	}
	return list
}

// outcome is what came of a plan.
type outcome struct {
	plan
	result federation.Result
}

// Run runs all plans, as many at a time as there are processors, and compares
// them. progress, if not nil, learns how many jobs of all plans have ended; it
// is called by one goroutine at a time. The error is that of ctx, or a fault of
// the simulation.
func (s *Study) Run(ctx context.Context, progress func(done, total int)) (*Answer, error) {
	plans := s.plans()
	t := &tally{done: make([]int, len(plans)), total: len(plans) * s.Jobs(), report: progress}
	// Those with many copies take longest, and go first.
	outcomes, err := pool.Map(ctx, runtime.GOMAXPROCS(0), len(plans), func(ctx context.Context, i int) (outcome, error) {
		i = len(plans) - 1 - i
		return s.run(ctx, plans[i], func(done, _ int) { t.set(i, done) })
	})
	if err != nil {
		return nil, err
	}
	slices.Reverse(outcomes)
	return s.answer(outcomes)
}

// tally adds up the progress of several runs.
type tally struct {
	mu     sync.Mutex
	done   []int
	total  int
	report func(done, total int)
}

func (t *tally) set(i, done int) {
	if t.report == nil {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.done[i] = done
	sum := 0
	for _, n := range t.done {
		sum += n
	}
	t.report(sum, t.total)
}

// run runs one plan.
func (s *Study) run(ctx context.Context, p plan, progress func(done, total int)) (outcome, error) {
	cfg := s.federation(p)
	cfg.Progress = progress
	result, err := federation.Run(ctx, cfg, s.jobs)
	if err != nil {
		return outcome{}, fmt.Errorf("%v: %w", p, err)
	}
	if len(result.Refused) > 0 {
		r := result.Refused[0]
		return outcome{}, fmt.Errorf("%v: %d jobs were refused, the first is job %d of site %s: %w",
			p, len(result.Refused), r.Index+1, s.sites[r.Site].ID, r.Err)
	}
	return outcome{plan: p, result: result}, nil
}

// federation is the federation under a plan.
func (s *Study) federation(p plan) federation.Config {
	c := &s.cfg.Placement
	cfg := federation.Config{
		Seed: s.cfg.Seed, Sites: s.sites,
		Placement: meta.Placement{
			Scheme: p.scheme, Copies: p.copies, Weight: c.Weight, Adaptive: c.Adaptive && p.scheme != meta.Independent, MaxLoadAge: c.maxLoadAge(),
		},
		// A load travels like any message. Where none is older than it takes to
		// travel, one leaves as soon as the one before has arrived.
		LoadPeriod: time.Duration(cmp.Or(c.LoadAge, c.Latency)), LoadDelay: time.Duration(c.Latency),
		Staggered: true, Harm: p.scheme != meta.Independent,
		Network: sim.NetworkConfig{LinkConfig: sim.LinkConfig{Latency: time.Duration(c.Latency)}},
	}
	if rank, ok := meta.ParseRank(c.Rank); ok && p.scheme != meta.Independent {
		cfg.Placement.Rank = rank
	}
	return cfg
}

// policyOf names the discipline of a site.
func policyOf(s *federation.Site) string {
	return sitesched.Config{Backfill: s.Backfill, Queues: s.Queues, Scope: s.Scope}.Policy()
}

// recordsOf returns the records of the jobs of site i.
func (s *Study) recordsOf(o *outcome, i int) []metrics.Record {
	first := 0
	for _, w := range s.jobs[:i] {
		first += len(w.Jobs)
	}
	return o.result.Records[first : first+len(s.jobs[i].Jobs)]
}

// Runs returns how many times [Study.Run] runs all jobs.
func (s *Study) Runs() int { return len(s.plans()) }
