package meta

import (
	"fmt"
	"testing"
	"time"

	"kith/internal/job"
	"kith/sitesched"
	"kith/sitesched/level"
	"kith/store"
)

// guest has a job of another site run here and returns what it was launched with. It starts at once.
func (s *ofLevels) guest(seq uint64, r job.Request, before job.Progress) (job.AttemptID, Launch) {
	s.t.Helper()
	a := job.AttemptID{Job: job.ID{Origin: "beta", Generation: 1, Seq: seq}, Number: 1}
	s.do(Receive{From: "beta", Message: PlaceCopy{Attempt: a, Request: r, Before: before}})
	claim := s.claimOf(a)
	s.out, s.now = nil, s.now.Add(4*time.Second) // the answer is on its way
	s.do(Receive{From: "beta", Message: Verdict{Attempt: a, Granted: true, Sent: claim}})
	for _, ef := range s.out {
		if l, ok := ef.(Launch); ok {
			s.do(AttemptStarted{Attempt: a, At: s.now})
			return a, l
		}
	}
	s.t.Fatalf("%v is not launched", a)
	return a, Launch{}
}

// asks are the causes with which attempts were asked to save since it was last looked at.
func (s *ofLevels) asks() (list []string) {
	for _, ef := range s.out {
		if f, ok := ef.(AskCheckpoint); ok {
			list = append(list, fmt.Sprintf("%d %v", f.Attempt.Job.Seq, f.Cause))
		}
	}
	s.out = nil
	return list
}

// Whether the limit of an attempt has its job go down is said at its launch, as it may not be asked
// in time, and again at its adoption; whoever has used its own time, or is at its last level, ends.
func TestLimitThatDemotes(t *testing.T) {
	t.Parallel()
	known := unknownJob()
	known.Unknown, known.Walltime, known.AskSeconds = false, 3*time.Minute, 60
	longer := known
	longer.Walltime = 298 * time.Second // T_q is over 296 s after its start
	silent := known
	silent.AskSeconds = 0
	wide := unknownJob()
	wide.Processors = 4
	for _, c := range []struct {
		name   string
		r      job.Request
		change func(*LevelPolicy)
		before job.Progress
		below  int32 // processors of the site of the next level
		want   Ending
		asked  string // 4 minutes after its start
	}{
		{"of unknown length", unknownJob(), nil, job.Progress{}, 2, Ending{GoesOn: true}, "[1 out of its level]"},
		{"of its own time", known, nil, job.Progress{}, 2, Ending{}, "[1 its time limit]"},
		{"of its own time, and is not to be asked", silent, nil, job.Progress{}, 2, Ending{}, "[]"},
		{"no level below", unknownJob(), nil, job.Progress{}, 0, Ending{}, "[]"},
		{"no level below for its width", wide, nil, job.Progress{}, 2, Ending{}, "[]"},
		{"terminated", unknownJob(), func(p *LevelPolicy) { p.Actions[level.Overdue] = level.Terminate }, job.Progress{}, 2, Ending{}, "[]"},
		{"stays no longer than T_q", longer, func(p *LevelPolicy) { p.Queue, p.Run = 5*time.Minute, 5*time.Minute }, job.Progress{}, 2, Ending{GoesOn: true}, "[1 out of its level]"},
		{"last attempt", unknownJob(), nil, job.Progress{Last: true}, 2, Ending{Last: true}, "[]"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			p := small()
			if c.change != nil {
				c.change(&p)
			}
			s := newOfLevels(t, p)
			s.peer("beta", 0, 8)
			if c.below > 0 {
				s.peer("delta", 2, c.below)
			}
			s.now = s.now.Add(2 * time.Minute) // no other site may yet say that it is a level
			s.do(Tick{})
			_, f := s.guest(1, c.r, c.before)
			if f.Ending != c.want {
				t.Errorf("launched with %+v, want %+v", f.Ending, c.want)
			}
			s.out = nil
			s.now = s.now.Add(f.Request.Walltime - time.Second)
			s.do(Tick{})
			if got := fmt.Sprint(s.asks()); got != c.asked {
				t.Errorf("asked %s, want %s", got, c.asked)
			}
		})
	}
}

// again is the same site after a restart, as another level, at another time by its clock.
func (s *ofLevels) again(p LevelPolicy, now job.Time) {
	s.t.Helper()
	site, err := sitesched.New(sitesched.Config{Processors: 4})
	if err != nil {
		s.t.Fatal(err)
	}
	cfg := Default()
	cfg.Self, cfg.Level = Self{Processors: 4, Speed: 1}, p
	if s.Engine, err = New(cfg, s.st, site); err != nil {
		s.t.Fatal(err)
	}
	s.now = now
	s.out = s.Restore(now, nil)
}

