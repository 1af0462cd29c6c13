package kdistributed

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"fmt"
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

// scheme is a way to spread jobs over sites (spec 001 section 2.4).
type scheme string

// The schemes.
const (
	independent  scheme = "Independent"
	unified      scheme = "Unified"
	centralised  scheme = "Centralized"
	hierarchical scheme = "Hierarchical"
	distributed  scheme = "Distributed"
	kDist        scheme = "K-Distributed"
	kDual        scheme = "K-Dual"
)

// trial is one run of the four sites for each stream. Equal trials are run once.
type trial struct {
	mix    mix
	scheme scheme
	// k is the number of copies of kDist and kDual.
	k int32
	// rank is what kDist ranks by; the zero value is load work.
	rank meta.Rank
	// period is the age that loads may have.
	period time.Duration
	// load replaces the offered load of a light site with the shared trace;
	// zero leaves it.
	load float64
	// scopeHead chooses scope head instead of all for kDual.
	scopeHead bool
	transfer  bool
}

// String names the trial for people.
func (t trial) String() string {
	s := string(t.scheme)
	if t.k > 0 {
		s += fmt.Sprintf("(%d)", t.k)
	}
	if t.rank != meta.RankWork {
		s += ", rank " + t.rank.String()
	}
	if t.period > 0 {
		s += fmt.Sprintf(", loads up to %v old", t.period)
	}
	if t.load > 0 {
		s += fmt.Sprintf(", site load %.2f", t.load)
	}
	if t.scopeHead {
		s += ", scope head"
	}
	if t.transfer {
		s += ", with transfers"
	}
	return s + ", " + string(t.mix)
}

// outcome is what came of a trial with one stream.
type outcome struct {
	jobs                          int
	slowdown, turnaround, bounded metrics.Distribution
	// trimmed is the mean slowdown without the first and last 5 % of the jobs.
	trimmed     float64
	utilisation float64
	// class is the mean slowdown of each class of jobs.
	class [metrics.Classes]float64
	// light and heavy are the mean slowdowns of the jobs of these sites.
	light, heavy float64
	// logical and wire are the messages of claims and withdrawals.
	logical, wire int64
	// remote is the share of jobs that ran away from their origin, transfer the
	// mean time that their data took.
	remote, transfer float64
	// starts is a fingerprint of the start instants as a multiset.
	starts string
	// demand is the mean of the requested processors of a light site, by the
	// hour of its local day; only under Independent.
	demand [24]float64
	// log is a fingerprint of the event log, where there is one.
	log string
}

// expense is a guess at how long the trial takes, in no unit.
func (t trial) expense() int {
	switch t.scheme {
	case kDual:
		return 10 + 10*int(t.k)
	case kDist:
		return 10 + 5*int(t.k)
	case hierarchical:
		return 30
	case centralised:
		return 5
	}
	return 10
}

// The figures that statements are about.
func meanSlowdown(o *outcome) float64   { return o.slowdown.Mean }
func meanTurnaround(o *outcome) float64 { return o.turnaround.Mean }
func lightSlowdown(o *outcome) float64  { return o.light }
func heavySlowdown(o *outcome) float64  { return o.heavy }
func lightOverHeavy(o *outcome) float64 { return o.light / o.heavy }

func classSlowdown(c metrics.Class) func(*outcome) float64 {
	return func(o *outcome) float64 { return o.class[c] }
}

// run runs a trial with the jobs of s.
func (s *stream) run(ctx context.Context, env *lab.Env, t trial) (*outcome, error) {
	workloads, err := s.workloads(&t)
	if err != nil {
		return nil, err
	}
	cfg := federationOf(env, &t)
	cfg.Seed = s.seed
	var result federation.Result
	switch t.scheme {
	case unified:
		result, err = runUnified(ctx, cfg, workloads)
	case centralised:
		result, err = runCentralized(ctx, cfg, workloads)
	default:
		result, err = federation.Run(ctx, cfg, workloads)
	}
	if err != nil {
		return nil, fmt.Errorf("%v, %s: %w", t, s.name, err)
	}
	if len(result.Refused) > 0 {
		return nil, fmt.Errorf("%v, %s: %d jobs were refused, the first: %w", t, s.name, len(result.Refused), result.Refused[0].Err)
	}
	o := measure(env, &result)
	if t.scheme == independent {
		o.demand = demandByHour(result.Records, timeOfDay(s.shared))
	}
	return o, nil
}

// measure sums up a run.
func measure(env *lab.Env, r *federation.Result) *outcome {
	records := r.Records
	sum := metrics.Summarise(records, metrics.Options{Processors: paperSites * int64(env.ProcessorsOr(paperProcessors))})
	o := &outcome{
		jobs: sum.Jobs, slowdown: sum.Slowdown, turnaround: sum.Turnaround, bounded: sum.BoundedSlowdown, utilisation: sum.Utilisation,
		logical: r.Messages.Logical, wire: r.Messages.Wire, log: r.Hash, starts: startsOf(records),
	}
	for c := range o.class {
		o.class[c] = sum.Classes[c].Slowdown.Mean
	}
	var light, heavy, moved, trimmed []float64
	for i := range records {
		x := &records[i]
		if heavyOrigin(x) {
			heavy = append(heavy, x.Slowdown())
		} else {
			light = append(light, x.Slowdown())
		}
		if x.Site != x.Origin {
			moved = append(moved, (x.End.Sub(x.Start) - x.Run).Seconds())
		}
	}
	for _, x := range metrics.Trim(records, 0.05) {
		trimmed = append(trimmed, x.Slowdown())
	}
	o.light, o.heavy, o.trimmed = metrics.Mean(light), metrics.Mean(heavy), metrics.Mean(trimmed)
	o.remote, o.transfer = float64(len(moved))/float64(max(len(records), 1)), metrics.Mean(moved)
	return o
}

