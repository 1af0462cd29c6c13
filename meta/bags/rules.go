package bags

import (
	"cmp"
	"slices"
	"time"

	"kith/internal/job"
)

// TaskPolicy is what users say of tasks that sites have (spec 002 section 2.3). It keeps
// none of the values.
type TaskPolicy interface {
	// Replicate says whether a task, which may be with one more site, should be. It is asked
	// in the tail, once in a cycle.
	Replicate(w *Work, t *TaskRuns, now job.Time) bool
}

// TaskRuns is a task and the sites that have it, in the order in which they got it.
type TaskRuns struct {
	Task uint32
	// Failures is how often it has failed or was lost.
	Failures int
	At       []RunAt
}

// Another reports whether one of some sites does not have it.
func (t *TaskRuns) Another(sites []job.SiteID) bool {
	return slices.ContainsFunc(sites, func(s job.SiteID) bool {
		return !slices.ContainsFunc(t.At, func(at RunAt) bool { return at.Site == s })
	})
}

// RunAt is a site that has a task.
type RunAt struct {
	Site    job.SiteID
	Node    string
	Granted job.Time
}

// Usual is the policy of bags that state none: a task should be with one more site when the
// first that has it has had it for as long as tasks of the bag run, and while
// there is no mean for a cycle.
type Usual struct {
	// Cycle is how often the origin draws. Zero means [ReplicaCycle].
	Cycle time.Duration
}

// Replicate implements [TaskPolicy].
func (u Usual) Replicate(w *Work, t *TaskRuns, now job.Time) bool {
	return len(t.At) > 0 && now.Sub(t.At[0].Granted) >= u.usual(w.Mean)
}

func (u Usual) usual(mean time.Duration) time.Duration {
	if mean > 0 {
		return mean
	}
	return cmp.Or(u.Cycle, ReplicaCycle)
}
