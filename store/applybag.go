package store

import (
	"errors"
	"fmt"
	"slices"

	"kith/internal/job"
)

func (s *State) knownBag(id job.ID) (*Bag, error) {
	b := s.Bag(id)
	if b == nil {
		return nil, fmt.Errorf("bag %v: %w", id, ErrUnknown)
	}
	return b, nil
}

// moveBag takes the bag along ev. The caller has checked everything else, so that a
// command that fails changes nothing.
func (s *State) moveBag(b *Bag, ev job.BagEvent) error {
	to, ok := b.State.Next(ev)
	if !ok {
		return fmt.Errorf("bag %v is %v, cannot %v: %w", b.ID, b.State, ev, ErrState)
	}
	b.State = to
	s.touchBag(b)
	return nil
}

// act adds what a person did.
func (b *Bag) act(a Act) {
	old := b.Acts
	if len(old) >= MaxActs {
		old = old[1:]
	}
	b.Acts = append(slices.Clone(old), a)
}

// note marks the page of a task as changed.
func (b *Bag) note(task uint32) { b.pages.Add(task / PageTasks) }

func (b *Bag) noteAll(tasks *job.TaskSet) {
	for lo, hi := range tasks.Ranges {
		b.pages.AddRange(lo/PageTasks, (hi-1)/PageTasks+1)
	}
}

func (c SubmitBag) apply(s *State) error {
	if c.ID != s.NextID() {
		return fmt.Errorf("bag %v, the next is %v: %w", c.ID, s.NextID(), ErrStale)
	}
	if s.JobOfRequest(c.RequestID) != nil || s.BagOfRequest(c.RequestID) != nil {
		return fmt.Errorf("request %q: %w", c.RequestID, ErrExists)
	}
	if n := c.Indices.Count(); n == 0 || n > job.MaxTasks || c.Retries > MaxRetries {
		return fmt.Errorf("bag of %d tasks with %d retries: %w", n, c.Retries, ErrBounds)
	}
	b := &Bag{
		ID: c.ID, Request: c.Request, Indices: c.Indices, RequestID: c.RequestID, BodyHash: c.BodyHash, Submitter: c.Actor,
		Priority: c.Priority, MaxRunning: c.MaxRunning, Retries: c.Retries, State: job.BagOpen, Submitted: c.Time,
		Tries: make(map[uint32]Tries), Live: make(map[uint32]*TaskBundle),
	}
	s.insertBag(b)
	s.site.NextSeq++
	s.changes.Site = true
	s.changes.Payloads = append(s.changes.Payloads, SideRecord{Job: c.ID, Data: c.Payload})
	s.touchBag(b)
	return nil
}

func (c HoldBag) apply(s *State) error {
	b, err := s.knownBag(c.Bag)
	if err != nil {
		return err
	}
	if err := s.moveBag(b, job.BagHold); err != nil {
		return err
	}
	b.act(Act{Time: c.Time, Kind: ActHold, Actor: c.Actor, Reason: c.Reason})
	return nil
}

func (c ReleaseBag) apply(s *State) error {
	b, err := s.knownBag(c.Bag)
	if err != nil {
		return err
	}
	if err := s.moveBag(b, job.BagRelease); err != nil {
		return err
	}
	b.act(Act{Time: c.Time, Kind: ActRelease, Actor: c.Actor})
	return nil
}

func (c CancelBag) apply(s *State) error {
	b, err := s.knownBag(c.Bag)
	if err != nil {
		return err
	}
	all := job.TaskRange(0, b.Tasks())
	tasks := all
	if c.Tasks != nil {
		if !all.Covers(c.Tasks) {
			return fmt.Errorf("bag %v has %d tasks, not all that are to be cancelled: %w", b.ID, b.Tasks(), ErrBounds)
		}
		tasks = c.Tasks.Clone()
		if b.State.Terminal() {
			return fmt.Errorf("bag %v is %v: %w", b.ID, b.State, ErrState)
		}
	} else if err := s.moveBag(b, job.RequestBagCancel); err != nil {
		return err
	}
	if c.Tasks == nil && b.EndedCount() < int(b.Tasks()) {
		if !b.CancelRequested {
			b.act(Act{Time: c.Time, Kind: ActCancel, Actor: c.Actor, Reason: c.Reason})
		}
		b.CancelRequested = true
	}
	s.cancelTasks(b, tasks)
	s.touchBag(b)
	s.resolve(b)
	return nil
}

