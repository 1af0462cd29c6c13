package conserve

import (
	"context"
	"fmt"

	"kith/meta"
	"kith/testbed/lab"
)

// Experiment is a study that the papers lack: what their schemes give away
// because a copy stays where it was placed, and what moving queued copies brings
// and costs (placement.conserve, ADR 0026).
func Experiment() lab.Experiment {
	study := lab.Study[trial, *answers]{Questions: questions(), Shown: allTrials(), Answer: answer}
	return study.Experiment(lab.Experiment{
		ID: "conserve", Title: "What it brings that queued copies are added and moved",
		Source: "a study of our own, for ADR 0026",
		Jobs:   siteJobs, Seeds: 3, UsesTrace: true,
	})
}

// loads are the mean offered loads of a processor, in percent; copies are the K.
var (
	loads  = []int{60, 70, 80, 90, 95}
	copies = []int32{1, 2, 3}
)

// dual keeps a copy at the origin, where copies of others do local jobs no harm;
// spread sends copies to the least loaded sites, which have one queue.
func dual(load int, k int32) trial {
	return trial{load: load, scheme: meta.KDual, k: k}
}

func spread(load int, k int32) trial {
	return trial{load: load, scheme: meta.KDistributed, k: k}
}

// conserved returns the trial with placement.conserve on.
func (t trial) conserved() trial { t.conserve = true; return t }

// schemes are the two ways to place.
var schemes = []func(load int, k int32) trial{dual, spread}

// allTrials are all schemes, K and loads, off and on.
func allTrials() []trial {
	var list []trial
	for _, of := range schemes {
		for _, k := range copies {
			for _, load := range loads {
				list = append(list, of(load, k), of(load, k).conserved())
			}
		}
	}
	return list
}

// answers are what came of trials: one outcome for each seed.
type answers struct {
	lab.Outcomes[trial, *outcome]
	env *lab.Env
	src *source
}

// answer runs all trials with all seeds.
func answer(ctx context.Context, env *lab.Env, trials []trial) (*answers, error) {
	src, err := newSource(env)
	if err != nil {
		return nil, err
	}
	seeds := env.SeedList()
	plan := lab.Plan[trial, *outcome]{
		Seeds:   func(trial) int { return len(seeds) },
		Expense: func(t trial) int { return t.load * int(t.k) },
		Run:     func(ctx context.Context, t trial, i int) (*outcome, error) { return t.run(ctx, src, seeds[i]) },
	}
	all, err := plan.Try(ctx, env, trials)
	return &answers{Outcomes: all, env: env, src: src}, err
}

// Workload says which jobs were run.
func (a *answers) Workload() string {
	jobs := "generated jobs like those of the CTC log"
	if a.env.Trace != nil {
		jobs = a.env.Trace.Name
	}
	return fmt.Sprintf("%d sites, of %d and %d processors by turns, about %d jobs a large site: %s; the own load of a site is between 2 × the mean less 1 and 1",
		siteCount, a.src.Large, a.src.Small(), a.env.JobsOr(siteJobs), jobs)
}

// Remark says how things were read.
func (a *answers) Remark(r *lab.Report) {
	r.Remark("The bands of this experiment are our own. They were drawn before the first run was looked at and not moved since.")
	r.Remark("Sites tell their load by messages, once in %v and, with the switch on, when processors come free; these are counted apart. Messages take no time, none is lost.", loadPeriod)
	r.Remark("Processors are idle while jobs wait if they run nothing at a moment, before the last submission, at which a job of any site waits; the share is that of all processors, over such moments. Of these, processors are wasted if they are at a site where one of the waiting jobs would fit beside what runs; it may have to stay out there so as not to delay a job with a guarantee.")
	r.Remark("The worst tenth is the tenth of all jobs that waits longest.")
}
