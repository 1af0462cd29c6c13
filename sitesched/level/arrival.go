package level

// Task is what the rules know of one task.
type Task struct {
	// Left is an upper bound of the work that is left, meaningless if Unknown.
	Left Complexity
	// Unknown says that there is no such bound.
	Unknown bool
	// Bound is the task's own β, 0 for that of the level.
	Bound float64
}

// Step is what [ProcessNewTask] says about a task that has come.
type Step uint8

const (
	// Stay says that the task waits here for its turn.
	Stay Step = iota
	// Estimate says that its work must be estimated, for at most [Limits.EstimateLimit]. Then
	// the task is processed again with Estimated.
	Estimate
	// Leave says that the task cannot stay. The [Verdict] has the trigger and its action.
	Leave
)

// Verdict is what becomes of a task that has come, see [Step].
type Verdict struct {
	Step    Step
	Trigger Trigger
	// Action is Demote, Reject or Terminate if the step is Leave.
	Action Action
}

// Arrival is a task that comes to a level, from its user or from the level above.
type Arrival struct {
	Task
	// Estimated says that it was estimated here, or cannot be. Overload is not looked at again.
	Estimated bool
}

// ProcessNewTask decides about a task that comes to a level in which the work q waits and runs
// (what [EnforceQueueLimits] returns, without this task), last if there is no level below.
//
// Overload comes first, so that nothing is estimated where the queue is full: q = C_q is not
// overload. A task with an unknown bound, or with one above C_e, is estimated; with the bound
// that there is then, C = C_e stays. A task whose bound stays unknown stays, too: limits find it later.
// A task is moved by one level only, however large its bound is, as the next level may find a smaller one.
//
// Source: spec 000 section 2.2.
func ProcessNewTask(l *Limits, q Complexity, t Arrival, last bool) Verdict {
	if !t.Estimated {
		work := q
		if l.CountArrival && !t.Unknown {
			work += t.Left
		}
		if a := l.Action(Overload, last); a != Off && work > l.QueueLimit() {
			return Verdict{Leave, Overload, a}
		}
	}
	if tooMuch := !t.Unknown && t.Left > l.TaskLimit(t.Bound); !t.Estimated && (t.Unknown || tooMuch) && l.EstimateShare > 0 {
		return Verdict{Step: Estimate}
	}
	if most, limited := l.MostLeft(t.Bound, last); limited && !t.Unknown && t.Left > most {
		return Verdict{Leave, Mismatch, l.Action(Mismatch, last)}
	}
	return Verdict{Step: Stay}
}

// MostLeft returns the most that may be left of a task that was estimated for it to stay, for one with the
// share bound or 0 for that of the level, and whether there is such a limit.
func (l *Limits) MostLeft(bound float64, last bool) (most Complexity, limited bool) {
	return l.TaskLimit(bound), l.Action(Mismatch, last) != Off
}
