package store

import (
	"fmt"
	"math"
	"time"

	"kith/internal/job"
)

// Harm is what guests cost a job in the queue of its origin.
type Harm struct {
	// Blocked is for how long guests alone kept it waiting.
	Blocked time.Duration
	// Moved counts promises to it that guests moved back.
	Moved uint32
}

// NoteHarm adds what guests have cost a job in the queue of its origin, which it has left.
// Blocked is at least 0.
type NoteHarm struct {
	Job  job.ID
	Harm Harm
}

func (c NoteHarm) apply(s *State) error {
	j, err := s.known(c.Job)
	if err != nil {
		return err
	}
	if c.Harm.Blocked < 0 {
		return fmt.Errorf("job %v was blocked for %v: %w", j.ID, c.Harm.Blocked, ErrBounds)
	}
	h := s.harm[j.ID]
	h.Blocked += min(c.Harm.Blocked, math.MaxInt64-h.Blocked)
	h.Moved += min(c.Harm.Moved, math.MaxUint32-h.Moved)
	s.RestoreHarm(j.ID, h)
	s.touchJob(j)
	return nil
}

// Harm returns what guests have cost a job submitted here. Most cost nothing: it is kept apart
// from the records of jobs, which are many.
func (s *State) Harm(id job.ID) Harm { return s.harm[id] }

// RestoreHarm says what guests have cost a job, for back ends.
func (s *State) RestoreHarm(id job.ID, h Harm) {
	if h == (Harm{}) {
		return
	}
	if s.harm == nil {
		s.harm = make(map[job.ID]Harm)
	}
	s.harm[id] = h
}

// Ready returns from when on a job could start: when it was last released, or what it waited
// for had ended; zero if that was when it was submitted.
func (s *State) Ready(j *Job) (at job.Time) {
	if len(s.after[j.ID]) > 0 && len(j.Events) > 0 {
		at = j.Events[0].Time // it was opened at once
	}
	if a, released := j.LastAct(ActRelease); released {
		at = max(at, a.Time)
	}
	return at
}
