package store_test

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"kith/internal/job"
	"kith/store"
	"kith/store/codec"
	"kith/store/memstore"
	"kith/store/storetest"
)

// bagOf returns a state with a bag of so many tasks, and it.
func bagOf(t *testing.T, tasks uint32, change func(*store.SubmitBag)) (*store.State, *store.Bag) {
	t.Helper()
	s := store.NewState("alpha", 9)
	c := store.SubmitBag{ID: s.NextID(), Indices: job.FirstIndices(tasks), Request: job.Request{Processors: 1, Walltime: time.Hour, OnSiteLost: job.Rerun}, Time: 10}
	if change != nil {
		change(&c)
	}
	must(t, s, c)
	return s, s.Bag(c.ID)
}

// grant gives the next n tasks of a bag to a site.
func grant(t *testing.T, s *store.State, b *store.Bag, site job.SiteID, n int) job.AttemptID {
	t.Helper()
	id := job.AttemptID{Job: b.ID, Number: b.Number + 1}
	must(t, s, store.GrantBundle{Bundle: id, Site: site, Stamp: uint64(id.Number), Generation: 1, Tasks: b.NextTasks(n), Time: 11})
	return id
}

func results(kind job.OutcomeKind, tasks ...uint32) (list []job.TaskResult) {
	for _, task := range tasks {
		r := job.TaskResult{Ordinal: task, Kind: kind, Run: time.Second}
		if kind == job.Failure {
			r.ExitCode = 7
		}
		list = append(list, r)
	}
	return list
}

