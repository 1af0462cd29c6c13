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
		return fmt.Errorf("held bundle %v of %d tasks; it must have 1 to %d and a number: %w", c.Bundle, n, MaxBundleTasks, ErrBounds)
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
	err = checkResults(c.Results, job.MaxTasks)
	if err == nil {
		err = checkFiles(c.Files, c.Results)
	}
	if err != nil {
		return fmt.Errorf("held bundle %v: %w", c.Bundle, err)
	}
	for i := range c.Results {
		if task := c.Results[i].Ordinal; !h.Tasks.Has(task) {
			return fmt.Errorf("held bundle %v does not have task %d any more: %w", c.Bundle, task, ErrState)
		}
	}
	if h.Full() {
		return fmt.Errorf("held bundle %v, %d batches: %w", c.Bundle, len(h.Unacked), ErrFull)
	}
	for i := range c.Results {
		h.Tasks.Remove(c.Results[i].Ordinal)
	}
	s.addBatch(h, TaskBatch{Results: slices.Clone(c.Results), Files: slices.Clone(c.Files)})
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
	s.addBatch(h, TaskBatch{Returned: c.Tasks.Clone()})
	return nil
}

// addBatch gives a batch the next number.
func (s *State) addBatch(h *HeldBundle, b TaskBatch) {
	h.Batch++
	b.Number = h.Batch
	h.Unacked = append(h.Unacked, b)
	s.changes.HeldBatches = append(s.changes.HeldBatches, HeldBatch{h.ID, b.Number})
	s.touchHeld(h)
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
		for i := range h.Unacked[:len(h.Unacked)-len(left)] { // the oldest ones
			s.changes.HeldBatches = append(s.changes.HeldBatches, HeldBatch{h.ID, h.Unacked[i].Number})
		}
		h.Unacked = left
		return nil
	}
	s.bags.held.Delete(h.ID)
	delete(s.bags.runs, h.Run)
	s.changes.ForgottenHeld = append(s.changes.ForgottenHeld, h.ID)
	return nil
}
