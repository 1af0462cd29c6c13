package level

import "time"

// Occupant is a task at a level, waiting or running.
type Occupant struct {
	Task
	// Stayed is t_q, how long ago it arrived here, and Ran is t_e, how long ago it started
	// here, 0 if it has not.
	Stayed, Ran time.Duration
	// Last says that no level is below that would take it.
	Last bool
}

// Departure is a task that has to leave.
type Departure struct {
	// Index is its place among the tasks that [EnforceQueueLimits] was given.
	Index   int
	Trigger Trigger
	// Action is Demote, Reject or Terminate.
	Action Action
}

// EnforceQueueLimits goes through the tasks of a level from the head of its queue to the tail. It
// appends those that must leave to list, in that order, and returns the work Q of those that
// stay. last says of all that no level is below, as [Occupant].Last does of one. It allocates nothing once list has room.
//
// A trigger that is off is passed over. Who is alone at the level is not moved or ended for being
// overdue: that waits until another task is there; the other triggers do not wait. A task with an
// unknown bound is never said to become overdue, and counts as what it may use here at the most
// before a limit stops it: the source has no such tasks.
//
// Source: spec 000 sections 2.3 and 2.4.
func EnforceQueueLimits(l *Limits, tasks []Occupant, last bool, list []Departure) ([]Departure, Complexity) {
	// Everything that is the same for many tasks is read once.
	above, onLast := l.enforced(false), l.enforced(true)
	most := l.QueueLimit()
	var q Complexity
	for i := range tasks {
		t := &tasks[i]
		act := &above
		if last || t.Last {
			act = &onLast
		}
		late := t.Stayed > l.Queue || t.Ran > l.Run
		if late && act.overdue != Off {
			if len(tasks) > 1 {
				list = append(list, Departure{i, Overdue, act.overdue})
				continue
			}
			return list, l.counts(t)
		}
		c := l.counts(t)
		if !t.Unknown && act.taskOverdue != Off && c > l.Phi(l.remains(t), t.Bound) {
			list = append(list, Departure{i, TaskOverdue, act.taskOverdue})
			continue
		}
		if act.queueOverdue != Off && q+c > most {
			list = append(list, Departure{i, QueueOverdue, act.queueOverdue})
			continue
		}
		q += c
	}
	return list, q
}

// enforced are the actions of the triggers that are enforced.
type enforced struct{ overdue, taskOverdue, queueOverdue Action }

func (l *Limits) enforced(last bool) enforced {
	return enforced{l.Action(Overdue, last), l.Action(TaskOverdue, last), l.Action(QueueOverdue, last)}
}

// remains is how long t may still run here, below 0 if it is overdue. C > φ(a) or C > φ(b) is C > φ(min(a, b)).
func (l *Limits) remains(t *Occupant) time.Duration { return min(l.Run-t.Ran, l.Queue-t.Stayed) }

// counts is what t adds to Q.
func (l *Limits) counts(t *Occupant) Complexity {
	if t.Unknown {
		return l.Phi(max(l.remains(t), 0), t.Bound)
	}
	return t.Left
}
