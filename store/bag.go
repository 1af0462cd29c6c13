package store

import (
	"slices"
	"time"

	"kith/internal/identity"
	"kith/internal/job"
)

// Bounds on bags and bundles.
const (
	// MaxBundleTasks is the most tasks that one grant gives to a site.
	MaxBundleTasks = 256
	// MaxLateBundles bounds the bundles of a bag that were taken back and may still report.
	MaxLateBundles = 64
	// MaxTaskLosses is how often a task may be lost before it ends as lost.
	MaxTaskLosses = 16
	// MaxRetries bounds [Bag.Retries].
	MaxRetries = 100
	// MaxFailureKinds bounds [BagSums.Failures], MaxFailureTasks the tasks in each.
	MaxFailureKinds, MaxFailureTasks = 64, 3
	// MaxFailureLines bounds those that differ in [FailureKind.ErrorLine] only.
	MaxFailureLines = 8
	// MaxSiteSums bounds [BagSums.Sites].
	MaxSiteSums = 256
	// MaxTaskFiles is the longest [TaskFiles.Set], MaxBatchFiles all sets of a batch together,
	// in bytes: a batch is one message.
	MaxTaskFiles, MaxBatchFiles = 1 << 20, 2 << 20
	// MaxReplicas bounds [Bag.MaxReplicas].
	MaxReplicas = 5
	// MaxUnacked is how many batches of results of a held bundle may wait for the origin, see
	// [HeldBundle.Full].
	MaxUnacked = 16
)

// Bag is the record of a bag at its origin: many tasks of one template. Only
// [State.Apply] changes it; everyone else reads. Its memory goes by the tasks that are
// with sites and by the ranges of the others, not by their number.
//
// A task is in exactly one place: waiting (in Again, or from Next on), with sites (in the
// Tasks of one bundle that is not late and, if the bag has replicas, of some more at other
// sites), or ended (in Done, Failed or Cancelled). Results are on disk only, see
// [Backend.TaskResults] and [Backend.TaskFiles].
type Bag struct {
	ID      job.ID
	Request job.Request // of one task
	Indices job.Indices // of the tasks, and so how many there are
	// RequestID and BodyHash are as those of [Job].
	RequestID string
	BodyHash  [32]byte
	Submitter identity.Actor
	Priority  int32
	// Policies are what its user says of hosts and order; the engine asks them.
	Policies BagPolicies
	// MaxRunning is how many tasks may be with sites at once, where each replica counts as
	// one; 0 for no limit.
	MaxRunning uint32
	// Budget is how many processor-seconds its runs may take together, 0 for no bound, see
	// [Bag.Affords].
	Budget uint64
	// Retries is how often a task that fails by itself runs again.
	Retries uint8
	// MaxReplicas is how many sites may have a task beside the first one, in the bag's tail. 0
	// unless its user says that a task may run twice.
	MaxReplicas uint8
	// TailAt: the tail begins when fewer tasks wait; 0 for as many as places serve the bag.
	TailAt uint32

	State           job.BagState
	CancelRequested bool // of the whole bag
	BagLevel
	Version uint32

	// Next: the tasks from here on were never given out.
	Next uint32
	// Again are tasks that were given out and wait again, Done, Failed and Cancelled those
	// that have ended. Stopping are tasks with sites that the user wants ended.
	Again, Done, Failed, Cancelled, Stopping job.TaskSet
	// Tries has what became of the earlier runs of tasks that have not ended.
	Tries map[uint32]Tries
	// Retried: its user has had tasks run again that had ended.
	Retried bool
	// TailSince is when its tail began, 0 before. It does not end, but if its user has tasks
	// run again.
	TailSince job.Time
	// Number is that of the latest bundle, Live are those that may report results.
	Number uint32
	Live   map[uint32]*TaskBundle

	Sums              BagSums
	Submitted, Closed job.Time
	// Acts is what people did to the bag after its submission, oldest first, the last MaxActs.
	Acts []Act

	order  []uint32           // the numbers of Live, the oldest first
	given  int                // tasks with sites
	copies map[uint32]holders // of those, by which; nil if there are no replicas
	twins  int                // how many more bundles have a task than tasks are with sites
	late   []*TaskBundle      // those of Live that are late, the oldest first
	tried  job.TaskSet        // those in Tries
	dirty  bool
	pages  job.TaskSet // of the sets, which have changed
}

