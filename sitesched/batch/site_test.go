package batch_test

import (
	"slices"
	"testing"
	"time"

	"kith/internal/job"
	"kith/meta"
	"kith/sitesched/batch"
)

var _ meta.Batch = (*batch.Site)(nil)

func attempt(n uint64) job.AttemptID {
	return job.AttemptID{Job: job.ID{Origin: "alpha", Generation: 1, Seq: n}, Number: 1}
}

func request(n uint64, processors int32) job.Copy {
	return job.Copy{ID: attempt(n), Request: job.Request{Processors: processors, Walltime: 10 * time.Second}}
}

const second = job.Time(time.Second)

// A site proposes what the batch system has started, once and in that order.
func TestTurns(t *testing.T) {
	s := batch.New(4)
	for n := uint64(1); n <= 4; n++ {
		s.Enqueue(0, request(n, 2))
	}
	passes := func(now job.Time, want ...job.AttemptID) {
		t.Helper()
		if got := s.Pass(now); !slices.Equal(got, want) {
			t.Errorf("pass at %v proposes %v, expected %v", now, got, want)
		}
	}
	passes(0)
	for _, n := range []uint64{3, 1, 3, 9} {
		s.Turn(0, attempt(n))
	}
	passes(0, attempt(3), attempt(1))
	passes(0)
	s.Turn(0, attempt(3)) // reserved
	passes(0)
	// A postponed copy loses its turn; one that comes too early waits.
	s.Postpone(0, attempt(3), 5*second)
	passes(9 * second)
	s.Postpone(9*second, attempt(3), 12*second)
	s.Turn(9*second, attempt(3))
	passes(9 * second)
	if wake := s.NextWake(9 * second); wake != 12*second {
		t.Errorf("next wake %v", wake)
	}
	passes(12*second, attempt(3))
	s.Turn(12*second, attempt(2))
	s.Withdraw(12*second, attempt(2))
	passes(12 * second)
	// A drain makes turns void.
	s.Turn(12*second, attempt(4))
	s.Drain(12*second, true)
	s.Turn(12*second, attempt(4))
	s.Drain(13*second, false)
	passes(13 * second)
	s.Turn(13*second, attempt(4))
	passes(13*second, attempt(4))
}

func TestLoad(t *testing.T) {
	s := batch.New(4)
	s.Enqueue(0, request(1, 2))
	s.Enqueue(0, request(2, 3))
	if l := s.Load(0); l != (job.Load{Work: 12.5, Procs: 1.25, Free: 4, Queued: 2}) {
		t.Errorf("queued: %+v", l)
	}
	s.Turn(0, attempt(1))
	s.Pass(0)
	s.Confirm(0, attempt(1), 0)
	if l := s.Load(5 * second); l != (job.Load{Work: 10, Procs: 1.25, Free: 2, Queued: 1, Running: 1}) {
		t.Errorf("one runs: %+v", l)
	}
	if at, ok := s.EarliestStart(5*second, request(3, 1)); !ok || at != 15*second {
		t.Errorf("earliest start %v, %v", at, ok)
	}
	if _, ok := s.Predict(0, request(3, 5)); ok || s.Refuse(&job.Request{Processors: 5}) != job.TooNarrow {
		t.Error("five processors of four")
	}
	s.Finish(5*second, attempt(2)) // does not run
	s.Finish(5*second, attempt(1))
	s.Withdraw(5*second, attempt(2))
	s.Adopt(5*second, request(4, 4), 5*second)
	if l := s.Load(5 * second); l != (job.Load{Work: 10, Procs: 1, Running: 1}) {
		t.Errorf("adopted: %+v", l)
	}
	s.Withdraw(5*second, attempt(4))
	s.Postpone(5*second, attempt(4), 0)
	s.Finish(5*second, attempt(4))
	if l := s.Load(5 * second); l != (job.Load{Free: 4}) {
		t.Errorf("empty: %+v", l)
	}
}

// Copies of an origin that was set aside have no turn and are no load, but for
// the one that is tried.
func TestSetAside(t *testing.T) {
	s := batch.New(4)
	for n := uint64(1); n <= 2; n++ {
		s.Enqueue(0, request(n, 2))
	}
	s.Turn(0, attempt(1))
	s.SetAside(0, "alpha")
	s.Enqueue(0, request(3, 2))
	s.Turn(0, attempt(2))
	if got := s.Pass(0); len(got) > 0 || s.Load(0) != (job.Load{Free: 4}) {
		t.Errorf("proposes %v with its origin set aside, load %+v", got, s.Load(0))
	}
	s.Probe(0, attempt(2))
	s.Turn(0, attempt(2))
	if got := s.Pass(0); !slices.Equal(got, []job.AttemptID{attempt(2)}) {
		t.Errorf("proposes %v, expected the one that is tried", got)
	}
	s.Postpone(0, attempt(2), 0)
	if s.Load(0) != (job.Load{Free: 4}) {
		t.Errorf("load %+v after the try", s.Load(0))
	}
	s.BringBack(0, "alpha")
	for n := uint64(3); n > 0; n-- {
		s.Turn(0, attempt(n))
	}
	if got := s.Pass(0); len(got) != 3 {
		t.Errorf("proposes %v of three that came back", got)
	}
}

// A site without processors refuses everything, and is not loaded.
func TestNoProcessors(t *testing.T) {
	s := batch.New(0)
	c := request(1, 1)
	if s.Refuse(&c.Request) == job.NoReason {
		t.Error("a job for a site without processors")
	}
	if l := s.Load(0); l != (job.Load{}) {
		t.Errorf("its load is %+v", l)
	}
}
