package bags

import (
	"time"

	"kith/internal/job"
	"kith/store"
)

// Work is what dispatch reads of a bag, as a value.
type Work struct {
	Bag       job.ID
	Submitted job.Time
	User      string
	Shape     Shape
	Priority  int32
	// Waiting is how many tasks no site has, Room how many more sites may have, Given how
	// many they have, replicas included.
	Waiting, Room, Given int
	// Twice is how many tasks should be with one more site.
	Twice int
	// Mean is how long the runs of its tasks took that have ended, 0 if none has. Walltime
	// is the limit of one.
	Mean, Walltime time.Duration
	// Sites are those that the bag is offered to: the first of its placement. Whoever made
	// the value owns the list.
	Sites []job.SiteID
	// Judge has the policies of the bag, nil if it states none, and Scope what they read of it.
	Judge Judge
	Scope *Scope
}

// WorkOf returns what there is to do for a bag that sites are offered. It has no room if
// the bag gives no tasks. limit is how long a task may run at the level of the bag, 0 for a bag of
// no hierarchy.
func WorkOf(b *store.Bag, limit time.Duration, sites []job.SiteID) Work {
	r := b.Asked(limit)
	w := Work{
		Bag: b.ID, Submitted: b.Submitted, User: b.Request.User, Shape: ShapeOf(&r), Priority: b.Priority,
		Waiting: b.Waiting(), Room: max(0, b.Room()), Given: b.Runs(), Walltime: r.Walltime, Sites: sites,
	}
	if !b.State.Gives() {
		w.Room = 0
	}
	if b.Sums.Runs > 0 {
		mean := b.Sums.RunTime / float64(b.Sums.Runs) * float64(time.Second)
		w.Mean = time.Duration(min(max(1, mean), float64(job.MaxWalltime)))
	}
	return w
}

// Tasks returns how many tasks sites could have now.
func (w *Work) Tasks() int { return min(w.Waiting, w.Room) }

// Offered returns how many tasks sites are told of.
func (w *Work) Offered() int { return w.Tasks() + w.Twice }

// FirstGuess bounds what a task is thought to take of a bag of which none has ended.
// Walltimes are far above run times, and who states a long one would come last until his
// first task ends.
const FirstGuess = 10 * time.Minute

// expected returns the processor-seconds that n tasks will take.
func (w *Work) expected(n int) float64 {
	return float64(n) * float64(w.Shape.Processors) * w.Each().Seconds()
}

// Each is how long a task is thought to run.
func (w *Work) Each() time.Duration {
	if w.Mean > 0 {
		return w.Mean
	}
	return min(w.Walltime, FirstGuess)
}

// older reports whether a bag was submitted before another.
func (w *Work) older(o *Work) bool {
	if w.Submitted != o.Submitted {
		return w.Submitted < o.Submitted
	}
	return w.Bag.Compare(o.Bag) < 0
}
