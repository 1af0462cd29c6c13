package store

import (
	"fmt"
	"maps"
	"slices"

	"kith/internal/job"
)

// ResolveDependency records that what a job or a bag waits for has ended, and so whether its
// dependencies on that are met. A job or a bag with all of them met goes on, one with a
// broken one is cancelled. It fails with [ErrUnknown], and with [ErrState] if ID waits for
// no such thing or On has not ended.
type ResolveDependency struct {
	ID job.ID
	// On is what has ended. Zero: what a [job.Singleton] waits for, which the caller answers for.
	On   job.ID
	Time job.Time
}

// After returns what a job or a bag submitted here waits for, or waited for; nil for nothing.
// It is replaced, never changed in place.
func (s *State) After(id job.ID) []job.Dependency { return s.after[id] }

// Ending returns whether a job or a bag submitted here has ended, and whether as
// [job.AfterOK] asks. One that is not recorded has ended in an unknown way. State is its
// state in words, empty for one that is not recorded.
func (s *State) Ending(id job.ID) (state string, ended, ok bool) {
	if j := s.Job(id); j != nil {
		return j.State.String(), j.State.Terminal(), j.State == job.Completed
	}
	if b := s.Bag(id); b != nil {
		return b.State.String(), b.State.Terminal(), b.State == job.BagCompleted
	}
	return "", true, false
}

// checkAfter returns what is wrong with the dependencies of a submission, and what has
// become of each by now.
func (s *State) checkAfter(after []job.Dependency) ([]job.Dependency, error) {
	if len(after) > job.MaxDependencies {
		return nil, fmt.Errorf("%d dependencies, at most %d: %w", len(after), job.MaxDependencies, ErrBounds)
	}
	after = slices.Clone(after)
	for i := range after {
		d := &after[i]
		switch {
		case !d.Condition.Known() || d.On.IsZero() != (d.Condition == job.Singleton):
			return nil, fmt.Errorf("dependency %v: %w", *d, ErrBounds)
		case d.Condition == job.Singleton:
			if d.State != job.DependencyWaits {
				d.State = job.DependencyMet
			}
			continue
		}
		state, ended, ok := s.Ending(d.On)
		if state == "" {
			return nil, fmt.Errorf("dependency %v: %w", *d, ErrUnknown)
		}
		d.State = job.DependencyWaits
		if ended {
			d.State = d.Condition.Judge(ok)
		}
	}
	return after, nil
}

// setAfter keeps the dependencies of a job or a bag.
func (s *State) setAfter(id job.ID, after []job.Dependency) {
	if s.after == nil {
		s.after = make(map[job.ID][]job.Dependency)
	}
	s.after[id] = after
	s.changes.After = append(s.changes.After, id)
}

// dropAfter has a job or a bag that has ended wait for nothing any more.
func (s *State) dropAfter(id job.ID) {
	if job.Waiting(s.after[id]) == 0 {
		return
	}
	after := slices.Clone(s.after[id])
	for i := range after {
		if after[i].State == job.DependencyWaits {
			after[i].State = job.DependencyDropped
		}
	}
	s.setAfter(id, after)
}

// forgetAfter forgets the dependencies of a job or a bag that is forgotten.
func (s *State) forgetAfter(id job.ID) {
	if s.after[id] != nil {
		delete(s.after, id)
		s.changes.After = append(s.changes.After, id)
	}
}

// begin takes a new job or bag to where its dependencies let it be.
func (s *State) begin(w waiter, after []job.Dependency, now job.Time) {
	if len(after) == 0 {
		return
	}
	s.setAfter(w.id(), after)
	mustMove(w.block(s))
	s.weigh(w, now)
}

// weigh takes a job or a bag on when none of its dependencies waits, or one is broken.
func (s *State) weigh(w waiter, now job.Time) {
	after := s.after[w.id()]
	if i := slices.IndexFunc(after, func(d job.Dependency) bool { return d.State == job.DependencyBroken }); i >= 0 {
		s.dropAfter(w.id())
		reason := fmt.Sprintf("its dependency %v can never be met: it waited for what is not recorded any more", after[i])
		if state, _, _ := s.Ending(after[i].On); state != "" {
			reason = fmt.Sprintf("its dependency %v can never be met, as that is %s", after[i], state)
		}
		mustMove(w.refuse(s, Act{Time: now, Kind: ActCancel, Reason: reason}))
		return
	}
	if job.Waiting(after) == 0 {
		mustMove(w.unblock(s, now))
	}
}

// mustMove panics over a step in a life cycle that the caller has seen to be possible.
func mustMove(err error) {
	if err != nil {
		panic(err)
	}
}

