package meta

import (
	"slices"
	"testing"
	"time"

	"kith/internal/job"
	"kith/store"
)

// racing is the engine of a site that is connected to beta, and a bag of it that races.
type racing struct {
	*Engine
	t   *testing.T
	bag *openBag
}

func newRacing(t *testing.T) *racing {
	e := siteOf(t, store.NewState("alpha", 1), 1, nil)
	e.Step(1, PeerUp{Site: "beta", Generation: 1, Incarnation: 1})
	indices, _, err := job.ParseIndices("0-99")
	if err != nil {
		t.Fatal(err)
	}
	id := e.st.NextID()
	e.Step(1, SubmitBag{Token: 1, Request: job.Request{User: "ada", Processors: 1, Walltime: time.Hour, OnSiteLost: job.Race}, Indices: indices})
	return &racing{e, t, e.bags.byID[id]}
}

// grant gives beta a bundle of one task, and returns it.
func (r *racing) grant(task uint32) *store.TaskBundle {
	b := r.bag.rec
	number := b.Number + 1
	g := store.GrantBundle{
		Bundle: job.AttemptID{Job: b.ID, Number: number}, Site: "beta", Stamp: uint64(number), Generation: 1, Tasks: job.TaskRange(task, task+1), Time: 1,
	}
	if err := store.Record(r.st, g); err != nil {
		r.t.Fatal(err)
	}
	return b.Bundle(number)
}

// stops returns what beta is told to stop when something is done.
func (r *racing) stops(do func()) (stops []StopTasks) {
	r.out = r.out[:0]
	do()
	for _, f := range r.out {
		if send, is := f.(Send); is && send.To == "beta" {
			if m, is := send.Message.(StopTasks); is {
				stops = append(stops, m)
			}
		}
	}
	return stops
}

func stopsAll(stops []StopTasks, bundle uint32) bool {
	return slices.ContainsFunc(stops, func(m StopTasks) bool { return m.Bundle.Number == bundle && m.Tasks == nil })
}

// Of more bundles that were taken back than a bag may have the oldest is forgotten, and its
// site stops all of it: it would run to its end for nobody.
func TestBundlesThatAreForgottenStop(t *testing.T) {
	r := newRacing(t)
	for n := range uint32(store.MaxLateBundles + 1) {
		bundle := r.grant(n)
		stops := r.stops(func() { r.bags.revoke(2, r.bag, bundle, store.RevokeBundle{MayRun: true}) })
		if full := n == store.MaxLateBundles; len(stops) > 0 != full || full && !stopsAll(stops, 1) {
			t.Fatalf("bundle %d is taken back: %+v", n+1, stops)
		}
	}
}

// A task that its user wants ended ends when the host of its latest bundle lacks that, and then
// it stops where it was before.
func TestLateRunsOfWhatComesBackStop(t *testing.T) {
	r := newRacing(t)
	r.bags.revoke(2, r.bag, r.grant(0), store.RevokeBundle{MayRun: true})
	r.grant(0)
	stops := r.stops(func() {
		one := job.TaskRange(0, 1)
		r.bags.cancel(3, CancelBag{Token: 2, Bag: r.bag.rec.ID, Tasks: &one})
	})
	if stopsAll(stops, 1) || !stopsAll(stops, 2) {
		t.Errorf("it is to be cancelled: %+v", stops)
	}
	stops = r.stops(func() {
		r.bags.onGiveBack(4, "beta", GiveBack{Attempt: job.AttemptID{Job: r.bag.rec.ID, Number: 2}, Reason: job.UnknownCopy, Stamp: 3})
	})
	if !stopsAll(stops, 1) || !r.bag.rec.Cancelled.Has(0) {
		t.Errorf("it has come back: %+v", stops)
	}
}

// Runs at this site that their user cancels are stopped before that is durable; those that
// another reason stops, after.
func TestCancelledTasksOfOwnBagsStopEarly(t *testing.T) {
	e := siteOf(t, store.NewState("alpha", 1), 2, nil)
	indices, _, err := job.ParseIndices("0-1")
	if err != nil {
		t.Fatal(err)
	}
	id := e.st.NextID()
	e.Step(1, SubmitBag{Token: 1, Request: job.Request{User: "ada", Processors: 1, Walltime: time.Hour}, Indices: indices})
	var bundle job.AttemptID
	for range 9 {
		for _, f := range append(slices.Clone(e.Step(2, Pass{})), e.Step(2, Tick{})...) {
			if l, is := f.(Launch); is {
				bundle = l.Task.Bundle
				e.Step(2, AttemptStarted{Attempt: l.Attempt, At: 2})
			}
		}
	}
	kills := func(do func()) (early []bool) {
		do()
		for _, f := range e.out {
			if k, is := f.(Kill); is {
				early = append(early, k.Early)
			}
		}
		return early
	}
	one, other := job.TaskRange(0, 1), job.TaskRange(1, 2)
	if got := kills(func() { e.Step(3, CancelBag{Token: 2, Bag: id, Tasks: &one}) }); !slices.Equal(got, []bool{true}) {
		t.Errorf("cancelled: early %v", got)
	}
	e.out = nil
	if got := kills(func() { e.bags.askStop(4, "alpha", StopTasks{Bundle: bundle, Tasks: &other}) }); !slices.Equal(got, []bool{false}) {
		t.Errorf("stopped: early %v", got)
	}
}
