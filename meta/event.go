package meta

import (
	"kith/cluster"
	"kith/internal/identity"
	"kith/internal/job"
)

// Event is something that happened at a site. The set is closed.
type Event interface{ event() }

// Submit is a new job from a client. Token comes back in [Reply]. Actor, here and
// in the events that follow, is who asks; it is recorded with what is done.
type Submit struct {
	Token     uint64
	Actor     identity.Actor
	Request   job.Request
	RequestID string
	// BodyHash tells a repeated submission from another one under the same id.
	BodyHash [32]byte
	Payload  []byte
	// Hold keeps the job from starting until it is released.
	Hold bool
	// After is what must have ended first; the states are not looked at. What is not here
	// is answered with a [DependencyError].
	After []job.Dependency
}

// Cancel ends a job. Reason is why, in the user's words; it may be empty.
type Cancel struct {
	Token  uint64
	Job    job.ID
	Actor  identity.Actor
	Reason string
}

// Hold keeps a job that has not started from starting.
type Hold struct {
	Token uint64
	Job   job.ID
	Actor identity.Actor
}

// Release ends a hold.
type Release struct {
	Token uint64
	Job   job.ID
	Actor identity.Actor
}

// CheckpointJob has a running job save what it has done, end, and go on in another attempt.
type CheckpointJob struct {
	Token uint64
	Job   job.ID
	Actor identity.Actor
}

// SetDrain begins or ends a drain of this site.
type SetDrain struct {
	Token  uint64
	On     bool
	Reason string
	Actor  identity.Actor
}

// ForgetSite gives a site up that will never return. Requeue runs the jobs
// that it held again; otherwise they are lost.
type ForgetSite struct {
	Token   uint64
	Site    job.SiteID
	Requeue bool
	Actor   identity.Actor
}

// Receive is a message from another site.
type Receive struct {
	From    job.SiteID
	Message Message
}

// PeerUp says that a stream to a site is up.
type PeerUp struct {
	Site       job.SiteID
	Generation uint32
	// Incarnation is that of its digests from now on, whatever it said before; 0 if
	// unknown.
	Incarnation uint64
	// NoTasks says that its version knows no message about tasks: whatever of that kind is
	// sent to it is dropped.
	NoTasks bool
	cluster.Lacks
}

// PeerDown says that it is gone.
type PeerDown struct{ Site job.SiteID }

// LoadSeen is a load digest that came by another way than the stream.
type LoadSeen struct{ Digest cluster.Digest }

// AttemptStarted says that the command of a launched attempt runs since At.
type AttemptStarted struct {
	Attempt job.AttemptID
	At      job.Time
}

// EstimateTold says the least bound that the estimator of an attempt that runs has given so far, in
// processor-seconds of the reference. It is for people: see [Views.BoundTold].
type EstimateTold struct {
	Attempt job.AttemptID
	Bound   float64
}

// AttemptEnded says how a launched attempt ended, its output collected. It
// may come without AttemptStarted.
type AttemptEnded struct {
	Attempt job.AttemptID
	Outcome job.Outcome
}

// AttemptOver says that all processes of an attempt are gone while its output is still
// being collected: its processors are free. AttemptEnded follows. It may come twice.
type AttemptOver struct{ Attempt job.AttemptID }

// AttemptMissing says that an attempt that was begun was not started and now
// never will be unless it is launched again: before a restart it had not come so
// far, its inputs cannot be had for now, or a drain took it back ([Unstage]).
type AttemptMissing struct {
	Attempt job.AttemptID
	// Bringing says that its inputs take longer than processors may be held for them.
	// The driver goes on to bring them, and says so with FilesHere.
	Bringing bool
}

// FilesHere says that the inputs of an attempt that was Bringing are here, or that it is
// of no use to wait for them: it may have its turn again.
type FilesHere struct{ Attempt job.AttemptID }

// StartFailed says that an attempt that was begun was not started, for a reason that
// lies with this host and not with the job: it is out of processes, descriptors or
// memory, or lacks the shim. Nothing of the attempt runs or ever will. It goes back
// to its origin, and the host pauses.
type StartFailed struct {
	Attempt job.AttemptID
	// Reason is for people.
	Reason string
}

