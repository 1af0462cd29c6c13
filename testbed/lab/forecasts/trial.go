package forecasts

import (
	"cmp"
	"context"
	"fmt"

	"kith/internal/forecast"
	"kith/meta"
	"kith/sitesched"
	"kith/testbed/federation"
	"kith/testbed/metrics"
)

// setting is where jobs wait.
type setting string

const (
	easy         setting = "EASY"
	conservative setting = "conservative"
	federated    setting = "three sites"
)

// settings are in the order in which they are shown.
var settings = []setting{easy, conservative, federated}

// A run in which all jobs that wait are looked at takes long, so it is done in parts: part i
// of parts looks at every parts-th of them, beginning with the i-th.
const parts = 8

// partsOf is how many of the parts are looked at. Under conservative backfill a scenario costs
// thirty times as much, and in a federation three sites are asked.
func (s setting) partsOf() int {
	switch s {
	case conservative:
		return 1
	case federated:
		return parts / 2
	}
	return parts
}

// trial is one part of a setting. Equal trials are run once.
type trial struct {
	setting
	part int
}

// trials are all parts of a setting.
func (s setting) trials() []trial {
	var list []trial
	for i := range s.partsOf() {
		list = append(list, trial{s, i})
	}
	return list
}

func allTrials() []trial {
	var list []trial
	for _, s := range settings {
		list = append(list, s.trials()...)
	}
	return list
}

// draws is how many scenarios a forecast has.
func (s setting) draws() int {
	if s == conservative {
		return forecast.MinScenarios
	}
	return forecast.DefaultScenarios
}

// outcome is what came of a trial with one seed.
type outcome struct {
	records []metrics.Record
	first   []int // of each site, the place of its first record
	waits   []wait
	// waiting jobs did not start at once; failed is how many forecasts came to nothing.
	waiting, failed int
}

// record returns the record of a job.
func (o *outcome) record(w *wait) *metrics.Record { return &o.records[o.first[w.site]+w.index] }

// order puts waits in the order of their submission.
func (o *outcome) order(a, b wait) int {
	return cmp.Or(cmp.Compare(o.record(&a).Submit, o.record(&b).Submit), cmp.Compare(a.site, b.site), cmp.Compare(a.index, b.index))
}

// federation returns the configuration of a trial.
func (t trial) federation(src *source) federation.Config {
	site := federation.Site{ID: "site1", Processors: src.processors, Backfill: sitesched.EASY, Queues: sitesched.DualBackfill, Scope: sitesched.ScopeAll}
	if t.setting == conservative {
		site.Backfill = sitesched.Conservative
	}
	cfg := federation.Config{Sites: []federation.Site{site}, Placement: meta.Placement{Scheme: meta.KDual, Copies: 1}}
	if t.setting == federated {
		cfg.Placement.Copies = sites
		for i := 1; i < sites; i++ {
			site.ID = siteID(i)
			cfg.Sites = append(cfg.Sites, site)
		}
	}
	return cfg
}

// run runs the trial with the jobs of a seed.
func (t trial) run(ctx context.Context, src *source, seed uint64) (*outcome, error) {
	workloads, err := src.workloads(t.setting, seed)
	if err != nil {
		return nil, err
	}
	o := newObserver(workloads, t.draws(), seed)
	o.part = t.part
	cfg := t.federation(src)
	o.watch(&cfg)
	r, err := federation.Run(ctx, cfg, workloads)
	if err == nil && len(r.Refused) > 0 {
		err = fmt.Errorf("%d jobs were refused, the first: %w", len(r.Refused), r.Refused[0].Err)
	}
	if err != nil {
		return nil, fmt.Errorf("%s, part %d, seed %d: %w", t.setting, t.part, seed, err)
	}
	out := &outcome{records: r.Records, waits: o.waits, waiting: o.waiting, failed: o.failed}
	n := 0
	for _, w := range workloads {
		out.first = append(out.first, n)
		n += len(w.Jobs)
	}
	return out, nil
}
