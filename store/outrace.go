package store

import (
	"fmt"
	"slices"

	"kith/internal/job"
)

func (c OutraceAttempt) apply(s *State) error {
	j, err := s.known(c.Attempt.Job)
	if err != nil {
		return err
	}
	i := slices.Index(j.Earlier, Holding{Attempt: c.Attempt.Number, Site: c.Site})
	if i < 0 || j.Outcome != nil {
		return fmt.Errorf("attempt %v at %s: %w", c.Attempt, c.Site, ErrStale)
	}
	latest := Holding{Attempt: j.Attempt, Site: j.Holder}
	if err := s.move(j, job.Outrace); err != nil {
		return err
	}
	j.Earlier = slices.Delete(j.Earlier, i, i+1)
	j.Earlier = append(j.Earlier, latest)
	outcome := c.Outcome
	j.Attempt, j.Holder, j.Sites, j.Outcome, j.Started = c.Attempt.Number, c.Site, nil, &outcome, outcome.Start
	j.note(ClaimEvent{Time: c.Time, Attempt: c.Attempt.Number, Kind: ClaimOutraced, Site: c.Site})
	return nil
}