// startsOf returns a fingerprint of the start instants, whatever started.
func startsOf(records []metrics.Record) string {
	starts := make([]job.Time, len(records))
	for i := range records {
		starts[i] = records[i].Start
	}
	slices.Sort(starts)
	h := sha256.New()
	var b []byte
	for _, t := range starts {
		b = binary.LittleEndian.AppendUint64(b[:0], uint64(t)) // bits are bits
		h.Write(b)
	}
	return hex.EncodeToString(h.Sum(nil))
}

// demandByHour averages the requested processors of the first site over the
// days, by hour. offset is the time of day of the instant 0.
func demandByHour(records []metrics.Record, offset time.Duration) [24]float64 {
	var own []metrics.Record
	for i := range records {
		if records[i].Origin == paperNames[0] {
			own = append(own, records[i])
		}
	}
	series := metrics.DemandOver(own, 15*time.Minute)
	var sum, n [24]float64
	for i, v := range series.Values[:max(len(series.Values)-1, 0)] { // the last step is not whole
		at := time.Duration(series.From) + time.Duration(i)*series.Step + offset
		h := int(at/time.Hour) % 24
		sum[h] += v
		n[h]++
	}
	for h := range sum {
		sum[h] /= max(n[h], 1)
	}
	return sum
}

// merged is all jobs of some sites in one sequence.
type merged struct {
	site, index int
	submit      job.Time
}

// merge returns the jobs of all sites on the common clock, in the order
// (submit, origin, place in its workload).
func merge(sites []federation.Site, workloads []*workload.Workload) []merged {
	var all []merged
	for s, w := range workloads {
		for i := range w.Jobs {
			all = append(all, merged{s, i, w.Jobs[i].Submit.Add(sites[s].Zone)})
		}
	}
	slices.SortStableFunc(all, func(a, b merged) int {
		switch {
		case a.submit < b.submit:
			return -1
		case a.submit > b.submit:
			return 1
		}
		return 0
	})
	return all
}

// runUnified runs all jobs at one site as large as all together: a reference
// that could not be deployed (spec 001 section 2.4).
func runUnified(ctx context.Context, cfg federation.Config, workloads []*workload.Workload) (federation.Result, error) {
	order := merge(cfg.Sites, workloads)
	all := &workload.Workload{Name: "all sites", Tick: time.Second, Jobs: make([]workload.Job, len(order))}
	one := federation.Site{ID: "unified", Backfill: sitesched.EASY}
	for _, s := range cfg.Sites {
		one.Processors += s.Processors
	}
	for i, m := range order {
		all.Jobs[i] = workloads[m.site].Jobs[m.index]
		all.Jobs[i].Submit = m.submit
	}
	result, err := federation.Run(ctx, federation.Config{
		Sites: []federation.Site{one}, Placement: meta.Placement{Scheme: meta.Independent, Copies: 1},
	}, []*workload.Workload{all})
	if err != nil || len(result.Refused) > 0 {
		return result, err
	}
	for i, m := range order {
		result.Records[i].Origin = cfg.Sites[m.site].ID
		result.Records[i].Site = result.Records[i].Origin // nothing moves
	}
	return result, nil
}

// runCentralized runs all jobs under the Centralized scheme.
func runCentralized(ctx context.Context, cfg federation.Config, workloads []*workload.Workload) (federation.Result, error) {
	order := merge(cfg.Sites, workloads)
	var transfers []func() time.Duration
	for s := range workloads {
		if cfg.Transfer != nil {
			transfers = append(transfers, cfg.Transfer.Times(cfg.Seed, s))
		}
	}
	jobs := make([]centralJob, len(order))
	for i, m := range order {
		j := &workloads[m.site].Jobs[m.index]
		jobs[i] = centralJob{
			origin: m.site, submit: m.submit, run: j.Run, estimate: j.Estimate, procs: j.Procs, number: j.ID, user: j.User, groupNamed: j.Group,
		}
		if transfers != nil {
			jobs[i].transfer = transfers[m.site]() // order has a site's jobs in theirs
		}
	}
	var processors []int32
	var names []job.SiteID
	for _, s := range cfg.Sites {
		processors, names = append(processors, s.Processors), append(names, s.ID)
	}
	if err := centralized(ctx, jobs, processors); err != nil {
		return federation.Result{}, err
	}
	var result federation.Result
	for i := range jobs {
		result.Records = append(result.Records, jobs[i].record(names))
	}
	return result, nil
}
