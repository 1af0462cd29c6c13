package meta

import (
	"kith/internal/identity"
	"kith/internal/job"
	"kith/store"
)

// SubmitBag is a new bag from a client. Token comes back in [Reply], with the bag's id.
// Fields without a comment are as those of [Submit].
type SubmitBag struct {
	Token     uint64
	Actor     identity.Actor
	Request   job.Request // of one task
	Indices   job.Indices
	RequestID string
	BodyHash  [32]byte
	Payload   []byte
	Priority  int32
	Policies  store.BagPolicies
	// MaxRunning is how many tasks may be with sites at once, 0 for no limit.
	MaxRunning uint32
	// Budget is how many processor-seconds its runs may take together, 0 for no bound.
	Budget uint64
	// Retries is how often a task that fails by itself runs again.
	Retries uint8
	// MaxReplicas is how many sites may have a task beside the first one, in the tail: it may
	// run twice. TailAt: the tail begins when fewer tasks wait, 0 for as many as places serve
	// the bag.
	MaxReplicas uint8
	TailAt      uint32
	// Hold keeps its tasks from being given out until it is released.
	Hold bool
	// After is what must have ended first, as in [Submit].
	After []job.Dependency
}

// CancelBag ends a bag, or with Tasks those of it.
type CancelBag struct {
	Token  uint64
	Bag    job.ID
	Tasks  *job.TaskSet
	Actor  identity.Actor
	Reason string
}

// HoldBag keeps tasks of a bag from being given out; those that run go on.
type HoldBag struct {
	Token  uint64
	Bag    job.ID
	Actor  identity.Actor
	Reason string
}

// ReleaseBag ends a hold.
type ReleaseBag struct {
	Token uint64
	Bag   job.ID
	Actor identity.Actor
}

// RetryTasks has tasks that have ended run again, also after the end of the bag. Repeated
// under its request id, which may be empty, it does nothing more.
type RetryTasks struct {
	Token     uint64
	Bag       job.ID
	Tasks     job.TaskSet
	RequestID string
	Actor     identity.Actor
}

// TasksHome says that what the tasks of a batch left is at their origin ([FetchTasks]), but
// for some of what those in Lost did, which never will be.
type TasksHome struct {
	Bundle job.AttemptID
	Batch  uint32
	Lost   []uint32 // by ordinals
}

func (SubmitBag) event()  {}
func (CancelBag) event()  {}
func (HoldBag) event()    {}
func (ReleaseBag) event() {}
func (RetryTasks) event() {}
func (TasksHome) event()  {}
