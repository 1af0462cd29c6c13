package meta

import (
	"errors"
	"fmt"
)

// Errors with which requests about bags fail, beside those about jobs; each changes nothing.
var (
	// ErrUnknownBag is returned when there is no such bag.
	ErrUnknownBag = errors.New("no such bag")
	// ErrBagEnded is returned when all tasks of the bag have ended.
	ErrBagEnded = errors.New("bag has ended")
	// ErrBagNotHeld is returned when a bag to be released is not held.
	ErrBagNotHeld = errors.New("bag is not held")
	// ErrBagCancelling is returned when a bag is being cancelled and its tasks can be
	// neither held nor run again.
	ErrBagCancelling = errors.New("bag is being cancelled")
	// ErrStalePolicies is returned when the policies of a bag were replaced since those that
	// a request names were read.
	ErrStalePolicies = errors.New("the bag has other policies by now")
	// ErrTasksNotEnded is returned when a task is to run again that has not ended.
	ErrTasksNotEnded = errors.New("only tasks that have ended can run again")
	// ErrSingletonRuns is returned when tasks of a bag are to run again that is to be the only
	// one of its user and name, and another one goes on.
	ErrSingletonRuns = errors.New("it is a singleton, and another job or bag of its name goes on")
)

// PolicyStepsError says that the policies of all open bags would take too long, or that this
// is not known yet. It wraps [ErrFull].
type PolicyStepsError struct {
	// Steps are those of the policies that are refused, Others those of the other bags.
	Steps, Others int
	// Unread is set in place of both after a start: how many bags have policies that were not
	// looked at yet.
	Unread int
}

// Error implements error.
func (e *PolicyStepsError) Error() string {
	if e.Unread > 0 {
		return fmt.Sprintf("policies: this site has just started, and has to read those of %d bags first; try again in a few seconds", e.Unread)
	}
	return fmt.Sprintf("policies: they may take %d steps an ask, those of the other bags that have not ended %d, and all together at most %d; "+
		"state simpler ones or fewer, with simpler patterns, or wait until other bags have ended", e.Steps, e.Others, mostPolicySteps)
}

// Unwrap returns [ErrFull].
func (e *PolicyStepsError) Unwrap() error { return ErrFull }
