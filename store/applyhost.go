package store

import (
	"fmt"

	"kith/internal/job"
)

func (s *State) copyOf(a job.AttemptID) (*Copy, error) {
	c := s.copies.Get(a)
	if c == nil {
		return nil, fmt.Errorf("copy %v: %w", a, ErrUnknown)
	}
	return c, nil
}

// insertCopy adds a copy of a request, which it does not keep.
func (s *State) insertCopy(c Copy, r *job.Request) *Copy {
	if c.ID.Job.Origin == s.site.ID {
		if j := s.jobs.Get(c.ID.Job); j != nil && j.Request == *r {
			c.Request = &j.Request
			s.copies.Put(&c)
			return &c
		}
	}
	b := &struct {
		Copy
		request job.Request
	}{c, *r}
	b.Request = &b.request
	s.copies.Put(&b.Copy)
	return &b.Copy
}

func (c AcceptCopy) apply(s *State) error {
	if c.Attempt.Number == 0 {
		return fmt.Errorf("copy %v: %w", c.Attempt, ErrStale)
	}
	if s.copies.Get(c.Attempt) != nil {
		return fmt.Errorf("copy %v: %w", c.Attempt, ErrExists)
	}
	queued := Copy{ID: c.Attempt, Phase: CopyQueued, Arrived: c.Time, OriginTooSmall: c.OriginTooSmall, Stays: c.Stays, LimitSeconds: c.LimitSeconds}
	if before := c.Before; before != (job.Progress{}) {
		queued.Before = &before
	}
	cp := s.insertCopy(queued, &c.Request)
	s.touchCopy(cp)
	return nil
}

func (s *State) forgetCopy(c *Copy) {
	s.copies.Delete(c.ID)
	s.changes.ForgottenCopies = append(s.changes.ForgottenCopies, c.ID)
}

func (c DropCopy) apply(s *State) error {
	cp, err := s.copyOf(c.Attempt)
	if err != nil {
		return err
	}
	if cp.Phase != CopyQueued {
		return fmt.Errorf("copy %v has begun: %w", c.Attempt, ErrState)
	}
	s.forgetCopy(cp)
	return nil
}

func (c BeginAttempt) apply(s *State) error {
	cp, err := s.copyOf(c.Attempt)
	if err != nil {
		return err
	}
	if cp.Phase != CopyQueued {
		return fmt.Errorf("copy %v has begun: %w", c.Attempt, ErrState)
	}
	cp.Phase, cp.Begun, cp.BootID, cp.GoesOn = CopyBegun, c.Time, c.BootID, c.GoesOn
	s.touchCopy(cp)
	return nil
}

func (c RequeueCopy) apply(s *State) error {
	cp, err := s.copyOf(c.Attempt)
	if err != nil {
		return err
	}
	if cp.Phase != CopyBegun {
		return fmt.Errorf("copy %v is in phase %d: %w", c.Attempt, cp.Phase, ErrState)
	}
	cp.Phase, cp.Begun, cp.BootID, cp.GoesOn = CopyQueued, 0, "", false
	s.touchCopy(cp)
	return nil
}

func (c EndAttempt) apply(s *State) error {
	cp, err := s.copyOf(c.Attempt)
	if err != nil {
		return err
	}
	if cp.Phase != CopyBegun {
		return fmt.Errorf("copy %v is in phase %d: %w", c.Attempt, cp.Phase, ErrState)
	}
	outcome := c.Outcome
	cp.Phase, cp.Outcome = CopyEnded, &outcome
	s.touchCopy(cp)
	return nil
}

func (c ForgetAttempt) apply(s *State) error {
	cp, err := s.copyOf(c.Attempt)
	if err != nil {
		return err
	}
	if cp.Phase != CopyEnded {
		return fmt.Errorf("copy %v is in phase %d: %w", c.Attempt, cp.Phase, ErrState)
	}
	if origin := cp.ID.Job.Origin; origin != s.site.ID && cp.Outcome.Kind != job.Demoted { // of its own jobs the origin remembers as such
		s.remember(Past{Origin: origin, Site: s.site.ID, Submitted: cp.Arrived}, cp.Request, cp.Outcome, c.Speed)
	}
	s.forgetCopy(cp)
	return nil
}
