package store

import (
	"time"

	"kith/internal/identity"
	"kith/internal/job"
)

// ---- bags, at the origin ----

// SubmitBag records a new bag. ID must be [State.NextID]. It fails with [ErrExists] if the
// request id is taken, by a job or a bag, and with [ErrBounds].
type SubmitBag struct {
	ID         job.ID
	Request    job.Request // of one task
	Indices    job.Indices
	RequestID  string
	BodyHash   [32]byte
	Priority   int32
	Policies   BagPolicies // of version 0
	MaxRunning uint32
	Budget     uint64
	Retries    uint8
	// MaxReplicas and TailAt are those of the bag.
	MaxReplicas uint8
	TailAt      uint32
	After       []job.Dependency // as [SubmitJob] has them
	// Payload is the template and the parameters; it is written but not kept in memory.
	Payload []byte
	Actor   identity.Actor
	Time    job.Time
}

// GrantBundle gives waiting tasks to a site. Bundle.Number must be one more than that of
// the bag's latest bundle. Each task must be in [Bag.Again], or among those from
// [Bag.Next] on without a gap: so no task is in two live bundles that are not late. It
// fails with [ErrNotWaiting] otherwise, with [ErrState] if the bag gives no tasks or no more,
// and with [ErrBounds]. The same grant again succeeds and changes nothing.
//
// With Replica each task must be with other sites, with at most [Bag.MaxReplicas] of them, in
// the bag's tail, and its user must not want it ended. No live bundle at this site may have
// it: it fails with [ErrBeside].
type GrantBundle struct {
	Bundle     job.AttemptID
	Site       job.SiteID
	Node       string
	Stamp      uint64
	Generation uint32
	Lease      time.Duration
	Tasks      job.TaskSet
	Replica    bool
	Deadline   job.Time
	Time       job.Time
	// Level is that of the bag, 0 for none, Limit how long each task may run there: above 0
	// with a level. Such a bag has no replicas.
	Level uint8
	Limit time.Duration
}

// BeginTail records that a bag's tail has begun; once it has, this changes nothing. It fails
// with [ErrState] if the bag gives no tasks.
type BeginTail struct {
	Bag  job.ID
	Time job.Time
}

// ReturnTasks records that a site gave tasks of a bundle back without having begun them.
// They wait again, or are cancelled if that was asked for. Tasks that the bundle does not
// have are left alone: they came back before. It fails with [ErrStale] if there is no such
// bundle at the site.
type ReturnTasks struct {
	Bundle job.AttemptID
	Site   job.SiteID
	Tasks  job.TaskSet
	Time   job.Time
}

// RecordResults records how tasks of a bundle ended, in batches that the host numbers from
// 1. A batch that was recorded before changes nothing. A result counts if the bundle has
// the task, and so none counts twice; others are counted as wasted. While other sites have
// the task only a success ends it, and then they have it no more. It fails with
// [ErrStale] if there is no such bundle at the site, with [ErrBounds] for results that no
// task of the bag can have, and for files of a task that has no result in the batch, twice
// of one, or of more than [MaxTaskFiles] or [MaxBatchFiles] bytes.
type RecordResults struct {
	Bundle   job.AttemptID
	Site     job.SiteID
	Batch    uint32
	Results  []job.TaskResult
	Returned job.TaskSet // came back with the batch, see [ReturnTasks]
	Time     job.Time
	// Files are what tasks of Results left, of those that left anything. Those of a result
	// that ends its task are written but not kept in memory, in place of what an earlier
	// result of the task left.
	Files []TaskFiles
}

// RevokeBundle takes back what a bundle still has from a site that runs it no longer, or,
// with MayRun, that may go on and report late. The tasks wait again, unless the bag waits
// for lost sites ([job.Wait]) and Requeue is not set, or they were lost too often: then they
// end as lost. Requeue is an operator's word that the site never returns. It
// fails with [ErrStale] if there is no such bundle at the site.
type RevokeBundle struct {
	Bundle job.AttemptID
	Site   job.SiteID
	MayRun bool
	// Requeue has tasks of a bag that waits for lost sites wait again.
	Requeue bool
	Time    job.Time
}

// HoldBag keeps tasks from being given out. Reason is why, in words, and may be empty.
type HoldBag struct {
	Bag    job.ID
	Actor  identity.Actor
	Reason string
	Time   job.Time
}

// ReleaseBag ends a hold. A bag that waits for others goes on waiting. What the hold took does
// not count for the limits of a level.
type ReleaseBag struct {
	Bag   job.ID
	Actor identity.Actor
	Time  job.Time
}

// CancelBag records that the user wants tasks ended: those that wait at once, those with
// sites when they come back or end. Without Tasks it is the whole bag. Tasks that have
// ended are left alone.
type CancelBag struct {
	Bag    job.ID
	Tasks  *job.TaskSet
	Actor  identity.Actor
	Reason string
	Time   job.Time
}

// RetryTasks makes tasks that have ended wait again, with all their retries. It fails with
// [ErrState] if one of them has not ended, or the bag is being cancelled. A bag of a hierarchy
// that had ended begins anew at the level that it is at.
type RetryTasks struct {
	Bag       job.ID
	Tasks     job.TaskSet
	RequestID string
	Actor     identity.Actor
	Time      job.Time
}

// CloseBag ends a bag all of whose tasks have ended and whose output is home.
type CloseBag struct {
	Bag  job.ID
	Time job.Time
}

// PurgeBag forgets a bag that has ended, with its results.
type PurgeBag struct {
	Bag job.ID
}

// ---- bundles, at a host ----

// AcceptBundle records a bundle before any task of it begins. It fails with [ErrExists] if
// it is there already, and with [ErrBounds].
type AcceptBundle struct {
	Bundle  job.AttemptID
	Request job.Request // of one task
	Node    string
	BootID  string
	Tasks   job.TaskSet
	// Payload is what to run and the rows of the tasks; it is written but not kept in memory.
	Payload []byte
	Time    job.Time
}

// EndTasks records how tasks of a bundle ended at this host, as its next batch. It fails
// with [ErrState] if one of them has ended or was given back, with [ErrFull] if too many
// batches wait for the origin, and with [ErrBounds], also for files as [RecordResults] does.
type EndTasks struct {
	Bundle  job.AttemptID
	Results []job.TaskResult
	// Files are what they left, of those that left anything. They belong to the state then.
	Files []TaskFiles
}

// DropTasks records that tasks of a bundle, which have not begun, go back, with its next
// batch. It fails with [ErrState] if one of them has ended or was given back.
type DropTasks struct {
	Bundle job.AttemptID
	Tasks  job.TaskSet
}

// ForgetTasks forgets the batches up to one: the origin has them. A bundle that has
// nothing left is forgotten with them.
type ForgetTasks struct {
	Bundle job.AttemptID
	Batch  uint32
	// All forgets the bundle whatever is left: the origin does not want it.
	All bool
}
