package meta

import "errors"

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
	// ErrTasksNotEnded is returned when a task is to run again that has not ended.
	ErrTasksNotEnded = errors.New("only tasks that have ended can run again")
)
