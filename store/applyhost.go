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

func (c AcceptCopy) apply(s *State) error {
	if c.Attempt.Number == 0 {
		return fmt.Errorf("copy %v: %w", c.Attempt, ErrStale)
	}
	if s.copies.Get(c.Attempt) != nil {
		return fmt.Errorf("copy %v: %w", c.Attempt, ErrExists)
	}
	cp := &Copy{ID: c.Attempt, Request: c.Request, Phase: CopyQueued, Arrived: c.Time}
	s.copies.Put(c.Attempt, cp)
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
	cp.Phase, cp.Begun, cp.BootID = CopyBegun, c.Time, c.BootID
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
	cp.Phase, cp.Begun, cp.BootID = CopyQueued, 0, ""
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
	s.forgetCopy(cp)
	return nil
}
