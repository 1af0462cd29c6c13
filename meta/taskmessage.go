package meta

import (
	"time"

	"kith/internal/job"
	"kith/meta/bags"
	"kith/store"
)

// What sites tell each other of bags; ADR 0043 has the facts behind it, 0044 the rules.
// A bundle is named as an attempt of its bag, so that [Renew], [Renewed], [CopySummary] and
// [CopyDigest] are of bundles, too.

// Offer says how many tasks of a shape the origin would give the host, 0 that there are no
// more. It binds nobody. Origin to host.
type Offer struct {
	Shape bags.Shape
	Tasks int
}

// TaskClaim asks for tasks. Host to origin.
type TaskClaim struct {
	// Stamp is the host's count of its own protocol steps: the same claim gets the same
	// bundles. Sent is by the host's clock; it comes back with the answer.
	Stamp uint64
	Sent  job.Time
	// Ask says what for. Its Site is the sender, whatever it says.
	Ask bags.Ask
}

// TaskVerdict answers a claim, with no bundle if there is nothing for the host. The bundles
// of an answer may come in several verdicts, see [GrantTasks]. Origin to host.
type TaskVerdict struct {
	Stamp uint64
	// Sent is that of the claim.
	Sent    job.Time
	Bundles []GivenBundle
}

// GivenBundle is some tasks of a bag that a site is given.
type GivenBundle struct {
	Bundle job.AttemptID
	// Request is of one task.
	Request job.Request
	Tasks   job.TaskSet
	// Lease is how long the host may run them from the time of its claim, 0 without a bound.
	Lease time.Duration
	// Payload is what the tasks run: the template and the rows of these tasks; see
	// [GrantTasks].
	Payload []byte
}

// TaskResults is a batch of what became of tasks of a bundle. Host to origin, until
// acknowledged.
type TaskResults struct {
	Bundle job.AttemptID
	Batch  uint32
	// Run is the host's number of the bundle: it names the runs of its tasks there
	// ([store.HeldBundle.RunID]), by which their output is fetched.
	Run     uint64
	Results []job.TaskResult
	// Files are what tasks left, of those that left anything, in the order of Results.
	Files []store.TaskFiles
	// Returned have not begun and go back.
	Returned job.TaskSet
}

// TaskResultsAck says that the origin needs nothing more of a bundle up to a batch. Origin
// to host.
type TaskResultsAck struct {
	Bundle job.AttemptID
	Batch  uint32
	// Unknown says that the origin does not want the bundle: the host stops its tasks and
	// forgets it.
	Unknown bool
}

// Recall asks for at most so many tasks of a bundle that have not begun. Origin to host.
type Recall struct {
	Bundle job.AttemptID
	Most   int
}

// StopTasks asks a host to give back the tasks of a bundle that have not begun, and to stop
// those that run. Origin to host, until they have ended or come back.
type StopTasks struct {
	Bundle job.AttemptID
	// Tasks are those that it is about, nil for all.
	Tasks *job.TaskSet
	// Waiting says that only those are meant that have not begun: the bag is held.
	Waiting bool
}

func (Offer) kind() kind          { return offerKind }
func (TaskClaim) kind() kind      { return taskClaimKind }
func (TaskVerdict) kind() kind    { return taskVerdictKind }
func (TaskResults) kind() kind    { return taskResultsKind }
func (TaskResultsAck) kind() kind { return taskResultsAckKind }
func (Recall) kind() kind         { return recallKind }
func (StopTasks) kind() kind      { return stopTasksKind }

func (Offer) Word() string          { return rights[offerKind].Kind }
func (TaskClaim) Word() string      { return rights[taskClaimKind].Kind }
func (TaskVerdict) Word() string    { return rights[taskVerdictKind].Kind }
func (TaskResults) Word() string    { return rights[taskResultsKind].Kind }
func (TaskResultsAck) Word() string { return rights[taskResultsAckKind].Kind }
func (Recall) Word() string         { return rights[recallKind].Kind }
func (StopTasks) Word() string      { return rights[stopTasksKind].Kind }

// areOf reports whether all bundles of a verdict are of one origin's bags.
func (v *TaskVerdict) areOf(origin job.SiteID) bool {
	for i := range v.Bundles {
		if v.Bundles[i].Bundle.Job.Origin != origin {
			return false
		}
	}
	return true
}

// OfTasks reports whether a message is of those that only versions with bags know.
func OfTasks(m Message) bool { return m.kind() >= offerKind }
