package meta

import (
	"fmt"
	"testing"
	"time"

	"kith/cluster"
	"kith/internal/job"
	"kith/sitesched"
	"kith/sitesched/level"
	"kith/store"
)

// pusher is an origin that moves its jobs of a hierarchy, at no level itself, and two sites of level 1.
func pusher(t *testing.T) *ofLevels {
	t.Helper()
	s := newOfLevels(t, LevelPolicy{Share: level.SharePush})
	s.queue("beta", 0)
	s.queue("gamma", 0)
	return s
}

// queue has a site of level 1 with 8 processors say that so many hours of work for all of them are there.
func (s *ofLevels) queue(site job.SiteID, hours float64) {
	s.queueOf(site, cluster.Level{Work: hours * 8 * 3600, Shares: true, Available: 8})
}

func (s *ofLevels) queueOf(site job.SiteID, l cluster.Level) {
	if p := s.peers.view.Get(site); p == nil || !p.Connected {
		s.do(PeerUp{Site: site, Generation: 1, Incarnation: 1})
	}
	s.seq++
	l.Rank, l.Queue, l.Run, l.Limit = 1, 2*time.Hour, time.Hour, 2*8*3600
	s.do(LoadSeen{Digest: cluster.Digest{Site: site, Incarnation: 1, Sequence: s.seq, Processors: 8, Speed: 1, Load: job.Load{Work: l.Work / 8}, Level: &l}})
}

// waits submits a job of a hierarchy that is then queued at one site, and returns it with that and the other one.
func (s *ofLevels) waits() (j *store.Job, at, other job.SiteID) {
	s.t.Helper()
	j = s.submit(unknownJob())
	if len(j.Sites) != 1 {
		s.t.Fatalf("it waits at %v, want one site", j.Sites)
	}
	at, other = j.Sites[0], "beta"
	if at == other {
		other = "gamma"
	}
	s.do(Receive{From: at, Message: CopyAnswer{Attempt: j.AttemptID(), Accepted: true}})
	s.out = nil
	return j, at, other
}

// period has the next one come, after both sites have said the same again.
func (s *ofLevels) period(at, other job.SiteID, hours, otherHours float64) {
	s.now = s.now.Add(level.SharePeriod)
	s.queue(at, hours)
	s.queue(other, otherHours)
	s.do(Tick{})
}

// offers returns the sites that the latest PlaceCopy messages offered a copy to.
func (s *ofLevels) offers() (list []job.SiteID) {
	placed, to := sent[PlaceCopy](s)
	for i := range placed {
		if placed[i].Elsewhere > 0 {
			list = append(list, to[i])
		}
	}
	return list
}

// rests checks that a job that was moved from one site to the other is offered back after five periods, and
// no sooner.
func (s *ofLevels) rests(at, other job.SiteID) {
	s.t.Helper()
	for n := 1; n < level.RestPeriods; n++ {
		if s.period(at, other, 0, 3); s.offers() != nil {
			s.t.Fatalf("offered again after %d periods", n)
		}
	}
	s.period(at, other, 0, 3)
	if got := s.offers(); fmt.Sprint(got) != fmt.Sprintf("[%s]", at) {
		s.t.Errorf("after five periods it is offered to %v", got)
	}
}

