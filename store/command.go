package store

import (
	"time"

	"kith/internal/identity"
	"kith/internal/job"
)

// Command is a fact to record. The set is closed: all kinds are in this file, but for
// those of bags in bagcommand.go, that of dependencies in dependency.go and that of backups in recover.go, ordered as they follow one another in a job's life. A command carries all
// that recording it needs, so that it can be written down and replayed.
type Command interface {
	apply(s *State) error
}

// ---- at the origin ----

// SubmitJob records a new job. ID must be [State.NextID]. It fails with
// [ErrExists] if the request id is taken.
type SubmitJob struct {
	ID        job.ID
	Request   job.Request
	RequestID string
	BodyHash  [32]byte
	// After is what it waits for, at most [job.MaxDependencies]. Their states are found out,
	// but that of a [job.Singleton], which waits if the command says so. One that nothing
	// has the name of is [ErrUnknown].
	After []job.Dependency
	// Payload is what to run; it is written but not kept in memory.
	Payload []byte
	// Guess is that of [Job].
	Guess float64
	Actor identity.Actor // who submitted it
	Time  job.Time
}

// OpenAttempt opens the job's next attempt with copies at Sites. The job must
// be pending and Attempt.Number one more than its last.
type OpenAttempt struct {
	Attempt  job.AttemptID
	Sites    []job.SiteID
	Decision *Decision
	Time     job.Time
}

// MoveCopy records that From holds no copy of an open attempt any more, and
// that To, unless empty, is to get one.
type MoveCopy struct {
	Attempt  job.AttemptID
	From, To job.SiteID
	Kind     ClaimEventKind // CopyReturned or CopyReplaced
	Reason   job.Reason
	Time     job.Time
}

// AddCopy records that Site, which has no copy of an open attempt, is to get one.
type AddCopy struct {
	Attempt job.AttemptID
	Site    job.SiteID
}

// GrantClaim gives the claim to Site. The same grant again succeeds and
// changes nothing. It fails with [ErrStale] for another attempt than the
// latest, [ErrTaken] if another site has the claim, or this one had it on a disk
// that it has lost since and may have started, [ErrNoCopy] if Site is not
// among the attempt's sites, and [ErrState] if the attempt is not open.
type GrantClaim struct {
	Attempt job.AttemptID
	Site    job.SiteID
	// Stamp and Generation are the claiming site's, Lease is what it is given,
	// see [Job].
	Stamp      uint64
	Generation uint32
	Lease      time.Duration
	Time       job.Time
}

// NoteClaim adds an event to the claim's history and changes nothing else.
type NoteClaim struct {
	Job   job.ID
	Event ClaimEvent
}

// NoteForecast keeps with a job when it would start, or what became of that, in the place of
// what was kept before. The record is not changed any more.
type NoteForecast struct {
	Job      job.ID
	Forecast *Forecast
}

// NoteCalibration keeps how forecasts did, in the place of what was kept before. It is the
// newest of a series: to lose it is to know of fewer outcomes.
type NoteCalibration struct {
	// Book is in the layout of package forecast, at most [MaxCalibration] bytes. It is not
	// changed any more.
	Book []byte
}

// RecordStart records that the holder's command runs.
type RecordStart struct {
	Attempt job.AttemptID
	Site    job.SiteID
	Started job.Time
}

// ReturnClaim records that the holder gave the claim back without having
// started. The job is pending again, or cancelled if that was asked for.
type ReturnClaim struct {
	Attempt job.AttemptID
	Site    job.SiteID
	Reason  job.Reason
	Time    job.Time
}

// RevokeClaim records that the origin took the claim back from a holder that
// can run the attempt no longer, or, with MayRun, that may go on beside the
// next attempt. The job is pending again, or cancelled if that was asked for. An
// outcome whose output cannot be had is forgotten with it.
type RevokeClaim struct {
	Attempt job.AttemptID
	Site    job.SiteID
	Reason  job.Reason
	// MayRun keeps the attempt in [Job.Earlier], so that its result can win.
	MayRun bool
	Time   job.Time
}

// RecordOutcome records how the holder's attempt ended. The same site's
// outcome again succeeds and changes nothing; any other fails with [ErrStale].
type RecordOutcome struct {
	Attempt job.AttemptID
	Site    job.SiteID
	Outcome job.Outcome
	Time    job.Time
}

// OutraceAttempt records that one of [Job.Earlier] ended before the latest
// attempt did: it becomes the job's attempt, its site the holder, its outcome
// the job's. It fails with [ErrStale] if Attempt is none of them, or the job
// has an outcome.
type OutraceAttempt struct {
	Attempt job.AttemptID
	Site    job.SiteID
	Outcome job.Outcome
	Time    job.Time
}

