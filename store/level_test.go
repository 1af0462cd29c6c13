package store_test

import (
	"math"
	"testing"
	"time"

	"kith/internal/job"
	"kith/store"
)

// ranFor is a job at a level with a known time that was demoted after it had run for a while.
func ranFor(t *testing.T, r job.Request, o job.Outcome) *store.Job {
	t.Helper()
	s := store.NewState("alpha", 1)
	a := job.AttemptID{Job: s.NextID(), Number: 1}
	must(t, s, store.SubmitJob{ID: a.Job, Request: r})
	o.Start, o.End = job.Time(time.Minute), job.Time(time.Minute).Add(o.CPUTime)
	begin(t, s, a, o)
	must(t, s, store.RequeueJob{Attempt: a, Site: "beta"})
	return s.Job(a.Job)
}

// A job of a level that is asked to save before its time limit is asked for as long as more than that
// is left; what any site is asked is a request that it may take.
func TestAskedOfWhatIsLeft(t *testing.T) {
	t.Parallel()
	r := job.Request{Processors: 1, Walltime: 10 * time.Minute, Checkpoint: true, Level: 1, AskSeconds: 120}
	for ran, want := range map[time.Duration]job.Request{
		0:                           {Walltime: 10 * time.Minute, AskSeconds: 120},
		8*time.Minute - time.Second: {Walltime: 2*time.Minute + time.Second, AskSeconds: 120},
		8 * time.Minute:             {Walltime: 2 * time.Minute},
		20 * time.Minute:            {Walltime: time.Second},
	} {
		got := ranFor(t, r, job.Outcome{CPUTime: ran}).Asked()
		if got.Walltime != want.Walltime || got.AskSeconds != want.AskSeconds {
			t.Errorf("after %v it asks for %v, and to be asked %v before", ran, got.Walltime, got.AskBefore())
		}
		if err := got.Validate(); err != nil {
			t.Errorf("after %v: %v", ran, err)
		}
	}
}

// A bound that is none does not count, and what sites are told of a job they can take.
func TestBoundsThatAreNone(t *testing.T) {
	t.Parallel()
	r := job.Request{Processors: job.MaxProcessors, Walltime: job.MaxWalltime, Unknown: true, Checkpoint: true, Level: 1}
	for _, bound := range []float64{math.Inf(1), math.Inf(-1), math.NaN(), -1, 1e19, 0} {
		j := ranFor(t, r, job.Outcome{Bound: bound, CPUTime: 50 * time.Minute})
		before := j.Before()
		if err := before.Validate(); before.Bound != 0 || err != nil {
			t.Errorf("bound %v: %+v, %v", bound, before, err)
		}
		// One that an earlier version recorded.
		j.Demotions[0].Bound, j.Demotions[0].Speed = bound, 1e300
		before = j.Before()
		if err := before.Validate(); before.Bound != 0 || err != nil {
			t.Errorf("recorded bound %v: %+v, %v", bound, before, err)
		}
	}
	if j := ranFor(t, r, job.Outcome{Bound: 7}); j.Before().Bound != 7 {
		t.Errorf("bound 7: %+v", j.Before())
	}
}
