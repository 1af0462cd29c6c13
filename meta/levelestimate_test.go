package meta

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"kith/cluster"
	"kith/internal/job"
	"kith/sitesched/level"
	"kith/store"
)

func estimating() LevelPolicy {
	p := small()
	p.EstimateShare = 0.1
	return p
}

func estimatedJob() job.Request {
	r := unknownJob()
	r.Estimate = true
	return r
}

// launches returns what was launched since it was last looked at.
func launches(s *ofLevels) (list []Launch) {
	for _, ef := range s.out {
		if f, ok := ef.(Launch); ok {
			list = append(list, f)
		}
	}
	s.out = nil
	return list
}

// arrives has a copy of a job of beta come here, begin, and be launched; false if it is not.
func (s *ofLevels) arrives(seq uint64, r job.Request, before job.Progress) (job.AttemptID, Launch, bool) {
	a := job.AttemptID{Job: job.ID{Origin: "beta", Generation: 1, Seq: seq}, Number: 1}
	s.out = nil
	s.do(Receive{From: "beta", Message: PlaceCopy{Attempt: a, Request: r, Before: before}})
	claims, _ := sent[Claim](s)
	if len(claims) != 1 {
		return a, Launch{}, false
	}
	s.do(Receive{From: "beta", Message: Verdict{Attempt: a, Granted: true, Sent: claims[0].Sent, Payload: []byte{}}})
	list := launches(s)
	if len(list) != 1 {
		return a, Launch{}, false
	}
	return a, list[0], true
}

// A job with an estimator is estimated where nothing is known of it, or what is known is too much; the
// most that may be left is what its level does for one job of its width.
func TestWhoIsEstimated(t *testing.T) {
	t.Parallel()
	two := estimatedJob()
	two.Processors = 2
	ordinary := job.Request{Processors: 1, Walltime: time.Hour, Estimate: false}
	for name, c := range map[string]struct {
		policy func(*LevelPolicy)
		r      job.Request
		before job.Progress
		last   bool // no level is below
		want   Estimate
	}{
		"nothing is known":       {nil, estimatedJob(), job.Progress{}, false, Estimate{Limit: 24 * time.Second, Most: 240}},
		"two processors":         {nil, two, job.Progress{}, false, Estimate{Limit: 24 * time.Second, Most: 480}},
		"too much by an earlier": {nil, estimatedJob(), job.Progress{Bound: 500, Done: 10}, false, Estimate{Limit: 24 * time.Second, Most: 240, Known: 500, Done: 10}},
		"enough is known":        {nil, estimatedJob(), job.Progress{Bound: 200}, false, Estimate{}},
		"it did more":            {nil, estimatedJob(), job.Progress{Bound: 200, Done: 300}, false, Estimate{Limit: 24 * time.Second, Most: 240, Known: 200, Done: 300}},
		"its last attempt":       {nil, estimatedJob(), job.Progress{Last: true}, false, Estimate{Limit: 24 * time.Second}},
		"the last level":         {nil, estimatedJob(), job.Progress{}, true, Estimate{Limit: 24 * time.Second, Most: 240}},
		"used some of it":        {nil, estimatedJob(), job.Progress{Used: 140 * time.Second}, false, Estimate{Limit: 10 * time.Second, Most: 240}},
		"no estimator":           {nil, unknownJob(), job.Progress{}, false, Estimate{}},
		"of no hierarchy":        {nil, ordinary, job.Progress{}, false, Estimate{}},
		"none runs here":         {func(p *LevelPolicy) { p.EstimateShare = 0 }, estimatedJob(), job.Progress{}, false, Estimate{}},
		"nothing is too much":    {func(p *LevelPolicy) { p.Actions[level.Mismatch] = level.Off }, estimatedJob(), job.Progress{}, false, Estimate{Limit: 24 * time.Second}},
	} {
		p := estimating()
		if c.policy != nil {
			c.policy(&p)
		}
		s := newOfLevels(t, p)
		s.peer("beta", 0, 8)
		if !c.last {
			s.peer("gamma", 2, 8)
		}
		if _, f, ok := s.arrives(1, c.r, c.before); !ok || f.Estimate != c.want {
			t.Errorf("%s: launched %v, %+v", name, ok, f.Estimate)
		}
	}
}

