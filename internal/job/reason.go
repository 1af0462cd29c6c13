package job

import "fmt"

// Reason says in one word why a site was not chosen, a copy refused or given
// back, or a claim denied. The numbers are stored and sent; they are frozen.
// docs/protocol.md lists them.
type Reason uint8

// The reasons.
const (
	NoReason      Reason = 0
	TooNarrow     Reason = 1  // the site has too few processors
	TooSmall      Reason = 2  // the site has too little memory
	Unreachable   Reason = 3  // no stream to the site is up
	Draining      Reason = 4  // the site takes no copies
	Full          Reason = 5  // the site holds as many copies as it takes
	StaleLoad     Reason = 6  // the site's load is too old to rank by
	UnknownLoad   Reason = 7  // the site never told its load
	Outranked     Reason = 8  // enough other sites ranked better
	LocalOnly     Reason = 9  // the scheme keeps jobs at their origin
	Directory     Reason = 10 // the site does not allow the working directory
	NoAnswer      Reason = 11 // the site did not answer in time
	UnknownJob    Reason = 12 // there is no such job here
	UnknownCopy   Reason = 13 // the site holds no copy of this attempt
	StaleAttempt  Reason = 14 // a later attempt exists
	HeldByOther   Reason = 15 // another site holds the claim
	Withdrawn     Reason = 16 // the copy was withdrawn
	UserHold      Reason = 17 // the user holds the job back
	UserCancel    Reason = 18 // the user cancelled the job
	Ended         Reason = 19 // the job has ended
	NotOrigin     Reason = 20 // the sender is not the origin of the job, or the receiver is not
	Vanished      Reason = 21 // the site was out of reach for too long
	HasCopy       Reason = 22 // the site has a copy already
	DiskLow       Reason = 23 // the site's disk is nearly full
	LostByHost    Reason = 24 // the host no longer knows the attempt
	BadRequest    Reason = 25 // the request is not valid
	TooManyCopies Reason = 26 // the site's own bound on copies of all origins
	WouldNotStart Reason = 27 // the site cannot say when it would start
	LeaseExpired  Reason = 28 // the host could not renew its lease in time
	Forgotten     Reason = 29 // an operator says that the site will never return
	AttemptLost   Reason = 30 // the host lost the attempt, and the job may be run again
	NoLease       Reason = 31 // the host's version knows no leases
	ClockAhead    Reason = 32 // the host's clock is far ahead of the origin's
	CannotStart   Reason = 33 // the host could not start it, for a reason of its own
	LateGrant     Reason = 34 // the grant came after the claim had run out, and the host was busy
	AskLater      Reason = 35 // the site is asked more often than it answers
	Overdue       Reason = 36 // the host did not say that it ended, long after its time limit
	BusyOwner     Reason = 37 // the owner of the site's machine leaves it no time
	GuestWalltime Reason = 38 // the job may run longer than the site lets jobs of others
	KeptFree      Reason = 39 // the job is wider than what the site lets jobs of others have
	IdleElsewhere Reason = 40 // the host was busy when the input had come, and another site was idle
	NoCheckpoints Reason = 41 // the site's version knows no checkpoints, or it does not copy them while a job runs
	NotEvictable  Reason = 42 // the site has jobs of others leave, and the job could not go on elsewhere
	MadeWay       Reason = 43 // the copy had to leave for a job of the site's own before it had started
	Level         Reason = 44 // the site is of another level of the hierarchy than the job is at, or of none
	LevelFull     Reason = 45 // the site has more work of jobs of the hierarchy than its level takes
	LevelOverdue  Reason = 46 // the job has waited or run at the site's level for as long as that allows, or would
	LevelMismatch Reason = 47 // the job needs more work than the site's level does for one job
	NoEstimators  Reason = 48 // the site's version knows no estimators
	Pushed        Reason = 49 // another site of its level would be done with the job sooner
	NotSooner     Reason = 50 // the site would not be done with the job sooner than the one where it waits

	reasonCount = 51
)

var reasonWords = [reasonCount]string{
	"", "too-narrow", "too-small", "unreachable", "draining", "full", "stale-load", "unknown-load", "outranked",
	"local-only", "directory", "no-answer", "unknown-job", "unknown-copy", "stale-attempt", "held-by-other",
	"withdrawn", "user-hold", "user-cancel", "ended", "not-origin", "vanished", "has-copy", "disk-low", "lost-by-host",
	"bad-request", "too-many-copies", "would-not-start", "lease-expired", "forgotten", "attempt-lost",
	"no-lease", "clock-ahead", "cannot-start", "late-grant", "ask-later", "overdue", "busy-owner",
	"guest-walltime", "kept-free", "idle-elsewhere", "no-checkpoints", "not-evictable", "made-way",
	"level", "level-full", "level-overdue", "level-mismatch",
	"no-estimators", "pushed", "not-sooner",
}

var reasonSentences = [reasonCount]string{
	"",
	"it has fewer processors than the job needs",
	"it has less memory than the job needs",
	"no connection to it is up",
	"it is draining and takes no copies",
	"it holds as many copies of this origin as it takes",
	"its load report is too old to rank by",
	"it has not reported its load yet",
	"enough other sites ranked better",
	"the placement scheme keeps jobs at their origin",
	"it does not allow the job's working directory",
	"it did not answer in time",
	"it knows no such job",
	"it holds no copy of this attempt",
	"a later attempt exists",
	"another site holds the claim",
	"the copy was withdrawn",
	"the user holds the job back",
	"the user cancelled the job",
	"the job has ended",
	"the sender is not entitled to speak about this job",
	"it was out of reach for too long",
	"it has a copy already",
	"its disk is nearly full",
	"the host no longer knows the attempt",
	"the request is not valid",
	"it holds as many copies as it takes",
	"it cannot say when the job would start",
	"it did not renew its lease in time",
	"an operator says that it will never return",
	"it lost the attempt, and the job may be run again",
	"its version of Kith knows no leases",
	"its clock is more than a day ahead",
	"it cannot start jobs for now, for a reason of its own",
	"it was busy by the time it heard that it may start",
	"it is asked more often than it answers",
	"it did not say that the job ended, long after its time limit",
	"the owner of its machine leaves jobs less than a tenth of the time",
	"the job's time limit is longer than it gives to jobs of other sites",
	"the job is wider than what it gives to jobs of other sites",
	"it was busy when the job's input had come, and another site was idle",
	"its version of Kith knows no checkpoints, or it does not copy them while a job runs",
	"it has jobs of other sites leave for its own, and the job could not go on elsewhere",
	"it needed the processors for a job of its own users before the job had started",
	"it is not of the level of the hierarchy that the job is at",
	"it has more work of jobs of unknown length than its level takes",
	"its level lets a job wait and run no longer",
	"the job needs more than its level does for one job",
	"its version of Kith knows no estimators",
	"another site of the job's level would be done with it sooner",
	"it would not be done with the job clearly sooner than the site where it waits",
}

// String returns the reason's word, empty for [NoReason].
func (r Reason) String() string {
	if r >= reasonCount {
		return fmt.Sprintf("reason-%d", uint8(r))
	}
	return reasonWords[r]
}

// Sentence explains the reason to people; the subject "it" is the site.
func (r Reason) Sentence() string {
	if r >= reasonCount {
		return fmt.Sprintf("for reason %d, which this version does not know", uint8(r))
	}
	return reasonSentences[r]
}