// A restart adopts an attempt with what its limit means, also if the site is no level any more; and
// it is asked in time by a clock that was set back.
func TestLimitThatDemotesAfterARestart(t *testing.T) {
	t.Parallel()
	for _, p := range []LevelPolicy{small(), {}} {
		s := newOfLevels(t, small())
		s.peer("beta", 0, 8)
		s.peer("delta", 2, 8)
		a, f := s.guest(1, unknownJob(), job.Progress{})
		started := s.now
		s.again(p, started.Add(-time.Minute))
		for _, ef := range s.out {
			if got, ok := ef.(Adopt); !ok || got.Attempt != a {
				continue
			} else if got.Ending != f.Ending || !got.GoesOn || got.Request.Walltime != f.Request.Walltime {
				t.Errorf("as level %d it is adopted with %+v, was launched with %+v", p.Rank, got, f)
			}
		}
		s.peer("delta", 2, 8)
		s.do(AttemptStarted{Attempt: a, At: started})
		s.out = nil
		s.now = s.now.Add(4*time.Minute - time.Second)
		s.do(Tick{})
		if got := fmt.Sprint(s.asks()); p.Rank > 0 && got != "[1 out of its level]" {
			t.Errorf("asked %s", got)
		}
		if rest := s.host.restOf(s.now, s.host.copies.Get(a)); rest != time.Second {
			t.Errorf("%v of its time are left", rest)
		}
	}
}

// Whoever has ended, or is no more to be asked, is not kept in the list of those that are asked in time.
func TestAskedInTimeAreForgotten(t *testing.T) {
	t.Parallel()
	s := newOfLevels(t, LevelPolicy{})
	s.peer("beta", 0, 8)
	r := job.Request{Processors: 1, Walltime: time.Hour, Checkpoint: true, AskSeconds: 60}
	for seq := range uint64(1000) {
		a, _ := s.guest(seq+1, r, job.Progress{})
		s.do(AttemptEnded{Attempt: a, Outcome: job.Outcome{Kind: job.Success, Start: s.now, End: s.now}})
	}
	if got := len(s.host.timed.list); got > 2*leastSweep {
		t.Errorf("%d are to be asked, and none runs", got)
	}
}

// A site of the level that refuses a job for good, for what it is, does not keep it at the level;
// one that may take it yet does. So does this very site.
func TestBarredSites(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		said  job.Reason
		level uint8
	}{
		{job.Level, 1}, {job.TooSmall, 2}, {job.NotEvictable, 2}, {job.Directory, 2}, {job.LevelFull, 2}, {job.CannotStart, 1}, {job.Full, 1}, {job.Draining, 1},
	} {
		s := newOfLevels(t, LevelPolicy{})
		s.peer("beta", 1, 8)
		s.peer("gamma", 1, 8)
		s.peer("delta", 2, 8)
		j := s.submit(unknownJob())
		a := j.AttemptID()
		s.do(Receive{From: "beta", Message: CopyAnswer{Attempt: a, Reason: c.said}})
		s.do(Receive{From: "gamma", Message: CopyAnswer{Attempt: a, Reason: job.LevelOverdue}})
		if j.Level != c.level {
			t.Errorf("one site says %v, the other that it is overdue: level %d, want %d", c.said, j.Level, c.level)
		}
		// All of them for good: the level is passed over as one without a site.
		k := s.submit(unknownJob())
		for _, site := range []job.SiteID{"beta", "gamma"} {
			s.do(Receive{From: site, Message: CopyAnswer{Attempt: k.AttemptID(), Reason: c.said}})
		}
		if k.Level != c.level {
			t.Errorf("all sites say %v: level %d, want %d", c.said, k.Level, c.level)
		}
	}
	s := newOfLevels(t, small())
	s.peer("delta", 2, 8)
	r := unknownJob()
	r.Processors = 5 // more than there are here
	j := s.submit(r)
	if j.Level != 2 {
		t.Errorf("this site is too small: level %d", j.Level)
	}
	o := &openJob{rec: &store.Job{}}
	o.refuse(refusal{site: "alpha", reason: job.GuestWalltime, until: job.Never})
	if one := unknownJob(); s.origin.mayTakeHere(o, &one) || !s.origin.mayTakeHere(nil, &one) {
		t.Error("this site may take what it refused for good")
	}
}