// What an earlier level found does not have a job leave before it was estimated here, nor while it is.
func TestEarlierBoundWaitsForTheEstimate(t *testing.T) {
	t.Parallel()
	s := newOfLevels(t, estimating())
	s.peer("beta", 0, 8)
	s.peer("gamma", 2, 8)
	a, _, ok := s.arrives(1, estimatedJob(), job.Progress{Bound: 500})
	if !ok {
		t.Fatal("it was not launched")
	}
	s.do(AttemptStarted{Attempt: a, At: s.now})
	for range 3 {
		s.now = s.now.Add(level.EnforcePeriod)
		s.do(Tick{})
	}
	for _, ef := range s.out {
		if ask, asked := ef.(AskCheckpoint); asked {
			t.Errorf("%+v", ask)
		}
	}
	if _, _, ok := s.arrives(2, unknownJob(), job.Progress{Bound: 500}); ok {
		t.Error("a job that brings no estimator and needs too much was launched")
	}
}

// An attempt that ended by its estimate goes a level down; its bound goes with it and never rises. At
// the last level it is cancelled by the rule, with the reason.
func TestEndByEstimate(t *testing.T) {
	t.Parallel()
	s := newOfLevels(t, LevelPolicy{})
	s.peer("beta", 1, 8)
	s.peer("gamma", 2, 8)
	s.peer("delta", 3, 8)
	j := s.submit(estimatedJob())
	for i, c := range []struct {
		site        job.SiteID
		bound, want float64
	}{{"beta", 500, 500}, {"gamma", 700, 500}, {"delta", 400, 400}} {
		a := j.AttemptID()
		s.do(Receive{From: c.site, Message: Claim{Attempt: a, Stamp: uint64(i + 1), Sent: s.now}})
		s.do(Receive{From: c.site, Message: Started{Attempt: a, At: s.now}})
		s.now = s.now.Add(time.Second)
		s.do(Receive{From: c.site, Message: Result{Attempt: a, Outcome: job.Outcome{Kind: job.Demoted, Cause: job.OutOfLevel, End: s.now, Bound: c.bound, Reason: "too much"}}})
		if c.site == "delta" {
			break
		}
		if int(j.Level) != i+2 || j.Before().Bound != c.want || j.Before().Done != 0 || len(j.Demotions) != i+1 {
			t.Fatalf("at level %d with %+v after %+v", j.Level, j.Before(), j.Demotions)
		}
		if !slices.ContainsFunc(j.Events, func(e store.ClaimEvent) bool {
			return e.Kind == store.ClaimDemoted && e.Attempt == uint32(i+1) && e.Reason == job.LevelMismatch
		}) {
			t.Errorf("%+v", j.Events)
		}
		places, to := sent[PlaceCopy](s)
		if n := len(places) - 1; n < 0 || to[n] != []job.SiteID{"gamma", "delta"}[i] || places[n].Before.Bound != c.want {
			t.Errorf("%+v to %v", places, to)
		}
	}
	if j.State != job.Cancelled || !strings.Contains(j.Outcome.Reason, "too much; no level is below") {
		t.Errorf("%v: %+v", j.State, j.Outcome)
	}
}

