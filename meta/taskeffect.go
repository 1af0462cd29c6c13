package meta

import (
	"kith/internal/job"
	"kith/store"
)

// GrantTasks answers a claim for tasks. Its bundles have no payload: the driver reads that
// of each bag from its store (store.Backend.Payload), once there is room for it, and sends
// the verdict with a payload for each bundle, in several messages of the same stamp if they
// are large. If no stream is up it is dropped, and what is sent later may overtake it.
type GrantTasks struct {
	To      job.SiteID
	Verdict TaskVerdict
}

// FetchTasks brings what tasks of a batch left to this site, their origin; the driver
// answers with [TasksHome]. Asking again for what is being fetched is harmless. From may be
// this site: then the files are here and are only kept.
type FetchTasks struct {
	Bundle job.AttemptID
	Batch  uint32
	From   job.SiteID
	// Run names the runs at From, see [TaskResults].
	Run   uint64
	Files []store.TaskFiles
}

// BagChanged says that a bag submitted here has changed. Purged: it is gone.
type BagChanged struct {
	Bag    job.ID
	Purged bool
}

// TaskRun says which task an attempt runs whose name is that of a task's run at this host
// ([store.HeldBundle.RunID]).
type TaskRun struct {
	Bundle  job.AttemptID
	Ordinal uint32
}

func (GrantTasks) effect() {}
func (FetchTasks) effect() {}
func (BagChanged) effect() {}

func (GrantTasks) Word() string { return "task-verdict" }
func (FetchTasks) Word() string { return "fetch-tasks" }
func (BagChanged) Word() string { return "bag-changed" }