// A job that waits is offered to a site that would be done with it clearly sooner. One that refuses is asked
// again in the next period, and the job keeps its place; one that takes it has it alone, for five periods.
func TestPush(t *testing.T) {
	t.Parallel()
	s := pusher(t)
	j, at, other := s.waits()
	a := j.AttemptID()
	s.period(at, other, 3, 2.9)
	if got := s.offers(); got != nil {
		t.Fatalf("offered to %v that is hardly sooner", got)
	}
	s.period(at, other, 3, 1)
	placed, to := sent[PlaceCopy](s)
	if len(placed) != 1 || to[0] != other || placed[0].Elsewhere != 3*time.Hour {
		t.Fatalf("offered %+v to %v", placed, to)
	}
	s.do(Receive{From: other, Message: CopyAnswer{Attempt: a, Reason: job.NotSooner}})
	if fmt.Sprint(j.Sites) != fmt.Sprintf("[%s]", at) || j.State != job.Queued {
		t.Fatalf("refused: %v at %v", j.State, j.Sites)
	}
	if withdrawn, _ := sent[Withdraw](s); withdrawn != nil {
		t.Fatalf("refused, and %v", withdrawn)
	}
	s.period(at, other, 3, 1)
	if got := s.offers(); fmt.Sprint(got) != fmt.Sprintf("[%s]", other) {
		t.Fatalf("a period later it is offered to %v", got)
	}
	s.do(Receive{From: other, Message: CopyAnswer{Attempt: a, Accepted: true}})
	withdrawn, from := sent[Withdraw](s)
	if fmt.Sprint(j.Sites) != fmt.Sprintf("[%s]", other) || len(withdrawn) != 1 || from[0] != at {
		t.Fatalf("taken: it waits at %v, withdrawn from %v", j.Sites, from)
	}
	if e := j.Events[len(j.Events)-1]; e.Kind != store.CopyReplaced || e.Reason != job.Pushed || e.Site != at {
		t.Errorf("told as %+v", e)
	}
	s.do(Receive{From: at, Message: WithdrawAck{Attempt: a}})
	s.rests(at, other)
}

// A job that was moved rests after a restart, too: it goes by what is recorded.
func TestPushRestsAfterRestart(t *testing.T) {
	t.Parallel()
	s := pusher(t)
	j, at, other := s.waits()
	s.period(at, other, 3, 0)
	s.do(Receive{From: other, Message: CopyAnswer{Attempt: j.AttemptID(), Accepted: true}})
	if fmt.Sprint(j.Sites) != fmt.Sprintf("[%s]", other) {
		t.Fatalf("it waits at %v", j.Sites)
	}
	cfg := s.cfg
	e, err := New(cfg, s.st, scheduler(t, sitesched.Config{Processors: 4}))
	if err != nil {
		t.Fatal(err)
	}
	s.Engine, s.seq = e, 100
	s.Restore(s.now, nil)
	s.out = nil
	s.rests(at, other)
}

// While an offer is on its way the job is where it was: a claim from there has it, and the other copy goes; and
// if it is given back there it stays where it was offered.
func TestPushOnItsWay(t *testing.T) {
	t.Parallel()
	s := pusher(t)
	j, at, other := s.waits()
	s.period(at, other, 3, 0)
	s.out = nil
	s.do(Receive{From: at, Message: Claim{Attempt: j.AttemptID(), Stamp: 1, Sent: s.now}})
	withdrawn, from := sent[Withdraw](s)
	if j.Holder != at || len(withdrawn) != 1 || from[0] != other {
		t.Errorf("claimed by %q, withdrawn from %v", j.Holder, from)
	}
	s.do(Receive{From: other, Message: CopyAnswer{Attempt: j.AttemptID(), Accepted: true}})
	if j.Holder != at || j.State != job.Claimed {
		t.Errorf("after the late answer %v by %q", j.State, j.Holder)
	}

	s = pusher(t)
	j, at, other = s.waits()
	s.period(at, other, 3, 0)
	s.do(Receive{From: at, Message: GiveBack{Attempt: j.AttemptID(), Reason: job.Draining}})
	s.do(Receive{From: other, Message: CopyAnswer{Attempt: j.AttemptID(), Accepted: true}})
	if fmt.Sprint(j.Sites) != fmt.Sprintf("[%s]", other) || j.State != job.Queued {
		t.Errorf("given back meanwhile: %v at %v", j.State, j.Sites)
	}
}