// The last level's own host says that the job is rejected.
func TestHostOfTheLastLevelRejects(t *testing.T) {
	t.Parallel()
	for _, below := range []bool{true, false} {
		s := newOfLevels(t, estimating())
		s.peer("beta", 0, 8)
		if below {
			s.peer("gamma", 2, 8)
		}
		a, _, _ := s.arrives(1, estimatedJob(), job.Progress{})
		s.do(AttemptEnded{Attempt: a, Outcome: job.Outcome{Kind: job.Demoted, Cause: job.OutOfLevel, End: s.now, Bound: 500, Reason: "too much"}})
		results, _ := sent[Result](s)
		want := map[bool]job.OutcomeKind{true: job.Demoted, false: job.Cancel}[below]
		if len(results) != 1 || results[0].Outcome.Kind != want || results[0].Outcome.Bound != 500 {
			t.Errorf("%v: %+v", below, results)
		}
	}
}

// An attempt that was asked to leave its level while its estimator ran has not ended by its estimate, whatever
// that had printed by then, unless it was too much.
func TestAskedWhileEstimated(t *testing.T) {
	t.Parallel()
	for bound, byEstimate := range map[float64]bool{0: false, 200: false, 240: false, 500: true} {
		s := newOfLevels(t, estimating())
		s.peer("beta", 0, 8)
		s.peer("gamma", 2, 8)
		a, _, _ := s.arrives(1, estimatedJob(), job.Progress{})
		s.do(AttemptEnded{Attempt: a, Outcome: job.Outcome{Kind: job.Demoted, Cause: job.OutOfLevel, End: s.now, Bound: bound, Reason: "its command had not begun"}})
		results, _ := sent[Result](s)
		if len(results) != 1 || results[0].Outcome.ByEstimate() != byEstimate || results[0].Outcome.Kind != job.Demoted || results[0].Outcome.Bound != bound {
			t.Errorf("%v: %+v", bound, results)
		}
	}
}

// comesBack has a site connect anew, by another version, and be known for a while.
func (s *ofLevels) comesBack(site job.SiteID, lacks cluster.Lacks) {
	s.do(PeerDown{Site: site})
	s.do(PeerUp{Site: site, Generation: 1, Incarnation: 1, Lacks: lacks})
	s.now = s.now.Add(2 * time.Minute)
	s.do(Tick{})
}

// A site of a version that knows no estimators gets no copy, takes part in no level for such a job, and
// gets no claim.
func TestEstimatorsOfAnEarlierVersion(t *testing.T) {
	t.Parallel()
	s := newOfLevels(t, LevelPolicy{})
	s.peer("beta", 1, 8)
	s.peer("gamma", 2, 8)
	s.comesBack("beta", cluster.Lacks{NoEstimators: true})
	if j := s.submit(unknownJob()); fmt.Sprint(j.Sites) != "[beta]" {
		t.Errorf("a job without an estimator is at %v", j.Sites)
	}
	j := s.submit(estimatedJob())
	if j.Level != 2 || fmt.Sprint(j.Sites) != "[gamma]" {
		t.Errorf("it is at level %d, sites %v", j.Level, j.Sites)
	}
	s.do(PeerUp{Site: "gamma", Generation: 1, Incarnation: 2, Lacks: cluster.Lacks{NoEstimators: true}})
	s.do(Receive{From: "gamma", Message: Claim{Attempt: j.AttemptID(), Stamp: 1, Sent: s.now}})
	if j.State == job.Running || j.State == job.Claimed {
		t.Errorf("it is %v at a site that knows no estimators", j.State)
	}
}

// A site that copies nothing while a job runs takes part in no level for a job that asks for it.
func TestLevelsOfSitesThatCopyNothing(t *testing.T) {
	t.Parallel()
	s := newOfLevels(t, LevelPolicy{})
	s.peer("beta", 1, 8)
	s.peer("gamma", 2, 8)
	s.comesBack("beta", cluster.Lacks{NoSaves: true})
	r := unknownJob()
	r.SaveSeconds = 60
	if j := s.submit(r); j.Level != 2 || fmt.Sprint(j.Sites) != "[gamma]" {
		t.Errorf("it is at level %d, sites %v", j.Level, j.Sites)
	}
}
