package meta

import (
	"testing"
	"time"

	"kith/internal/job"
	"kith/sitesched/batch"
	"kith/store"
)

// What a batch system holds of an origin that is set aside keeps its place there;
// what it starts meanwhile leaves, but for the copy that is tried, and queues again
// when the origin is back.
func TestSetAsideInABatchSystem(t *testing.T) {
	cfg := Default()
	cfg.Self = Self{Processors: 4, Speed: 1}
	e, err := New(cfg, store.NewState("beta", 1), batch.New(4))
	if err != nil {
		t.Fatal(err)
	}
	e.Restore(1, nil)
	attempt := func(n uint64) job.AttemptID {
		return job.AttemptID{Job: job.ID{Origin: "alpha", Generation: 1, Seq: n}, Number: 1}
	}
	place := func(n uint64) []Effect {
		return e.Step(1, Receive{From: "alpha", Message: PlaceCopy{
			Attempt: attempt(n), Request: job.Request{Processors: 1, Walltime: time.Second},
		}})
	}
	held := make(map[job.AttemptID]bool)
	follow := func(out []Effect) {
		for _, o := range out {
			switch o := o.(type) {
			case Queue:
				held[o.Copy.ID] = true
			case Dequeue:
				delete(held, o.Attempt)
			}
		}
	}
	check := func(when string, want int) {
		t.Helper()
		if follow(e.out); len(held) != want {
			t.Errorf("%s the batch system holds %v, expected %d", when, held, want)
		}
		e.out = e.out[:0]
	}
	follow(place(1))
	follow(place(2))
	check("before", 2)
	e.host.setAside(1, "alpha")
	check("set aside", 2)
	follow(place(3))
	check("with one more", 3)
	e.host.probe(1, e.host.copies.Get(attempt(3)))
	check("with a probe", 3)
	follow(e.Step(1, TurnCame{Attempt: attempt(3)}))
	e.host.site.Pass(1)
	e.host.postpone(1, e.host.copies.Get(attempt(3)), 5)
	check("after the probe", 3)
	follow(e.Step(1, TurnCame{Attempt: attempt(2)}))
	check("with one started", 2)
	e.host.bringBack(1, "alpha")
	check("back", 3)
}
