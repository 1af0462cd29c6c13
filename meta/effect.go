package meta

import (
	"time"

	"kith/cluster"
	"kith/internal/estimate"
	"kith/internal/job"
	"kith/store"
)

// Effect is what the driver must do, after the changes made so far are
// durable: package meta/commit holds it until then. The set is closed.
type Effect interface {
	effect()
	// Word names the kind for people and logs: "launch", "reply"; what is sent by
	// the word of the message.
	Word() string
}

// Reply answers a client's request. On an error, which wraps a sentinel of
// this package, nothing has changed.
type Reply struct {
	Token uint64
	Job   job.ID
	State job.State
	Err   error
	// Forgotten answers [ForgetSite].
	Forgotten Forgotten
	// Revoked answers [RevokeSite] and [Leave], Invitation what is asked about one: the
	// record after it. Both are nil otherwise.
	Revoked    *Revoked
	Invitation *store.Invitation
	// Forecast answers [ForecastJob].
	Forecast *JobForecast
}

// Send sends a message to a site. If no stream is up it is dropped.
type Send struct {
	To      job.SiteID
	Message Message
}

// Grant answers a claim: the site may start the attempt. What the job runs is not
// in memory. The driver reads it from its store by the name of the job
// (store.Backend.Payload) once there is room for it and sends [Grant.Message]; if no
// stream is up the grant is dropped, and what is sent later may overtake it. An error
// of the store that is not store.ErrUnknown, which says that the job was purged
// meanwhile, is the operator's to know, and the grant is tried again.
type Grant struct {
	To      job.SiteID
	Attempt job.AttemptID
	// Lease is how long the host may run the attempt from Sent, 0 if without a
	// bound. Sent is that of the claim, or Stamp says of which one this is a reminder.
	Lease time.Duration
	Sent  job.Time
	Stamp uint64
	// Resume is what the attempt goes on from; the driver adds it to what the job runs.
	Resume store.Resume
}

// Message returns what is sent to the host with what the job runs.
func (g Grant) Message(payload []byte) Verdict {
	return Verdict{Attempt: g.Attempt, Granted: true, Payload: payload, Lease: g.Lease, Sent: g.Sent, Stamp: g.Stamp}
}

// Launch makes an attempt run: stage its files, start its command. The driver
// answers with [AttemptStarted] and [AttemptEnded]. Launching a launched
// attempt again must be harmless.
//
// At a [Batch] site it runs in what the batch system started for the copy. Where
// that is gone, without a sign that it took the attempt up, the driver submits
// again, and starts the attempt when the batch system starts that.
type Launch struct {
	Attempt job.AttemptID
	Request job.Request
	// Task is set if the attempt is the run of a task. Then the driver reads what to run from
	// its store: at the origin of the bag by its id, elsewhere by the bundle
	// (store.Backend.HeldPayload).
	Task *TaskRun
	// Payload is what to run, as it came with the grant. It is nil at the job's
	// origin, whose driver reads it from the store by the name of the job.
	Payload []byte
	// Resume is what the attempt goes on from, at the job's origin. Elsewhere it is in Payload.
	Resume store.Resume
	// Lease is when all its processes must be gone, unless [Extend] comes; 0
	// for no bound. Past that time it must not be started either.
	Lease job.Time
	Ending
	// Estimate says how its estimator is run; the zero value that it is not.
	Estimate Estimate
}

// Estimate says how the estimator of an attempt is run: before its command and in its place, on what
// the attempt has, within its time limit. The attempt has started with it. Each line "bound SECONDS"
// that it prints is an upper bound of all the work of its job, in processor-seconds of the reference;
// the least counts. When nothing of it lives any more, and not before,
//
//   - the command is executed, or
//   - by the bound more than Most is left to do: then the attempt ends as [job.Demoted], with
//     [job.OutOfLevel], no start, and the bound.
//
// The driver needs nobody for that, as the daemon may be gone. The outcome has the bound however
// the attempt ends.
type Estimate struct {
	// Limit is the longest that it may run. Then it is ended, and what it said counts.
	Limit time.Duration
	// Known is the least bound of earlier attempts, 0 for none, Done what they did.
	Known, Done float64
	// Most is 0 for no limit.
	Most float64
}

// Exceeds reports whether more is left to do than may be, by a bound; 0 is none.
func (e Estimate) Exceeds(bound float64) bool {
	var b estimate.Bound
	if bound > 0 {
		b.Add(bound)
	}
	return e.Most > 0 && b.Exceeds(e.Done, e.Most)
}