// RecordSaved records a checkpoint that has come home from an attempt that runs. It takes the place of
// the one before, and the job goes on from it if the attempt is lost or leaves none that is later. It
// fails with [ErrStale] if another attempt is the latest, another site has its claim, or the job has one
// that is as late, and with [ErrState] unless the attempt runs and is not to be cancelled.
type RecordSaved struct {
	Attempt  job.AttemptID
	Site     job.SiteID
	Sequence uint64
	// Ran is how long the attempt had run by its host, Speed is as in [CloseJob].
	Ran   time.Duration
	Speed float64
	// Files are its files, encoded as [job.Outcome.Files].
	Files []byte
	Time  job.Time
}

// CloseJob ends a job whose outcome is recorded and whose output is home, or,
// with FilesError, never will be. An outcome that is [job.Demoted] is none of a job: ErrState. The description of its files leaves memory:
// see Backend.Outputs.
type CloseJob struct {
	Job        job.ID
	FilesError string
	// Speed is that of a processor where it ran, see [Past]; 0 is that of the reference.
	Speed float64
	Time  job.Time
}

// RequeueJob records that the job whose attempt was demoted goes on in another one: what it
// left is home or, with FilesError, never will be. The job is pending again, or cancelled if
// that was asked for. Its checkpoint becomes the job's if it is later than the one that the
// job has. It fails with [ErrStale] if another attempt is the latest, or another site has its
// claim, and with [ErrState] unless the outcome is recorded and is [job.Demoted].
type RequeueJob struct {
	Attempt    job.AttemptID
	Site       job.SiteID
	FilesError string
	// Speed is as in [CloseJob].
	Speed float64
	Time  job.Time
}

// CancelJob records that the user wants the job ended: at once if no site
// holds the claim. Reason is why, in the user's words, and may be empty. A
// repetition keeps the first actor and reason.
type CancelJob struct {
	Job    job.ID
	Actor  identity.Actor
	Reason string
	Time   job.Time
}

// HoldJob keeps a job from starting. An open attempt is closed for good.
type HoldJob struct {
	Job   job.ID
	Actor identity.Actor
	Time  job.Time
}

// AskJob notes that a user wants the latest attempt of a job to save and end, for the job to go on
// in another one. It wraps [ErrState] unless a site runs it and it is not to be cancelled. Asked
// once more it changes nothing.
type AskJob struct {
	Job   job.ID
	Actor identity.Actor
	Time  job.Time
}

// ReleaseJob ends a hold. A job that waits for others goes on waiting.
type ReleaseJob struct {
	Job   job.ID
	Actor identity.Actor
	Time  job.Time
}

// NoteForgotten records that an operator gave up Site, where the job had a copy
// or its claim. It changes nothing else: what becomes of the job is recorded next.
type NoteForgotten struct {
	Job   job.ID
	Site  job.SiteID
	Actor identity.Actor
	Time  job.Time
}

// UnplaceJob records that an open attempt has no copy left. The job is pending again.
type UnplaceJob struct {
	Attempt job.AttemptID
}

// PurgeJob forgets a job that has ended.
type PurgeJob struct {
	Job job.ID
}

// SetDrain begins or ends a drain of the site.
type SetDrain struct {
	Draining bool
	Reason   string
	Actor    identity.Actor
	Time     job.Time
}

// NoteTime records the time by the site's clock. It never goes back.
type NoteTime struct {
	Time job.Time
}

// BeginLife records that the daemon starts. It must be durable before anything
// is said to another site.
type BeginLife struct {
	// First is the least number that the first start on a folder may have: above all
	// that the site may have said before starts were counted, when the wall clock
	// stood for them.
	First uint64
	// Folder names the folder if it has no such name yet.
	Folder Folder
}

// MoreSteps records that this life has taken [LifeSteps] steps and goes on.
type MoreSteps struct{}

// ---- at a host ----

// AcceptCopy records a copy in the site's queue. It fails with [ErrExists] if
// it is there already.
type AcceptCopy struct {
	Attempt job.AttemptID
	Request job.Request
	Time    job.Time
	// OriginTooSmall, Stays and LimitSeconds are kept with the copy, see [Copy].
	OriginTooSmall, Stays bool
	LimitSeconds          uint32
	// Before is what its origin says of earlier attempts.
	Before job.Progress
}

// DropCopy forgets a copy that has not begun.
type DropCopy struct {
	Attempt job.AttemptID
}

// BeginAttempt records the decision to start; only after it is on disk may a
// process be made.
type BeginAttempt struct {
	Attempt job.AttemptID
	BootID  string
	Time    job.Time
	// GoesOn is kept with the copy, see [Copy].
	GoesOn bool
}

