package meta

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"kith/cluster"
	"kith/internal/job"
	"kith/sitesched"
	"kith/sitesched/level"
	"kith/store"
)

// ofLevels is a site among others that are levels of a hierarchy.
type ofLevels struct {
	*Engine
	t   *testing.T
	now job.Time
	seq uint64
	out []Effect // since it was last looked at
}

func small() LevelPolicy {
	return LevelPolicy{Rank: 1, Queue: 10 * time.Minute, Run: 4 * time.Minute, Beta: 1}
}

func newOfLevels(t *testing.T, p LevelPolicy, others ...job.SiteID) *ofLevels {
	t.Helper()
	cfg := Default()
	cfg.Self, cfg.Level = Self{Processors: 4, Speed: 1}, p
	s := unrestored(t, cfg, scheduler(t, sitesched.Config{Processors: 4}))
	s.Restore(s.now, others)
	return s
}

// unrestored is a site that has yet to be restored.
func unrestored(t *testing.T, cfg Config, site Site) *ofLevels {
	t.Helper()
	e, err := New(cfg, store.NewState("alpha", 1), site)
	if err != nil {
		t.Fatal(err)
	}
	return &ofLevels{Engine: e, t: t, now: job.Time(time.Hour)}
}

func scheduler(t *testing.T, c sitesched.Config) *sitesched.Scheduler {
	t.Helper()
	s, err := sitesched.New(c)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func (s *ofLevels) do(ev Event) {
	for _, event := range []Event{ev, Pass{}} {
		s.out = append(s.out, s.Step(s.now, event)...)
	}
}

// peer connects a site that says that it is a level, 0 for none.
func (s *ofLevels) peer(site job.SiteID, rank uint8, processors int32) {
	s.do(PeerUp{Site: site, Generation: 1, Incarnation: 1})
	s.seq++
	d := cluster.Digest{Site: site, Incarnation: 1, Sequence: s.seq, Processors: processors, Speed: 1}
	if rank > 0 {
		d.Level = &cluster.Level{Rank: rank, Queue: time.Hour, Run: time.Hour, Limit: 1e6}
	}
	s.do(LoadSeen{Digest: d})
}

// sent returns what was sent since it was last looked at, of one kind.
func sent[M Message](s *ofLevels) (list []M, to []job.SiteID) {
	for _, ef := range s.out {
		if f, ok := ef.(Send); ok {
			if m, ok := f.Message.(M); ok {
				list, to = append(list, m), append(to, f.To)
			}
		}
	}
	s.out = nil
	return list, to
}

func unknownJob() job.Request {
	return job.Request{Processors: 1, Walltime: job.MaxWalltime, Unknown: true, Level: 1, Checkpoint: true}
}

func (s *ofLevels) submit(r job.Request) *store.Job {
	s.t.Helper()
	id := s.st.NextID()
	s.do(Submit{Request: r})
	j := s.st.Job(id)
	if j == nil {
		s.t.Fatalf("%+v was not taken", r)
	}
	return j
}

// A job goes to the sites of its level only; others see no levels.
func TestLevelsAreAMask(t *testing.T) {
	t.Parallel()
	s := newOfLevels(t, LevelPolicy{})
	s.peer("beta", 1, 8)
	s.peer("delta", 2, 8)
	s.peer("gamma", 1, 8)
	s.peer("old", 0, 8)
	j := s.submit(unknownJob())
	if got := fmt.Sprint(j.Sites); j.Level != 1 || got != "[beta gamma]" && got != "[gamma beta]" {
		t.Errorf("a job at level %d is at %v", j.Level, got)
	}
	low := unknownJob()
	low.Level = 2
	if j := s.submit(low); fmt.Sprint(j.Sites) != "[delta]" {
		t.Errorf("a job that begins at level 2 is at %v", j.Sites)
	}
	if j := s.submit(job.Request{Processors: 1, Walltime: time.Hour, Copies: 5}); len(j.Sites) != 5 && j.State != job.Claimed {
		t.Errorf("a job of no hierarchy is %v at %v", j.State, j.Sites)
	}
}

// Ten levels that are all too small: each is visited once, in order, and the last rejects. Answers
// that come twice change nothing.
func TestEachLevelOnce(t *testing.T) {
	t.Parallel()
	s := newOfLevels(t, LevelPolicy{})
	for rank := uint8(1); rank <= 10; rank++ {
		s.peer(job.SiteID(fmt.Sprintf("l-%02d", rank)), rank, 8)
	}
	j := s.submit(unknownJob())
	var visited []string
	for n := 0; n < 30 && !j.State.Terminal(); n++ {
		placed, to := sent[PlaceCopy](s)
		for i, m := range placed {
			visited = append(visited, string(to[i]))
			if m.Request.Level != uint8(len(visited)) {
				t.Errorf("placed with level %d at %s", m.Request.Level, to[i])
			}
			for range 2 {
				s.do(Receive{From: to[i], Message: CopyAnswer{Attempt: m.Attempt, Reason: job.LevelMismatch}})
			}
		}
	}
	want := "l-01 l-02 l-03 l-04 l-05 l-06 l-07 l-08 l-09 l-10"
	if got := strings.Join(visited, " "); got != want {
		t.Errorf("visited %s, want %s", got, want)
	}
	act, _ := j.LastAct(store.ActCancel)
	if j.State != job.Cancelled || j.Level != 10 || !strings.Contains(act.Reason, "level 10") || !strings.Contains(act.Reason, job.LevelMismatch.Sentence()) {
		t.Errorf("it is %v at level %d: %q", j.State, j.Level, act.Reason)
	}
}

// A level is left when each of its sites says so, and not before; a site that says that it is the
// last word ends the job though there is a level below.
func TestLevelIsLeftTogether(t *testing.T) {
	t.Parallel()
	for _, final := range []bool{false, true} {
		s := newOfLevels(t, LevelPolicy{})
		s.peer("beta", 1, 8)
		s.peer("gamma", 1, 8)
		s.peer("delta", 2, 8)
		j := s.submit(unknownJob())
		a := j.AttemptID()
		s.do(Receive{From: "beta", Message: CopyAnswer{Attempt: a, Reason: job.LevelFull}})
		if j.Level != 1 || fmt.Sprint(j.Sites) != "[gamma]" {
			t.Fatalf("one site is full: it is at level %d, sites %v", j.Level, j.Sites)
		}
		s.do(Receive{From: "gamma", Message: CopyAnswer{Attempt: a, Accepted: true}})
		s.do(Receive{From: "gamma", Message: GiveBack{Attempt: a, Reason: job.LevelOverdue, Final: final}})
		switch {
		case final && j.State != job.Cancelled:
			t.Errorf("rejected, and it is %v at level %d", j.State, j.Level)
		case !final && (j.Level != 2 || fmt.Sprint(j.Sites) != "[delta]"):
			t.Errorf("it is at level %d, sites %v", j.Level, j.Sites)
		}
	}
}

// A level without a site in reach for the job is passed over, and that is told once; one whose
// site has only just gone is waited for.
func TestLevelsArePassedOver(t *testing.T) {
	t.Parallel()
	s := newOfLevels(t, LevelPolicy{})
	s.peer("narrow", 1, 2)
	s.peer("gone", 3, 8)
	s.peer("large", 5, 8)
	s.do(PeerDown{Site: "gone"})
	wide := unknownJob()
	wide.Processors = 8
	s.out = nil
	j := s.submit(wide)
	if j.State != job.Pending || j.Level != 1 {
		t.Fatalf("a site may come back: %v at level %d", j.State, j.Level)
	}
	s.now = s.now.Add(2 * time.Minute)
	s.do(Tick{})
	if j.Level != 5 || fmt.Sprint(j.Sites) != "[large]" {
		t.Errorf("it is at level %d, sites %v", j.Level, j.Sites)
	}
	var told []uint8
	again := s.submit(wide)
	for _, ef := range s.out {
		if f, ok := ef.(LevelSkipped); ok {
			told = append(told, f.Level)
		}
	}
	if string(told) != "\x01\x02\x03\x04" || again.Level != 5 {
		t.Errorf("told of levels %v; the next job is at level %d", told, again.Level)
	}
	s.do(Submit{Token: 9, Request: job.Request{Processors: 1, Level: 9, Walltime: time.Hour, Checkpoint: true}})
	for _, ef := range s.out {
		if r, ok := ef.(Reply); ok && r.Token == 9 && (r.Err == nil || !strings.Contains(r.Err.Error(), "level 9")) {
			t.Errorf("a level that there is not: %v", r.Err)
		}
	}
}

// A host takes jobs of its level, plans them with its run limit, and asks them in time to save
// what they have done. Its time counts over all attempts there.
func TestHostOfALevel(t *testing.T) {
	t.Parallel()
	s := newOfLevels(t, small())
	s.peer("beta", 2, 8)
	a := job.AttemptID{Job: job.ID{Origin: "beta", Generation: 1, Seq: 1}, Number: 1}
	place := func(a job.AttemptID, r job.Request, before job.Progress) CopyAnswer {
		s.out = nil
		s.do(Receive{From: "beta", Message: PlaceCopy{Attempt: a, Request: r, Before: before}})
		answers, _ := sent[CopyAnswer](s)
		return answers[0]
	}
	other := unknownJob()
	other.Level = 2
	if got := place(a, other, job.Progress{}); got.Reason != job.Level || got.Final {
		t.Errorf("a job of another level: %+v", got)
	}
	if got := place(a, unknownJob(), job.Progress{Used: 4 * time.Minute}); got.Reason != job.LevelOverdue || got.Final {
		t.Errorf("a job that has used its time: %+v", got)
	}
	if got := place(a, unknownJob(), job.Progress{Bound: 1000}); got.Reason != job.LevelMismatch {
		t.Errorf("a job that needs too much: %+v", got) // 1 processor does 240 in 4 min
	}
	if got := place(a, unknownJob(), job.Progress{Used: -1}); got.Reason != job.BadRequest {
		t.Errorf("a job that used less than nothing: %+v", got)
	}
	if got := place(a, unknownJob(), job.Progress{Used: time.Minute}); !got.Accepted {
		t.Fatalf("%+v", got)
	}
	claim := s.claimOf(a)
	s.out = nil
	s.do(Receive{From: "beta", Message: Verdict{Attempt: a, Granted: true, Sent: claim}})
	var limit time.Duration
	for _, ef := range s.out {
		if l, ok := ef.(Launch); ok {
			limit = l.Request.Walltime
		}
	}
	if limit != 3*time.Minute {
		t.Fatalf("launched with %v, and 3 of 4 minutes are left", limit)
	}
	s.do(AttemptStarted{Attempt: a, At: s.now})
	if got := s.NextWake(s.now); got > s.now.Add(level.EnforcePeriod) {
		t.Errorf("limits are enforced in %v", got.Sub(s.now))
	}
	asked := func() bool {
		for _, ef := range s.out {
			if f, ok := ef.(AskCheckpoint); ok && f.Attempt == a && f.Cause == job.OutOfLevel {
				return true
			}
		}
		return false
	}
	s.now = s.now.Add(2 * time.Minute)
	if s.do(Tick{}); asked() {
		t.Error("asked 1 min before its end, and should be 45 s before")
	}
	s.now = s.now.Add(15 * time.Second)
	if s.do(Tick{}); !asked() {
		t.Error("not asked 45 s before its end")
	}
}

// claimOf returns when the claim for a copy was sent.
func (s *ofLevels) claimOf(a job.AttemptID) job.Time {
	s.t.Helper()
	c := s.host.copies.Get(a)
	if c == nil || c.status != claiming {
		s.t.Fatalf("%v does not claim", a)
	}
	return c.claimed
}

// More work than the level takes goes back, from the tail, and so does what has waited too long. At
// the last level a full site keeps it, and an overdue one ends.
func TestFullLevel(t *testing.T) {
	t.Parallel()
	for _, last := range []bool{false, true} {
		s := newOfLevels(t, small())
		if s.peer("beta", 2, 8); last {
			s.peer("beta", 0, 8)
		}
		s.now = s.now.Add(2 * time.Minute) // no site may yet say that it is a level
		s.out = nil
		// φ(T_q) is 4 processors for 10 min, and each of these may use one for 4: ten fit.
		for n := range uint64(12) {
			a := job.AttemptID{Job: job.ID{Origin: "beta", Generation: 1, Seq: n + 1}, Number: 1}
			s.do(Receive{From: "beta", Message: PlaceCopy{Attempt: a, Request: unknownJob()}})
		}
		back, _ := sent[GiveBack](s)
		if want := map[bool]int{false: 2, true: 0}[last]; len(back) != want {
			t.Fatalf("last %v: %d copies went back, want %d", last, len(back), want)
		}
		for _, m := range back {
			if m.Attempt.Job.Seq < 11 || m.Reason != job.LevelFull || m.Final {
				t.Errorf("%+v", m)
			}
		}
		s.now = s.now.Add(11 * time.Minute)
		s.do(Tick{})
		back, _ = sent[GiveBack](s)
		if len(back) == 0 {
			t.Errorf("last %v: nothing that waits for 11 min went back", last)
		}
		for _, m := range back {
			if m.Reason != job.LevelOverdue || m.Final != last {
				t.Errorf("last %v: %+v", last, m)
			}
		}
	}
}

// A demotion raises the level once, however often its result comes, and time is summed.
func TestDemotionGoesDownOnce(t *testing.T) {
	t.Parallel()
	for _, cause := range []job.DemotionCause{job.OutOfLevel, job.Evicted, job.OwnAccord} {
		s := newOfLevels(t, LevelPolicy{})
		s.peer("beta", 1, 8)
		s.peer("delta", 2, 8)
		j := s.submit(unknownJob())
		a := j.AttemptID()
		s.do(Receive{From: "beta", Message: CopyAnswer{Attempt: a, Accepted: true}})
		s.do(Receive{From: "beta", Message: Claim{Attempt: a, Stamp: 1, Sent: s.now}})
		s.do(Receive{From: "beta", Message: Started{Attempt: a, At: s.now}})
		end := job.Outcome{Kind: job.Demoted, Cause: cause, Start: s.now, End: s.now.Add(time.Minute), Checkpoint: 3, Files: []byte("f")}
		s.now = s.now.Add(time.Minute)
		for range 3 {
			s.do(Receive{From: "beta", Message: Result{Attempt: a, Outcome: end}})
		}
		want := map[bool]uint8{true: 2, false: 1}[cause == job.OutOfLevel]
		if j.Level != want || len(j.Demotions) != 1 || j.Demotions[0].Level != 1 {
			t.Errorf("%v: level %d after %v", cause, j.Level, j.Demotions)
		}
		before := j.Before()
		if used := map[bool]time.Duration{true: 0, false: time.Minute}[want == 2]; before.Used != used || before.Done != 60 {
			t.Errorf("%v: %+v", cause, before)
		}
	}
	// At the last level it has used what it may, and ends with what it has.
	s := newOfLevels(t, LevelPolicy{})
	s.peer("beta", 1, 8)
	j := s.submit(unknownJob())
	a := j.AttemptID()
	s.do(Receive{From: "beta", Message: Claim{Attempt: a, Stamp: 1, Sent: s.now}})
	s.do(Receive{From: "beta", Message: Started{Attempt: a, At: s.now}})
	s.do(Receive{From: "beta", Message: Result{Attempt: a, Outcome: job.Outcome{Kind: job.Demoted, Cause: job.OutOfLevel, Start: s.now, End: s.now.Add(time.Minute)}}})
	if j.State != job.TimedOut || !strings.Contains(j.Outcome.Reason, "no level below") {
		t.Errorf("%v: %+v", j.State, j.Outcome)
	}
}

// A site that has restarted and not heard of another one since does not take a level for the last while that may
// be cut off; for one that is gone for good nothing waits.
func TestLastLevelOfARestartedSite(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		after time.Duration // since the restart
		heard bool          // of the site of level 2 meanwhile
		want  string
		below bool
	}{
		"cut off":       {5 * time.Minute, false, "PENDING at level 1", true},
		"gone for good": {11 * time.Minute, false, "CANCELLED at level 1", false},
		"back":          {5 * time.Minute, true, "QUEUED at level 2", true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			host, origin := newOfLevels(t, small(), "delta"), newOfLevels(t, LevelPolicy{}, "delta")
			for _, s := range []*ofLevels{host, origin} {
				s.now = s.now.Add(c.after)
				s.do(Tick{})
				s.peer("beta", 1, 8)
				if c.heard {
					s.peer("delta", 2, 8)
				}
			}
			_, f := host.guest(1, unknownJob(), job.Progress{})
			host.out, host.now = nil, host.now.Add(f.Request.Walltime-10*time.Second)
			host.do(Tick{})
			if asked := len(host.asks()) == 1; asked != c.below {
				t.Errorf("its host asks it to go on: %v, want %v", asked, c.below)
			}
			j := origin.submit(unknownJob())
			origin.do(Receive{From: "beta", Message: CopyAnswer{Attempt: j.AttemptID(), Reason: job.LevelFull}})
			if got := fmt.Sprintf("%v at level %d", j.State, j.Level); got != c.want {
				t.Errorf("its origin has it %s, want %s", got, c.want)
			}
			done := origin.submit(unknownJob())
			a := done.AttemptID()
			origin.do(Receive{From: "beta", Message: Claim{Attempt: a, Stamp: 1, Sent: origin.now}})
			origin.do(Receive{From: "beta", Message: Started{Attempt: a, At: origin.now}})
			origin.do(Receive{From: "beta", Message: Result{Attempt: a, Outcome: job.Outcome{Kind: job.Demoted, Cause: job.OutOfLevel, Start: origin.now, End: origin.now.Add(time.Minute)}}})
			if (done.Level == 2) != c.below || (done.State == job.TimedOut) == c.below {
				t.Errorf("a job that used its level is %v at level %d", done.State, done.Level)
			}
		})
	}
}