// Ending says what ends of an attempt mean for its job. The zero value is for all jobs but those
// that go from attempt to attempt.
type Ending struct {
	// GoesOn says that its time limit here is not the job's own but that of the level of a
	// hierarchy: if it ends the attempt the job goes on at the next level.
	GoesOn bool
	// Last says that no attempt may follow: if it ends to be run again, that is a failure.
	Last bool
}

// AtLimit makes the end of an attempt by its time limit what it is for its job, and reports whether it
// goes on.
func (e Ending) AtLimit(o *job.Outcome) bool {
	if o.Kind != job.Timeout || !e.GoesOn {
		return false
	}
	o.Kind, o.Cause, o.Reason = job.Demoted, job.OutOfLevel, "it used what its level lets a job use"
	return true
}

// Extend says that an attempt under a lease may go on until a later time.
type Extend struct {
	Attempt job.AttemptID
	Until   job.Time
}

// Kill stops a launched attempt; the driver answers with [AttemptEnded]. An
// attempt that has not been started yet must not start any more.
type Kill struct {
	Attempt job.AttemptID
	// Lease says why: not because the user cancelled, but because the lease has
	// ended, or the origin was revoked. The end then counts as [job.Loss].
	Lease bool
	// Stale says that nobody wants what the attempt leaves: its origin would refuse any
	// result. What is being collected of it is given up, and its end reported at once.
	Stale bool
	// Early says that it rests on no fact of this site, or on none whose loss in a
	// crash would make it wrong: it need not wait for the disk. See ADR 0030.
	Early bool
}

// AskCheckpoint asks an attempt that runs to save what it has done and to end, so that its job
// goes on in another one. The driver answers with [AttemptEnded], whose outcome is
// [job.Demoted] with the cause, unless the attempt ended in another way before it had an answer:
//
//   - A job that writes checkpoints gets its signal. It has answered when it ends with its exit
//     code for "saved, run me again", or when its DONE has a larger number than at the ask. Then,
//     or after Grace, it is stopped as by [Kill]. What it saves after Grace does not count.
//   - Any other is stopped at once: the next attempt begins again.
//
// The driver remembers the ask, as it does a [Kill], until the attempt has ended, also if the
// daemon dies. Only the first ask counts; one of an attempt that is being stopped, or does not
// run, does nothing.
type AskCheckpoint struct {
	Attempt job.AttemptID
	Cause   job.DemotionCause
	// Grace is the most that it has to answer; its job may have said less.
	Grace time.Duration
}

// CopySaved has what an attempt that runs has saved copied into the files of this site: its checkpoint,
// if it is later than the one that the attempt started with and than the latest copy, whole, and if
// DONE is the same before and after. The driver answers with [SavedCopied]; it keeps the files until
// it is told to copy again, or to clear the attempt.
type CopySaved struct{ Attempt job.AttemptID }

// FetchSaved brings what an attempt has saved that runs at another site to its origin. The driver
// answers with [SavedHome], once, and keeps the files until the facts name them. [Unfetch] ends it.
type FetchSaved struct {
	Attempt  job.AttemptID
	From     job.SiteID
	Sequence uint64
	Files    []byte
}

// Unstarted is the outcome of an attempt that was stopped before it was started.
func (k Kill) Unstarted(now job.Time) job.Outcome {
	if k.Lease {
		return job.Outcome{Kind: job.Loss, End: now, Reason: "its lease ended before it was started"}
	}
	return job.Outcome{Kind: job.Cancel, End: now, Reason: "cancelled before it was started"}
}

// Unstage takes back, because this site drains, an attempt of another origin that was
// launched and has not been started. The driver answers with [AttemptMissing]; if it
// starts the attempt first it answers as to [Launch].
type Unstage struct{ Attempt job.AttemptID }

// Adopt asks about an attempt that was begun before a restart. The driver
// answers with [AttemptStarted] and [AttemptEnded], or with [AttemptMissing].
type Adopt struct {
	Attempt job.AttemptID
	Request job.Request
	// Task is as in [Launch].
	Task   *TaskRun
	BootID string
	// Leased says that it runs under a lease of an earlier daemon, and that it
	// must not be started without.
	Leased bool
	Ending
	// Estimate is as in [Launch].
	Estimate Estimate
}