// waiter is a job or a bag, as dependencies see it.
type waiter interface {
	id() job.ID
	// held reports whether its user holds it.
	held() bool
	// waits reports whether it may wait for something.
	waits() bool
	block(s *State) error
	unblock(s *State, now job.Time) error
	refuse(s *State, why Act) error
}

func (s *State) waiterOf(id job.ID) waiter {
	if j := s.Job(id); j != nil {
		return j
	}
	if b := s.Bag(id); b != nil {
		return b
	}
	return nil
}

func (c ResolveDependency) apply(s *State) error {
	w := s.waiterOf(c.ID)
	if w == nil {
		return fmt.Errorf("job %v: %w", c.ID, ErrUnknown)
	}
	ended, ok := true, true
	if !c.On.IsZero() {
		_, ended, ok = s.Ending(c.On)
	}
	after := slices.Clone(s.after[c.ID])
	decided := 0
	for i := range after {
		if d := &after[i]; d.On == c.On && d.State == job.DependencyWaits {
			d.State = d.Condition.Judge(ok)
			decided++
		}
	}
	if decided == 0 || !ended || !w.waits() {
		return fmt.Errorf("%v waits for %v %d times, whose end is known: %v: %w", c.ID, c.On, decided, ended, ErrState)
	}
	s.setAfter(c.ID, after)
	if broken := slices.ContainsFunc(after, func(d job.Dependency) bool { return d.State == job.DependencyBroken }); broken || !w.held() {
		s.weigh(w, c.Time)
	}
	return nil
}

func (j *Job) id() job.ID           { return j.ID }
func (j *Job) held() bool           { return j.State == job.OnHold }
func (j *Job) waits() bool          { return j.State == job.Blocked || j.State == job.OnHold }
func (j *Job) block(s *State) error { return s.move(j, job.Block) }

func (j *Job) unblock(s *State, _ job.Time) error { return s.move(j, job.Unblock) }

func (j *Job) refuse(s *State, why Act) error {
	if err := s.move(j, job.Refuse); err != nil {
		return err
	}
	j.Acts = withAct(j.Acts, why)
	j.Closed = why.Time
	return nil
}

func (b *Bag) id() job.ID           { return b.ID }
func (b *Bag) held() bool           { return b.State == job.BagOnHold }
func (b *Bag) waits() bool          { return b.State == job.BagBlocked || b.State == job.BagOnHold }
func (b *Bag) block(s *State) error { return s.moveBag(b, job.BagBlock) }

func (b *Bag) unblock(s *State, now job.Time) error {
	b.beginLevel(now)
	return s.moveBag(b, job.BagUnblock)
}

func (b *Bag) refuse(s *State, why Act) error {
	if err := s.moveBag(b, job.BagRefuse); err != nil {
		return err
	}
	b.Acts = withAct(b.Acts, why)
	s.cancelTasks(b, job.TaskRange(0, b.Tasks()))
	s.resolve(b)
	return nil
}

// ---- restoring, for back ends ----

// RestoreAfter adds the dependencies of a job or a bag, which come after both.
func (s *State) RestoreAfter(id job.ID, after []job.Dependency) error {
	if s.waiterOf(id) == nil || len(after) == 0 || s.after[id] != nil {
		return fmt.Errorf("%d dependencies of %v, which is unknown or has others: %w", len(after), id, ErrCorrupt)
	}
	if s.after == nil {
		s.after = make(map[job.ID][]job.Dependency)
	}
	s.after[id] = after
	return nil
}

// Dependants yields the jobs and bags submitted here that have dependencies, in the order
// of their ids. The state must not be changed meanwhile.
func (s *State) Dependants(yield func(job.ID, []job.Dependency) bool) {
	for _, id := range slices.SortedFunc(maps.Keys(s.after), job.ID.Compare) {
		if !yield(id, s.after[id]) {
			return
		}
	}
}

// checkDependencies is [State.Check] for dependencies. That each job or bag that waits has
// some is looked at with it.
func (s *State) checkDependencies() error {
	for id, after := range s.Dependants {
		w := s.waiterOf(id)
		if w == nil {
			return fmt.Errorf("dependencies of %v, which is unknown: %w", id, ErrCorrupt)
		}
		if n := job.Waiting(after); n > 0 && !w.waits() || len(after) > job.MaxDependencies {
			return fmt.Errorf("%v has %d dependencies, waits for %d and may not: %w", id, len(after), n, ErrCorrupt)
		}
		for _, d := range after {
			if !d.State.Known() || !d.Condition.Known() || d.On.IsZero() != (d.Condition == job.Singleton) || !d.On.IsZero() && d.On.Origin != s.site.ID {
				return fmt.Errorf("%v has dependency %v in state %d: %w", id, d, d.State, ErrCorrupt)
			}
		}
	}
	return nil
}
