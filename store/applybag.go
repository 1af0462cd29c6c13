package store

import (
	"errors"
	"fmt"

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
	if n := c.Indices.Count(); n == 0 || n > job.MaxTasks || c.Retries > MaxRetries || c.MaxReplicas > MaxReplicas {
		return fmt.Errorf("bag of %d tasks with %d retries and %d replicas, it may have 1 to %d, at most %d and %d: %w",
			n, c.Retries, c.MaxReplicas, job.MaxTasks, MaxRetries, MaxReplicas, ErrBounds)
	}
	if c.Request.Level > job.MaxLevel || c.Request.Level > 0 && c.MaxReplicas > 0 {
		return fmt.Errorf("bag that begins at level %d with %d replicas; levels are 1 to %d, and tasks of such a bag run once: %w", c.Request.Level, c.MaxReplicas, job.MaxLevel, ErrBounds)
	}
	if c.Budget > MaxBudget {
		return fmt.Errorf("bag with a budget of %d processor-seconds, it may have %d: %w", c.Budget, uint64(MaxBudget), ErrBounds)
	}
	if err := c.Policies.check(); err != nil {
		return err
	}
	after, err := s.checkAfter(c.After)
	if err != nil {
		return fmt.Errorf("bag %v: %w", c.ID, err)
	}
	b := &Bag{
		Policies: BagPolicies{Texts: c.Policies.Texts},
		ID:       c.ID, Request: c.Request, Indices: c.Indices, RequestID: c.RequestID, BodyHash: c.BodyHash, Submitter: c.Actor,
		Priority: c.Priority, MaxRunning: c.MaxRunning, Budget: c.Budget, Retries: c.Retries, MaxReplicas: c.MaxReplicas, TailAt: c.TailAt,
		State: job.BagOpen, Submitted: c.Time, BagLevel: BagLevel{Level: c.Request.Level},
	}
	b.beginLevel(c.Time)
	b.makeMaps()
	s.insertBag(b)
	s.site.NextSeq++
	s.changes.Site = true
	s.changes.Payloads = append(s.changes.Payloads, SideRecord{Job: c.ID, Data: c.Payload})
	s.touchBag(b)
	s.begin(b, after, c.Time)
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
	b.Acts = withAct(b.Acts, Act{Time: c.Time, Kind: ActHold, Actor: c.Actor, Reason: c.Reason})
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
	if held, ok := b.LastAct(ActHold); ok {
		b.pausedSince(held.Time, c.Time)
	}
	b.Acts = withAct(b.Acts, Act{Time: c.Time, Kind: ActRelease, Actor: c.Actor})
	if job.Waiting(s.after[b.ID]) > 0 {
		return b.block(s)
	}
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
			last, _ := c.Tasks.Last()
			return fmt.Errorf("bag %v, task %d is to be cancelled, the last one is %d: %w", b.ID, last, b.Tasks()-1, ErrBounds)
		}
		tasks = c.Tasks.Clone()
		if b.State.Terminal() {
			return fmt.Errorf("bag %v is %v: %w", b.ID, b.State, ErrState)
		}
	} else if err := s.moveBag(b, job.RequestBagCancel); err != nil {
		return err
	}
	act := Act{Time: c.Time, Kind: ActCancel, Actor: c.Actor, Reason: c.Reason}
	if c.Tasks != nil {
		act.Tasks = b.endable(c.Tasks)
	}
	switch {
	case c.Tasks != nil && act.Tasks > 0:
		b.Acts = withAct(b.Acts, act)
	case c.Tasks == nil && b.EndedCount() < int(b.Tasks()):
		if !b.CancelRequested {
			b.Acts = withAct(b.Acts, act)
		}
		b.CancelRequested = true
	}
	s.cancelTasks(b, tasks)
	s.touchBag(b)
	s.resolve(b)
	return nil
}

// endable returns how many of tasks have not ended and are not being stopped.
func (b *Bag) endable(tasks *job.TaskSet) uint32 {
	left := tasks.Clone()
	for _, set := range []*job.TaskSet{&b.Done, &b.Failed, &b.Cancelled, &b.Stopping} {
		left.RemoveAll(set)
	}
	return uint32(left.Count())
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
	tried := b.tried.Clone()
	tried.RetainAll(&waiting)
	for task := range tried.All {
		b.setTries(task, Tries{})
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
	if !b.State.Resolved() && b.EndedCount() == int(b.Tasks()) {
		mustMove(s.moveBag(b, job.ResolveBag)) // from each of these states there is a way
		s.dropAfter(b.ID)
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
		return fmt.Errorf("bag %v, not all of %d tasks have ended, or there is none: %w", b.ID, c.Tasks.Count(), ErrState)
	}
	if b.State.Resolved() {
		b.beginLevel(c.Time)
	}
	if err := s.moveBag(b, job.BagRetry); err != nil {
		return err
	}
	b.Done.RemoveAll(&c.Tasks)
	b.Failed.RemoveAll(&c.Tasks)
	b.Cancelled.RemoveAll(&c.Tasks)
	b.Again.AddAll(&c.Tasks)
	b.noteAll(&c.Tasks)
	b.CancelRequested, b.Closed, b.Retried, b.TailSince = false, 0, true, 0
	b.Acts = withAct(b.Acts, Act{Time: c.Time, Kind: ActRetry, Actor: c.Actor, Tasks: uint32(c.Tasks.Count()), RequestID: c.RequestID})
	return nil
}

func (c BeginTail) apply(s *State) error {
	b, err := s.knownBag(c.Bag)
	if err != nil {
		return err
	}
	switch {
	case !b.State.Gives():
		return fmt.Errorf("bag %v is %v: %w", b.ID, b.State, ErrState)
	case b.TailSince == 0:
		b.TailSince = max(c.Time, 1)
		s.touchBag(b)
	}
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
	s.forgetAfter(b.ID)
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

// checkFiles returns what is wrong with what tasks of results left.
func checkFiles(files []TaskFiles, results []job.TaskResult) error {
	if len(files) == 0 {
		return nil
	}
	var without job.TaskSet // those of results that have none yet
	for i := range results {
		without.Add(results[i].Ordinal)
	}
	sum := 0
	for i := range files {
		f := &files[i]
		if sum += len(f.Set); len(f.Set) == 0 || len(f.Set) > MaxTaskFiles || sum > MaxBatchFiles {
			return fmt.Errorf("files of task %d, a set of %d bytes, %d with those before it; a set has 1 to %d, all of a batch have at most %d: %w",
				f.Ordinal, len(f.Set), sum, MaxTaskFiles, MaxBatchFiles, ErrBounds)
		}
		if !without.Has(f.Ordinal) {
			return fmt.Errorf("files of task %d, which are there twice or without a result: %w", f.Ordinal, ErrBounds)
		}
		without.Remove(f.Ordinal)
	}
	return nil
}
