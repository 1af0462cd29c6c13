package store

import (
	"slices"
	"time"

	"kith/internal/identity"
	"kith/internal/job"
)

// Site is what a site durably knows of itself.
type Site struct {
	ID job.SiteID
	// Generation names this data folder; job ids carry it.
	Generation uint32
	// NextSeq is the number of the next job.
	NextSeq uint64
	// Draining: take no copies and start nothing. DrainReason is for people.
	Draining    bool
	DrainReason string
	// DrainActor began or ended the drain last, at DrainChanged, 0 if that
	// was before such things were recorded.
	DrainActor   identity.Actor
	DrainChanged job.Time
	// Latest is a time that the site's clock has shown, and [Late] behind the
	// latest one that came with a fact at most. A clock that is set back while the
	// daemon is down must not make it repeat itself.
	Latest job.Time
	// Incarnation counts the starts of the daemon on this data folder, from some
	// first number, see [BeginLife]; 0 before the first. Other sites tell by it
	// what is later.
	Incarnation uint64
	// Steps is where the count of this site's protocol steps as a host begins in
	// this life: above all that it ever was. No clock has a part in it.
	Steps uint64
	// Folder is 128 random bits that name this data folder; zero before the first
	// start. Generation is its short name, in ids.
	Folder Folder
	// BundleSequence is that of the latest bundle of its own CAs; 0 before the first.
	BundleSequence uint64
	// Runs counts the bundles of tasks that it has accepted as a host, see [HeldBundle].
	Runs uint64
}

// Folder names a data folder.
type Folder [16]byte

// LifeSteps is how many protocol steps lie between the [Site.Steps] of two lives.
// A life that takes as many moves its beginning on first, see [MoreSteps].
const LifeSteps = 1 << 32

// Late is how far [Site.Latest] may be behind.
const Late = time.Minute

// Job is the record of a job at its origin. Only [State.Apply] changes it;
// everyone else reads.
type Job struct {
	ID      job.ID
	Request job.Request
	// RequestID is the submitter's name of the submission, BodyHash tells a
	// repetition from another job under the same name.
	RequestID string
	BodyHash  [32]byte
	// Submitter is who submitted it; Request.User is whose job it is.
	Submitter identity.Actor
	State     job.State
	dirty     bool
	// CancelRequested: the user wants the job ended.
	CancelRequested bool
	// Revoked counts how often its claim was taken back from a holder, which may have run
	// it; it stays at the largest number that fits. Attempts that no site began are none.
	Revoked uint8
	// Version counts the changes of the record. That of a record from before it was
	// counted begins at 0.
	Version uint32
	// Attempt is the number of the latest attempt, 0 before the first; or of an earlier one
	// that has outraced it.
	Attempt uint32
	// HolderGeneration names the data folder of the holder when it claimed: a
	// holder that lost its disk cannot say that it never began.
	HolderGeneration uint32
	// Sites hold, or are to hold, a copy of the attempt, in the order of placement.
	Sites []job.SiteID
	// Holder has the claim of the attempt. HolderStamp is its count of its own
	// protocol steps when it claimed.
	Holder      job.SiteID
	HolderStamp uint64
	// Lease is the term of the leases that the holder is given, 0 if it has none
	// (see [job.Rerun]). It stays that of the grant, whatever the configuration
	// says after a restart: the holder may count on it.
	Lease time.Duration
	// Earlier are the attempts whose claim was taken back although they may
	// still run, the latest [MaxEarlier]; only jobs under [job.Race] have any. One that was
	// outraced before any site had its claim is there without a site, for its number.
	Earlier []Holding
	// Demotions are the attempts that ended with the job to go on, oldest first, at most
	// [job.MaxAttempts]. It is replaced, never changed in place.
	Demotions []Demotion
	// Checkpoint is the number of the one of them whose checkpoint the next attempt starts
	// with, 0 if there is none.
	Checkpoint uint32
	// Saved is the checkpoint that came home last from an attempt that ran, nil if none did. It is
	// replaced, never changed in place; its files are those of attempt 0.
	Saved *Saved
	// Level is the level of the hierarchy that the job is at, 0 for a job of none. Only
	// [RequeueJob] and [LowerJob] change it, and it only grows.
	Level uint8
	// SaveAsked says that a user has asked the latest attempt to save and end.
	SaveAsked bool
	// Guess is what a job of a hierarchy without an estimator needs at most by the forecast when it was
	// submitted, in processor-seconds of the reference; 0 if that says nothing. It may have the job
	// begin at a lower level, and nothing else.
	Guess float32
	// Submitted and Closed are by the origin's clock, Started by the holder's.
	Submitted, Started, Closed job.Time
	// Outcome is nil before the attempt has ended. Its Files are kept until the
	// job is closed.
	Outcome *job.Outcome
	// Events is what happened to the claim, oldest first, the last MaxClaimEvents.
	Events []ClaimEvent
	// Acts is what people did to the job after its submission, oldest first, the
	// last MaxActs. It is replaced, never changed in place.
	Acts []Act
	// Forecast is when it would start, as was said when it was placed; nil if nothing was.
	Forecast *Forecast
}

// LastAct returns the latest act of a kind, and whether there is one.
func (j *Job) LastAct(kind ActKind) (Act, bool) { return lastAct(j.Acts, kind) }

func lastAct(acts []Act, kind ActKind) (Act, bool) {
	for _, a := range slices.Backward(acts) {
		if a.Kind == kind {
			return a, true
		}
	}
	return Act{}, false
}

