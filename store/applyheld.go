package store

import (
	"fmt"
	"slices"

	"kith/internal/job"
)

func (s *State) heldBundle(id job.AttemptID) (*HeldBundle, error) {
	h := s.Held(id)
	if h == nil {
		return nil, fmt.Errorf("held bundle %v: %w", id, ErrUnknown)
	}
	return h, nil
}

func (c AcceptBundle) apply(s *State) error {
	if s.Held(c.Bundle) != nil {
		return fmt.Errorf("held bundle %v: %w", c.Bundle, ErrExists)
	}
	if n := c.Tasks.Count(); c.Bundle.Number == 0 || n == 0 || n > MaxBundleTasks {
		return fmt.Errorf("held bundle %v of %d tasks: %w", c.Bundle, n, ErrBounds)
	}
	s.site.Runs++
	s.changes.Site = true
	h := &HeldBundle{
		ID: c.Bundle, Request: c.Request, Node: c.Node, BootID: c.BootID, Accepted: c.Time, Run: s.site.Runs, Tasks: c.Tasks.Clone(),
	}
	s.insertHeld(h)
	s.changes.HeldPayloads = append(s.changes.HeldPayloads, HeldPayload{Bundle: c.Bundle, Data: c.Payload})
	s.touchHeld(h)
	return nil
}

func (c EndTasks) apply(s *State) error {
	h, err := s.heldBundle(c.Bundle)
	if err != nil {
		return err
	}
	if len(c.Results) == 0 {
		return fmt.Errorf("held bundle %v, no result: %w", c.Bundle, ErrBounds)
	}
	if err := checkResults(c.Results, job.MaxTasks); err != nil {
		return fmt.Errorf("held bundle %v: %w", c.Bundle, err)
	}
	for i := range c.Results {
		if task := c.Results[i].Ordinal; !h.Tasks.Has(task) {
			return fmt.Errorf("held bundle %v does not have task %d any more: %w", c.Bundle, task, ErrState)
		}
	}
	for i := range c.Results {
		h.Tasks.Remove(c.Results[i].Ordinal)
	}
	h.Batch++
	h.Unacked = append(h.Unacked, TaskBatch{Number: h.Batch, Results: slices.Clone(c.Results)})
	s.touchHeld(h)
	return nil
}

func (c DropTasks) apply(s *State) error {
	h, err := s.heldBundle(c.Bundle)
	if err != nil {
		return err
	}
	if c.Tasks.Empty() || !h.Tasks.Covers(&c.Tasks) {
		return fmt.Errorf("held bundle %v does not have all of %d tasks any more: %w", c.Bundle, c.Tasks.Count(), ErrState)
	}
	h.Tasks.RemoveAll(&c.Tasks)
	h.Batch++
	h.Unacked = append(h.Unacked, TaskBatch{Number: h.Batch, Returned: c.Tasks.Clone()})
	s.touchHeld(h)
	return nil
}

func (c ForgetTasks) apply(s *State) error {
	h, err := s.heldBundle(c.Bundle)
	if err != nil {
		return err
	}
	if !c.All && c.Batch > h.Batch {
		return fmt.Errorf("held bundle %v, batch %d, the latest is %d: %w", c.Bundle, c.Batch, h.Batch, ErrState)
	}
	left := slices.DeleteFunc(slices.Clone(h.Unacked), func(b TaskBatch) bool { return b.Number <= c.Batch })
	if !c.All && (len(left) > 0 || !h.Tasks.Empty()) {
		if len(left) < len(h.Unacked) {
			h.Unacked = left
			s.touchHeld(h)
		}
		return nil
	}
	s.bags.held.Delete(h.ID)
	delete(s.bags.runs, h.Run)
	s.changes.ForgottenHeld = append(s.changes.ForgottenHeld, h.ID)
	return nil
}
