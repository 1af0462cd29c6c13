package store_test

import (
	"fmt"
	"slices"
	"testing"

	"kith/internal/job"
	"kith/store"
)

// ending is [store.State.Ending] for the bags of the reference.
func (m slowSite) ending(id job.ID) (ended, ok bool) {
	b := m[id]
	return b == nil || b.state.Terminal(), b != nil && b.state == job.BagCompleted
}

// judge decides those dependencies of a bag that wait for one thing, and says how many.
func (m slowSite) judge(b *slowBag, on job.ID) (decided int) {
	_, ok := m.ending(on)
	for i := range b.after {
		d := &b.after[i]
		if d.State != job.DependencyWaits || d.On != on {
			continue
		}
		decided++
		switch {
		case d.Condition == job.AfterOK && !ok, d.Condition == job.AfterNotOK && ok:
			d.State = job.DependencyBroken
		default:
			d.State = job.DependencyMet
		}
	}
	return decided
}

func (b *slowBag) has(s job.DependencyState) bool {
	return slices.ContainsFunc(b.after, func(d job.Dependency) bool { return d.State == s })
}

// weigh takes a bag on that was just submitted, released, or has dependencies decided.
func (b *slowBag) weigh() {
	switch {
	case b.has(job.DependencyBroken):
		for i := range b.tasks {
			if !b.tasks[i].ended() {
				b.end(uint32(i), "cancelled")
			}
		}
	case b.state == job.BagOnHold:
	case b.has(job.DependencyWaits):
		b.state = job.BagBlocked
	default:
		b.state = job.BagOpen
	}
}

// drop has a bag all of whose tasks have ended wait for nothing.
func (b *slowBag) drop() {
	for i := range b.after {
		if d := &b.after[i]; d.State == job.DependencyWaits {
			d.State = job.DependencyDropped
		}
	}
}

// submitted reports whether what a new bag waits for is there, and begins with that.
func (m slowSite) submitted(b *slowBag, after []job.Dependency) bool {
	for _, d := range after {
		if d.Condition != job.Singleton && m[d.On] == nil {
			return false
		}
		b.after = append(b.after, d)
		if d.Condition == job.Singleton {
			continue
		}
		last := &b.after[len(b.after)-1]
		last.State = job.DependencyWaits
	}
	for _, d := range after {
		if ended, _ := m.ending(d.On); ended && d.Condition != job.Singleton {
			m.judge(b, d.On)
		}
	}
	if len(after) > 0 {
		b.weigh()
	}
	return true
}

func (m slowSite) resolved(c store.ResolveDependency) bool {
	b := m[c.ID]
	ended := true
	if !c.On.IsZero() {
		ended, _ = m.ending(c.On)
	}
	if b == nil || !ended || b.state != job.BagBlocked && b.state != job.BagOnHold {
		return false
	}
	if c.On.IsZero() {
		n := 0
		for i := range b.after {
			if d := &b.after[i]; d.Condition == job.Singleton && d.State == job.DependencyWaits {
				d.State = job.DependencyMet
				n++
			}
		}
		if n == 0 {
			return false
		}
	} else if m.judge(b, c.On) == 0 {
		return false
	}
	b.weigh()
	return true
}

// sameAfter returns how the dependencies of a bag differ from the reference.
func (b *slowBag) sameAfter(got []job.Dependency) error {
	if !slices.Equal(got, b.after) {
		return fmt.Errorf("after %v, want %v", got, b.after)
	}
	return nil
}

// unblock decides all that a bag waits for, whose end must be known.
func unblock(t *testing.T, s *store.State, b *store.Bag) {
	t.Helper()
	for b.State == job.BagBlocked {
		after := s.After(b.ID)
		i := slices.IndexFunc(after, func(d job.Dependency) bool { return d.State == job.DependencyWaits })
		must(t, s, store.ResolveDependency{ID: b.ID, On: after[i].On})
	}
}

// finish has all bags end from where they are: every task runs, and every bag closes.
func finish(t *testing.T, s *store.State) {
	t.Helper()
	for b := range s.Bags {
		if b.State == job.BagOnHold {
			must(t, s, store.ReleaseBag{Bag: b.ID})
		}
		unblock(t, s, b)
		for !b.State.Terminal() {
			for o := range b.Bundles {
				c := store.RecordResults{Bundle: job.AttemptID{Job: b.ID, Number: o.Number}, Site: o.Site, Batch: o.Batch + 1}
				for task := range o.Tasks.All {
					c.Results = append(c.Results, job.TaskResult{Ordinal: task, Kind: job.Success})
				}
				must(t, s, c)
				break // it may have ended tasks of others
			}
			if b.State == job.BagReturning {
				must(t, s, store.CloseBag{Bag: b.ID})
				continue
			}
			if len(b.Live) > 0 {
				continue
			}
			must(t, s, store.GrantBundle{Bundle: job.AttemptID{Job: b.ID, Number: b.Number + 1}, Site: "beta", Stamp: 99, Tasks: b.NextTasks(store.MaxBundleTasks)})
		}
		if b.EndedCount() != int(b.Tasks()) || len(b.Live) != 0 || b.Given() != 0 || len(b.Tries) != 0 {
			t.Errorf("bag %v has ended with %d of %d tasks, %d bundles, %d given, tries of %d", b.ID, b.EndedCount(), b.Tasks(), len(b.Live), b.Given(), len(b.Tries))
		}
	}
	if err := s.Check(); err != nil {
		t.Error(err)
	}
}
