package job

import (
	"cmp"
	"errors"
	"fmt"
	"strconv"
	"time"
)

// TaskID names a task of a bag. Ordinal counts the tasks of the bag from 0; users know
// them by their index, see [Indices] and [TaskID.Name].
type TaskID struct {
	Bag     ID
	Ordinal uint32
}

// HashParts returns what hash tables need to know of t.
func (t TaskID) HashParts() (text string, x, y uint64) {
	return string(t.Bag.Origin), t.Bag.Seq, uint64(t.Bag.Generation)<<32 | uint64(t.Ordinal)
}

// Compare orders tasks by bag, then by ordinal.
func (t TaskID) Compare(u TaskID) int {
	if c := t.Bag.Compare(u.Bag); c != 0 {
		return c
	}
	return cmp.Compare(t.Ordinal, u.Ordinal)
}

// String returns the task by its ordinal, as logs have it where the bag's indices are not
// at hand: "uni-a.k3f9.17[42]". It cannot be taken for the task's name.
func (t TaskID) String() string {
	b := append(t.Bag.Append(nil), '[')
	return string(append(strconv.AppendUint(b, uint64(t.Ordinal), 10), ']'))
}

// Name returns the task as users name it: the bag and the task's index,
// "uni-a.k3f9.17_4711". It panics if indices, those of the bag, has no such ordinal.
func (t TaskID) Name(indices *Indices) string {
	b := append(t.Bag.Append(nil), '_')
	return string(strconv.AppendUint(b, uint64(indices.Index(t.Ordinal)), 10))
}

// ErrBadTaskName is returned when a text is not the name of a task.
var ErrBadTaskName = errors.New("a task reads BAG_INDEX, for example uni-a.k3f9.17_4711")

// ParseTaskName reads what [TaskID.Name] writes and nothing else: a bag, which need not
// exist, and an index, which it may not have. The error wraps [ErrBadTaskName].
func ParseTaskName(s string) (bag ID, index uint32, err error) {
	bagText, indexText, _ := cutLast(s, '_')
	bag, err = ParseID(bagText)
	n, ok := parseIndex(indexText)
	if err != nil || !ok || n > MaxTaskIndex || strconv.FormatUint(n, 10) != indexText {
		return ID{}, 0, fmt.Errorf("task %q: %w", clip(s), ErrBadTaskName)
	}
	return bag, uint32(n), nil
}

// TaskResult is how a task ended, as its bag records it. What else an [Outcome] has is
// kept for a batch of tasks or for failures only.
type TaskResult struct {
	Ordinal uint32
	Kind    OutcomeKind
	// ExitCode is what the command returned, 0 to 255, and Signal the number of the signal
	// that ended it, zero if none did; then the code means nothing.
	ExitCode, Signal int32
	// Start is by the host's clock, zero if the command never ran. It ran for Run.
	Start Time
	Run   time.Duration
	// CPUTime is user and system time of the command and its children.
	CPUTime time.Duration
	// MaxRSSBytes is the largest resident set of any one process of the task.
	MaxRSSBytes int64
	// FilesLost says that some of its output could not be taken, kept or brought home.
	FilesLost bool
	// ErrorLine is, of a failure or a timeout only, the last line that it wrote to stderr,
	// why it was not started, or which outputs it lacks that it must have, as [ErrorLineOf]
	// makes it. Bags count failures by it; the record of the task does not keep it.
	ErrorLine string
}

// MaxSignal bounds [TaskResult.Signal].
const MaxSignal = 64

// ErrBadTaskResult is returned for a result that no task can have.
var ErrBadTaskResult = errors.New("a task's result has a known kind, an exit code of 0 to 255, a signal of 0 to 64, neither time nor memory below 0, and a line of errors only if it failed, of at most 128 bytes without control characters")

// Validate returns what is wrong with a result that came from outside, by itself: an
// error wrapping [ErrBadTaskResult], or nil.
func (r *TaskResult) Validate() error {
	bad := func(field string, value any) error {
		return fmt.Errorf("result of task %d, %s %v: %w", r.Ordinal, field, value, ErrBadTaskResult)
	}
	switch {
	case r.Ordinal >= MaxTasks:
		return bad("ordinal", r.Ordinal)
	case r.Kind < Success || r.Kind > Loss:
		return bad("kind", uint8(r.Kind))
	case r.ExitCode < 0 || r.ExitCode > 255:
		return bad("exit_code", r.ExitCode)
	case r.Signal < 0 || r.Signal > MaxSignal:
		return bad("signal", r.Signal)
	case r.Kind == Success && (r.ExitCode != 0 || r.Signal != 0):
		return bad("a success with exit_code and signal", [2]int32{r.ExitCode, r.Signal})
	case r.Start < 0:
		return bad("start", int64(r.Start))
	case r.Run < 0 || r.Run > MaxWalltime:
		return bad("run", r.Run)
	case r.CPUTime < 0:
		return bad("cpu_time", r.CPUTime)
	case r.MaxRSSBytes < 0 || r.MaxRSSBytes > MaxMemoryBytes:
		return bad("max_rss_bytes", r.MaxRSSBytes)
	case r.ErrorLine != "" && (r.Kind != Failure && r.Kind != Timeout || !isErrorLine(r.ErrorLine)):
		return bad("error_line", fmt.Sprintf("%.*q", MaxErrorLine, r.ErrorLine))
	}
	return nil
}