// Nothing is pushed by default, from a site or to one that tells too little, or to one that takes nothing; of
// many jobs the latest go, until the queues are about alike.
func TestPushLeaves(t *testing.T) {
	t.Parallel()
	s := newOfLevels(t, LevelPolicy{})
	s.queue("beta", 0)
	s.queue("gamma", 0)
	if j := s.submit(unknownJob()); len(j.Sites) != 2 {
		t.Errorf("by default it waits at %v", j.Sites)
	}
	s.period("beta", "gamma", 3, 0)
	if got := s.offers(); got != nil {
		t.Errorf("by default it is offered to %v", got)
	}

	for name, l := range map[string]cluster.Level{"tells nothing": {}, "has nothing": {Shares: true}} {
		s = pusher(t)
		_, at, other := s.waits()
		s.queueOf(other, l)
		s.queue(at, 3)
		s.now = s.now.Add(level.SharePeriod)
		s.do(Tick{})
		if got := s.offers(); got != nil {
			t.Errorf("%s: offered to %v", name, got)
		}
	}

	s = pusher(t)
	s.queue("gamma", 100)
	var jobs []*store.Job
	for len(jobs) < 16 { // an hour each, on one of 8 processors
		j := s.submit(unknownJob())
		s.do(Receive{From: "beta", Message: CopyAnswer{Attempt: j.AttemptID(), Accepted: true}})
		if j.Sites[0] == "beta" {
			jobs = append(jobs, j)
		}
	}
	s.period("beta", "gamma", 2, 0)
	offered := 0
	for i, j := range jobs {
		switch {
		case len(j.Sites) == 2:
			offered++
		case offered > 0:
			t.Errorf("job %d is not offered, and an earlier one is", i)
		}
	}
	if offered < 5 || offered > 8 {
		t.Errorf("%d of 16 jobs are offered", offered)
	}
}

// A host that has become no sooner by the time of the offer refuses, and takes the same copy where it is.
func TestHostLooksAgain(t *testing.T) {
	t.Parallel()
	p := small()
	p.Actions[level.Overload], p.Actions[level.QueueOverdue] = level.Off, level.Off
	s := newOfLevels(t, p)
	s.peer("beta", 2, 8)
	place := func(seq uint64, elsewhere time.Duration) job.Reason {
		s.out = nil
		a := job.AttemptID{Job: job.ID{Origin: "beta", Generation: 1, Seq: seq}, Number: 1}
		s.do(Receive{From: "beta", Message: PlaceCopy{Attempt: a, Request: unknownJob(), Elsewhere: elsewhere}})
		answers, _ := sent[CopyAnswer](s)
		if len(answers) != 1 || answers[0].Accepted != (answers[0].Reason == job.NoReason) {
			t.Fatalf("answers %+v", answers)
		}
		return answers[0].Reason
	}
	// One job of 4 min on one of 4 processors is a minute of work for all.
	for seq, x := range []struct {
		elsewhere time.Duration
		want      job.Reason
	}{
		{75 * time.Second, job.NotSooner}, // a minute is not below 0.8 of it
		{76 * time.Second, job.NoReason},
		{76 * time.Second, job.NotSooner}, // the other one is here now
		{150 * time.Second, job.NotSooner},
		{151 * time.Second, job.NoReason},
		{0, job.NoReason}, // no offer
	} {
		if got := place(uint64(seq)+1, x.elsewhere); got != x.want {
			t.Errorf("offer %d, done elsewhere in %v: %q, want %q", seq+1, x.elsewhere, got, x.want)
		}
	}
	if got := place(2, time.Second); got != job.NoReason {
		t.Errorf("an offer that comes again is answered %q", got)
	}
}

// What is available at a level is smoothed, and what others than jobs of the hierarchy use is not.
func TestAvailableIsSmoothed(t *testing.T) {
	t.Parallel()
	s := newOfLevels(t, small())
	available := func() float64 { return s.host.describeLevel(s.now).Available }
	if got := available(); got != 4 {
		t.Fatalf("%v of 4 are available", got)
	}
	s.submit(job.Request{Processors: 4, Walltime: time.Hour})
	if got := available(); got != 4 {
		t.Errorf("at once %v", got)
	}
	s.now = s.now.Add(level.SharePeriod)
	if got := available(); got != 2.8 {
		t.Errorf("after a period %v, want 2.8", got)
	}
	s.now = s.now.Add(level.SharePeriod / 2)
	if got := available(); got != 2.8 {
		t.Errorf("half a period later %v, want 2.8", got)
	}
}