// PageTasks is how many tasks of a bag one record of its sets tells of.
const PageTasks = 4096

// Tries counts the runs of a task that did not end it.
type Tries struct{ Failures, Losses uint8 }

// TaskBundle is the tasks that one grant gave to a site. Its name, and the fence of every
// message about it, is an attempt of the bag.
type TaskBundle struct {
	Number uint32
	Site   job.SiteID
	Node   string // of a site that has several; "" of others
	// Stamp is the host's count of its own protocol steps when it claimed, Generation names
	// its data folder then. The same claim gets the same bundles.
	Stamp      uint64
	Generation uint32
	// Lease is the term of the leases that the host is given, 0 if it has none.
	Lease time.Duration
	// Granted is by the origin's clock. Results should be there by Deadline, 0 for none.
	Granted, Deadline job.Time
	// Tasks are those that have neither ended nor come back.
	Tasks job.TaskSet
	// Batch is the number of the latest batch of results.
	Batch uint32
	// Level is that of the bag when it was granted, Limit how long each task may run there; 0
	// of a bag of no hierarchy.
	Level uint8
	Limit time.Duration
	// Replica: its tasks were with other sites when it was granted.
	Replica bool
	// Late: it was taken back and may still report. Its tasks may be in another bundle.
	Late bool

	dirty bool
}

// BagSums is what a bag has come to.
type BagSums struct {
	// Runs counts results that were taken, also of runs that did not end their task, Wasted
	// those that came too late, Replicas the tasks in bundles of replicas.
	Runs, Wasted, Replicas uint64
	// WastedTime is for how long at most others had run tasks, in seconds, when these ended: from
	// the grant to the result that won, and no longer than the walltime.
	WastedTime float64
	// RunTime and CPUTime add up those of Runs, in seconds, Squares the squares of run times.
	RunTime, CPUTime, Squares float64
	// Sites are the first MaxSiteSums that had a task, in the order of their names.
	Sites []SiteSums
	// Failures are the kinds of failed runs, in the order in which they came; the last one
	// stands for all others when there are MaxFailureKinds.
	Failures []FailureKind
}

// SiteSums is what a site has done for a bag, in runs.
type SiteSums struct {
	Site               job.SiteID
	Done, Failed, Lost uint64
	RunTime            float64 // seconds
}

// FailureKind counts runs that failed in the same way.
type FailureKind struct {
	Kind             job.OutcomeKind
	ExitCode, Signal int32
	// ErrorLine is [job.TaskResult.ErrorLine] of all of them; "" if they have none, or when
	// MaxFailureLines that end like them have others.
	ErrorLine string
	Count     uint64
	Tasks     []uint32 // the first MaxFailureTasks, ordinals
}

// TaskRecord is the latest result of a task, as it is kept on disk.
type TaskRecord struct {
	// Result has times to the microsecond, memory to the KiB, and no ErrorLine.
	Result job.TaskResult
	// Bundle and Site are where it ran, Tries how often it had before.
	Bundle uint32
	Site   job.SiteID
	Tries  uint8
}

// ResultBlock is how many tasks of a bag one record on disk has results of: those with
// ordinals from a multiple of it on.
const ResultBlock = 256

// Tasks returns how many tasks the bag has.
func (b *Bag) Tasks() uint32 { return b.Indices.Count() }

// Given returns how many tasks are with sites.
func (b *Bag) Given() int { return b.given }

// Runs returns how many runs of tasks sites have: one for each that is Given, and their
// replicas.
func (b *Bag) Runs() int { return b.given + b.twins }

