package sitesched

import "kith/internal/job"

// EventKind names a method of [Scheduler], for stories that are data.
type EventKind uint8

const (
	Enqueue EventKind = iota
	Withdraw
	Confirm
	Postpone
	Finish
	Adopt
	Drain
	Resume
	Pass
	Aside
	Back
	Try

	eventKinds
)

var eventNames = []string{"enqueue", "withdraw", "confirm", "postpone", "finish", "adopt", "drain", "resume", "pass", "aside", "back", "try"}

func (k EventKind) String() string { return word(eventNames, k) }

// Event is a call of a method. Which fields matter depends on Kind.
type Event struct {
	Kind EventKind
	// ID is for all that concern one copy; Aside and Back read its origin.
	ID job.AttemptID
	// Copy is for Enqueue and Adopt.
	Copy entry
	// At is for Postpone (not eligible before), Confirm and Adopt (running since).
	At job.Time
}

// known returns what the scheduler keeps of a copy.
func (s *Scheduler) known(id job.AttemptID) entry {
	slot, _ := s.lookup(&id)
	return s.table.rows[slot].copy
}

// Step makes the call that ev stands for; a Pass returns what should start.
func (s *Scheduler) Step(now job.Time, ev Event) []job.AttemptID {
	switch ev.Kind {
	case Enqueue:
		s.Enqueue(now, ev.Copy.copy())
	case Withdraw:
		s.Withdraw(now, ev.ID)
	case Confirm:
		s.Confirm(now, ev.ID, ev.At)
	case Postpone:
		s.Postpone(now, ev.ID, ev.At)
	case Finish:
		s.Finish(now, ev.ID)
	case Adopt:
		s.Adopt(now, ev.Copy.copy(), ev.At)
	case Drain, Resume:
		s.Drain(now, ev.Kind == Drain)
	case Aside:
		s.SetAside(now, ev.ID.Job.Origin)
	case Back:
		s.BringBack(now, ev.ID.Job.Origin)
	case Try:
		s.Probe(now, ev.ID)
	case Pass:
		return s.Pass(now)
	}
	return nil
}
