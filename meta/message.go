package meta

import (
	"time"

	"kith/cluster"
	"kith/internal/forecast"
	"kith/internal/job"
	"kith/store"
)

// Message is what one site tells another; docs/protocol.md shows who sends
// what when. The set is closed: all kinds are in this file and taskmessage.go.
type Message interface {
	kind() kind
	// Word names the kind for people and logs: "place-copy", "verdict".
	Word() string
}

// PlaceCopy asks a host to queue a copy. Origin to host.
type PlaceCopy struct {
	Attempt job.AttemptID
	Request job.Request
	// Before is what the job did in earlier attempts.
	Before job.Progress
	// OriginTooSmall says that the origin can never run it.
	OriginTooSmall bool
	// Stays says that its attempts were evicted [job.MaxEvictions] times: no further one is to be.
	Stays bool
	// Elsewhere is, above 0, in how long another site of its level, where it waits, would be done with
	// it: the host is to take it only if it would be clearly sooner, see push.go.
	Elsewhere time.Duration
}

// CopyAnswer says that the copy is on the host's disk, or why not. Host to origin.
type CopyAnswer struct {
	Attempt  job.AttemptID
	Accepted bool
	Reason   job.Reason
	// Final says, with a reason of levels, that the job is not to go to a lower one either.
	Final bool
}

// Claim asks for the right to start. Host to origin.
type Claim struct {
	Attempt job.AttemptID
	// Stamp is the host's count of its own protocol steps.
	Stamp uint64
	// Sent is when it was sent by the host's clock; it comes back with the answer.
	Sent job.Time
}

// Verdict answers a claim. Origin to host.
type Verdict struct {
	Attempt job.AttemptID
	Granted bool
	// Reason and Winner say why not.
	Reason job.Reason
	Winner job.SiteID
	// Payload is what to run, with a grant; see [Grant].
	Payload []byte
	// Lease is how long the host may run the attempt from Sent, 0 if without a
	// bound. Sent is that of the claim, 0 of a grant that answers none, but reminds the host of
	// one that was granted before: the first that was had Stamp.
	Lease time.Duration
	Sent  job.Time
	Stamp uint64
}

// Renew asks to go on running an attempt under a lease. Host to origin.
type Renew struct {
	Attempt job.AttemptID
	// Sent is when it was sent by the host's clock.
	Sent job.Time
}

// Renewed answers it. Origin to host.
type Renewed struct {
	Attempt job.AttemptID
	Sent    job.Time // that of the request
	// Lease is how long the host may go on from Sent; 0: no longer at all.
	Lease time.Duration
}

// Withdraw asks a host to drop its copies of the job up to this attempt. Origin to host.
type Withdraw struct{ Attempt job.AttemptID }

// WithdrawAck says that they are gone. Host to origin.
type WithdrawAck struct{ Attempt job.AttemptID }

// Started says that the command, or its estimator, runs. Host to origin. It comes once more, with Over, when
// all processes are gone and the output is being collected.
type Started struct {
	Attempt job.AttemptID
	At      job.Time // by the host's clock; 0 if it is not known
	Over    bool
	// Bound is the least that its estimator has given so far, 0 for none, see [EstimateTold]. It comes
	// once more with each that is lower.
	Bound float64
}

// Result says how the attempt ended. Host to origin, until acknowledged.
type Result struct {
	Attempt job.AttemptID
	Outcome job.Outcome
}

// ResultAck says that the origin needs nothing more of the attempt. Origin to host.
type ResultAck struct {
	Attempt job.AttemptID
	// Accepted is false if another outcome was recorded: this one is superseded.
	Accepted bool
}

// Stop asks a host to stop an attempt, and to report its end. Origin to host.
type Stop struct {
	Attempt job.AttemptID
	// Stale says that the origin would refuse whatever came of it: the host need not
	// collect what it leaves. False of an attempt that a user cancels.
	Stale bool
}

// Demote asks a host to have an attempt save what it has done and end, so that its job goes on in
// another one, as its user wishes. It is answered by the Result. Origin to host.
type Demote struct{ Attempt job.AttemptID }

// Saved says what an attempt that runs has saved. Host to origin, until acknowledged.
type Saved struct {
	Attempt job.AttemptID
	// Sequence is the number of the checkpoint, 0 if there was no copy, for Reason; that is not
	// acknowledged. One that its origin's driver found not to count has a Reason there, too.
	Sequence uint64
	Reason   string
	// Files are its files, encoded; FilesRemain says that some have to be fetched from the host.
	Files       []byte
	FilesRemain bool
	// Ran is how long the attempt had run.
	Ran time.Duration
}

// SavedAck answers it. Origin to host.
type SavedAck struct {
	Attempt  job.AttemptID
	Sequence uint64
	// Accepted says that the job goes on from it if the host is lost.
	Accepted bool
}

// GiveBack says that the host does not hold this copy. Host to origin.
type GiveBack struct {
	Attempt job.AttemptID
	Reason  job.Reason
	// Stamp is the host's count of its own protocol steps when it said so; 0
	// from an earlier version, which does not say.
	Stamp uint64
	// Final says, with a reason of levels, that the job is not to go to a lower one either.
	Final bool
}

// CopySummary counts what the host holds of the origin. Host to origin.
type CopySummary struct {
	Count, Hash uint64
	// GivenUp is the host's count of its own protocol steps when it admitted the origin: what
	// it had claimed of it before it has given up, begun or not. 0 if it keeps no table of
	// trust, or its version is an earlier one.
	GivenUp uint64
}

