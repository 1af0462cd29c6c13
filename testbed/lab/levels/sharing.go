package levels

import (
	"context"
	"fmt"

	"kith/internal/job"
	"kith/meta"
	"kith/sitesched/level"
	"kith/testbed/federation"
	"kith/testbed/lab"
	"kith/testbed/metrics"
	"kith/testbed/workload"
)

// sharing is a way in which the sites of one level share what comes to it.
type sharing string

// The ways.
const (
	copies     sharing = "two copies, by load"
	single     sharing = "one copy, by load"
	pushed     sharing = "one copy, by load, pushed"
	homeCopies sharing = "two copies, at home first"
	home       sharing = "one copy, at home"
	homePushed sharing = "one copy, at home, pushed"
)

func allSharing() []sharing {
	return []sharing{copies, single, pushed, homeCopies, home, homePushed}
}

// twice are two sites in place of each of the three.
const twice = 2

// shared is what came of one way with one seed.
type shared struct {
	outcome
	moved    float64 // moves of waiting jobs, of a hundred jobs
	lowered  float64 // waiting jobs that went down a level, of a hundred jobs
	messages float64 // of a job, without loads
}

// sharers are the answers of all ways.
type sharers struct {
	lab.Outcomes[sharing, *shared]
	env *lab.Env
}

// Sharing compares the push of spec 000 section 2.5 with copies, and with neither.
func Sharing() lab.Experiment {
	study := lab.Study[sharing, *sharers]{Questions: sharingQuestions(), Shown: allSharing(), Answer: answerSharing}
	return study.Experiment(lab.Experiment{
		ID: "sharing", Title: "Whether sites of one level share better by moves than by copies", Source: "a study of our own, beside spec 000 section 2.5",
		Jobs: jobs, Seeds: 3, UsesTrace: true,
	})
}

func answerSharing(ctx context.Context, env *lab.Env, ways []sharing) (*sharers, error) {
	seeds := env.SeedList()
	plan := lab.Plan[sharing, *shared]{
		Seeds:   func(sharing) int { return len(seeds) },
		Expense: func(sharing) int { return 1 },
		Run:     func(ctx context.Context, s sharing, i int) (*shared, error) { return s.run(ctx, env, seeds[i]) },
	}
	all, err := plan.Try(ctx, env, ways)
	return &sharers{Outcomes: all, env: env}, err
}

// pairs are the three levels with two sites each.
func pairs(p int32) (list []federation.Site) {
	three := sites(p)
	ranks(three)
	for _, s := range three {
		for n := range twice {
			x := s
			x.ID += []job.SiteID{"-1", "-2"}[n]
			list = append(list, x)
		}
	}
	return list
}

// run runs one way with the jobs of a seed. Two of three are submitted at the first site of level 1, the others at the
// second one.
func (s sharing) run(ctx context.Context, env *lab.Env, seed uint64) (*shared, error) {
	w, p, err := jobsOf(env, seed)
	if err == nil {
		w, err = w.ScaleLoad(twice)
	}
	if err != nil {
		return nil, err
	}
	cfg := federation.Config{
		Seed: seed, LoadPeriod: level.SharePeriod, LoadMessages: true, Placement: meta.Placement{Scheme: meta.KDistributed, Copies: 1, Rank: meta.RankWork},
		Sites: pairs(p), Saves: saving, Grace: askBefore, Checkpoints: true, Shape: hierarchy.shape(w),
	}
	switch s {
	case homeCopies, home, homePushed:
		cfg.Placement.Scheme = meta.KDual
	case copies, single, pushed:
	}
	switch s {
	case copies, homeCopies:
		cfg.Placement.Copies = twice
	case pushed, homePushed:
		for i := range cfg.Sites {
			cfg.Sites[i].Level.Share = level.SharePush
		}
	case single, home:
	}
	parts, o := split(w), &shared{}
	cfg.Ended = func(site, i int, r *metrics.Record) {
		o.add(&parts[site].Jobs[i], r, cfg.Sites[0].Processors)
		o.moved += float64(r.Pushed)
		o.lowered += float64(r.Lowered)
	}
	r, err := federation.Run(ctx, cfg, parts)
	if err == nil && len(r.Refused) > 0 {
		err = fmt.Errorf("%d jobs were refused, the first: %w", len(r.Refused), r.Refused[0].Err)
	}
	if err != nil {
		return nil, fmt.Errorf("%s, seed %d: %w", s, seed, err)
	}
	for kind, count := range r.Messages.ByKind {
		if kind != (meta.LoadDigest{}).Word() {
			o.messages += float64(count)
		}
	}
	n := max(o.all.n, 1)
	o.moved, o.lowered, o.messages = 100*o.moved/n, 100*o.lowered/n, o.messages/n
	o.settle()
	return o, nil
}

// split gives two of three jobs to the first site and the others to the second one, of six.
func split(w *workload.Workload) []*workload.Workload {
	parts := make([]*workload.Workload, 3*twice)
	for i := range parts {
		parts[i] = &workload.Workload{}
	}
	for i, j := range w.Jobs {
		at := 0
		if i%3 == 2 {
			at = 1
		}
		parts[at].Jobs = append(parts[at].Jobs, j)
	}
	return parts
}
