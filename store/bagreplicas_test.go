package store_test

import (
	"testing"
	"time"

	"kith/internal/job"
	"kith/store"
)

// twiceBag returns a bag in its tail, with tasks 0 to 3 at beta as bundle 1.
func twiceBag(t *testing.T, change func(*store.SubmitBag)) (*store.State, *store.Bag, job.AttemptID) {
	t.Helper()
	s, b := bagOf(t, 4, func(c *store.SubmitBag) {
		c.MaxReplicas = 2
		if change != nil {
			change(c)
		}
	})
	first := grant(t, s, b, "beta", 4)
	must(t, s, store.BeginTail{Bag: b.ID, Time: 12})
	return s, b, first
}

func replicate(t *testing.T, s *store.State, b *store.Bag, site job.SiteID, tasks string) job.AttemptID {
	t.Helper()
	id := job.AttemptID{Job: b.ID, Number: b.Number + 1}
	must(t, s, replica(t, b, site, tasks))
	return id
}

func replica(t *testing.T, b *store.Bag, site job.SiteID, tasks string) store.GrantBundle {
	t.Helper()
	return store.GrantBundle{
		Bundle: job.AttemptID{Job: b.ID, Number: b.Number + 1}, Site: site, Stamp: 1000 + uint64(b.Number), Generation: 1, Tasks: set(t, tasks), Replica: true,
		Time: job.Time(time.Second),
	}
}

func TestReplicasAreBounded(t *testing.T) {
	s, b := bagOf(t, 10, nil)
	grant(t, s, b, "beta", 4)
	must(t, s, store.BeginTail{Bag: b.ID})
	refused(t, s, replica(t, b, "gamma", "0"), store.ErrNotWaiting) // the bag has none
	s, b, _ = twiceBag(t, nil)
	refused(t, s, replica(t, b, "beta", "0"), store.ErrBeside)
	replicate(t, s, b, "gamma", "0-1")
	refused(t, s, replica(t, b, "gamma", "1-2"), store.ErrBeside)
	replicate(t, s, b, "delta", "0")
	refused(t, s, replica(t, b, "epsilon", "0"), store.ErrNotWaiting) // two beside the first
	if b.Given() != 4 || b.Runs() != 7 || b.RunsOf(0) != 3 || b.Sums.Replicas != 3 {
		t.Errorf("%d tasks, %d runs, %d of the first; %d replicas", b.Given(), b.Runs(), b.RunsOf(0), b.Sums.Replicas)
	}
	must(t, s, store.CancelBag{Bag: b.ID, Tasks: new(set(t, "3"))})
	refused(t, s, replica(t, b, "gamma", "3"), store.ErrNotWaiting) // nobody wants more of it
	// What is taken back may still report from there.
	s, b, first := twiceBag(t, nil)
	must(t, s, store.RevokeBundle{Bundle: first, Site: "beta", MayRun: true})
	refused(t, s, replica(t, b, "gamma", "0"), store.ErrNotWaiting) // it waits
	grant(t, s, b, "gamma", 4)
	refused(t, s, replica(t, b, "beta", "0"), store.ErrBeside)

	s, b = bagOf(t, 4, func(c *store.SubmitBag) { c.MaxReplicas = 1 })
	grant(t, s, b, "beta", 1)
	refused(t, s, replica(t, b, "gamma", "0"), store.ErrState) // before the tail
	refused(t, s, store.SubmitBag{ID: s.NextID(), Indices: job.FirstIndices(1), MaxReplicas: 6}, store.ErrBounds)

	s, b, _ = twiceBag(t, func(c *store.SubmitBag) { c.MaxRunning = 5 })
	refused(t, s, replica(t, b, "gamma", "0-1"), store.ErrState)
	replicate(t, s, b, "gamma", "0")
}

func TestFirstSuccessOfReplicasCounts(t *testing.T) {
	s, b, first := twiceBag(t, nil)
	second := replicate(t, s, b, "gamma", "0-1")
	third := replicate(t, s, b, "delta", "0")
	now := job.Time(11 * time.Second)
	must(t, s, store.RecordResults{Bundle: second, Site: "gamma", Batch: 1, Results: results(job.Success, 0, 1), Time: now})
	wants(t, b, "", "0-1", "", "")
	if s.TaskBundle(second) != nil || s.TaskBundle(third) != nil || s.TaskBundle(first).Tasks.String() != "2-3" || b.Runs() != 2 {
		t.Errorf("bundles %+v, %d runs at sites", b.Live, b.Runs())
	}
	// Tasks 0 and 1 were at beta since 11 ns, 0 at delta since a second.
	if want := 32.0; b.Sums.WastedTime < want-1e-6 || b.Sums.WastedTime > want {
		t.Errorf("%v s were wasted, want %v", b.Sums.WastedTime, want)
	}
	must(t, s, store.RecordResults{Bundle: first, Site: "beta", Batch: 1, Results: results(job.Success, 0, 2), Time: now})
	if b.Sums.Wasted != 1 || b.Sums.Runs != 3 || b.Given() != 1 {
		t.Errorf("%+v, %d given", b.Sums, b.Given())
	}
}

