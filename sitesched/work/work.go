// Package work holds the words between what a site does for an attempt (package
// runner) and what runs it: [System]. Package executor is the System of a
// machine of the site's own; a batch system that Kith does not own is a [Batch].
//
// The order of calls for one attempt, of which most jobs need only the first line:
//
//	Start ─► Started ─► Finished ─► Forget
//	Start ─► StartFailed ─► Forget, if this host cannot start it
//	Prepare before Start, if files are put into its folder
//	Extend, Stop and Ask at any time; Adopt in place of Start, after a restart
//
// The caller commits that an attempt begins, with [System.BootID], before Start.
package work

import (
	"time"

	"kith/internal/job"
)

// System runs attempts. Its methods may be called by any goroutine. Only
// Prepare, Folders and Close wait for disks or processes; what happens comes as
// a [Started] and a [Finished] to a function that the System was given when it
// was made.
//
// Of all Starts and Adopts of an attempt, by this daemon and by those before
// it, one executes the program. An attempt that was started or adopted finishes
// once, and then none of its processes lives. The end of the daemon ends no
// attempt.
type System interface {
	// BootID returns a text that changes when all that ran is known to be gone,
	// for a machine when it is restarted. The caller keeps it with the fact that
	// an attempt was begun, and hands it to Adopt.
	BootID() string
	// Capabilities says what this system can do to jobs, for operators.
	Capabilities() []Capability
	// Files says where an attempt's files are. They need not exist yet.
	Files(id job.AttemptID) Files
	// Prepare makes the folders of an attempt, so that the caller may put files
	// into them before Start. It may be repeated.
	Prepare(id job.AttemptID) error
	// Folders lists the attempts that have folders, so that the caller can forget
	// those that are over.
	Folders() ([]job.AttemptID, error)
	// Start runs an attempt whose beginning has been committed. It does nothing if
	// the attempt was started or adopted before.
	Start(s Spec)
	// Adopt takes over an attempt that an earlier daemon has, or may have,
	// started; boot is what BootID returned when it was begun. One that was not
	// started is started now. Spec.Lease does not count: what the earlier daemon
	// said stays in force.
	Adopt(s Spec, boot string)
	// Extend prolongs the lease of an attempt that runs under one. A lease never
	// becomes shorter.
	Extend(id job.AttemptID, l Lease)
	// Stop ends an attempt; its end comes as Finished. One that was not started
	// yet is not started any more. Only the first reason counts.
	Stop(id job.AttemptID, reason StopReason)
	// Ask has an attempt that runs save what it has done and end, so that its job goes on in
	// another one: see [Ask]. Its end comes as Finished. Only the first ask counts, and none
	// of an attempt that does not run or is being stopped. It is kept for the daemon that
	// sees the end.
	Ask(id job.AttemptID, a Ask)
	// Forget removes the folders of an attempt that has finished, in the
	// background. The attempt is never named again.
	Forget(id job.AttemptID)
	// Close ends the System and leaves attempts running. No event comes after it
	// has returned.
	Close()
}

// Batch is a System with a queue of its own: a batch system that decides itself
// when something starts. It goes with a scheduler that is a meta.Batch, which says
// what these calls mean in the life of a copy:
//
//	Queue ─► Turn, again and again ─► Start ─► Started ─► ...
//	                               └► Dequeue
//
// None of the three waits for the batch system. What cannot be told to it for now
// the System tries again. They leave after the facts behind them are durable.
type Batch interface {
	System
	// Queue submits something that stands for a copy, and that reports [Turn] when
	// the batch system starts it. It must not start before notBefore, 0 for at
	// once. For what is queued or was started already only that time is new.
	Queue(c job.Copy, notBefore job.Time)
	// Dequeue takes back what stands for a copy that has not begun: it is cancelled
	// if it waits, and leaves if it was started. It is a no-op if there is nothing,
	// and for an attempt that was started or adopted.
	Dequeue(id job.AttemptID)
	// Restored says that Queue and Adopt have named all that there is. What the
	// batch system holds beyond that is a stray of an earlier daemon and is removed,
	// and so is what it holds twice for one copy, but for one of them.
	Restored()
}

// Files are the absolute paths of an attempt's files.
type Files struct {
	// Work is the attempt's private working folder, where its inputs go and its
	// outputs are.
	Work string
	// Stdout and Stderr grow while the attempt runs and may be read at any time.
	Stdout, Stderr string
	// Mark is a file of the caller's own, outside Work, which the attempt cannot
	// reach by chance. It goes with the folders.
	Mark string
}

// Spec is what an attempt runs, and how. A System keeps no reference to the
// slices and maps after the attempt has started.
type Spec struct {
	Attempt job.AttemptID
	// Argv is the command. A program without a slash is searched in the PATH of
	// the job's environment.
	Argv []string
	// Env are the job's own variables; a System adds some.
	Env map[string]string
	// Directory is the working directory: absolute, or relative to the private
	// work folder, which is the default.
	Directory string
	// Processors is the width of the job; at least 1. Tasks is how many processes
	// the user announced (Slurm's --ntasks); zero means 1.
	Processors, Tasks int
	// MemoryBytes limits the whole job; zero means no limit.
	MemoryBytes int64
	// Walltime is how long the job may run; zero means for ever.
	Walltime time.Duration
	// Name and User are what the job sees of itself; they choose nothing.
	Name, User string
	// OriginSite and HostSite are where the job comes from and where it runs.
	OriginSite, HostSite job.SiteID
	// SubmitDirectory is where the user submitted it; it may not exist here.
	SubmitDirectory string
	// JobID is KITH_JOB_ID. Default: the job's id as text.
	JobID string
	// SlurmJobID is SLURM_JOB_ID. Default: as JobID.
	SlurmJobID string
	// Account is the local user to run as; nil for the daemon's own.
	Account *Account
	// Light says that the attempt has no files but its streams: nothing is put into its
	// folder before it runs, and nothing but stdout and stderr is read there after it. Then a
	// System may do with less on disk.
	Light bool
	// Leased says that the attempt runs under a lease: only until Lease, or what
	// [System.Extend] says later.
	Leased bool
	Lease  Lease
	// Checkpoint is set for a job that writes checkpoints.
	Checkpoint *Checkpoint
	// Estimate is set for a job with an estimator that is to run.
	Estimate *Estimate
}

