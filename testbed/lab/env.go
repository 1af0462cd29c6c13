package lab

import (
	"cmp"
	"context"
	"fmt"
	"runtime"
	"slices"
	"sync"
	"time"

	"kith/internal/job"
	"kith/testbed/pool"
	"kith/testbed/workload"
)

// Env is what an experiment runs in. The zero value is usable with [Execute].
type Env struct {
	// Seeds is how many seeds there are; 0 means the experiment's own number.
	Seeds int
	// FirstSeed is the first; the others follow it. Zero is a seed like any other.
	FirstSeed uint64
	// Trace is a log to take jobs from, as [workload.Open] returned it; nil for
	// generated jobs. Experiments whose source has no log ignore it.
	Trace *workload.Workload
	// Guests is a log whose jobs are those of others, where an experiment has such; nil for
	// generated ones.
	Guests *workload.Workload
	// Jobs is how many jobs there are at each site; 0 means as many as in the
	// source. With fewer the bands mean little: for trying things out.
	Jobs int
	// Processors is the size of a site where the source leaves it open; 0 means
	// the experiment's choice.
	Processors int32
	// Statements are the ids of those that are wanted; nil means all.
	Statements []string
	// Workers is how many runs go on at a time; 0 means as many as processors.
	Workers int
	// Clock is the processor time that the calling thread has used, for statements about what
	// something costs; with nil nothing is timed, and such a statement says so.
	Clock func() time.Duration
	// Progress learns how many runs of those known so far are done; nil for
	// no one. It is called by one goroutine at a time.
	Progress func(done, total int)

	progress *tally
}

// MaxSeeds bounds Env.Seeds.
const MaxSeeds = 1000

// Settle fills in defaults, seeds being the experiment's own number, and checks.
// [Execute] does it.
func (e *Env) Settle(seeds int) error {
	if e.Seeds == 0 {
		e.Seeds = seeds
	}
	switch {
	case e.Seeds < 1 || e.Seeds > MaxSeeds:
		return fmt.Errorf("seeds %d: choose 1 to %d: %w", e.Seeds, MaxSeeds, ErrEnv)
	case e.Jobs < 0 || e.Jobs > workload.MaxJobs:
		return fmt.Errorf("jobs %d: choose 1 to %d, or 0 for those of the source: %w", e.Jobs, workload.MaxJobs, ErrEnv)
	case e.Processors < 0 || e.Processors > job.MaxProcessors:
		return fmt.Errorf("processors %d: choose 1 to %d, or 0 for those of the experiment: %w", e.Processors, job.MaxProcessors, ErrEnv)
	case e.Workers < 0:
		return fmt.Errorf("workers %d: choose at least 1, or 0 for as many as processors: %w", e.Workers, ErrEnv)
	}
	if e.Workers == 0 {
		e.Workers = runtime.GOMAXPROCS(0)
	}
	e.progress = &tally{report: e.Progress}
	return nil
}

// SeedList returns the seeds.
func (e *Env) SeedList() []uint64 {
	list := make([]uint64, e.Seeds)
	for i := range list {
		list[i] = e.FirstSeed + uint64(i)
	}
	return list
}

// JobsOr returns the number of jobs, own if the user did not choose.
func (e *Env) JobsOr(own int) int { return cmp.Or(e.Jobs, own) }

// ProcessorsOr returns the size of a site, own if the user did not choose.
func (e *Env) ProcessorsOr(own int32) int32 { return cmp.Or(e.Processors, own) }

// Wants reports whether one of the statements is wanted. Experiments leave out runs
// that serve none.
func (e *Env) Wants(ids ...string) bool {
	return e.Statements == nil || slices.ContainsFunc(ids, func(id string) bool { return slices.Contains(e.Statements, id) })
}

// tally counts runs.
type tally struct {
	mu          sync.Mutex
	done, total int
	report      func(done, total int)
}

func (t *tally) add(done, total int) {
	if t == nil {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.done, t.total = t.done+done, t.total+total
	if t.report != nil {
		t.report(t.done, t.total)
	}
}

// Map runs f for each i below n, as many at a time as e has workers, and
// returns the results in order. The first error, by time, ends all of it; f
// should return soon when its context ends. f must not depend on what other
// runs do.
func Map[T any](ctx context.Context, e *Env, n int, f func(ctx context.Context, i int) (T, error)) ([]T, error) {
	e.progress.add(0, n)
	return pool.Map(ctx, e.Workers, n, func(ctx context.Context, i int) (T, error) {
		r, err := f(ctx, i)
		if err == nil {
			e.progress.add(1, 0)
		}
		return r, err
	})
}