// Queue has the batch system of a [Batch] site queue a copy: submit something
// that, once started, waits for a word and is told by [TurnCame]. The driver
// finds what it submitted by the name of the attempt: a Queue for what is queued
// or has been started is harmless, and only tells again when it may start.
//
// What cannot be submitted for now the driver tries again. The engine knows of
// neither, and may withdraw the copy meanwhile.
type Queue struct {
	Copy job.Copy
	// NotBefore is when it may start, as in [Site].Postpone; 0 for at once.
	NotBefore job.Time
}

// Dequeue takes back what the batch system holds for a copy that has not begun: it
// is cancelled if it waits, and leaves without having run anything if it was
// started. Where there is nothing it is a no-op. It may die with the daemon, see
// [Restored].
type Dequeue struct{ Attempt job.AttemptID }

// Restored says that [Queue] and [Adopt] have named all copies that this site
// holds. What the batch system holds for any other attempt, by a list that the
// driver gets after this effect, is a stray of an earlier daemon and is removed;
// so is what it holds twice, but for one of them.
type Restored struct{}

// Clear removes the private folder of an attempt whose outcome is at the origin.
type Clear struct{ Attempt job.AttemptID }

// Fetch brings an attempt's output to this site, its origin; the driver
// answers with [FilesHome].
type Fetch struct {
	Attempt job.AttemptID
	From    job.SiteID
	Files   []byte
}

// Unfetch ends a [Fetch]: the output is not waited for any more. Its FilesHome may
// come nevertheless.
type Unfetch struct{ Attempt job.AttemptID }

// Advertise spreads this site's load. To sites with a stream it has been sent already.
type Advertise struct{ Digest cluster.Digest }

// Changed says that a job submitted here has changed. Purged: it is gone.
type Changed struct {
	Job    job.ID
	Purged bool
}

// Outgrown says, for the operator, that this site can no longer run copies that it
// had taken before a restart: they go back, or the jobs look for another place.
type Outgrown struct {
	// Copies is how many, First is one of them.
	Copies int
	First  job.AttemptID
	// Own says that they are copies of jobs submitted here.
	Own bool
	// Reason says why: [job.TooNarrow], [job.TooSmall] or [job.Directory].
	Reason job.Reason
}

// StartsPaused says, for the operator, that this site starts nothing until then
// because a start failed for a reason of its own; Until 0 that starts succeed again.
type StartsPaused struct {
	Until  job.Time
	Reason string
}

// NotHeld says, for the operator, that the local scheduler proposed what this site holds
// no copy of, which is a mistake of the scheduler: it was told to forget it, and nothing
// was started.
type NotHeld struct {
	Attempt job.AttemptID
}

func (Reply) effect()         {}
func (Send) effect()          {}
func (Grant) effect()         {}
func (Launch) effect()        {}
func (Extend) effect()        {}
func (Kill) effect()          {}
func (AskCheckpoint) effect() {}
func (CopySaved) effect()     {}
func (FetchSaved) effect()    {}
func (Unstage) effect()       {}
func (Adopt) effect()         {}
func (Clear) effect()         {}
func (Fetch) effect()         {}
func (Unfetch) effect()       {}
func (Queue) effect()         {}
func (Dequeue) effect()       {}
func (Restored) effect()      {}
func (Advertise) effect()     {}
func (Changed) effect()       {}
func (StartsPaused) effect()  {}
func (Outgrown) effect()      {}
func (NotHeld) effect()       {}

func (Reply) Word() string         { return "reply" }
func (s Send) Word() string        { return s.Message.Word() }
func (Grant) Word() string         { return Verdict{}.Word() }
func (Launch) Word() string        { return "launch" }
func (Extend) Word() string        { return "extend" }
func (Kill) Word() string          { return "kill" }
func (AskCheckpoint) Word() string { return "ask-checkpoint" }
func (CopySaved) Word() string     { return "copy-saved" }
func (FetchSaved) Word() string    { return "fetch-saved" }
func (Unstage) Word() string       { return "unstage" }
func (Adopt) Word() string         { return "adopt" }
func (Clear) Word() string         { return "clear" }
func (Fetch) Word() string         { return "fetch" }
func (Unfetch) Word() string       { return "unfetch" }
func (Queue) Word() string         { return "queue" }
func (Dequeue) Word() string       { return "dequeue" }
func (Restored) Word() string      { return "restored" }
func (Advertise) Word() string     { return "advertise" }
func (Changed) Word() string       { return "changed" }
func (StartsPaused) Word() string  { return "starts-paused" }
func (Outgrown) Word() string      { return "outgrown" }
func (NotHeld) Word() string       { return "not-held" }
