package bench

import (
	"context"
	"errors"
	"fmt"
	"time"

	"kith/internal/job"
	"kith/meta"
	"kith/meta/bags"
	"kith/testbed/federation"
	"kith/testbed/metrics"
	"kith/testbed/workload"
)

// guestTask is how long a task of the guests runs.
const guestTask = time.Minute

// guests has the jobs of a log at home at a site whose idle processors run an endless bag
// of another site, for each way in which guests yield, and compares how long the jobs wait
// with the log alone.
func (b *bench) guests(ctx context.Context) error {
	whole, err := b.log()
	if err != nil {
		return err
	}
	if n := b.opt.GuestJobs; n > 0 && n < len(whole.Jobs) {
		whole.Jobs = whole.Jobs[:n]
	}
	alone, err := b.hosted(ctx, whole, nil)
	if err != nil {
		return err
	}
	if alone.wait == 0 {
		return fmt.Errorf("none of the first %d jobs of %s waits at a site of its own, so there is nothing to compare with: take more", len(whole.Jobs), whole.Name)
	}
	b.add(fmt.Sprintf("%s, %d jobs on %d processors alone: mean wait", whole.Name, len(whole.Jobs), whole.Processors), alone.wait, "s")
	b.add("processors at work meanwhile", 100*alone.used, "%")
	for _, c := range []struct {
		yield  bags.Yield
		target float64
	}{{bags.YieldTask, 1.05}, {bags.YieldNow, 1.01}, {bags.YieldNever, 0}} {
		began := time.Now()
		with, err := b.hosted(ctx, whole, &c.yield)
		if err != nil {
			return fmt.Errorf("yield %v: %w", c.yield, err)
		}
		took := time.Since(began)
		name := fmt.Sprintf("mean wait beside an endless bag of tasks of %v, yield %v, as a multiple", guestTask, c.yield)
		if c.target > 0 {
			b.addTarget(name, with.wait/alone.wait, "times", c.target, true)
		} else {
			b.add(name, with.wait/alone.wait, "times")
		}
		b.add("processors at work meanwhile", 100*with.used, "%")
		b.add("tasks that ended", float64(with.tasks), "tasks")
		b.add("in virtual time", float64(with.tasks)/took.Seconds(), "tasks/s")
	}
	return nil
}

// hostedRun is what came of a log at home. Used is the part of the processors of both sites,
// from the beginning to the end of the last job, that was spent on jobs, and on tasks that
// ended well by then.
type hostedRun struct {
	wait, used float64
	tasks      uint32
}

// hosted runs a log at home at the first of two sites; with a way to yield, beside bags of
// the second, which has a processor.
func (b *bench) hosted(ctx context.Context, w *workload.Workload, yield *bags.Yield) (hostedRun, error) {
	cfg := federation.Config{
		Sites: simSites(2, w.Processors), Placement: meta.Placement{Scheme: meta.KDual, Copies: 1}, AntiEntropy: time.Hour,
		Guard: b.opt.GuestChecks,
	}
	cfg.Sites[1].Processors = 1
	last := time.Duration(w.Jobs[len(w.Jobs)-1].Submit)
	if yield != nil {
		cfg.Guests = meta.Bags{Turn: 10 * time.Minute, Yield: *yield}
		need := int64(last/guestTask)*int64(w.Processors) + 1
		for ; need > 0; need -= job.MaxTasks {
			cfg.Bags = append(cfg.Bags, federation.Bag{
				Site: 1, Tasks: uint32(min(need, job.MaxTasks)), Run: guestTask, Walltime: 2 * guestTask, Endless: true,
			})
		}
	}
	r, err := federation.Run(ctx, cfg, []*workload.Workload{w, {}})
	if err != nil {
		return hostedRun{}, err
	}
	if len(r.Refused) > 0 {
		return hostedRun{}, errors.New("jobs were refused")
	}
	var h hostedRun
	var waits []float64
	busy, end := 0.0, time.Duration(0)
	for i := range r.Records {
		x := &r.Records[i]
		waits = append(waits, x.Wait().Seconds())
		busy += x.Run.Seconds() * float64(x.Procs)
		end = max(end, time.Duration(x.End))
	}
	for _, n := range r.Tasks {
		h.tasks += n
	}
	busy += float64(h.tasks) * guestTask.Seconds()
	h.wait, h.used = metrics.Mean(waits), busy/end.Seconds()/float64(w.Processors+cfg.Sites[1].Processors)
	return h, nil
}