// RequeueCopy records that a begun copy never started: it waits again.
type RequeueCopy struct {
	Attempt job.AttemptID
}

// EndAttempt records how an attempt ended at this host. The first outcome stays.
type EndAttempt struct {
	Attempt job.AttemptID
	Outcome job.Outcome
}

// ForgetAttempt forgets an ended attempt: the origin has its outcome.
type ForgetAttempt struct {
	Attempt job.AttemptID
	// Speed is that of a processor here, see [Past]; 0 is that of the reference.
	Speed float64
}

// ---- trust ----

// AdmitSite records that the operator trusts a site. One that is known or was revoked
// may be admitted again. It fails with [ErrNameTaken] if the site is known by a bundle
// that has no CA in common with this one, with [ErrOldBundle] if a later bundle of the
// same CAs is known, and with [ErrBounds] or [ErrTrustFull].
type AdmitSite struct {
	Site      job.SiteID
	Bundle    Bundle
	Addresses []string
	// Told are those of them that the site itself named.
	Told    []string
	Version string
	Actor   identity.Actor
	// Steps becomes [TrustedSite.Steps], unless the site is known.
	Steps uint64
	Time  job.Time
}

// TakeBundle records a later bundle of a known site, which came over a stream that was
// proved by the one known until now. The same bundle again succeeds and changes nothing.
// It fails with [ErrUnknown], [ErrRevoked], [ErrOldBundle] or [ErrBounds].
type TakeBundle struct {
	Site   job.SiteID
	Bundle Bundle
	Time   job.Time
}

// TakeAddresses records where a known site says that it can be dialled, over a stream that
// its bundle proved. Incarnation is that of its daemon; the same again succeeds and changes
// nothing. It fails with [ErrUnknown], [ErrRevoked], [ErrOldAddresses] or [ErrBounds].
type TakeAddresses struct {
	Site job.SiteID
	Told Told
}

// SetAddresses records where the operator says that a known site can be dialled, 1 to
// [MaxAddresses] of them, in place of all that were known. It fails with [ErrUnknown],
// [ErrRevoked] or [ErrBounds].
type SetAddresses struct {
	Site      job.SiteID
	Addresses []string
}

// RevokeSite records that a site is trusted no more. Its name stays in the table. LetRun
// leaves attempts of its jobs here; a later revocation without it takes that back.
type RevokeSite struct {
	Site   job.SiteID
	LetRun bool
	Actor  identity.Actor
	Time   job.Time
}

// ForgetTrust removes a revoked site from the table. It fails with [ErrState] for one
// that is known.
type ForgetTrust struct{ Site job.SiteID }

// SetBundleSequence records the sequence of this site's own bundle, so that an older copy of
// its keys is noticed. It never goes back.
type SetBundleSequence struct{ Sequence uint64 }

// OpenInvitation records an invitation for a site of a name.
type OpenInvitation struct {
	ID       string
	Name     job.SiteID
	Verifier []byte
	Expires  job.Time
	Actor    identity.Actor
	Time     job.Time
}

// TryInvitation counts a wrong try. The last of [MaxTries] burns the invitation.
type TryInvitation struct {
	ID   string
	Time job.Time
}

// ComeByInvitation records the site that proved the secret of an invitation. The same
// site again succeeds and changes nothing; another one burns the invitation.
type ComeByInvitation struct {
	ID     string
	Joiner Joiner
	Time   job.Time
}

// CloseInvitation ends an invitation as admitted, refused, expired or burnt. To end it
// in the same way again succeeds and changes nothing.
type CloseInvitation struct {
	ID    string
	State InvitationState
	Actor identity.Actor
	Time  job.Time
}

// MakeToken records a token that was made for a user. It fails with [ErrExists], [ErrBounds]
// or [ErrTrustFull].
type MakeToken struct {
	ID      string
	User    string
	Expires job.Time
	Actor   identity.Actor
	Time    job.Time
}

// RevokeToken records that a token of this site counts no more. One that was revoked before
// changes nothing. It fails with [ErrNoToken], unless the command says that there is no
// record, [ErrBounds] or [ErrTrustFull].
type RevokeToken struct {
	ID string
	// Unlisted says that the token may not be recorded: one that was made after the copy from
	// which the data folder came back.
	Unlisted bool
	// Expires is the latest that it can end, if that is not known of it.
	Expires job.Time
	Actor   identity.Actor
	Time    job.Time
}

// PruneTrust ends invitations that have expired and forgets what is of no use any more.
type PruneTrust struct{ Time job.Time }
