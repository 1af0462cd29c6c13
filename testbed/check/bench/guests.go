package bench

import (
	"context"
	"errors"
	"fmt"
	"slices"
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
	alone, err := b.hosted(ctx, whole, nil, 0)
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
		spread time.Duration
	}{{bags.YieldTask, 1.05, 0}, {bags.YieldTask, 1.05, guestTask / 2}, {bags.YieldNow, 1.01, 0}, {bags.YieldNever, 0, 0}} {
		began := time.Now()
		with, err := b.hosted(ctx, whole, &c.yield, c.spread)
		if err != nil {
			return fmt.Errorf("yield %v: %w", c.yield, err)
		}
		took := time.Since(began)
		tasks := guestTask.String()
		if c.spread > 0 {
			tasks = fmt.Sprintf("%v to %v", guestTask-c.spread, guestTask+c.spread)
		}
		name := fmt.Sprintf("mean wait beside an endless bag of tasks of %s, yield %v, as a multiple", tasks, c.yield)
		if c.target > 0 {
			b.addTarget(name, with.wait/alone.wait, "times", c.target, true)
		} else {
			b.add(name, with.wait/alone.wait, "times")
		}
		d := delaysOf(alone.waits, with.waits)
		b.add("jobs that wait longer than alone", float64(len(d.longer)), "jobs")
		if len(d.longer) > 0 {
			b.add("those by at most the time of a task", float64(d.byATask), "jobs")
			b.add("how much longer, median", d.longer[len(d.longer)/2], "s")
			b.add("how much longer, at most", d.longer[len(d.longer)-1], "s")
			b.add(fmt.Sprintf("part of that which the %d hit hardest wait longer", min(fewJobs, len(d.longer))), 100*d.hardest, "%")
		}
		b.add("jobs that wait less than alone", float64(d.shorter), "jobs")
		b.add("processors at work meanwhile", 100*with.used, "%")
		b.add("tasks that ended", float64(with.tasks), "tasks")
		b.add("in virtual time", float64(with.tasks)/took.Seconds(), "tasks/s")
	}
	return nil
}

// fewJobs is how many jobs a mean may hang on.
const fewJobs = 5

// delays is how the waits of jobs differ from those without guests.
type delays struct {
	longer  []float64 // by how many seconds, ascending
	byATask int       // of those
	hardest float64   // what the last [fewJobs] of them have of their sum
	shorter int
}

// delaysOf compares waits by the numbers of the jobs.
func delaysOf(alone, with map[int64]time.Duration) delays {
	var d delays
	sum := 0.0
	for number, wait := range with {
		switch more := wait - alone[number]; {
		case more > 0:
			d.longer = append(d.longer, more.Seconds())
			sum += more.Seconds()
			if more <= guestTask {
				d.byATask++
			}
		case more < 0:
			d.shorter++
		}
	}
	slices.Sort(d.longer)
	for _, s := range d.longer[max(0, len(d.longer)-fewJobs):] {
		d.hardest += s / sum
	}
	return d
}

// hostedRun is what came of a log at home. Used is the part of the processors of both sites,
// from the beginning to the end of the last job, that was spent on jobs, and on tasks that
// ended well by then.
type hostedRun struct {
	wait, used float64
	waits      map[int64]time.Duration // by the number of the job
	tasks      uint32
}

// hosted runs a log at home at the first of two sites; with a way to yield, beside bags of
// the second, which has a processor, of tasks that run for guestTask less or more the spread.
func (b *bench) hosted(ctx context.Context, w *workload.Workload, yield *bags.Yield, spread time.Duration) (hostedRun, error) {
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
				Site: 1, Tasks: uint32(min(need, job.MaxTasks)), Run: guestTask, Walltime: 2 * guestTask, Spread: spread, Endless: true,
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
	h := hostedRun{waits: make(map[int64]time.Duration)}
	var waits []float64
	busy, end := 0.0, time.Duration(0)
	for i := range r.Records {
		x := &r.Records[i]
		waits = append(waits, x.Wait().Seconds())
		h.waits[x.Job] = x.Wait()
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