// RunsOf returns how many bundles that are not late have a task, of a bag that has replicas.
func (b *Bag) RunsOf(task uint32) int { return int(b.copies[task].n) }

// TasksAt returns the tasks of all live bundles at a site.
func (b *Bag) TasksAt(site job.SiteID) (tasks job.TaskSet) {
	for _, t := range b.Live {
		if t.Site == site {
			tasks.AddAll(&t.Tasks)
		}
	}
	return tasks
}

// MayReplicate reports whether one more site may have a task: it is with sites, with no more
// than it may be, nobody wants it ended, and it has not failed or been lost so often that
// it would have ended had other sites not had it. Without the last, runs that only fail
// would follow each other for ever.
func (b *Bag) MayReplicate(task uint32) bool {
	n, tries := b.copies[task].n, b.Tries[task]
	return n > 0 && n <= b.MaxReplicas && !b.Stopping.Has(task) && tries.Failures <= b.Retries && !b.lostForGood(tries)
}

// lostForGood reports whether a task that was lost so often does not run again.
func (b *Bag) lostForGood(t Tries) bool {
	return t.Losses >= MaxTaskLosses || t.Losses > 0 && b.Request.OnSiteLost == job.Wait
}

// makeMaps makes what a new or restored bag needs.
func (b *Bag) makeMaps() {
	b.Live, b.Tries = make(map[uint32]*TaskBundle), make(map[uint32]Tries)
	if b.MaxReplicas > 0 {
		b.copies = make(map[uint32]holders)
	}
}

// Waiting returns how many tasks could be given out.
func (b *Bag) Waiting() int { return int(b.Tasks()-b.Next) + b.Again.Count() }

// Ended reports whether the task has ended.
func (b *Bag) Ended(task uint32) bool {
	return b.Done.Has(task) || b.Failed.Has(task) || b.Cancelled.Has(task)
}

// EndedCount returns how many tasks have ended.
func (b *Bag) EndedCount() int { return b.Done.Count() + b.Failed.Count() + b.Cancelled.Count() }

// NextTasks returns the tasks that a bundle of at most n should have: those that wait
// again first, then those that were never given out. It respects [Bag.Room] and
// [MaxBundleTasks], and changes nothing.
func (b *Bag) NextTasks(n int) job.TaskSet { return b.NextTasksBut(n, job.TaskSet{}) }

// NextTasksBut is [Bag.NextTasks] without some of the tasks that wait again.
func (b *Bag) NextTasksBut(n int, not job.TaskSet) job.TaskSet {
	n = min(n, MaxBundleTasks, b.Room())
	var tasks job.TaskSet
	if n <= 0 || !b.State.Gives() {
		return tasks
	}
	for task := range b.Again.All {
		if tasks.Count() == n {
			return tasks
		}
		if !not.Has(task) {
			tasks.Add(task)
		}
	}
	fresh := uint32(min(n-tasks.Count(), int(b.Tasks()-b.Next)))
	tasks.AddRange(b.Next, b.Next+fresh)
	return tasks
}

// setTries records what became of earlier runs of a task, nothing for one that has ended.
func (b *Bag) setTries(task uint32, tries Tries) {
	if tries == (Tries{}) {
		delete(b.Tries, task)
		b.tried.Remove(task)
		return
	}
	b.Tries[task] = tries
	b.tried.Add(task)
}

// LastAct returns the latest act of a kind, and whether there is one.
func (b *Bag) LastAct(kind ActKind) (Act, bool) { return lastAct(b.Acts, kind) }

// Bundle returns a live bundle, nil if there is none of the number.
func (b *Bag) Bundle(number uint32) *TaskBundle { return b.Live[number] }

// Bundles yields the live bundles, the oldest first; one that is dropped meanwhile is left out.
func (b *Bag) Bundles(yield func(*TaskBundle) bool) {
	for at := 0; at < len(b.order); {
		number := b.order[at]
		if !yield(b.Live[number]) {
			return
		}
		if at >= len(b.order) || b.order[at] != number { // bundles were dropped
			at, _ = slices.BinarySearch(b.order, number)
		}
		if at < len(b.order) && b.order[at] == number {
			at++
		}
	}
}