func TestLevelPolicyCheck(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		key    string
		change func(*LevelPolicy, *Self)
	}{
		{"", func(*LevelPolicy, *Self) {}},
		{"", func(p *LevelPolicy, _ *Self) { *p = LevelPolicy{Beta: 0.95} }},
		{"level.rank", func(p *LevelPolicy, _ *Self) { p.Rank = 17 }},
		{"level.run_limit", func(p *LevelPolicy, _ *Self) { p.Run = 11 * time.Minute }},
		{"level.run_limit", func(p *LevelPolicy, _ *Self) { p.Run = time.Millisecond }},
		{"level.queue_limit", func(p *LevelPolicy, _ *Self) { p.Rank = 0 }},
		{"level.beta", func(p *LevelPolicy, _ *Self) { p.Beta = 0 }},
		{"level.beta", func(p *LevelPolicy, _ *Self) { p.Beta = 1.1 }},
		{"level.processors", func(_ *LevelPolicy, s *Self) { s.Processors = 0 }},
		{"level.overdue", func(p *LevelPolicy, _ *Self) { p.Actions[level.Overdue] = level.Off }},
		{"level.overload", func(p *LevelPolicy, _ *Self) { p.Actions[level.Overload] = level.Terminate }},
		{"", func(p *LevelPolicy, _ *Self) { *p = LevelPolicy{Share: level.SharePush, SharePeriod: time.Second} }},
		{"level.share", func(p *LevelPolicy, _ *Self) { p.Share = 2 }},
		{"level.share_period", func(p *LevelPolicy, _ *Self) { p.SharePeriod = time.Second - 1 }},
		{"level.share_period", func(p *LevelPolicy, _ *Self) { p.SharePeriod = 25 * time.Hour }},
	} {
		p, self := small(), Self{Processors: 4, Speed: 1}
		c.change(&p, &self)
		var bad []string
		p.check(&self, func(key string, value any, remedy string) { bad = append(bad, key) })
		if c.key == "" && len(bad) > 0 || c.key != "" && (len(bad) == 0 || bad[0] != c.key) {
			t.Errorf("%+v: %v is bad, want %q", p, bad, c.key)
		}
	}
}
