package replay

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"kith/internal/job"
	"kith/sitesched"
	"kith/testbed/workload"
)

// Errors of [Run]; what it returns wraps one of them, [sitesched.ErrConfig],
// [sitesched.ErrTooWide] or the cause of the context.
var (
	// ErrEndless is returned when the schedule would run past the end of time,
	// 292 years after its start.
	ErrEndless = errors.New("the schedule does not end within 292 years")
	// ErrStuck is returned when jobs wait and nothing will ever start them.
	ErrStuck = errors.New("jobs wait that never start")
)

// Schedule is when the jobs of a workload started and ended at one site.
type Schedule struct {
	Workload *workload.Workload
	Config   sitesched.Config
	// Starts and Ends have an instant for each job of the workload.
	Starts, Ends []job.Time
	// Passes is how many scheduling passes were made.
	Passes int
	// Blocked is for how long guests alone kept each of the site's own jobs waiting, and Moved how
	// many promises to it they moved back. Both are nil where no job is a guest.
	Blocked []time.Duration
	Moved   []uint32
}

// Run replays w on an empty site of configuration cfg. All jobs must fit there,
// see [workload.Workload.Fit]; a job that outlives its estimate is expected to
// end every second, which takes as many passes. If progress is not nil it is
// called now and then with the number of jobs that have ended.
func Run(ctx context.Context, w *workload.Workload, cfg sitesched.Config, progress func(done int)) (*Schedule, error) {
	return RunShared(ctx, w, nil, cfg, progress)
}

// RunShared is [Run] where some jobs are copies that other sites placed here: guest, if not nil,
// has an entry for each job. What they cost is measured.
func RunShared(ctx context.Context, w *workload.Workload, guest []bool, cfg sitesched.Config, progress func(done int)) (*Schedule, error) {
	s, err := sitesched.New(cfg)
	if err != nil {
		return nil, err
	}
	for i := range w.Jobs {
		c := copyOf(&w.Jobs[i], i)
		if err := cfg.Fits(&c.Request); err != nil {
			return nil, fmt.Errorf("job %d: %w", w.Jobs[i].ID, err)
		}
	}
	d := driver{
		s: s, jobs: w.Jobs, guest: guest, progress: progress,
		starts: make([]job.Time, len(w.Jobs)), ends: make([]job.Time, len(w.Jobs)),
	}
	if slices.Contains(guest, true) {
		d.blocked, d.moved = make([]time.Duration, len(w.Jobs)), make([]uint32, len(w.Jobs))
	}
	if err := d.run(ctx); err != nil {
		return nil, err
	}
	return &Schedule{Workload: w, Config: cfg, Starts: d.starts, Ends: d.ends, Passes: d.passes, Blocked: d.blocked, Moved: d.moved}, nil
}

// attempt names the job at place i. The place is in it, for the way back.
func attempt(i int) job.AttemptID {
	return job.AttemptID{Job: job.ID{Origin: "a", Generation: 1, Seq: uint64(i)}, Number: 1}
}

func copyOf(j *workload.Job, i int) job.Copy {
	return job.Copy{
		ID: attempt(i), Arrival: j.Submit,
		Request: job.Request{Processors: j.Procs, MemoryBytes: j.MemoryBytes, Walltime: j.Estimate},
	}
}

// driver is a run under way.
type driver struct {
	s            *sitesched.Scheduler
	jobs         []workload.Job
	guest        []bool
	starts, ends []job.Time
	running      ends
	next         int // the next job to be submitted
	done         int
	passes       int
	progress     func(done int)
	// Of what guests cost, see [Schedule]; nil if there are none. waiting are those that are
	// blocked after the latest pass, which was at.
	blocked []time.Duration
	moved   []uint32
	waiting []job.AttemptID
	at      job.Time
}

// instants is how many instants pass between two looks at the world outside.
const instants = 1 << 12

// run goes from instant to instant until all jobs have ended.
func (d *driver) run(ctx context.Context) error {
	now := job.Time(0)
	for d.done < len(d.jobs) {
		if d.passes%instants == 0 {
			if err := context.Cause(ctx); err != nil {
				return err
			}
			if d.progress != nil {
				d.progress(d.done)
			}
		}
		now = d.soonest(now)
		if now == job.Never {
			return fmt.Errorf("%d of %d jobs have ended: %w", d.done, len(d.jobs), ErrStuck)
		}
		if err := d.instant(now); err != nil {
			return err
		}
		if d.blocked != nil {
			d.measure(now)
		}
	}
	if d.progress != nil {
		d.progress(d.done)
	}
	return nil
}

// measure adds up what guests have cost since the pass before this one, and looks whom they
// block after it. Between passes nothing changes.
func (d *driver) measure(now job.Time) {
	for _, id := range d.waiting {
		d.blocked[id.Job.Seq] += now.Sub(d.at)
	}
	d.waiting, d.at = d.s.Blocked(now, d.waiting[:0]), now
	if id, broken := d.s.Moved(); broken {
		d.moved[id.Job.Seq]++
	}
}

// soonest returns the next instant at which something happens.
func (d *driver) soonest(now job.Time) job.Time {
	at := d.s.NextWake(now)
	if d.next < len(d.jobs) {
		at = min(at, d.jobs[d.next].Submit)
	}
	if len(d.running) > 0 {
		at = min(at, d.running[0].at)
	}
	return at
}

// instant applies all that happens at now: completions, submissions, one pass.
func (d *driver) instant(now job.Time) error {
	for len(d.running) > 0 && d.running[0].at == now {
		i := d.running.pop()
		d.ends[i] = now
		d.done++
		d.s.Finish(now, attempt(int(i)))
	}
	for ; d.next < len(d.jobs) && d.jobs[d.next].Submit == now; d.next++ {
		c := copyOf(&d.jobs[d.next], d.next)
		c.Remote = d.guest != nil && d.guest[d.next]
		d.s.Enqueue(now, c)
	}
	d.passes++
	for _, id := range d.s.Pass(now) {
		i := int32(id.Job.Seq) // from attempt
		d.s.Confirm(now, id, now)
		d.starts[i] = now
		end := now.Add(d.jobs[i].Run)
		if end == job.Never {
			return fmt.Errorf("job %d starts at %v: %w", d.jobs[i].ID, now, ErrEndless)
		}
		d.running.push(end, i)
	}
	return nil
}