// While others run a task, what fails, is lost or comes back leaves it to them.
func TestReplicasGoOnWithoutEachOther(t *testing.T) {
	for name, lose := range map[string]func(store.GrantBundle) store.Command{
		"fails": func(g store.GrantBundle) store.Command {
			return store.RecordResults{Bundle: g.Bundle, Site: g.Site, Batch: 1, Results: results(job.Failure, 0)}
		},
		"is lost": func(g store.GrantBundle) store.Command {
			return store.RecordResults{Bundle: g.Bundle, Site: g.Site, Batch: 1, Results: results(job.Loss, 0)}
		},
		"comes": func(g store.GrantBundle) store.Command {
			return store.ReturnTasks{Bundle: g.Bundle, Site: g.Site, Tasks: g.Tasks}
		},
		"is away": func(g store.GrantBundle) store.Command {
			return store.RevokeBundle{Bundle: g.Bundle, Site: g.Site, MayRun: true}
		},
		"is stopped": func(g store.GrantBundle) store.Command {
			return store.RecordResults{Bundle: g.Bundle, Site: g.Site, Batch: 1, Results: results(job.Cancel, 0)}
		},
	} {
		for _, lost := range []job.OnSiteLost{job.Wait, job.Rerun, job.Race} {
			s, b, first := twiceBag(t, func(c *store.SubmitBag) { c.Indices, c.Request.OnSiteLost = job.FirstIndices(1), lost })
			second := replicate(t, s, b, "gamma", "0")
			must(t, s, lose(store.GrantBundle{Bundle: first, Site: "beta", Tasks: set(t, "0")}))
			if b.Given() != 1 || b.Runs() != 1 || b.EndedCount() != 0 || b.Waiting() != 0 {
				t.Errorf("%s under %v: %d tasks, %d runs, %d ended, %d waiting", name, lost, b.Given(), b.Runs(), b.EndedCount(), b.Waiting())
			}
			must(t, s, store.RecordResults{Bundle: second, Site: "gamma", Batch: 1, Results: results(job.Success, 0)}, store.CloseBag{Bag: b.ID})
			if b.State != job.BagCompleted || len(b.Live) != 0 {
				t.Errorf("%s under %v: %v, %d bundles", name, lost, b.State, len(b.Live))
			}
		}
	}
	// The last one decides, by all that has failed, and no other comes: else runs that fail
	// would follow each other for ever (faults --bags, seed 241 of the day it was built).
	s, b, first := twiceBag(t, nil)
	second := replicate(t, s, b, "gamma", "0")
	must(t, s, store.RecordResults{Bundle: first, Site: "beta", Batch: 1, Results: results(job.Failure, 0)})
	refused(t, s, replica(t, b, "beta", "0"), store.ErrNotWaiting)
	must(t, s, store.RecordResults{Bundle: second, Site: "gamma", Batch: 1, Results: results(job.Failure, 0)})
	wants(t, b, "", "", "0", "")
	// What its user wants ended is over when all have stopped.
	s, b, first = twiceBag(t, nil)
	second = replicate(t, s, b, "gamma", "0")
	must(t, s, store.CancelBag{Bag: b.ID, Tasks: new(set(t, "0"))})
	must(t, s, store.RecordResults{Bundle: first, Site: "beta", Batch: 1, Results: results(job.Cancel, 0)})
	wants(t, b, "", "", "", "")
	must(t, s, store.ReturnTasks{Bundle: second, Site: "gamma", Tasks: set(t, "0")})
	wants(t, b, "", "", "", "0")
}

func TestTailIsLatched(t *testing.T) {
	s, b, first := twiceBag(t, nil)
	must(t, s, store.BeginTail{Bag: b.ID, Time: 99})
	if b.TailSince != 12 {
		t.Errorf("the tail began at %d", b.TailSince)
	}
	must(t, s, store.ReturnTasks{Bundle: first, Site: "beta", Tasks: set(t, "0-3")})
	if b.TailSince != 12 {
		t.Error("tasks that come back end the tail")
	}
	must(t, s, store.RecordResults{Bundle: grant(t, s, b, "beta", 1), Site: "beta", Batch: 1, Results: results(job.Success, 0)}, store.RetryTasks{Bag: b.ID, Tasks: set(t, "0")})
	if b.TailSince != 0 {
		t.Error("a bag whose tasks its user has run again is still in its tail")
	}
	must(t, s, store.HoldBag{Bag: b.ID})
	refused(t, s, store.BeginTail{Bag: b.ID}, store.ErrState)
	refused(t, s, store.BeginTail{Bag: s.NextID()}, store.ErrUnknown)
}

// Nor does what was taken back from a site end a task that others run, unless it was done.
func TestALateFailureLeavesTheTaskToOthers(t *testing.T) {
	for name, change := range map[string]func(*store.SubmitBag){
		"with replicas": nil, "without": func(c *store.SubmitBag) { c.MaxReplicas = 0 },
	} {
		t.Run(name, func(t *testing.T) {
			s, b, first := twiceBag(t, change)
			must(t, s, store.RevokeBundle{Bundle: first, Site: "beta", MayRun: true})
			second := grant(t, s, b, "gamma", 4)
			must(t, s, store.RecordResults{Bundle: first, Site: "beta", Batch: 1, Results: []job.TaskResult{{Ordinal: 0, Kind: job.Failure, ExitCode: 1}, {Ordinal: 1, Kind: job.Success}}})
			if b.Failed.Has(0) || !s.TaskBundle(second).Tasks.Has(0) {
				t.Fatal("gamma had task 0, and it has ended as failed")
			}
			if !b.Done.Has(1) || s.TaskBundle(second).Tasks.Has(1) {
				t.Fatal("task 1 was done, and gamma still has it")
			}
			must(t, s, store.RecordResults{Bundle: second, Site: "gamma", Batch: 1, Results: []job.TaskResult{{Ordinal: 0, Kind: job.Success}}})
			if !b.Done.Has(0) {
				t.Error("task 0 was done at gamma in the end")
			}
		})
	}
}
