package storetest

import (
	"errors"
	"reflect"
	"testing"
	"time"

	"kith/internal/job"
	"kith/store"
)

// testBagLevels checks that where a bag is in its hierarchy outlives a restart, with the clocks of the
// level, the levels that it has left and the limits of its bundles, and that a level is left once.
func testBagLevels(t *testing.T, open Opener) {
	b := open(t)
	s := load(t, b)
	id := s.NextID()
	apply(t, s, store.SubmitBag{
		ID: id, Indices: job.FirstIndices(9), Time: 10,
		Request: job.Request{Processors: 1, Walltime: job.MaxWalltime, Unknown: true, Level: 1, OnSiteLost: job.Rerun},
	})
	commit(t, b, s)
	grant := func(number uint32, level uint8, task uint32) store.GrantBundle {
		return store.GrantBundle{
			Bundle: job.AttemptID{Job: id, Number: number}, Site: "beta", Stamp: uint64(number), Generation: 1, Tasks: job.TaskRange(task, task+1),
			Level: level, Limit: time.Minute, Time: 20,
		}
	}
	for name, c := range map[string]struct {
		cmd  store.Command
		want error
	}{
		"a grant of another level":     {grant(1, 2, 0), store.ErrStale},
		"a grant without a limit":      {store.GrantBundle{Bundle: job.AttemptID{Job: id, Number: 1}, Site: "beta", Tasks: job.TaskRange(0, 1), Level: 1}, store.ErrBounds},
		"down from another level":      {store.LowerBag{Bag: id, From: 2, To: 3}, store.ErrStale},
		"up":                           {store.LowerBag{Bag: id, From: 1, To: 1}, store.ErrBounds},
		"below all":                    {store.LowerBag{Bag: id, From: 1, To: job.MaxLevel + 1}, store.ErrBounds},
		"rejected at another level":    {store.RejectBag{Bag: id, Level: 2}, store.ErrStale},
		"of no bag":                    {store.LowerBag{Bag: s.NextID(), From: 1, To: 2}, store.ErrUnknown},
		"with replicas":                {store.SubmitBag{ID: s.NextID(), Indices: job.FirstIndices(1), MaxReplicas: 1, Request: job.Request{Level: 1}}, store.ErrBounds},
		"at a level that there is not": {store.SubmitBag{ID: s.NextID(), Indices: job.FirstIndices(1), Request: job.Request{Level: job.MaxLevel + 1}}, store.ErrBounds},
	} {
		if err := s.Apply(c.cmd); !errors.Is(err, c.want) {
			t.Errorf("%s: %v, not %v", name, err, c.want)
		}
	}
	apply(t, s, grant(1, 1, 0))
	apply(t, s, grant(2, 1, 1))
	apply(t, s, store.RecordResults{Bundle: job.AttemptID{Job: id, Number: 1}, Site: "beta", Batch: 1, Time: 25, Results: []job.TaskResult{{Kind: job.Success}}})
	apply(t, s, store.HoldBag{Bag: id, Time: 30})
	if err := s.Apply(store.LowerBag{Bag: id, From: 1, To: 2}); !errors.Is(err, store.ErrState) {
		t.Errorf("on hold, down: %v", err)
	}
	apply(t, s, store.ReleaseBag{Bag: id, Time: 35})
	commit(t, b, s)
	for range 2 { // before and after a restart
		bag := s.Bag(id)
		if want := (store.BagLevel{Level: 1, Since: 15, Begun: 25, Limit: time.Minute}); !reflect.DeepEqual(bag.BagLevel, want) {
			t.Errorf("at its first level: %+v, not %+v", bag.BagLevel, want)
		}
		if u := bag.Bundle(2); bag.Leaving(u) || u.Level != 1 || u.Limit != time.Minute {
			t.Errorf("its bundle is of level %d, for %v", u.Level, u.Limit)
		}
		closed(t, b)
		b = open(t)
		s = load(t, b)
	}
	apply(t, s, store.LowerBag{Bag: id, From: 1, To: 2, Reason: job.LevelOverdue, Site: "beta", Time: 65})
	if err := s.Apply(store.LowerBag{Bag: id, From: 1, To: 2, Reason: job.LevelOverdue, Site: "beta", Time: 65}); !errors.Is(err, store.ErrStale) {
		t.Errorf("down twice: %v", err)
	}
	commit(t, b, s)
	want := store.BagLevel{Level: 2, Since: 65, Demotions: []store.BagDemotion{{Time: 65, From: 1, To: 2, Reason: job.LevelOverdue, Site: "beta", Used: 40}}}
	for range 2 {
		if bag := s.Bag(id); !reflect.DeepEqual(bag.BagLevel, want) || !bag.Leaving(bag.Bundle(2)) || bag.Done.Count() != 1 {
			t.Errorf("a level down: %+v, not %+v; %d tasks have ended", bag.BagLevel, want, bag.Done.Count())
		}
		closed(t, b)
		b = open(t)
		s = load(t, b)
	}
	// What the level stops has not failed: it waits again. A second run of it at the next level counts.
	stopped := job.TaskResult{Ordinal: 1, Kind: job.Timeout, Start: 1, Run: time.Minute}
	apply(t, s, store.RecordResults{Bundle: job.AttemptID{Job: id, Number: 2}, Site: "beta", Batch: 1, Time: 70, Results: []job.TaskResult{stopped}})
	if bag := s.Bag(id); !bag.Again.Has(1) || len(bag.Sums.Failures) > 0 || !bag.Failed.Empty() {
		t.Errorf("what the level stopped: again %v, failures %+v", bag.Again.Has(1), bag.Sums.Failures)
	}
	apply(t, s, grant(3, 2, 1))
	apply(t, s, store.RejectBag{Bag: id, Level: 2, Why: "no level below", Time: 90})
	apply(t, s, store.ReturnTasks{Bundle: job.AttemptID{Job: id, Number: 3}, Site: "beta", Tasks: job.TaskRange(1, 2), Time: 91})
	apply(t, s, store.CloseBag{Bag: id, Time: 92})
	commit(t, b, s)
	closed(t, b)
	b = open(t)
	s = load(t, b)
	bag := s.Bag(id)
	if act, _ := bag.LastAct(store.ActCancel); bag.State != job.BagCancelled || bag.Done.Count() != 1 || bag.Cancelled.Count() != 8 || act.Reason != "no level below" {
		t.Errorf("no level takes it: %v with %d done and %d cancelled, %q", bag.State, bag.Done.Count(), bag.Cancelled.Count(), act.Reason)
	}
	if r, err := b.TaskResults(id, 0); err != nil || len(r) == 0 {
		t.Errorf("the results of what had ended: %v, %v", r, err)
	}
	closed(t, b)
}
