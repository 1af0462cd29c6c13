package store

import (
	"fmt"
	"time"

	"kith/internal/job"
)

// A bag may be in a hierarchy of levels (spec 000, ADR 0060): it is the source's task, divisible
// into sub-jobs. At a level its tasks are given to the sites of that level only, each with a limit
// that the level sets. When the bag has outgrown the level it goes down, whole: what has ended
// stays so, what runs is stopped and waits again, and no task needs a checkpoint.

// BagLevel is where a bag is in a hierarchy; the zero value is of a bag of none.
type BagLevel struct {
	// Level is the level that it is at, 1 to [job.MaxLevel], 0 for a bag of no hierarchy. It
	// only grows.
	Level uint8
	// Since is when it came to the level, Begun when the first task was given to a site
	// there, 0 before. A hold moves both, so that it does not count.
	Since, Begun job.Time
	// Limit is how long a task may run there, as the first one was given out with, 0 before: what
	// sites come or go does not change it, so that a host has all tasks of the bag in one stock.
	Limit time.Duration
	// Demotions are the levels that it has left, the first one first; at most [job.MaxLevel].
	Demotions []BagDemotion
}

// BagDemotion is that a bag left a level.
type BagDemotion struct {
	Time     job.Time
	From, To uint8
	// Reason is why, Site one that said so, empty if the origin found it.
	Reason job.Reason
	Site   job.SiteID
	// Used is for how long tasks of it were given out at the level, 0 if none was.
	Used time.Duration
}

// LowerBag records that an open bag of a hierarchy goes to a lower level: it has outgrown its own,
// or there is none. From is the level that it is at, To a lower one, which has a larger number.
// No task of it ends or runs again by this: those with sites are stopped by the engine, and wait
// again when their sites say so. The same again fails with [ErrStale], so that a bag goes down
// once for each reason. It fails with [ErrState] if the bag gives no tasks, and with [ErrBounds]
// for levels that there are not.
type LowerBag struct {
	Bag      job.ID
	From, To uint8
	Reason   job.Reason
	Site     job.SiteID
	Time     job.Time
}

// RejectBag records that an open bag of a hierarchy has outgrown the last level: tasks that wait
// are cancelled, those with sites when they come back or end, and what has ended stays. Why is for
// people. It fails with [ErrStale] if the bag is at another level, and with [ErrState] if it gives
// no tasks.
type RejectBag struct {
	Bag   job.ID
	Level uint8
	Why   string
	Time  job.Time
}

// bagAtLevel returns an open bag of a hierarchy that is at a level.
func (s *State) bagAtLevel(id job.ID, level uint8) (*Bag, error) {
	b, err := s.knownBag(id)
	switch {
	case err != nil:
		return nil, err
	case b.Level != level || level == 0:
		return nil, fmt.Errorf("bag %v is at level %d, not %d: %w", id, b.Level, level, ErrStale)
	case !b.State.Gives():
		return nil, fmt.Errorf("bag %v is %v: %w", id, b.State, ErrState)
	}
	return b, nil
}

func (c LowerBag) apply(s *State) error {
	b, err := s.bagAtLevel(c.Bag, c.From)
	if err != nil {
		return err
	}
	if c.To <= c.From || c.To > job.MaxLevel {
		return fmt.Errorf("bag %v from level %d to %d: %w", c.Bag, c.From, c.To, ErrBounds)
	}
	d := BagDemotion{Time: c.Time, From: c.From, To: c.To, Reason: c.Reason, Site: c.Site}
	if b.Begun != 0 {
		d.Used = max(0, c.Time.Sub(b.Begun))
	}
	b.Demotions = append(b.Demotions, d)
	b.Level, b.Since, b.Begun, b.Limit = c.To, c.Time, 0, 0
	s.touchBag(b)
	return nil
}

func (c RejectBag) apply(s *State) error {
	if _, err := s.bagAtLevel(c.Bag, c.Level); err != nil {
		return err
	}
	return CancelBag{Bag: c.Bag, Reason: job.ClipReason(c.Why), Time: c.Time}.apply(s)
}

// Asked returns what a task of the bag asks of a site that is to get it now; of a bag of a
// hierarchy at the level that it is at, with a limit above 0 that this level sets.
func (b *Bag) Asked(limit time.Duration) job.Request {
	return b.askedAt(b.Level, limit)
}

// AskedOf returns what the tasks of a bundle were given with.
func (b *Bag) AskedOf(t *TaskBundle) job.Request { return b.askedAt(t.Level, t.Limit) }

func (b *Bag) askedAt(level uint8, limit time.Duration) job.Request {
	r := b.Request
	if level > 0 {
		r.Level = level
		if limit > 0 {
			r.Walltime, r.Unknown = min(r.Walltime, limit), false
		}
	}
	return r
}

// Leaving reports whether a live bundle was given at a level that the bag has left: its site is to
// stop what runs, and give back the rest.
func (b *Bag) Leaving(t *TaskBundle) bool { return t.Level != b.Level }

// byLevel reports whether the run of a task of a bundle was stopped by the limit of a level, not
// by its own, which it was given a second at least less than: then the task has not failed.
func (b *Bag) byLevel(t *TaskBundle, r *job.TaskResult) bool {
	own := b.Request.Walltime
	return t.Level > 0 && r.Kind == job.Timeout && (t.Limit < own || r.Run < own-time.Second)
}

// checkLevel returns what is wrong with the level of a grant.
func (b *Bag) checkLevel(c *GrantBundle) error {
	switch {
	case c.Level != b.Level:
		return fmt.Errorf("bundle %v of level %d, the bag is at %d: %w", c.Bundle, c.Level, b.Level, ErrStale)
	case b.Limit > 0 && c.Limit != b.Limit:
		return fmt.Errorf("bundle %v with a limit of %v, those of its level have %v: %w", c.Bundle, c.Limit, b.Limit, ErrBounds)
	case (c.Limit > 0) != (c.Level > 0) || c.Limit < 0 || c.Level > 0 && c.Replica:
		return fmt.Errorf("bundle %v of level %d with a limit of %v, replicas %v: %w", c.Bundle, c.Level, c.Limit, c.Replica, ErrBounds)
	}
	return nil
}

// pausedSince moves the clocks of the level by the time from a hold to its end.
func (b *Bag) pausedSince(from, to job.Time) {
	if b.Level == 0 || to <= from {
		return
	}
	b.Since = b.Since.Add(to.Sub(max(from, b.Since)))
	if b.Begun != 0 {
		b.Begun = b.Begun.Add(to.Sub(max(from, b.Begun)))
	}
}

// beginLevel has the clocks of the level begin anew: the bag has yet to be given out there.
func (b *Bag) beginLevel(now job.Time) {
	if b.Level > 0 {
		b.Since, b.Begun, b.Limit = now, 0, 0
	}
}