// cancelTasks ends those of tasks that wait, and has those stopped that are with sites.
func (s *State) cancelTasks(b *Bag, tasks job.TaskSet) {
	waiting := tasks.Clone()
	given := job.TaskSet{}
	for t := range b.Bundles {
		if !t.Late {
			given.AddAll(&t.Tasks)
		}
	}
	waiting.RemoveAll(&b.Done)
	waiting.RemoveAll(&b.Failed)
	waiting.RemoveAll(&b.Cancelled)
	waiting.RemoveAll(&given)
	given.RetainAll(&tasks)
	b.noteAll(&waiting)
	b.noteAll(&given)
	b.skipTo(&waiting)
	b.Again.RemoveAll(&waiting)
	b.Cancelled.AddAll(&waiting)
	b.Stopping.AddAll(&given)
	for task := range b.Tries {
		if waiting.Has(task) {
			delete(b.Tries, task)
		}
	}
	s.dropFromLate(b, &waiting)
}

// skipTo moves the cursor behind the last of some tasks; what it skips waits again.
func (b *Bag) skipTo(tasks *job.TaskSet) {
	last, any := tasks.Last()
	if !any || last < b.Next {
		return
	}
	skipped := job.TaskRange(b.Next, last+1)
	skipped.RemoveAll(tasks)
	b.noteAll(&skipped)
	b.Again.AddAll(&skipped)
	b.Next = last + 1
}

// resolve moves a bag all of whose tasks have ended.
func (s *State) resolve(b *Bag) {
	if b.State < job.BagReturning && b.EndedCount() == int(b.Tasks()) {
		if err := s.moveBag(b, job.ResolveBag); err != nil {
			panic(err) // from each of these states there is a way
		}
	}
}

func (c RetryTasks) apply(s *State) error {
	b, err := s.knownBag(c.Bag)
	if err != nil {
		return err
	}
	if _, ok := b.State.Next(job.BagRetry); !ok {
		return fmt.Errorf("bag %v is %v, cannot %v: %w", b.ID, b.State, job.BagRetry, ErrState)
	}
	ended := b.Done.Clone()
	ended.AddAll(&b.Failed)
	ended.AddAll(&b.Cancelled)
	if c.Tasks.Empty() || !ended.Covers(&c.Tasks) {
		return fmt.Errorf("bag %v, not all of %d tasks have ended: %w", b.ID, c.Tasks.Count(), ErrState)
	}
	if err := s.moveBag(b, job.BagRetry); err != nil {
		return err
	}
	b.Done.RemoveAll(&c.Tasks)
	b.Failed.RemoveAll(&c.Tasks)
	b.Cancelled.RemoveAll(&c.Tasks)
	b.Again.AddAll(&c.Tasks)
	b.noteAll(&c.Tasks)
	b.CancelRequested, b.Closed = false, 0
	return nil
}

func (c CloseBag) apply(s *State) error {
	b, err := s.knownBag(c.Bag)
	if err != nil {
		return err
	}
	ev := job.CloseBagSuccess
	switch {
	case b.CancelRequested:
		ev = job.CloseBagCancel
	case !b.Failed.Empty():
		ev = job.CloseBagFailure
	case !b.Cancelled.Empty():
		ev = job.CloseBagCancel
	}
	if err := s.moveBag(b, ev); err != nil {
		return err
	}
	b.Closed = c.Time
	return nil
}

func (c PurgeBag) apply(s *State) error {
	b, err := s.knownBag(c.Bag)
	if err != nil {
		return err
	}
	if !b.State.Terminal() {
		return fmt.Errorf("bag %v is %v: %w", b.ID, b.State, ErrState)
	}
	s.removeBag(b)
	s.changes.ForgottenBags = append(s.changes.ForgottenBags, b.ID)
	return nil
}

// checkResults returns what is wrong with results of tasks below a number.
func checkResults(results []job.TaskResult, tasks uint32) error {
	var seen job.TaskSet
	for i := range results {
		r := &results[i]
		if err := r.Validate(); err != nil {
			return errors.Join(err, ErrBounds)
		}
		if r.Ordinal >= tasks || !seen.Add(r.Ordinal) {
			return fmt.Errorf("result of task %d, which is there twice or not one of %d: %w", r.Ordinal, tasks, ErrBounds)
		}
	}
	return nil
}
