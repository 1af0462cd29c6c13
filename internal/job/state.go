package job

import "fmt"

// State is where a job is in its life, as its origin knows it.
//
//	Blocked ──unblock──► Pending    (refuse: Cancelled, also from OnHold; hold: OnHold)
//
//	            hold                                      the claim of the attempt is
//	  ┌──────► OnHold ──┐ release
//	  │          ▲ hold │                                  (none)
//	Pending ◄────┼──────┘
//	  │  ▲       │
//	  │  └───────┤ lost all copies
//	  ▼ placed   │
//	Queued ──────┘                                         Open
//	  │ granted        ┌─ gave back, revoked ─► Pending
//	  ▼                │
//	Claimed ───────────┤                                   Taken
//	  │ began          │ cancel      (Running, too, is Pending again when revoked)
//	  ▼                ▼
//	Running ─cancel─► Cancelling                           Taken
//	  │ finished       │ finished
//	  ▼                ▼
//	Returning  (outcome known, output on its way home)     Taken
//	  │        (Pending again when revoked, or requeued: the attempt was demoted)
//	  ▼
//	Completed · Failed · TimedOut · Cancelled · Lost       Closed
//
// A job that waits for others begins as Blocked, which OnHold leads back to while it
// waits. A job that does not run is cancelled at once. The state of the claim (design:
// Open, Taken, Closed) is a function of this state, see [State.Claim].
type State uint8

// The states of a job. The numbers are stored; they are frozen.
const (
	Pending    State = 1  // accepted, no copy placed
	OnHold     State = 2  // the user holds it back
	Queued     State = 3  // copies wait at sites, the claim is open
	Claimed    State = 4  // one site holds the claim and prepares the start
	Running    State = 5  // that site runs it
	Cancelling State = 6  // cancelled, that site has yet to confirm the end
	Returning  State = 7  // ended, its output is on its way to the origin
	Completed  State = 8  // ended with exit code 0
	Failed     State = 9  // ended otherwise
	TimedOut   State = 10 // stopped at its walltime
	Cancelled  State = 11 // ended because the user cancelled it, or what it waited for ended in another way
	Lost       State = 12 // the host lost it
	Blocked    State = 13 // waits for other jobs or bags to end, see [Dependency]

	stateCount = 14
)

// Event is what moves a job from one state to the next.
type Event uint8

// The events of a job's life.
const (
	Place   Event = iota // copies were placed, the attempt is open
	Unplace              // no site holds a copy any more
	Hold
	Release
	Grant    // a site got the claim
	GiveBack // that site gave the claim back without having started
	Begin    // that site started the command
	RequestCancel
	Finish // the outcome is known
	CloseSuccess
	CloseFailure
	CloseTimeout
	CloseCancel
	CloseLoss
	Revoke  // the origin took the claim back: that site can run it no longer, or it may run twice
	Outrace // an earlier attempt of a job that may run twice has ended first
	Block   // it waits for other jobs or bags
	Unblock // all that it waited for has ended as it had to
	Refuse  // what it waited for has ended otherwise: it can never start
	Requeue // the attempt was demoted, and what it left is here: another one goes on

	eventCount
)

// transitions is the whole life cycle. What is not here cannot happen.
var transitions = [stateCount][eventCount]State{
	Pending: {Place: Queued, Hold: OnHold, RequestCancel: Cancelled, Outrace: Returning, Block: Blocked},
	OnHold:  {Release: Pending, RequestCancel: Cancelled, Outrace: Returning, Refuse: Cancelled},
	Blocked: {Unblock: Pending, Hold: OnHold, RequestCancel: Cancelled, Refuse: Cancelled},
	Queued:  {Unplace: Pending, Hold: OnHold, Grant: Claimed, RequestCancel: Cancelled, Outrace: Returning},
	Claimed: {GiveBack: Pending, Begin: Running, RequestCancel: Cancelling, Finish: Returning, Revoke: Pending, Outrace: Returning},
	Running: {RequestCancel: Cancelling, Finish: Returning, Revoke: Pending, Outrace: Returning},
	// The start report of a cancelled job may still arrive; a holder that
	// gives the claim back unstarted has carried out the cancellation.
	Cancelling: {Begin: Cancelling, GiveBack: Cancelled, RequestCancel: Cancelling, Finish: Returning, Revoke: Cancelled, Outrace: Returning},
	// A job that may be run again is, when the site is away that has its output;
	// one that was cancelled ends without.
	Returning: {
		RequestCancel: Returning, Revoke: Pending, Requeue: Pending,
		CloseSuccess: Completed, CloseFailure: Failed, CloseTimeout: TimedOut,
		CloseCancel: Cancelled, CloseLoss: Lost,
	},
}

// Next returns the state that ev leads to, and false if ev cannot happen in s.
func (s State) Next(ev Event) (State, bool) {
	if s >= stateCount || ev >= eventCount {
		return s, false
	}
	to := transitions[s][ev]
	if to == 0 {
		return s, false
	}
	return to, true
}

// Terminal reports whether the job has ended.
func (s State) Terminal() bool { return s >= Completed && s <= Lost }

// ClaimState is the state of the semaphore that the origin keeps for an attempt.
type ClaimState uint8

// The states of a claim (design: the claim).
const (
	ClaimNone   ClaimState = iota // no attempt is open
	ClaimOpen                     // the first site that asks gets it
	ClaimTaken                    // one site has it
	ClaimClosed                   // the job has ended
)

// Claim returns the state of the claim of the job's latest attempt.
func (s State) Claim() ClaimState {
	switch s {
	case Queued:
		return ClaimOpen
	case Claimed, Running, Cancelling, Returning:
		return ClaimTaken
	case Completed, Failed, TimedOut, Cancelled, Lost:
		return ClaimClosed
	default:
		return ClaimNone
	}
}

var stateNames = [stateCount]string{
	Pending: "PENDING", OnHold: "HELD", Queued: "QUEUED", Claimed: "CLAIMED", Running: "RUNNING",
	Cancelling: "CANCELLING", Returning: "RETURNING", Completed: "COMPLETED", Failed: "FAILED",
	TimedOut: "TIMEOUT", Cancelled: "CANCELLED", Lost: "LOST", Blocked: "BLOCKED",
}

// String returns the name that users see.
func (s State) String() string {
	if s == 0 || s >= stateCount {
		return fmt.Sprintf("STATE(%d)", uint8(s))
	}
	return stateNames[s]
}

var eventNames = [eventCount]string{
	"place", "unplace", "hold", "release", "grant", "give back", "begin", "request cancel", "finish",
	"close: success", "close: failure", "close: timeout", "close: cancel", "close: loss", "revoke", "outrace",
	"block", "unblock", "refuse", "requeue",
}

// String returns the event in words.
func (e Event) String() string {
	if e >= eventCount {
		return fmt.Sprintf("event(%d)", uint8(e))
	}
	return eventNames[e]
}