// putLive adds a live bundle.
func (b *Bag) putLive(t *TaskBundle) {
	b.Live[t.Number] = t
	at, _ := slices.BinarySearch(b.order, t.Number)
	b.order = slices.Insert(b.order, at, t.Number)
}

// dropLive takes a live bundle away.
func (b *Bag) dropLive(number uint32) {
	delete(b.Live, number)
	if at, ok := slices.BinarySearch(b.order, number); ok {
		b.order = slices.Delete(b.order, at, at+1)
	}
}

// HeldBundle is the record of a bundle at its host. Only [State.Apply] changes it.
type HeldBundle struct {
	ID      job.AttemptID
	Request job.Request // of one task
	Node    string
	// BootID names the boot of the machine under which the first task may have begun.
	BootID   string
	Accepted job.Time
	// Run names the bundle's runs at this host, see [HeldBundle.RunID].
	Run uint64
	// Tasks are those that have neither ended nor been given back.
	Tasks job.TaskSet
	// Batch is the number of the latest batch, Unacked are those that the origin has yet to
	// acknowledge, the oldest first.
	Batch   uint32
	Unacked []TaskBatch

	dirty bool
}

// TaskBatch is what a host tells the origin about tasks of a bundle, in one piece: how
// tasks ended, and which ones come back without having begun.
type TaskBatch struct {
	Number  uint32
	Results []job.TaskResult
	// Files are what tasks of Results left, of those that left anything.
	Files    []TaskFiles
	Returned job.TaskSet
}

// TaskFiles is what a task left, as the driver encodes it: a set of 1 to [MaxTaskFiles] bytes.
type TaskFiles struct {
	Ordinal uint32
	Set     []byte
}

// UnackedBatch returns the batch of a number that waits for the origin, nil if none does.
func (h *HeldBundle) UnackedBatch(number uint32) *TaskBatch {
	for i := range h.Unacked {
		if h.Unacked[i].Number == number {
			return &h.Unacked[i]
		}
	}
	return nil
}

// Full reports whether so many batches of results wait for the origin that [EndTasks] would
// fail: what ends meanwhile waits for the next acknowledgement.
func (h *HeldBundle) Full() bool {
	n := 0
	for i := range h.Unacked {
		if len(h.Unacked[i].Results) > 0 {
			n++
		}
	}
	return n >= MaxUnacked
}

// RunID names a run of a task of the bundle as [job.AttemptID] names one of a job: what
// runs attempts need not know of tasks. No data folder has generation 0, and Run is no
// other bundle's at this host, so no attempt has the name, nor another task.
func (h *HeldBundle) RunID(task uint32) job.AttemptID {
	return job.AttemptID{Job: job.ID{Origin: h.ID.Job.Origin, Seq: h.Run}, Number: task + 1}
}

// TaskOfRun returns the bundle and the task that a run at this host is of, nil if the name
// is none of a bundle that it holds.
func (s *State) TaskOfRun(run job.AttemptID) (*HeldBundle, uint32) {
	if run.Job.Generation != 0 || run.Number == 0 || run.Number > job.MaxTasks {
		return nil, 0
	}
	h := s.bags.runs[run.Job.Seq]
	if h == nil || h.ID.Job.Origin != run.Job.Origin {
		return nil, 0
	}
	return h, run.Number - 1
}

// RetryOf returns what was done under the id of a request for tasks to run again. It is
// forgotten after MaxActs other acts.
func (b *Bag) RetryOf(requestID string) (Act, bool) {
	if requestID == "" {
		return Act{}, false
	}
	for _, a := range b.Acts {
		if a.Kind == ActRetry && a.RequestID == requestID {
			return a, true
		}
	}
	return Act{}, false
}