// Act is something that a person did to a job or a bag.
type Act struct {
	Time  job.Time
	Kind  ActKind
	Actor identity.Actor
	// Reason is why, in the words of the actor; it may be empty.
	Reason string
	// Site is the one that was given up, for [ActForget] only.
	Site job.SiteID
	// Tasks is how many tasks of a bag it was about, 0 for the whole bag.
	Tasks uint32
	// RequestID tells a request for tasks to run again when it is repeated; for [ActRetry].
	RequestID string
}

// MaxActs bounds [Job.Acts] and [Bag.Acts].
const MaxActs = 16

// withAct returns acts with one more, without the oldest of too many. It changes nothing.
func withAct(acts []Act, a Act) []Act {
	if len(acts) >= MaxActs {
		acts = acts[1:]
	}
	return append(slices.Clone(acts), a)
}

// ActKind says what a person did to a job. The numbers are those of
// kith.v1.JobAct.Kind, stored, and frozen.
type ActKind uint8

// What a person can do to a job or a bag.
const (
	ActSubmit  ActKind = 1 // kept as Job.Submitter and Job.Submitted
	ActCancel  ActKind = 2
	ActHold    ActKind = 3
	ActRelease ActKind = 4
	ActForget  ActKind = 5 // gave up a site that had a copy of it, or its claim
	ActRetry   ActKind = 6 // had tasks that had ended run again
	// ActPolicies replaced the policies of a bag.
	ActPolicies ActKind = 7
	ActBudget   ActKind = 8 // replaced its budget
	// ActCheckpoint asked it to save what it had done and to go on in another attempt.
	ActCheckpoint ActKind = 9
)

// AttemptID names the latest attempt.
func (j *Job) AttemptID() job.AttemptID { return job.AttemptID{Job: j.ID, Number: j.Attempt} }

// NextAttempt is the number of the attempt to come. No number is used twice, also after an
// earlier attempt has outraced the latest.
func (j *Job) NextAttempt() uint32 {
	latest := j.Attempt
	for _, h := range j.Earlier {
		latest = max(latest, h.Attempt)
	}
	return latest + 1
}

// Holding is an attempt and the site that has or had its claim.
type Holding struct {
	Attempt uint32
	Site    job.SiteID
}

// MaxEarlier bounds [Job.Earlier].
const MaxEarlier = 8

// MaxClaimEvents bounds [Job.Events].
const MaxClaimEvents = 32

// ClaimEvent is one thing that happened to a job's claim.
type ClaimEvent struct {
	Time    job.Time
	Attempt uint32
	Kind    ClaimEventKind
	Reason  job.Reason
	Site    job.SiteID
}

// ClaimEventKind says what happened to a claim. The numbers are those of
// kith.v1.ClaimEvent.Kind and frozen.
type ClaimEventKind uint8

// What can happen to a claim.
const (
	ClaimOpened     ClaimEventKind = 1
	ClaimGranted    ClaimEventKind = 2
	ClaimDenied     ClaimEventKind = 3
	CopyReturned    ClaimEventKind = 4
	CopyReplaced    ClaimEventKind = 5
	ClaimClosed     ClaimEventKind = 6
	ClaimSuperseded ClaimEventKind = 7
	ClaimRevoked    ClaimEventKind = 8
	ClaimOutraced   ClaimEventKind = 9
	ClaimDemoted    ClaimEventKind = 10
	// ClaimLowered is that the job went to a lower level, for a reason.
	ClaimLowered ClaimEventKind = 11
)

// Decision is what a placement thought of each site it looked at.
type Decision struct {
	// Rank says what sites were ranked by: a number of place.Rank.
	Rank uint8
	// Sites are best first; at most MaxDecisionSites.
	Sites []SiteDecision
}

// MaxDecisionSites bounds [Decision.Sites].
const MaxDecisionSites = 64

// SiteDecision is what a placement thought of one site. A refusal is data.
type SiteDecision struct {
	Site   job.SiteID
	Chosen bool
	// Reason says why not; with a chosen site, what was wrong nevertheless.
	Reason job.Reason
	// Score is what the site was ranked by, after multiplication with Weight;
	// less is better.
	Score, Weight float64
	// Age is how old the load was that the score was taken from.
	Age time.Duration
}

// Copy is the record of a copy or attempt at its host. Only [State.Apply]
// changes it.
type Copy struct {
	ID job.AttemptID
	// Request is never nil. A copy of a job submitted here shares that of the job.
	Request *job.Request
	Phase   Phase
	dirty   bool
	// OriginTooSmall says that its origin can never run it.
	OriginTooSmall bool
	// Stays says that its job is not to be evicted, as that was done [job.MaxEvictions] times or
	// its origin knows no demotion.
	Stays bool
	// GoesOn says of an attempt that has begun that its job goes to the next level of a hierarchy
	// if its time limit ends it.
	GoesOn bool
	// LimitSeconds is the time limit at this host where it is longer than that of the request,
	// as the owner of the machine takes part of the time; 0 where it is the same.
	LimitSeconds uint32
	// Before is what its origin said of earlier attempts, nil for nothing. It is not
	// changed once it is made.
	Before *job.Progress
	// Arrived is when the host accepted it, Begun when it committed to start it.
	Arrived, Begun job.Time
	// BootID names the boot of the machine under which the attempt was begun.
	BootID string
	// Outcome is nil before the attempt has ended.
	Outcome *job.Outcome
}

// Last reports whether no attempt may follow this one.
func (c *Copy) Last() bool { return c.Before != nil && c.Before.Last }

// Phase says where a copy is at its host. The numbers are stored and sent; they are frozen.
type Phase uint8

// The phases of a copy.
const (
	CopyQueued Phase = 1 // in a queue, or claiming
	CopyBegun  Phase = 2 // the command runs or is about to
	CopyEnded  Phase = 3 // ended, and the origin has yet to acknowledge it
)
