package meta

import (
	"time"

	"kith/cluster"
	"kith/internal/job"
)

// Message is what one site tells another; docs/protocol.md shows who sends
// what when. The set is closed: all kinds are in this file.
type Message interface {
	message()
	// Word names the kind for people and logs: "place-copy", "verdict".
	Word() string
}

// PlaceCopy asks a host to queue a copy. Origin to host.
type PlaceCopy struct {
	Attempt job.AttemptID
	Request job.Request
	// OriginTooSmall says that the origin can never run it.
	OriginTooSmall bool
}

// CopyAnswer says that the copy is on the host's disk, or why not. Host to origin.
type CopyAnswer struct {
	Attempt  job.AttemptID
	Accepted bool
	Reason   job.Reason
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
	// bound. Sent is that of the claim.
	Lease time.Duration
	Sent  job.Time
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

// Started says that the command runs. Host to origin.
type Started struct {
	Attempt job.AttemptID
	At      job.Time // by the host's clock
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
type Stop struct{ Attempt job.AttemptID }

// GiveBack says that the host does not hold this copy. Host to origin.
type GiveBack struct {
	Attempt job.AttemptID
	Reason  job.Reason
	// Stamp is the host's count of its own protocol steps when it said so; 0
	// from an earlier version, which does not say.
	Stamp uint64
}

// CopySummary counts what the host holds of the origin. Host to origin.
type CopySummary struct {
	Count, Hash uint64
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
	// Predict asks for a prediction instead of metric "start".
	Predict bool
}

// StartAnswer says when. Candidate to origin.
type StartAnswer struct {
	Query uint64
	Wait  time.Duration
	// Reason is why there is no answer.
	Reason job.Reason
}

func (PlaceCopy) message()     {}
func (CopyAnswer) message()    {}
func (Claim) message()         {}
func (Verdict) message()       {}
func (Renew) message()         {}
func (Renewed) message()       {}
func (Withdraw) message()      {}
func (WithdrawAck) message()   {}
func (Started) message()       {}
func (Result) message()        {}
func (ResultAck) message()     {}
func (Stop) message()          {}
func (GiveBack) message()      {}
func (CopySummary) message()   {}
func (DigestRequest) message() {}
func (CopyDigest) message()    {}
func (LoadDigest) message()    {}
func (StartQuery) message()    {}
func (StartAnswer) message()   {}

func (PlaceCopy) Word() string     { return "place-copy" }
func (CopyAnswer) Word() string    { return "copy-answer" }
func (Claim) Word() string         { return "claim" }
func (Verdict) Word() string       { return "verdict" }
func (Renew) Word() string         { return "renew" }
func (Renewed) Word() string       { return "renewed" }
func (Withdraw) Word() string      { return "withdraw" }
func (WithdrawAck) Word() string   { return "withdraw-ack" }
func (Started) Word() string       { return "started" }
func (Result) Word() string        { return "result" }
func (ResultAck) Word() string     { return "result-ack" }
func (Stop) Word() string          { return "stop" }
func (GiveBack) Word() string      { return "give-back" }
func (CopySummary) Word() string   { return "copy-summary" }
func (DigestRequest) Word() string { return "digest-request" }
func (CopyDigest) Word() string    { return "copy-digest" }
func (LoadDigest) Word() string    { return "load-digest" }
func (StartQuery) Word() string    { return "start-query" }
func (StartAnswer) Word() string   { return "start-answer" }
