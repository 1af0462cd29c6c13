package federation

import (
	"fmt"
	"time"

	"kith/internal/job"
	"kith/testbed/sim"
)

// Bag is a bag of equal tasks of one processor.
type Bag struct {
	// Site is where it is submitted, a place among the sites, At when.
	Site int
	At   time.Duration
	// Tasks is 1 to [job.MaxTasks].
	Tasks uint32
	// Run is how long a task runs, Walltime what it says. With a Spread, less than Run, it runs for
	// a time from Run−Spread to Run+Spread, which is always that of its number.
	Run, Walltime, Spread time.Duration
	// Endless says that the run does not wait for its end.
	Endless bool
}

func (b *Bag) check(sites int) error {
	switch {
	case b.Site < 0 || b.Site >= sites:
		return fmt.Errorf("site %d: choose 0 to %d", b.Site, sites-1)
	case b.Tasks < 1 || b.Tasks > job.MaxTasks:
		return fmt.Errorf("%d tasks: choose 1 to %d", b.Tasks, job.MaxTasks)
	case b.At < 0 || b.Run <= 0 || b.Walltime < b.Run+b.Spread:
		return fmt.Errorf("at %v, run %v, walltime %v: choose 0 or more, a positive one and one no shorter", b.At, b.Run, b.Walltime)
	case b.Spread < 0 || b.Spread >= b.Run:
		return fmt.Errorf("spread %v: choose 0 or more, less than the %v that a task runs", b.Spread, b.Run)
	}
	return nil
}

// runTime is how long a task runs, by its number.
func (b *Bag) runTime(task uint32) time.Duration {
	if b.Spread == 0 {
		return b.Run
	}
	x := task * 2654435761 // numbers that lie together run for different times
	x ^= x >> 16
	return b.Run - b.Spread + time.Duration(float64(2*b.Spread)*float64(x)/(1<<32))
}

// bagRun is what has become of a bag.
type bagRun struct {
	done uint32
	err  error
}

// submitBags submits the bags. Their tags are behind those of the jobs.
func (r *run) submitBags() {
	r.bags = make([]bagRun, len(r.cfg.Bags))
	for i := range r.cfg.Bags {
		b := &r.cfg.Bags[i]
		if !b.Endless {
			r.open++
		}
		r.w.SubmitBag(sim.Start.Add(b.At), r.cfg.Sites[b.Site].ID, sim.BagSubmission{
			Request: job.Request{Processors: 1, Walltime: b.Walltime, OnSiteLost: job.Rerun}, Indices: job.FirstIndices(b.Tasks),
			RunTime: b.runTime, Tag: len(r.records) + i,
			Done: func(_ job.ID, err error) { r.bags[i].err = err },
		})
	}
}

// taskEnded notes the end of a run of a task; one that was stopped runs again.
func (r *run) taskEnded(bag int, outcome *job.Outcome) {
	if outcome.Kind != job.Success {
		return
	}
	b := &r.bags[bag]
	if b.done++; b.done == r.cfg.Bags[bag].Tasks && !r.cfg.Bags[bag].Endless {
		r.open--
	}
}

// refusedBag returns why a bag was not accepted, nil if all were.
func (r *run) refusedBag() error {
	for i := range r.bags {
		if err := r.bags[i].err; err != nil {
			return fmt.Errorf("bag %d: %w", i+1, err)
		}
	}
	return nil
}
