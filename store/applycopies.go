package store

import (
	"fmt"
	"slices"

	"kith/internal/job"
)

// Where the copies of an open attempt are.

func (c MoveCopy) apply(s *State) error {
	j, err := s.latest(c.Attempt)
	if err != nil {
		return err
	}
	i := slices.Index(j.Sites, c.From)
	switch {
	case j.State != job.Queued:
		return fmt.Errorf("job %v is %v: %w", j.ID, j.State, ErrState)
	case i < 0:
		return fmt.Errorf("site %s, attempt %v: %w", c.From, c.Attempt, ErrNoCopy)
	case c.To != "" && slices.Contains(j.Sites, c.To):
		return fmt.Errorf("site %s, attempt %v: %w", c.To, c.Attempt, ErrExists)
	case c.To == "" && len(j.Sites) == 1:
		return fmt.Errorf("the last copy of attempt %v: %w", c.Attempt, ErrState)
	}
	sites := slices.Delete(slices.Clone(j.Sites), i, i+1)
	if c.To != "" {
		sites = append(sites, c.To)
	}
	j.Sites = sites
	j.note(ClaimEvent{Time: c.Time, Attempt: j.Attempt, Kind: c.Kind, Site: c.From, Reason: c.Reason})
	s.touchJob(j)
	return nil
}

func (c AddCopy) apply(s *State) error {
	j, err := s.latest(c.Attempt)
	if err != nil {
		return err
	}
	switch {
	case j.State != job.Queued:
		return fmt.Errorf("job %v is %v: %w", j.ID, j.State, ErrState)
	case slices.Contains(j.Sites, c.Site):
		return fmt.Errorf("site %s, attempt %v: %w", c.Site, c.Attempt, ErrExists)
	}
	j.Sites = append(slices.Clone(j.Sites), c.Site)
	s.touchJob(j)
	return nil
}

func (c UnplaceJob) apply(s *State) error {
	j, err := s.latest(c.Attempt)
	if err != nil {
		return err
	}
	if err := s.move(j, job.Unplace); err != nil {
		return err
	}
	j.Sites = nil
	return nil
}