// DigestRequest asks for the list behind a summary. Origin to host.
type DigestRequest struct{}

// CopyDigest is a page of that list, ordered by job. Host to origin.
type CopyDigest struct {
	// Stamp is the host's count of its own protocol steps when the page was
	// made: what the page lacks was not there then.
	Stamp uint64
	// The page covers jobs with After < id <= Through; a zero After begins at
	// the first, and a zero Through ends with the last.
	After, Through job.ID
	Entries        []DigestEntry
}

// DigestEntry is one copy that a host holds.
type DigestEntry struct {
	Attempt job.AttemptID
	Begun   bool
	Ended   bool
	// Started is when the command started by the host's clock, 0 if it has not.
	Started job.Time
}

// LoadDigest says how loaded the sender is. Either way.
type LoadDigest struct{ Digest cluster.Digest }

// StartQuery asks when a copy would start. Origin to candidate.
type StartQuery struct {
	Query   uint64
	Request job.Request
	// Before is as in [PlaceCopy].
	Before job.Progress
	// Predict asks for a prediction instead of metric "start".
	Predict bool
	// Draws asks for a forecast made of that many scenarios; 0 for none. Attempt is the
	// copy that is queued there already; the zero attempt for one that would come now.
	Draws   uint16
	Attempt job.AttemptID
}

// StartAnswer says when. Candidate to origin.
type StartAnswer struct {
	Query uint64
	Wait  time.Duration
	// Reason is why there is no answer.
	Reason job.Reason
	// Waits are the forecast that was asked for, with its Basis; none if that is
	// [forecast.NoStart]. Wait is then that by the limits, 0 if it is not known.
	Waits forecast.Waits
	Basis forecast.StartBasis
}

// SiteBundle is the bundle of the sender, which the driver has read: it is of Site, and a CA
// by which that is known has signed it. Told is where it can be dialled, nil if it does not
// say. Either way.
type SiteBundle struct {
	Site   job.SiteID
	Bundle store.Bundle
	Told   *store.Told
}

// BundleTaken says that the sender knows the receiver by its bundle of a sequence. Either way.
type BundleTaken struct{ Sequence uint64 }

func (PlaceCopy) kind() kind     { return placeCopyKind }
func (CopyAnswer) kind() kind    { return copyAnswerKind }
func (Claim) kind() kind         { return claimKind }
func (Verdict) kind() kind       { return verdictKind }
func (Renew) kind() kind         { return renewKind }
func (Renewed) kind() kind       { return renewedKind }
func (Withdraw) kind() kind      { return withdrawKind }
func (WithdrawAck) kind() kind   { return withdrawAckKind }
func (Started) kind() kind       { return startedKind }
func (Result) kind() kind        { return resultKind }
func (ResultAck) kind() kind     { return resultAckKind }
func (Stop) kind() kind          { return stopKind }
func (Demote) kind() kind        { return demoteKind }
func (Saved) kind() kind         { return savedKind }
func (SavedAck) kind() kind      { return savedAckKind }
func (GiveBack) kind() kind      { return giveBackKind }
func (CopySummary) kind() kind   { return copySummaryKind }
func (DigestRequest) kind() kind { return digestRequestKind }
func (CopyDigest) kind() kind    { return copyDigestKind }
func (LoadDigest) kind() kind    { return loadDigestKind }
func (StartQuery) kind() kind    { return startQueryKind }
func (StartAnswer) kind() kind   { return startAnswerKind }
func (SiteBundle) kind() kind    { return siteBundleKind }
func (BundleTaken) kind() kind   { return bundleTakenKind }

func (PlaceCopy) Word() string     { return rights[placeCopyKind].Kind }
func (CopyAnswer) Word() string    { return rights[copyAnswerKind].Kind }
func (Claim) Word() string         { return rights[claimKind].Kind }
func (Verdict) Word() string       { return rights[verdictKind].Kind }
func (Renew) Word() string         { return rights[renewKind].Kind }
func (Renewed) Word() string       { return rights[renewedKind].Kind }
func (Withdraw) Word() string      { return rights[withdrawKind].Kind }
func (WithdrawAck) Word() string   { return rights[withdrawAckKind].Kind }
func (Started) Word() string       { return rights[startedKind].Kind }
func (Result) Word() string        { return rights[resultKind].Kind }
func (ResultAck) Word() string     { return rights[resultAckKind].Kind }
func (Stop) Word() string          { return rights[stopKind].Kind }
func (Demote) Word() string        { return rights[demoteKind].Kind }
func (Saved) Word() string         { return rights[savedKind].Kind }
func (SavedAck) Word() string      { return rights[savedAckKind].Kind }
func (GiveBack) Word() string      { return rights[giveBackKind].Kind }
func (CopySummary) Word() string   { return rights[copySummaryKind].Kind }
func (DigestRequest) Word() string { return rights[digestRequestKind].Kind }
func (CopyDigest) Word() string    { return rights[copyDigestKind].Kind }
func (LoadDigest) Word() string    { return rights[loadDigestKind].Kind }
func (StartQuery) Word() string    { return rights[startQueryKind].Kind }
func (StartAnswer) Word() string   { return rights[startAnswerKind].Kind }
func (SiteBundle) Word() string    { return rights[siteBundleKind].Kind }
func (BundleTaken) Word() string   { return rights[bundleTakenKind].Kind }
