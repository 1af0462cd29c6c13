package meta_test

import (
	"errors"
	"slices"
	"testing"
	"time"

	"kith/internal/job"
	"kith/meta"
	"kith/sitesched"
	"kith/store"
)

// When many wait for one job, its end takes up a bounded number in each step, also after the
// daemon has died between two of them; and the job is not forgotten before all have been.
func TestManyDependants(t *testing.T) {
	const many, most = 10_000, 64
	site := func() *sitesched.Scheduler {
		s, err := sitesched.New(sitesched.Config{Processors: 1})
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	cfg := meta.Default()
	cfg.Self = meta.Self{Processors: 1, Speed: 1}
	cfg.Limits.Jobs, cfg.Limits.CopiesPerOrigin, cfg.Limits.Copies = 2*many, 2*many, 2*many
	cfg.Limits.ClosedJobs = 1
	state := store.NewState("alpha", 1)
	engine, err := meta.New(cfg, state, site())
	if err != nil {
		t.Fatal(err)
	}
	now := job.Time(time.Hour)
	engine.Restore(now, nil)
	submit := func(after ...job.Dependency) job.ID {
		id := state.NextID()
		engine.Step(now, meta.Submit{Request: job.Request{Name: "x", Processors: 1, Walltime: time.Hour, Copies: 1}, After: after})
		return id
	}
	first := submit()
	engine.Step(now, meta.Pass{})
	condition := []job.Condition{job.AfterOK, job.AfterNotOK}
	var waiting []job.ID
	for i := range many {
		waiting = append(waiting, submit(job.Dependency{On: first, Condition: condition[i%2]}))
	}
	for _, id := range waiting[many-100:] { // these leave the list
		engine.Step(now, meta.Cancel{Job: id})
	}
	blocked := func() (n int) {
		for j := range state.OpenJobs(job.ID{}) {
			if j.State == job.Blocked {
				n++
			}
		}
		return n
	}
	left := blocked()
	if left != many-100 {
		t.Fatalf("%d jobs wait", left)
	}
	engine.Step(now, meta.AttemptEnded{Attempt: job.AttemptID{Job: first, Number: 1}, Outcome: job.Outcome{Kind: job.Success}})
	for steps := 0; left > 0; steps++ {
		n := blocked()
		if left-n > most || n == left || steps > many {
			t.Fatalf("step %d took up %d of %d", steps, left-n, left)
		}
		if left = n; left > 0 && engine.NextWake(now) > now {
			t.Fatalf("with %d left it sleeps until %v", left, engine.NextWake(now))
		}
		engine.Step(now, meta.Pass{})
		if state.Job(first) == nil && left > 0 {
			t.Fatalf("with %d left the job is forgotten that they wait for", left)
		}
		if steps == 20 {
			if engine, err = meta.New(cfg, state, site()); err != nil {
				t.Fatal(err)
			}
			engine.Restore(now, nil)
			continue
		}
		engine.Step(now, meta.Tick{})
	}
	for _, id := range waiting[:many-100] {
		j := state.Job(id)
		if want := condition[id.Seq%2] == job.AfterOK; j != nil && (j.State == job.Cancelled) == want {
			t.Fatalf("%v is %v after %v", id, j.State, state.After(id))
		}
	}
	engine.Step(now, meta.Tick{})
	if state.Job(first) != nil {
		t.Error("the first job is remembered although more have ended than are to be")
	}
}

// A job that the facts refuse is the client's mistake, and nothing is recorded.
func TestTooManyDependencies(t *testing.T) {
	sites, err := sitesched.New(sitesched.Config{Processors: 1})
	if err != nil {
		t.Fatal(err)
	}
	cfg := meta.Default()
	cfg.Self = meta.Self{Processors: 1, Speed: 1}
	state := store.NewState("alpha", 1)
	engine, err := meta.New(cfg, state, sites)
	if err != nil {
		t.Fatal(err)
	}
	now := job.Time(time.Hour)
	engine.Restore(now, nil)
	r := job.Request{Name: "x", Processors: 1, Walltime: time.Hour, Copies: 1}
	id := state.NextID()
	engine.Step(now, meta.Submit{Request: r})
	next := state.NextID()
	for _, f := range engine.Step(now, meta.Submit{Request: r, After: slices.Repeat([]job.Dependency{{On: id}}, job.MaxDependencies+1)}) {
		if reply, is := f.(meta.Reply); is && !errors.Is(reply.Err, meta.ErrInvalid) {
			t.Errorf("it is answered with %v", reply.Err)
		}
	}
	if state.NextID() != next {
		t.Error("it was recorded")
	}
}
