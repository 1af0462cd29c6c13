package conserve

import (
	"context"
	"fmt"
	"slices"
	"time"

	"kith/internal/job"
	"kith/meta"
	"kith/sitesched"
	"kith/testbed/federation"
	"kith/testbed/metrics"
)

// loadPeriod is how often sites tell their load.
const loadPeriod = 30 * time.Second

// trial is one scheme at one load, off or on. Equal trials are run once.
type trial struct {
	load     int // percent
	scheme   meta.Scheme
	k        int32
	conserve bool
}

// String names the trial for people, without its load and the switch.
func (t trial) String() string {
	if t.scheme == meta.KDual {
		return fmt.Sprintf("K-Dual, K = %d", t.k)
	}
	return fmt.Sprintf("K-Distributed, K = %d", t.k)
}

// outcome is what came of a trial with one seed. Waits are in seconds, messages
// per job, shares of all processors over moments at which jobs wait.
type outcome struct {
	jobs          int
	wait, worst   float64
	idle, wasted  float64
	messages      float64 // that crossed between sites, but loads
	loads, placed float64
	sites         [siteCount]float64 // mean wait of the jobs of each site
}

// federation returns the configuration of a trial.
func (t trial) federation(src *source, seed uint64) federation.Config {
	cfg := federation.Config{
		Seed: seed, LoadPeriod: loadPeriod, LoadMessages: true,
		Placement: meta.Placement{Scheme: t.scheme, Copies: t.k, Rank: meta.RankWork, Conserve: t.conserve},
	}
	queues := sitesched.DualBackfill
	if t.scheme == meta.KDistributed {
		queues = sitesched.Single
	}
	for i := range siteCount {
		cfg.Sites = append(cfg.Sites, federation.Site{
			ID: siteID(i), Processors: src.processors(i), Backfill: sitesched.EASY, Queues: queues, Scope: sitesched.ScopeAll,
		})
	}
	return cfg
}

// run runs the trial with the jobs of a seed.
func (t trial) run(ctx context.Context, src *source, seed uint64) (*outcome, error) {
	workloads, err := src.workloads(t.load, seed)
	if err != nil {
		return nil, err
	}
	cfg := t.federation(src, seed)
	r, err := federation.Run(ctx, cfg, workloads)
	if err == nil && len(r.Refused) > 0 {
		err = fmt.Errorf("%d jobs were refused, the first: %w", len(r.Refused), r.Refused[0].Err)
	}
	if err != nil {
		return nil, fmt.Errorf("%v, load 0.%02d, conserve %t, seed %d: %w", t, t.load, t.conserve, seed, err)
	}
	return measure(&r, cfg.Sites), nil
}

// measure sums up a run.
func measure(r *federation.Result, sites []federation.Site) *outcome {
	o := &outcome{jobs: len(r.Records)}
	var waits []float64
	own := make(map[job.SiteID][]float64)
	for i := range r.Records {
		x := &r.Records[i]
		w := x.Wait().Seconds()
		waits = append(waits, w)
		own[x.Origin] = append(own[x.Origin], w)
	}
	for i := range sites {
		o.sites[i] = metrics.Mean(own[sites[i].ID])
	}
	o.wait = metrics.Mean(waits)
	slices.Sort(waits)
	o.worst = metrics.Mean(waits[len(waits)-(len(waits)+9)/10:])
	o.idle, o.wasted = idleWhileWaiting(r.Records, sites)
	n := float64(max(o.jobs, 1))
	all := int64(0)
	for _, count := range r.Messages.ByKind {
		all += count
	}
	told := r.Messages.ByKind[meta.LoadDigest{}.Word()]
	o.messages, o.loads = float64(all-told)/n, float64(told)/n
	o.placed = float64(r.Messages.ByKind[meta.PlaceCopy{}.Word()]) / n
	return o
}

// idleWhileWaiting returns the share of processors that run nothing over the
// moments, up to the last submission, at which a job waits; and the share of
// those that are at a site where one of the waiting jobs would fit.
func idleWhileWaiting(records []metrics.Record, sites []federation.Site) (idle, wasted float64) {
	type event struct {
		at             job.Time
		width, waiting int32 // of the job; 1 if it begins to wait, -1 if it ends that
		site           int   // whose processors change, -1 for none
		free           int32
	}
	var events []event
	index, free, total := make(map[job.SiteID]int), make([]int32, len(sites)), 0.0
	for i := range sites {
		index[sites[i].ID], free[i] = i, sites[i].Processors
		total += float64(sites[i].Processors)
	}
	until := job.Time(0)
	for i := range records {
		x := &records[i]
		s := index[x.Site]
		until = max(until, x.Submit)
		events = append(events, event{x.Submit, x.Procs, 1, -1, 0}, event{x.Start, x.Procs, -1, s, -x.Procs}, event{x.End, x.Procs, 0, s, x.Procs})
	}
	slices.SortStableFunc(events, func(a, b event) int {
		switch {
		case a.at < b.at:
			return -1
		case a.at > b.at:
			return 1
		}
		return 0
	})
	waiting := make(map[int32]int32) // by width
	queued := int32(0)
	var waited, unused, fitting float64 // seconds, processor-seconds
	for i := range events {
		e := &events[i]
		if i > 0 && queued > 0 && e.at > events[i-1].at && events[i-1].at < until {
			d := min(e.at, until).Sub(events[i-1].at).Seconds()
			narrowest := int32(job.MaxProcessors)
			for width, n := range waiting {
				if n > 0 {
					narrowest = min(narrowest, width)
				}
			}
			waited += d
			for _, f := range free {
				unused += d * float64(f)
				if f >= narrowest {
					fitting += d * float64(f)
				}
			}
		}
		queued += e.waiting
		waiting[e.width] += e.waiting
		if e.site >= 0 {
			free[e.site] += e.free
		}
	}
	if waited == 0 {
		return 0, 0
	}
	return unused / (waited * total), fitting / (waited * total)
}
