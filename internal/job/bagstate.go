package job

import "fmt"

// BagState is where a bag is in its life, as its origin knows it.
//
//	Blocked ─unblock─► Open   (refuse: Cancelling, also from OnHold; hold: OnHold)
//
//	       hold
//	  ┌──────────► OnHold
//	Open ◄───────────┘ │      a task that is with a site goes on in OnHold, and its
//	  │ │   release    │      result counts; no task is given out
//	  │ │              │
//	  │ └─ cancel ─┬───┘
//	  │            ▼
//	  │       Cancelling      no task is given out, those with sites are being stopped
//	  │            │
//	  ▼ resolved   ▼ resolved (also from OnHold)
//	Returning                 every task has ended; output is on its way home
//	  │ closed
//	  ▼
//	Completed · Failed · Cancelled
//	  │ retry
//	  └──────► Open           (from Returning, too)
//
// A bag that waits for others begins as Blocked, which OnHold leads back to while it waits. A bag is cancelled by two events, RequestBagCancel and, in the same step if no site has
// a task of it, ResolveBag. Only a retry leads out of an end: it makes tasks that have
// ended such as have not.
type BagState uint8

// The states of a bag. The numbers are stored; they are frozen.
const (
	BagOpen       BagState = 1 // tasks are given out, or all that are left are with sites
	BagOnHold     BagState = 2 // the user, or a rule, holds it back
	BagCancelling BagState = 3 // cancelled, sites have yet to confirm the end of tasks
	BagReturning  BagState = 4 // every task has ended, some output is on its way to the origin
	BagCompleted  BagState = 5 // every task ended with exit code 0
	BagFailed     BagState = 6 // a task ended otherwise
	BagCancelled  BagState = 7 // ended because the user cancelled it, or what it waited for ended in another way
	BagBlocked    BagState = 8 // waits for other jobs or bags to end, see [Dependency]; no task is given out

	bagStateCount = 9
)

// BagEvent is what moves a bag from one state to the next.
type BagEvent uint8

// The events of a bag's life.
const (
	BagHold BagEvent = iota
	BagRelease
	RequestBagCancel
	ResolveBag // no task is left that has not ended
	BagRetry   // tasks that have ended are to run again
	CloseBagSuccess
	CloseBagFailure
	CloseBagCancel
	BagBlock   // it waits for other jobs or bags
	BagUnblock // all that it waited for has ended as it had to
	BagRefuse  // what it waited for has ended otherwise: no task can ever run

	bagEventCount
)

// bagTransitions is the whole life cycle. What is not here cannot happen.
var bagTransitions = [bagStateCount][bagEventCount]BagState{
	BagOpen:   {BagHold: BagOnHold, RequestBagCancel: BagCancelling, ResolveBag: BagReturning, BagRetry: BagOpen, BagBlock: BagBlocked},
	BagOnHold: {BagRelease: BagOpen, RequestBagCancel: BagCancelling, ResolveBag: BagReturning, BagRetry: BagOnHold, BagRefuse: BagCancelling},
	BagBlocked: {
		BagUnblock: BagOpen, BagHold: BagOnHold, RequestBagCancel: BagCancelling, ResolveBag: BagReturning, BagRetry: BagBlocked,
		BagRefuse: BagCancelling,
	},
	BagCancelling: {RequestBagCancel: BagCancelling, ResolveBag: BagReturning},
	BagReturning: {
		RequestBagCancel: BagReturning, BagRetry: BagOpen,
		CloseBagSuccess: BagCompleted, CloseBagFailure: BagFailed, CloseBagCancel: BagCancelled,
	},
	BagCompleted: {BagRetry: BagOpen},
	BagFailed:    {BagRetry: BagOpen},
	BagCancelled: {BagRetry: BagOpen},
}

// Next returns the state that ev leads to, and false if ev cannot happen in s.
func (s BagState) Next(ev BagEvent) (BagState, bool) {
	if s >= bagStateCount || ev >= bagEventCount {
		return s, false
	}
	to := bagTransitions[s][ev]
	if to == 0 {
		return s, false
	}
	return to, true
}

// Terminal reports whether the bag has ended. It may be open again after a retry.
func (s BagState) Terminal() bool { return s >= BagCompleted && s <= BagCancelled }

// Resolved reports whether every task of the bag has ended.
func (s BagState) Resolved() bool { return s == BagReturning || s.Terminal() }

// Gives reports whether tasks of the bag may be given to sites.
func (s BagState) Gives() bool { return s == BagOpen }

var bagStateNames = [bagStateCount]string{
	BagOpen: "OPEN", BagOnHold: "HELD", BagCancelling: "CANCELLING", BagReturning: "RETURNING",
	BagCompleted: "COMPLETED", BagFailed: "FAILED", BagCancelled: "CANCELLED", BagBlocked: "BLOCKED",
}

// String returns the name that users see.
func (s BagState) String() string {
	if s == 0 || s >= bagStateCount {
		return fmt.Sprintf("STATE(%d)", uint8(s))
	}
	return bagStateNames[s]
}

var bagEventNames = [bagEventCount]string{
	"hold", "release", "request cancel", "resolve", "retry", "close: success", "close: failure", "close: cancel",
	"block", "unblock", "refuse",
}

// String returns the event in words.
func (e BagEvent) String() string {
	if e >= bagEventCount {
		return fmt.Sprintf("event(%d)", uint8(e))
	}
	return bagEventNames[e]
}