// MachineSeen says whether the machine with this site's processors can be driven, where that is
// another one than the engine's. While it cannot nothing is started, what waits here may go to other
// sites, and what was begun goes on: how it ends the driver says, or that it is lost.
type MachineSeen struct {
	// Away is why it cannot; empty if it can.
	Away string
	// BootID names the boot of that machine, see [Config]; empty while it is not known. The driver tells
	// it before anything of what was begun. It does not change in the life of an engine: after another one
	// the driver makes a new engine.
	BootID string
}

// DiskSeen says whether the disk on which jobs run has the room that is to stay free. The driver
// looks again and again, and says what has changed.
type DiskSeen struct {
	// Low says for people how little there is; empty if there is enough.
	Low string
}

// TurnCame says that the batch system of a [Batch] site has started what was
// submitted for a copy, and that it waits for a word: [Launch] or [Dequeue]. The
// driver says so again, every few seconds, until one comes; the answer to an
// earlier daemon may have died with it. What is launched already it answers
// without asking the engine.
type TurnCame struct{ Attempt job.AttemptID }

// SavedCopied answers [CopySaved].
type SavedCopied struct {
	Attempt job.AttemptID
	// Sequence is the number of the checkpoint that was copied, and that was in DONE before and
	// after; 0 if none was. Reason says why, for people; it is empty if there is nothing new.
	Sequence uint64
	Reason   string
	// Files are its files, encoded as [job.Outcome.Files]; FilesRemain says that some have to be
	// fetched by another site.
	Files       []byte
	FilesRemain bool
}

// SavedHome answers [FetchSaved]: the files are here or, with Error, will not come.
type SavedHome struct {
	Attempt  job.AttemptID
	Sequence uint64
	Error    string
}

// FilesHome says that the output of a job's attempt is at its origin, or, with
// Error, that some of it never will be.
type FilesHome struct {
	Attempt job.AttemptID
	Error   string
}

// FilesWait says that the output of an attempt of this site's own job cannot come home
// for now, and why; it is tried again until it can, and said again when it is another
// reason.
type FilesWait struct {
	Attempt job.AttemptID
	Reason  string
}

// Tick says that time has passed.
type Tick struct{}

// Stopping says that the daemon is about to stop: it is the last event, and the facts that it makes
// are made durable before the end. A crash has none.
type Stopping struct{}

// SendCopies sends the copies that were placed so far without waiting for the
// end of the instant. In a simulation without latency the next submission of
// the same instant then sees them in the queues (spec 001 section 2.5).
type SendCopies struct{}

// Pass ends an instant: the local scheduler makes its pass, and copies leave.
type Pass struct{}

func (Submit) event()         {}
func (Cancel) event()         {}
func (Hold) event()           {}
func (Release) event()        {}
func (CheckpointJob) event()  {}
func (SetDrain) event()       {}
func (ForgetSite) event()     {}
func (Receive) event()        {}
func (PeerUp) event()         {}
func (PeerDown) event()       {}
func (LoadSeen) event()       {}
func (AttemptStarted) event() {}
func (AttemptEnded) event()   {}
func (AttemptOver) event()    {}
func (EstimateTold) event()   {}
func (AttemptMissing) event() {}
func (StartFailed) event()    {}
func (DiskSeen) event()       {}
func (MachineSeen) event()    {}
func (FilesHere) event()      {}
func (SavedCopied) event()    {}
func (SavedHome) event()      {}
func (FilesHome) event()      {}
func (FilesWait) event()      {}
func (TurnCame) event()       {}
func (Tick) event()           {}
func (Stopping) event()       {}
func (SendCopies) event()     {}
func (Pass) event()           {}

func (AdmitSite) event()         {}
func (RevokeSite) event()        {}
func (SetAddresses) event()      {}
func (ForgetTrust) event()       {}
func (Leave) event()             {}
func (SetBundleSequence) event() {}
func (OpenInvitation) event()    {}
func (TryInvitation) event()     {}
func (ComeByInvitation) event()  {}
func (CloseInvitation) event()   {}
func (RevokeToken) event()       {}
func (MakeToken) event()         {}
