package meta

import (
	"fmt"
	"testing"
	"time"

	"kith/cluster"
	"kith/internal/job"
)

// Two sites of one level may have different limits, and there need be no level 1: the job begins at
// the first that there is.
func TestLevelsOfOneRank(t *testing.T) {
	t.Parallel()
	s := newOfLevels(t, LevelPolicy{})
	s.peer("beta", 3, 8)
	s.peer("gamma", 3, 8)
	s.seq++
	s.do(LoadSeen{Digest: cluster.Digest{
		Site: "gamma", Incarnation: 1, Sequence: s.seq, Processors: 8, Speed: 1,
		Level: &cluster.Level{Rank: 3, Queue: time.Minute, Run: time.Second, Limit: 8},
	}})
	j := s.submit(unknownJob())
	if j.Level != 3 || len(j.Sites) != 2 {
		t.Errorf("it is at level %d, sites %v", j.Level, j.Sites)
	}
}

// A site of an earlier version is of no level, whatever it says: such jobs are not placed there, and
// do not go down for it.
func TestLevelOfAnEarlierVersion(t *testing.T) {
	t.Parallel()
	s := newOfLevels(t, LevelPolicy{})
	s.peer("beta", 1, 8)
	s.do(PeerDown{Site: "beta"})
	s.do(PeerUp{Site: "beta", Generation: 1, Incarnation: 1, Lacks: cluster.Lacks{NoCheckpoints: true}})
	s.peer("gamma", 2, 8)
	s.now = s.now.Add(2 * time.Minute)
	s.do(Tick{})
	j := s.submit(unknownJob())
	if j.Level != 2 || fmt.Sprint(j.Sites) != "[gamma]" {
		t.Errorf("it is at level %d, sites %v", j.Level, j.Sites)
	}
	s.do(PeerDown{Site: "gamma"})
	s.do(PeerUp{Site: "gamma", Generation: 1, Incarnation: 1, Lacks: cluster.Lacks{NoCheckpoints: true}})
	s.now = s.now.Add(2 * time.Minute)
	s.out = nil
	s.do(Submit{Token: 9, Request: unknownJob()})
	for _, ef := range s.out {
		if r, ok := ef.(Reply); ok && r.Token == 9 && r.Err == nil {
			t.Error("a job is taken that no site takes")
		}
	}
}

// A job can be cancelled, held and released wherever it is on its way down, and keeps its level.
func TestLevelActs(t *testing.T) {
	t.Parallel()
	for _, state := range []string{"queued above", "queued below", "waits for its level"} {
		for _, act := range []string{"cancel", "hold"} {
			s := newOfLevels(t, LevelPolicy{})
			s.peer("beta", 1, 8)
			s.peer("delta", 2, 8)
			j := s.submit(unknownJob())
			level := uint8(1)
			if state != "queued above" {
				s.do(Receive{From: "beta", Message: CopyAnswer{Attempt: j.AttemptID(), Reason: job.LevelFull}})
				level = 2
			}
			if state == "waits for its level" {
				s.do(Receive{From: "delta", Message: CopyAnswer{Attempt: j.AttemptID(), Reason: job.CannotStart}})
			}
			if want := map[bool]job.State{true: job.Pending, false: job.Queued}[state == "waits for its level"]; j.State != want || j.Level != level {
				t.Fatalf("%s: %v at level %d", state, j.State, j.Level)
			}
			if act == "cancel" {
				s.do(Cancel{Job: j.ID})
				if j.State != job.Cancelled {
					t.Errorf("%s, cancelled: %v", state, j.State)
				}
				continue
			}
			s.do(Hold{Job: j.ID})
			// What a site says of an attempt that is withdrawn moves nothing.
			s.do(Receive{From: "delta", Message: CopyAnswer{Attempt: j.AttemptID(), Reason: job.LevelFull}})
			if j.State != job.OnHold || j.Level != level {
				t.Errorf("%s, held: %v at level %d", state, j.State, j.Level)
			}
			s.do(Release{Job: j.ID})
			s.now = s.now.Add(time.Minute)
			s.do(Tick{})
			if want := map[uint8]string{1: "[beta]", 2: "[delta]"}[level]; j.State != job.Queued || j.Level != level || fmt.Sprint(j.Sites) != want {
				t.Errorf("%s, released: %v at level %d, sites %v", state, j.State, j.Level, j.Sites)
			}
		}
	}
}

// A job waits while the one site of its level drains, no longer than any level without a site is
// waited for, and what runs there goes on.
func TestLevelThatDrains(t *testing.T) {
	t.Parallel()
	s := newOfLevels(t, small())
	s.peer("beta", 0, 8)
	s.peer("delta", 2, 8)
	a, _ := s.guest(1, unknownJob(), job.Progress{})
	s.do(SetDrain{On: true})
	s.out = nil
	s.now = s.now.Add(4*time.Minute - time.Second)
	if s.do(Tick{}); fmt.Sprint(s.asks()) != "[1 out of its level]" {
		t.Errorf("%v is not asked while the site drains", a)
	}
	if j := s.submit(unknownJob()); j.Level != 2 || fmt.Sprint(j.Sites) != "[delta]" {
		t.Errorf("a job that comes meanwhile is at level %d, sites %v", j.Level, j.Sites)
	}
}
