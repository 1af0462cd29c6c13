package level

import (
	"errors"
	"fmt"
	"slices"
)

// Trigger is why a task has to leave a level (spec 000 section 2.4).
type Trigger uint8

// The triggers, in the order in which they are tested: the first two at an arrival, the others
// while a task waits or runs.
const (
	// Overload is too much work in the queue that a task comes to.
	Overload Trigger = iota
	// Mismatch is a task that needs more than the level allows to one.
	Mismatch
	// Overdue is a task that has stayed or run for longer than the limits.
	Overdue
	// TaskOverdue is a task that would become overdue with all processors of the level.
	TaskOverdue
	// QueueOverdue is a task that would make those after it overdue: with it the queue has more work than C_q.
	QueueOverdue

	// Triggers is how many there are.
	Triggers = 5
)

var triggerNames = []string{"overload", "mismatch", "overdue", "task_overdue", "queue_overdue"}

// String returns the word of a configuration.
func (t Trigger) String() string { return word(triggerNames, t) }

// Action is what becomes of a task when a trigger acts.
type Action uint8

const (
	// Default is what spec 000 section 2.4 says, by whether there is a level below.
	Default Action = iota
	// Demote moves the task to the next lower level, with a checkpoint if it runs.
	Demote
	// Reject gives the task back to its user with the reason.
	Reject
	// Terminate ends the task, which keeps the results that it has.
	Terminate
	// Off lets the task stay as far as this trigger goes; the next one is tested.
	Off
)

var actionNames = []string{"default", "demote", "reject", "terminate", "off"}

// String returns the word that [ParseAction] reads.
func (a Action) String() string { return word(actionNames, a) }

// ErrUnknownWord is returned when a text is none of the words a setting knows.
var ErrUnknownWord = errors.New("not one of the known words")

// ParseAction reads default, demote, reject, terminate or off.
func ParseAction(s string) (Action, error) {
	if i := slices.Index(actionNames, s); i >= 0 {
		return Action(i), nil // the table has a handful of words
	}
	return 0, fmt.Errorf("action %.40q: %w %v", s, ErrUnknownWord, actionNames)
}

func word[T ~uint8](names []string, v T) string {
	if int(v) < len(names) {
		return names[v]
	}
	return fmt.Sprintf("unknown(%d)", uint8(v))
}

// onLast is the last column of the table of spec 000 section 2.4: below the last level there is
// nothing to move to, and tasks there run to the real limit so that users get what is done.
var onLast = [Triggers]Action{Overload: Reject, Mismatch: Reject, Overdue: Terminate, TaskOverdue: Off, QueueOverdue: Off}
