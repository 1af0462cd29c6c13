package meta_test

import (
	"errors"
	"testing"
	"time"

	"kith/internal/job"
	"kith/meta"
)

// A bag gives tasks to sites until its budget is used up, uses no more than that and what
// ran then, and goes on when it is raised. What was in stocks has come back.
func TestBudgetOfABag(t *testing.T) {
	const budget = 300 // processor-seconds
	w := newWorld(t, 3, nil, 2, 6)
	w.takes = func(id job.TaskID) outcome {
		return outcome{run: time.Duration(500+id.Ordinal%7*300) * time.Millisecond}
	}
	alpha := w.sites[0]
	id := alpha.submit(meta.SubmitBag{Token: 1, Request: job.Request{User: "ada", Processors: 1, Walltime: time.Minute}, Indices: tasks(2000), Budget: budget})
	b := alpha.state.Bag(id)
	if w.run(20 * time.Minute) {
		t.Fatal("the bag has ended")
	}
	if used := b.Used(); used < budget || used > budget+8*2.3 {
		t.Errorf("%v of %d processor-seconds are used", used, budget)
	}
	if b.Given() != 0 || b.State != job.BagOpen || !b.Spent() {
		t.Errorf("%v, %d tasks with sites", b.State, b.Given())
	}
	set := func(budget uint64) error {
		return alpha.ask(meta.SetBudget{Token: 9, Bag: id, Budget: budget, Actor: "ada"})
	}
	runs := b.Sums.Runs
	if err := set(budget + 100); err != nil {
		t.Fatal(err)
	}
	acts := len(b.Acts)
	if err := set(budget + 100); err != nil || len(b.Acts) != acts {
		t.Errorf("repeated: %v, %d acts", err, len(b.Acts))
	}
	if w.run(20*time.Minute) || b.Sums.Runs <= runs || b.Used() < budget+100 || b.Used() > budget+100+8*2.3 {
		t.Errorf("%d runs after %d, %v used", b.Sums.Runs, runs, b.Used())
	}
	if err := set(0); err != nil {
		t.Fatal(err)
	}
	if !w.run(time.Hour) || b.State != job.BagCompleted || b.Sums.Runs != 2000 {
		t.Errorf("%v after %d runs", b.State, b.Sums.Runs)
	}
	if err := set(7); !errors.Is(err, meta.ErrBagEnded) {
		t.Errorf("ended: %v", err)
	}
	w.settle()
}

// Before any task has ended each counts as its walltime: a small budget is not given away at
// once to whoever has places. With less than one walltime one task runs.
func TestSmallBudgets(t *testing.T) {
	for _, test := range []struct {
		budget uint64
		most   uint64 // runs
	}{{1, 1}, {59, 1}, {180, 3}} {
		w := newWorld(t, 4, nil, 16)
		w.takes = func(job.TaskID) outcome { return outcome{run: time.Minute} }
		id := w.sites[0].submit(meta.SubmitBag{Token: 1, Request: job.Request{User: "ada", Processors: 1, Walltime: time.Minute}, Indices: tasks(100), Budget: test.budget})
		w.run(10 * time.Minute)
		if b := w.sites[0].state.Bag(id); b.Sums.Runs != test.most || b.Given() != 0 {
			t.Errorf("budget %d: %d runs, %d with sites", test.budget, b.Sums.Runs, b.Given())
		}
	}
}