func set(t *testing.T, text string) job.TaskSet {
	t.Helper()
	s, err := job.ParseTaskSet(text)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// wants checks the sets of a bag, as texts: waiting again, done, failed, cancelled.
func wants(t *testing.T, b *store.Bag, again, done, failed, cancelled string) {
	t.Helper()
	got := []string{b.Again.String(), b.Done.String(), b.Failed.String(), b.Cancelled.String()}
	if want := []string{again, done, failed, cancelled}; !slices.Equal(got, want) {
		t.Errorf("again, done, failed and cancelled are %q, want %q", got, want)
	}
}

func TestNoTaskIsInTwoBundles(t *testing.T) {
	s, b := bagOf(t, 100, nil)
	first := grant(t, s, b, "beta", 10)
	next := job.AttemptID{Job: b.ID, Number: 2}
	for _, text := range []string{"0", "9-12", "11", "10,12", "100", "10-100", "16777215"} {
		c := store.GrantBundle{Bundle: next, Site: "gamma", Tasks: set(t, text)}
		want := store.ErrNotWaiting
		if last, _ := c.Tasks.Last(); last >= 100 {
			want = store.ErrBounds
		}
		refused(t, s, c, want)
	}
	refused(t, s, store.GrantBundle{Bundle: next, Site: "gamma"}, store.ErrBounds)
	refused(t, s, store.GrantBundle{Bundle: next, Site: "", Tasks: set(t, "10")}, store.ErrBounds)
	refused(t, s, store.GrantBundle{Bundle: next, Site: "gamma", Tasks: job.TaskRange(0, job.MaxTasks)}, store.ErrBounds)
	refused(t, s, store.GrantBundle{Bundle: first, Site: "gamma", Tasks: set(t, "10")}, store.ErrStale)
	refused(t, s, store.GrantBundle{Bundle: job.AttemptID{Job: b.ID, Number: 3}, Site: "gamma", Tasks: set(t, "10")}, store.ErrStale)
	must(t, s, store.ReturnTasks{Bundle: first, Site: "beta", Tasks: set(t, "3-5")})
	if got := b.NextTasks(5); got.String() != "3-5,10-11" {
		t.Errorf("the next tasks are %v: those that came back are first", got.String())
	}
	if got := b.NextTasksBut(5, set(t, "4-5,10")); got.String() != "3,10-13" {
		t.Errorf("the next tasks without two that wait again are %v", got.String())
	}
	refused(t, s, store.GrantBundle{Bundle: next, Site: "gamma", Tasks: set(t, "2-4")}, store.ErrNotWaiting)
	must(t, s, store.GrantBundle{Bundle: next, Site: "gamma", Tasks: set(t, "4,10")})
	wants(t, b, "3,5", "", "", "")
}

func TestRepeatedClaimHasItsBundles(t *testing.T) {
	s, b := bagOf(t, 100, nil)
	c := store.GrantBundle{Bundle: job.AttemptID{Job: b.ID, Number: 1}, Site: "beta", Stamp: 7, Generation: 3, Tasks: set(t, "0-9")}
	must(t, s, c)
	before := codec.Dump(s)
	c.Tasks = set(t, "0-4") // whatever it would get now
	must(t, s, c)
	if !bytes.Equal(codec.Dump(s), before) {
		t.Error("a repeated grant left a trace")
	}
	must(t, s, store.GrantBundle{Bundle: job.AttemptID{Job: b.ID, Number: 2}, Site: "beta", Stamp: 7, Generation: 3, Node: "n2", Tasks: set(t, "10")})
	if got := s.BundlesOfClaim("beta", 3, 7); len(got) != 2 || got[0].Number != 1 || got[1].Number != 2 {
		t.Errorf("the claim has %v", got)
	}
	for _, other := range [][]job.AttemptID{s.BundlesOfClaim("beta", 4, 7), s.BundlesOfClaim("beta", 3, 8), s.BundlesOfClaim("gamma", 3, 7)} {
		if len(other) != 0 {
			t.Errorf("another claim has %v", other)
		}
	}
	must(t, s, store.ReturnTasks{Bundle: c.Bundle, Site: "beta", Tasks: set(t, "0-9")})
	must(t, s, store.RevokeBundle{Bundle: job.AttemptID{Job: b.ID, Number: 2}, Site: "beta", MayRun: true})
	if got := s.BundlesOfClaim("beta", 3, 7); len(got) != 0 {
		t.Errorf("the claim still has %v, which came back and was taken back", got)
	}
}

func TestResultsCountOnce(t *testing.T) {
	s, b := bagOf(t, 10, nil)
	id := grant(t, s, b, "beta", 4)
	refused(t, s, store.RecordResults{Bundle: id, Site: "gamma", Batch: 1, Results: results(job.Success, 0)}, store.ErrStale)
	refused(t, s, store.RecordResults{Bundle: job.AttemptID{Job: b.ID, Number: 2}, Site: "beta", Batch: 1}, store.ErrStale)
	refused(t, s, store.RecordResults{Bundle: id, Site: "beta", Batch: 1, Results: results(job.Success, 0, 0)}, store.ErrBounds)
	refused(t, s, store.RecordResults{Bundle: id, Site: "beta", Batch: 1, Results: results(job.Success, 10)}, store.ErrBounds)
	refused(t, s, store.RecordResults{Bundle: id, Site: "beta", Batch: 1, Results: results(job.NoOutcome, 0)}, store.ErrBounds)
	c := store.RecordResults{Bundle: id, Site: "beta", Batch: 1, Results: results(job.Success, 0, 5), Returned: set(t, "2")}
	must(t, s, c)
	wants(t, b, "2", "0", "", "") // it never had task 5
	before := codec.Dump(s)
	must(t, s, c)
	if !bytes.Equal(codec.Dump(s), before) {
		t.Error("the same batch twice left a trace")
	}
	c.Batch, c.Results, c.Returned = 2, results(job.Failure, 0, 1), job.TaskSet{}
	must(t, s, c)
	wants(t, b, "2", "0", "1", "")
	if b.Sums.Runs != 2 || b.Sums.Wasted != 2 || b.Given() != 1 {
		t.Errorf("%+v, %d tasks with sites", b.Sums, b.Given())
	}
	if f := b.Sums.Failures; len(f) != 1 || f[0].ExitCode != 7 || f[0].Count != 1 || !slices.Equal(f[0].Tasks, []uint32{1}) {
		t.Errorf("failures %+v", f)
	}
}

func TestLateResultOfATaskWithoutOne(t *testing.T) {
	s, b := bagOf(t, 10, nil)
	old := grant(t, s, b, "beta", 4)
	must(t, s, store.RevokeBundle{Bundle: old, Site: "beta", MayRun: true})
	wants(t, b, "0-3", "", "", "")
	again := grant(t, s, b, "gamma", 2)
	must(t, s, store.RecordResults{Bundle: again, Site: "gamma", Batch: 1, Results: results(job.Success, 0)})
	// Task 0 has a result, 1 runs elsewhere, 2 waits; of 3 the old host knows nothing good.
	late := append(results(job.Success, 0, 1, 2), results(job.Loss, 3)...)
	must(t, s, store.RecordResults{Bundle: old, Site: "beta", Batch: 1, Results: late})
	wants(t, b, "3", "0-2", "", "")
	if s.TaskBundle(again) != nil || b.Sums.Wasted != 2 || b.Given() != 0 {
		t.Errorf("bundle %v, %d wasted, %d given", s.TaskBundle(again), b.Sums.Wasted, b.Given())
	}
	refused(t, s, store.RecordResults{Bundle: again, Site: "gamma", Batch: 2, Results: results(job.Success, 1)}, store.ErrStale)
}

func TestLateBundlesAreBounded(t *testing.T) {
	s, b := bagOf(t, 10, nil)
	for range store.MaxTaskLosses - 1 {
		id := grant(t, s, b, "beta", 1)
		must(t, s, store.RevokeBundle{Bundle: id, Site: "beta", MayRun: true})
	}
	if len(b.Live) != store.MaxTaskLosses-1 {
		t.Errorf("%d bundles may report late", len(b.Live))
	}
	must(t, s, store.RevokeBundle{Bundle: grant(t, s, b, "beta", 1), Site: "beta", MayRun: true})
	wants(t, b, "", "", "0", "") // lost too often
	if len(b.Live) != 0 {
		t.Errorf("%d bundles may report a task that has ended", len(b.Live))
	}
	s, b = bagOf(t, 1000, nil)
	for range store.MaxLateBundles + 10 {
		// Each time another task: lost ones wait behind.
		id := job.AttemptID{Job: b.ID, Number: b.Number + 1}
		must(t, s, store.GrantBundle{Bundle: id, Site: "beta", Tasks: job.TaskRange(b.Next, b.Next+1)}, store.RevokeBundle{Bundle: id, Site: "beta", MayRun: true})
	}
	if len(b.Live) != store.MaxLateBundles || b.Bundle(10) != nil || b.Bundle(11) == nil {
		t.Errorf("%d bundles may report late, the 10th is %v", len(b.Live), b.Bundle(10))
	}
}

func TestLostSiteOfABagThatWaits(t *testing.T) {
	s, b := bagOf(t, 2, func(c *store.SubmitBag) { c.Request.OnSiteLost = job.Wait })
	must(t, s, store.RevokeBundle{Bundle: grant(t, s, b, "beta", 2), Site: "beta", MayRun: true})
	wants(t, b, "", "", "0-1", "")
	if b.State != job.BagReturning || len(b.Live) != 0 {
		t.Errorf("%v with %d bundles", b.State, len(b.Live))
	}
	if f := b.Sums.Failures; b.Sums.Runs != 0 || b.Sums.Sites[0].Lost != 2 || len(f) != 1 || f[0].Kind != job.Loss || f[0].Count != 2 {
		t.Errorf("tasks of which nothing was heard count as %+v", b.Sums)
	}
	must(t, s, store.CloseBag{Bag: b.ID, Time: 20})
	if b.State != job.BagFailed || b.Closed != 20 {
		t.Errorf("%v at %d", b.State, b.Closed)
	}
}

func TestRetriesOfTasks(t *testing.T) {
	s, b := bagOf(t, 3, func(c *store.SubmitBag) { c.Retries = 1 })
	first := grant(t, s, b, "beta", 3)
	kinds := []job.OutcomeKind{job.Failure, job.Cancel, job.Loss} // by itself, by the host, with the host
	var all []job.TaskResult
	for task, kind := range kinds {
		all = append(all, results(kind, uint32(task))...)
	}
	must(t, s, store.RecordResults{Bundle: first, Site: "beta", Batch: 1, Results: all})
	wants(t, b, "0-2", "", "", "")
	must(t, s, store.RecordResults{Bundle: grant(t, s, b, "beta", 3), Site: "beta", Batch: 1, Results: results(job.Failure, 0, 1, 2)})
	wants(t, b, "1-2", "", "0", "") // only the first had failed by itself
	refused(t, s, store.RetryTasks{Bag: b.ID, Tasks: set(t, "0-1")}, store.ErrState)
	refused(t, s, store.RetryTasks{Bag: b.ID}, store.ErrState)
	must(t, s, store.RecordResults{Bundle: grant(t, s, b, "beta", 3), Site: "beta", Batch: 1, Results: results(job.Success, 1, 2)}, store.CloseBag{Bag: b.ID, Time: 30})
	if b.State != job.BagFailed {
		t.Fatalf("%v", b.State)
	}
	must(t, s, store.RetryTasks{Bag: b.ID, Tasks: set(t, "0"), Actor: "ada", Time: 31})
	if b.State != job.BagOpen || b.Closed != 0 {
		t.Errorf("retried: %v, closed at %d", b.State, b.Closed)
	}
	if a, ok := b.LastAct(store.ActRetry); !ok || a != (store.Act{Time: 31, Kind: store.ActRetry, Actor: "ada", Tasks: 1}) {
		t.Errorf("the act of the retry is %+v, %v", a, ok)
	}
	// It has all its retries again.
	must(t, s, store.RecordResults{Bundle: grant(t, s, b, "beta", 1), Site: "beta", Batch: 1, Results: results(job.Timeout, 0)})
	wants(t, b, "0", "1-2", "", "")
	must(t, s, store.RecordResults{Bundle: grant(t, s, b, "beta", 1), Site: "beta", Batch: 1, Results: results(job.Success, 0)}, store.CloseBag{Bag: b.ID})
	if b.State != job.BagCompleted {
		t.Errorf("%v", b.State)
	}
}

// Failures count by the last line of their stderr, too, and what fails with ever other lines
// leaves room for other ends.
func TestFailuresAreGrouped(t *testing.T) {
	s, b := bagOf(t, 200, nil)
	bundle := grant(t, s, b, "beta", 200)
	batch := uint32(0)
	fail := func(task uint32, code int32, line string) {
		batch++
		must(t, s, store.RecordResults{Bundle: bundle, Site: "beta", Batch: batch, Results: []job.TaskResult{
			{Ordinal: task, Kind: job.Failure, ExitCode: code, ErrorLine: line},
		}})
	}
	for task := range uint32(4) {
		fail(task, 1, "no such file")
	}
	fail(4, 1, "")
	fail(5, 2, "no such file")
	for task := uint32(6); task < 100; task++ {
		fail(task, 1, fmt.Sprint("line ", task))
	}
	f := b.Sums.Failures
	if len(f) != store.MaxFailureLines+2 {
		t.Fatalf("%d kinds: %+v", len(f), f)
	}
	for at, want := range []store.FailureKind{
		{Kind: job.Failure, ExitCode: 1, ErrorLine: "no such file", Count: 4, Tasks: []uint32{0, 1, 2}},
		{Kind: job.Failure, ExitCode: 1, Count: 1 + 87, Tasks: []uint32{4, 13, 14}},
		{Kind: job.Failure, ExitCode: 2, ErrorLine: "no such file", Count: 1, Tasks: []uint32{5}},
		{Kind: job.Failure, ExitCode: 1, ErrorLine: "line 6", Count: 1, Tasks: []uint32{6}},
	} {
		if got := f[at]; got.ErrorLine != want.ErrorLine || got.ExitCode != want.ExitCode || got.Count != want.Count || !slices.Equal(got.Tasks, want.Tasks) {
			t.Errorf("%+v, want %+v", got, want)
		}
	}
	for task := uint32(100); task < 200; task++ {
		fail(task, int32(task), fmt.Sprint("line ", task))
	}
	total := uint64(0)
	for _, k := range b.Sums.Failures {
		total += k.Count
	}
	if n := len(b.Sums.Failures); n != store.MaxFailureKinds || total != 200 {
		t.Errorf("%d kinds of %d failures", n, total)
	}
}

func TestCancelledBags(t *testing.T) {
	s, b := bagOf(t, 10, nil)
	id := grant(t, s, b, "beta", 4)
	refused(t, s, store.CancelBag{Bag: b.ID, Tasks: new(set(t, "9-10"))}, store.ErrBounds)
	must(t, s, store.CancelBag{Bag: b.ID, Tasks: new(set(t, "1,7")), Actor: "eve"})
	must(t, s, store.CancelBag{Bag: b.ID, Tasks: new(set(t, "1,7")), Actor: "eve"}) // which changes nothing
	wants(t, b, "4-6", "", "", "7")
	if b.State != job.BagOpen || b.Stopping.String() != "1" || b.Next != 8 {
		t.Errorf("%v, stopping %v, next %d", b.State, b.Stopping.String(), b.Next)
	}
	must(t, s, store.ReturnTasks{Bundle: id, Site: "beta", Tasks: set(t, "0-1")})
	wants(t, b, "0,4-6", "", "", "1,7")
	must(t, s, store.CancelBag{Bag: b.ID, Actor: "ada", Reason: "wrong"})
	wants(t, b, "", "", "", "0-1,4-9")
	if b.State != job.BagCancelling || b.Stopping.String() != "2-3" {
		t.Errorf("%v, stopping %v", b.State, b.Stopping.String())
	}
	refused(t, s, store.GrantBundle{Bundle: job.AttemptID{Job: b.ID, Number: 2}, Site: "gamma", Tasks: set(t, "0")}, store.ErrState)
	refused(t, s, store.RetryTasks{Bag: b.ID, Tasks: set(t, "0")}, store.ErrState)
	must(t, s, store.RecordResults{Bundle: id, Site: "beta", Batch: 1, Results: append(results(job.Success, 2), results(job.Cancel, 3)...)}, store.CloseBag{Bag: b.ID})
	wants(t, b, "", "2", "", "0-1,3-9")
	acts := []store.Act{{Kind: store.ActCancel, Actor: "eve", Tasks: 2}, {Kind: store.ActCancel, Actor: "ada", Reason: "wrong"}}
	if b.State != job.BagCancelled || !slices.Equal(b.Acts, acts) {
		t.Errorf("%v, acts %+v, want %+v", b.State, b.Acts, acts)
	}
	refused(t, s, store.CancelBag{Bag: b.ID}, store.ErrState)
	must(t, s, store.PurgeBag{Bag: b.ID})
	refused(t, s, store.PurgeBag{Bag: b.ID}, store.ErrUnknown)

	// A bag none of whose tasks is with a site is over at once.
	s, b = bagOf(t, 10, nil)
	must(t, s, store.CancelBag{Bag: b.ID}, store.CloseBag{Bag: b.ID})
	if b.State != job.BagCancelled {
		t.Errorf("%v", b.State)
	}
	// One all of whose tasks have ended is not cancelled any more.
	s, b = bagOf(t, 1, nil)
	must(t, s, store.RecordResults{Bundle: grant(t, s, b, "beta", 1), Site: "beta", Batch: 1, Results: results(job.Success, 0)}, store.CancelBag{Bag: b.ID}, store.CloseBag{Bag: b.ID})
	if b.State != job.BagCompleted {
		t.Errorf("%v", b.State)
	}
}

func TestHeldBagsAndLimitsOfRunningTasks(t *testing.T) {
	s, b := bagOf(t, 1000, func(c *store.SubmitBag) { c.MaxRunning = 50 })
	id := grant(t, s, b, "beta", 40)
	if got := b.NextTasks(1000); got.String() != "40-49" {
		t.Errorf("next are %v", got.String())
	}
	refused(t, s, store.GrantBundle{Bundle: job.AttemptID{Job: b.ID, Number: 2}, Site: "gamma", Tasks: job.TaskRange(40, 51)}, store.ErrState)
	must(t, s, store.HoldBag{Bag: b.ID, Actor: "ada", Reason: "lunch"})
	if got := b.NextTasks(1); !got.Empty() {
		t.Errorf("a held bag gives %v", got.String())
	}
	refused(t, s, store.GrantBundle{Bundle: job.AttemptID{Job: b.ID, Number: 2}, Site: "gamma", Tasks: set(t, "40")}, store.ErrState)
	must(t, s, store.RecordResults{Bundle: id, Site: "beta", Batch: 1, Results: results(job.Success, 0)}, store.ReleaseBag{Bag: b.ID, Actor: "ada"})
	grant(t, s, b, "gamma", 11)
	if b.Given() != 50 {
		t.Errorf("%d tasks are with sites", b.Given())
	}
}

func TestRequestIDsOfJobsAndBags(t *testing.T) {
	s, b := bagOf(t, 10, func(c *store.SubmitBag) { c.RequestID = "r" })
	if s.BagOfRequest("r") != b || s.BagOfRequest("") != nil {
		t.Error("the bag is not found by its request")
	}
	refused(t, s, store.SubmitJob{ID: s.NextID(), RequestID: "r"}, store.ErrExists)
	refused(t, s, store.SubmitBag{ID: s.NextID(), RequestID: "r", Indices: job.FirstIndices(1)}, store.ErrExists)
	refused(t, s, store.SubmitBag{ID: b.ID, Indices: job.FirstIndices(1)}, store.ErrStale)
	refused(t, s, store.SubmitBag{ID: s.NextID()}, store.ErrBounds)
	refused(t, s, store.SubmitBag{ID: s.NextID(), Indices: job.FirstIndices(1), Retries: 101}, store.ErrBounds)
	must(t, s, store.SubmitJob{ID: s.NextID(), RequestID: "j"})
	refused(t, s, store.SubmitBag{ID: s.NextID(), RequestID: "j", Indices: job.FirstIndices(1)}, store.ErrExists)
}

// A host tells each batch until it is acknowledged, and runs of tasks have names of their
// own, which are no attempts'.
func TestBundleAtAHost(t *testing.T) {
	s := store.NewState("alpha", 9)
	id := job.AttemptID{Job: job.ID{Origin: "beta", Generation: 4, Seq: 5}, Number: 6}
	accept := store.AcceptBundle{Bundle: id, BootID: "boot", Tasks: set(t, "10-19")}
	must(t, s, accept)
	refused(t, s, accept, store.ErrExists)
	refused(t, s, store.AcceptBundle{Bundle: job.AttemptID{Job: id.Job, Number: 7}}, store.ErrBounds)
	refused(t, s, store.AcceptBundle{Bundle: job.AttemptID{Job: id.Job, Number: 7}, Tasks: job.TaskRange(0, job.MaxTasks)}, store.ErrBounds)
	refused(t, s, store.AcceptBundle{Bundle: job.AttemptID{Job: id.Job}, Tasks: set(t, "1")}, store.ErrBounds)
	h := s.Held(id)
	for task := range h.Tasks.All {
		run := h.RunID(task)
		if back, err := job.ParseAttemptID(run.String()); err != nil || back != run {
			t.Errorf("the run of task %d has the name %v, %v", task, run, err)
		}
		if of, n := s.TaskOfRun(run); of != h || n != task {
			t.Errorf("run %v is of %v, task %d; want task %d", run, of, n, task)
		}
	}
	other := job.AttemptID{Job: id.Job, Number: 7}
	must(t, s, store.AcceptBundle{Bundle: other, Tasks: set(t, "10")})
	if s.Held(other).RunID(10) == h.RunID(10) {
		t.Error("tasks of two bundles have runs of one name")
	}
	for _, stranger := range []job.AttemptID{id, {}, {Job: job.ID{Origin: "gamma", Seq: h.Run}, Number: 1}, {Job: job.ID{Origin: "beta", Seq: 99}, Number: 1}} {
		if of, _ := s.TaskOfRun(stranger); of != nil {
			t.Errorf("%v is taken for a run of %v", stranger, of.ID)
		}
	}

	must(t, s, store.EndTasks{Bundle: id, Results: results(job.Success, 10, 11)}, store.DropTasks{Bundle: id, Tasks: set(t, "18-19")})
	refused(t, s, store.EndTasks{Bundle: id, Results: results(job.Success, 12, 11)}, store.ErrState)
	refused(t, s, store.EndTasks{Bundle: id, Results: results(job.Success, 12, 12)}, store.ErrBounds)
	refused(t, s, store.EndTasks{Bundle: id, Results: results(job.Success, 18)}, store.ErrState)
	refused(t, s, store.EndTasks{Bundle: id}, store.ErrBounds)
	refused(t, s, store.DropTasks{Bundle: id, Tasks: set(t, "10")}, store.ErrState)
	refused(t, s, store.DropTasks{Bundle: id}, store.ErrState)
	refused(t, s, store.ForgetTasks{Bundle: id, Batch: 3}, store.ErrState)
	refused(t, s, store.DropTasks{Bundle: job.AttemptID{Job: id.Job, Number: 8}, Tasks: set(t, "1")}, store.ErrUnknown)
	must(t, s, store.ForgetTasks{Bundle: id, Batch: 1})
	if len(h.Unacked) != 1 || h.Unacked[0].Returned.String() != "18-19" || h.Tasks.String() != "12-17" {
		t.Errorf("%+v, tasks %v", h.Unacked, h.Tasks.String())
	}
	must(t, s, store.EndTasks{Bundle: id, Results: results(job.Failure, 12, 13, 14, 15, 16, 17)}, store.ForgetTasks{Bundle: id, Batch: 2})
	if s.Held(id) == nil {
		t.Error("a bundle whose results are not acknowledged is forgotten")
	}
	run := h.RunID(12)
	must(t, s, store.ForgetTasks{Bundle: id, Batch: 3}, store.ForgetTasks{Bundle: other, All: true})
	if of, _ := s.TaskOfRun(run); len(s.HeldBundles()) != 0 || of != nil {
		t.Errorf("%d bundles are held, the run is of %v", len(s.HeldBundles()), of)
	}
}

// What a command changes is what is written: each by itself brings the disk to the state
// in memory.
func TestEachCommandIsWritten(t *testing.T) {
	for seed := range uint64(3) {
		rng := rand.New(rand.NewPCG(seed, 11))
		var disk memstore.Disk
		b, err := memstore.Open(&disk, "alpha", 3)
		if err != nil {
			t.Fatal(err)
		}
		s, err := b.Load()
		if err != nil {
			t.Fatal(err)
		}
		for step := range 400 {
			c := storetest.WalkBags(rng, s)
			if s.Apply(c) != nil {
				continue
			}
			if err := b.Seal(s).Commit(); err != nil {
				t.Fatal(err)
			}
			if step < 100 && s.BagCount() > 2 && step%5 != 0 {
				continue
			}
			read, err := b.Load()
			if err != nil {
				t.Fatalf("seed %d, step %d, after %T: %v", seed, step, c, err)
			}
			if !bytes.Equal(codec.Dump(read), codec.Dump(s)) {
				t.Fatalf("seed %d, step %d: after %T the disk has another state", seed, step, c)
			}
		}
	}
}

// Eight results of a bag of ten million tasks are some hundred bytes, not the bag.
func TestWritesOfALargeBagAreSmall(t *testing.T) {
	s, b := bagOf(t, 10_000_000, nil)
	rng := rand.New(rand.NewPCG(1, 1))
	for range 200 {
		id := grant(t, s, b, "beta", 256)
		c := store.RecordResults{Bundle: id, Site: "beta", Batch: 1}
		for task := range s.TaskBundle(id).Tasks.All {
			if rng.IntN(4) > 0 {
				c.Results = append(c.Results, results(job.Success, task)...)
			}
		}
		must(t, s, c)
	}
	if n := size(codec.Writes(s)); n == 0 {
		t.Fatal("nothing to write")
	}
	id := grant(t, s, b, "beta", 8)
	codec.Writes(s)
	must(t, s, store.RecordResults{Bundle: id, Site: "beta", Batch: 1, Results: results(job.Success, slices.Collect(s.TaskBundle(id).Tasks.All)...)})
	writes := codec.Writes(s)
	if n := size(writes); len(writes) > 5 || n > 1500 {
		t.Errorf("eight results are %d writes of %d bytes", len(writes), n)
	}
	// What a million tasks that wait cost in memory is what ten cost.
	if n := testing.AllocsPerRun(10, func() { bagOf(t, 1_000_000, nil) }); n > 60 {
		t.Errorf("%v allocations for a bag of a million tasks", n)
	}
}

func size(writes []codec.Write) (n int) {
	for _, w := range writes {
		n += len(w.Key) + len(w.Value)
	}
	return n
}

// A command may change a page of which it names no task: that is written, too.
func TestPagesThatNoTaskNamesAreWritten(t *testing.T) {
	var disk memstore.Disk
	backend, err := memstore.Open(&disk, "alpha", 9)
	if err != nil {
		t.Fatal(err)
	}
	s, err := backend.Load()
	if err != nil {
		t.Fatal(err)
	}
	id := s.NextID()
	written := func(commands ...store.Command) {
		t.Helper()
		for _, c := range commands {
			must(t, s, c)
			if err := backend.Seal(s).Commit(); err != nil {
				t.Fatal(err)
			}
			read, err := backend.Load()
			if err != nil {
				t.Fatalf("after %T: %v", c, err)
			}
			if !bytes.Equal(codec.Dump(read), codec.Dump(s)) {
				t.Fatalf("after %T the disk has another state", c)
			}
		}
	}
	old, again := job.AttemptID{Job: id, Number: 1}, job.AttemptID{Job: id, Number: 2}
	written(
		store.SubmitBag{ID: id, Indices: job.FirstIndices(20_000), Retries: 5, Request: job.Request{Processors: 1, Walltime: time.Hour, OnSiteLost: job.Race}},
		store.GrantBundle{Bundle: old, Site: "beta", Tasks: set(t, "0-1")},
		store.RevokeBundle{Bundle: old, Site: "beta", MayRun: true},
		store.GrantBundle{Bundle: again, Site: "gamma", Tasks: set(t, "0-1")},
		store.RecordResults{Bundle: old, Site: "beta", Batch: 1, Results: results(job.Failure, 0)}, // it goes on in the second bundle
		store.CancelBag{Bag: id, Tasks: new(set(t, "15000"))},                                      // what lies before it is in three other pages
	)
	if b := s.Bag(id); b.Tries[0] != (store.Tries{Failures: 1, Losses: 1}) || b.Again.String() != "2-14999" || b.Next != 15_001 {
		t.Errorf("tries %+v, again %v, next %d", b.Tries, b.Again.String(), b.Next)
	}
}
