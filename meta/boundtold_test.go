package meta

import (
	"math"
	"testing"
	"time"

	"kith/internal/job"
	"kith/sitesched/level"
)

// What an estimator says while it runs has a host do nothing but tell its origin: each lower bound, once,
// however much it is for the level, and nothing of what is none.
func TestBoundsAreToldAndDecideNothing(t *testing.T) {
	t.Parallel()
	s := newOfLevels(t, estimating())
	s.peer("beta", 0, 8)
	s.peer("gamma", 2, 8)
	a, _, ok := s.arrives(1, estimatedJob(), job.Progress{})
	if !ok {
		t.Fatal("it was not launched")
	}
	s.do(AttemptStarted{Attempt: a, At: s.now})
	s.out = nil
	for _, c := range []struct {
		bound float64
		told  bool
	}{{5e9, true}, {6e9, false}, {5e9, false}, {math.NaN(), false}, {math.Inf(-1), false}, {-1, false}, {0, false}, {4e9, true}, {7, true}} {
		s.do(EstimateTold{Attempt: a, Bound: c.bound})
		if c.told { // in all not as long as it may run here
			s.now = s.now.Add(level.EnforcePeriod)
			s.do(Tick{})
		}
		for _, ef := range s.out {
			switch ef := ef.(type) {
			case AskCheckpoint, Kill:
				t.Errorf("%v: %+v", c.bound, ef)
			}
		}
		if got, to := sent[Started](s); len(got) == 1 != c.told || c.told && (got[0] != Started{Attempt: a, At: got[0].At, Bound: c.bound} || to[0] != "beta") {
			t.Errorf("%v: told %+v", c.bound, got)
		}
	}
	s.do(AttemptEnded{Attempt: a, Outcome: job.Outcome{Kind: job.Success, Start: s.now, End: s.now, Bound: 7}})
	s.do(Receive{From: "beta", Message: ResultAck{Attempt: a, Accepted: true}})
	if len(s.host.told) != 0 {
		t.Errorf("%d bounds are kept of attempts that are gone", len(s.host.told))
	}
}

// An origin shows what the holder of a job says of the attempt that runs, and forgets it with that; what
// the job goes by is the bound of the result.
func TestBoundTold(t *testing.T) {
	t.Parallel()
	s := newOfLevels(t, LevelPolicy{})
	s.peer("beta", 1, 8)
	s.peer("gamma", 2, 8)
	j := s.submit(estimatedJob())
	a := j.AttemptID()
	s.do(Receive{From: "beta", Message: Claim{Attempt: a, Stamp: 1, Sent: s.now}})
	tells := func(site job.SiteID, bound, want float64) {
		t.Helper()
		s.do(Receive{From: site, Message: Started{Attempt: a, At: s.now, Bound: bound}})
		if got := s.Views().BoundTold(j); got != want || j.Level != 1 || j.Bound() != 0 || j.Before().Bound != 0 || j.State != job.Running {
			t.Errorf("%s said %v: told %v, %v at level %d, bound %v", site, bound, got, j.State, j.Level, j.Bound())
		}
	}
	tells("beta", 0, 0)
	tells("beta", 5e9, 5e9)
	tells("beta", 6e9, 5e9)
	tells("gamma", 1, 5e9)
	tells("beta", math.NaN(), 5e9)
	tells("beta", 300, 300)
	s.now = s.now.Add(time.Second)
	s.do(Receive{From: "beta", Message: Result{Attempt: a, Outcome: job.Outcome{Kind: job.Demoted, Cause: job.OutOfLevel, End: s.now, Bound: 700}}})
	if got := s.Views().BoundTold(j); got != 0 || j.Bound() != 700 || j.Level != 2 {
		t.Errorf("told %v, bound %v, level %d", got, j.Bound(), j.Level)
	}
	s.do(Receive{From: "beta", Message: Started{Attempt: a, At: s.now, Bound: 5}}) // late
	if got := s.Views().BoundTold(j); got != 0 {
		t.Errorf("a late word of the attempt before counts: %v", got)
	}
	s.do(Cancel{Job: j.ID})
	if len(s.origin.told) != 0 || !j.State.Terminal() {
		t.Errorf("%v, and %d bounds are kept", j.State, len(s.origin.told))
	}
}