// Estimate is an estimator, which runs before the command of an attempt, on what that has, and prints
// lines for package estimate. When nothing of it lives any more the command is executed, or, by the
// bound that it gave, the attempt ends as [job.Demoted] with [job.OutOfLevel] and without a start.
type Estimate struct {
	// Argv is its command.
	Argv []string
	// Limit is how long it may run, within the walltime of the attempt.
	Limit time.Duration
	// Known is the bound of earlier attempts, 0 for none, and Done what those did.
	Known, Done float64
	// Most is the most that may be left by the bound for the command to be executed; 0 for no limit.
	Most float64
}

// Bounds is a [System] that tells what bound the estimator of an attempt has given.
type Bounds interface {
	// Bound returns the least so far, 0 if there is none. It waits for the disk.
	Bound(id job.AttemptID) float64
}

// Checkpoint is what a job is told that writes checkpoints.
type Checkpoint struct {
	// Dir is the folder for them, which is there, beneath the work folder. It has the files of
	// the latest one.
	Dir string
	// Sequence is the number of that, 0 if there is none.
	Sequence uint64
	// Demotions counts the attempts of the job that ended for it to go on, Used is how long
	// they ran together.
	Demotions int
	Used      time.Duration
}

// Ask is how an attempt is asked to save what it has done and to end.
type Ask struct {
	// Cause is why.
	Cause job.DemotionCause
	// Signal is sent to the first process of the job, or to all with All; 0 for none: then it is
	// stopped at once.
	Signal int
	All    bool
	// Grace is how long it has to answer: to end, or to have a number above Before in the file
	// Done, a path beneath the work folder. Then, or after Grace, it is stopped.
	Grace  time.Duration
	Done   string
	Before uint64
}

// Account is a local user.
type Account struct {
	UID, GID uint32
	Groups   []uint32
	// Name is what the job finds in USER and LOGNAME.
	Name string
}

// Lease is until when an attempt may run, by the clock of package clock. It is
// enforced whether or not the daemon lives.
type Lease struct {
	// Stop is when the job is asked to end, Gone when all of it must be gone.
	Stop, Gone time.Duration
}

// StopReason says why an attempt is stopped; at most 128 bytes. A System keeps
// it for the daemon that sees the end.
type StopReason string

// The usual reasons.
const (
	StopCancel StopReason = "cancelled"           // the user asked for it
	StopLease  StopReason = "the lease ended"     // the origin runs the job elsewhere; it ends as a loss
	StopSite   StopReason = "stopped by the site" // its operator asked for it
)

// Kind is the outcome of an attempt that was stopped for this reason.
func (r StopReason) Kind() job.OutcomeKind {
	if r == StopLease {
		return job.Loss
	}
	return job.Cancel
}

// An Event tells what became of an attempt: [Started] or [Finished], or of a
// copy in the queue of a [Batch]: [Turn].
type Event interface{ event() }

// Turn says that a [Batch] has started what stands for a copy. Nothing of the job
// may run yet. It is reported again until Start or Dequeue follows, as an answer
// may have died with an earlier daemon. Reporting it may wait for the engine: the
// reporter holds no lock that a method of the System takes.
type Turn struct{ Attempt job.AttemptID }

// Started says that the attempt's program was executed. It comes at most once
// per [System.Start] or [System.Adopt], before Finished; not at all if the
// program never ran or ended before Adopt, and of a [Spec.Light] attempt that ended within
// milliseconds perhaps not.
type Started struct {
	Attempt job.AttemptID
	// At is by this machine's clock.
	At job.Time
}

// Finished says that the attempt is over and all its processes are gone. It
// comes exactly once per [System.Start] or [System.Adopt], or [StartFailed] does.
type Finished struct {
	Attempt job.AttemptID
	// Outcome has no files. Its reason explains every end that is not the
	// program's own; its start is zero if the program never ran. It is a
	// [job.Loss] if it is not known how far the job came, or if its lease ended.
	Outcome job.Outcome
	// Blank says that a [Spec.Light] attempt wrote nothing to its streams, or has removed its
	// folder. Then nothing is to be looked for at [Files].
	Blank bool
	// Asked is set if the attempt was asked to end ([System.Ask]) before anything else ended it.
	Asked *Asked
}

// Asked says how an attempt ended that was asked to. Its outcome is [job.Demoted], with the cause,
// if it was stopped for that or died of the signal; else it ended by itself, and what its exit code
// says counts.
type Asked struct {
	Ask
	// InTime says that it had answered, or ended, before the grace was over.
	InTime bool
}

func (Turn) event()        {}
func (Started) event()     {}
func (Finished) event()    {}
func (StartFailed) event() {}

// StartFailed says that nothing of the attempt was started, nor ever will be, for a
// reason that lies with this host and not with the job. It comes in place of
// Finished.
type StartFailed struct {
	Attempt job.AttemptID
	Reason  string
}

// Capability is one thing that a System can do to jobs, and whether it is there.
type Capability struct {
	Name      string
	Available bool
	// Detail says how it works here, or why it does not.
	Detail string
}
