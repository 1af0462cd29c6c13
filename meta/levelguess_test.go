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

// guessing is a site that knows how long past jobs of a user ran, and makes guesses of it.
func guessing(t *testing.T, p LevelPolicy, bounds bool, past ...time.Duration) *ofLevels {
	t.Helper()
	cfg := Default()
	cfg.Self, cfg.Level, cfg.Forecasts = Self{Processors: 4, Speed: 1}, p, Forecasts{Enabled: true, Bounds: bounds}
	s := unrestored(t, cfg, scheduler(t, sitesched.Config{Processors: 4}))
	if err := s.Recall(func(yield func(store.Past, error) bool) {
		for i, run := range past {
			p := store.Past{
				Number: uint64(i + 1), Origin: "alpha", Site: "beta", User: "ada", Processors: 1, Limit: job.MaxWalltime, Run: run,
				Submitted: 1, Started: 2, Ended: 3, Kind: job.Success,
			}
			if !yield(p, nil) {
				return
			}
		}
	}); err != nil {
		t.Fatal(err)
	}
	s.Restore(s.now, nil)
	return s
}

// runsFor connects a site of 8 processors that is a level which lets a job run for so long.
func (s *ofLevels) runsFor(site job.SiteID, rank uint8, run time.Duration) {
	s.do(PeerUp{Site: site, Generation: 1, Incarnation: 1})
	s.seq++
	s.do(LoadSeen{Digest: cluster.Digest{
		Site: site, Incarnation: 1, Sequence: s.seq, Processors: 8, Speed: 1,
		Level: &cluster.Level{Rank: rank, Queue: 2 * run, Run: run, Limit: 2 * run.Seconds() * 8},
	}})
}

func jobOfAda() job.Request {
	r := unknownJob()
	r.User = "ada"
	return r
}

// The origin passes over levels that do less for one job than nine of ten of its user's jobs needed. At
// the last level that does not count, and nothing is guessed of what is not known well.
func TestGuessPassesOverLevels(t *testing.T) {
	t.Parallel()
	many := func(n int, run time.Duration) []time.Duration {
		list := make([]time.Duration, n)
		for i := range list {
			list[i] = run
		}
		return list
	}
	estimated, wide, timed := jobOfAda(), jobOfAda(), jobOfAda()
	estimated.Estimate, wide.Processors = true, 4
	timed.Unknown, timed.Walltime = false, time.Hour
	other := jobOfAda()
	other.User = "grace"
	for name, c := range map[string]struct {
		bounds bool
		past   []time.Duration
		r      job.Request
		guess  float32
		level  uint8
		site   string
	}{
		"short jobs":            {true, many(20, 5*time.Minute), jobOfAda(), 300, 1, "[one]"},
		"as long as the level":  {true, many(20, 10*time.Minute), jobOfAda(), 600, 1, "[one]"},
		"longer":                {true, many(20, 11*time.Minute), jobOfAda(), 660, 2, "[two]"},
		"one in ten is longer":  {true, append(many(2, 2*time.Hour), many(40, 5*time.Minute)...), jobOfAda(), 300, 1, "[one]"},
		"longer than any level": {true, many(20, 100*time.Hour), jobOfAda(), 360_000, 3, "[three]"},
		"wide":                  {true, many(20, 11*time.Minute), wide, 4 * 660, 2, "[two]"},
		"off":                   {false, many(20, 2*time.Hour), jobOfAda(), 0, 1, "[one]"},
		"little is known":       {true, many(9, 2*time.Hour), jobOfAda(), 0, 1, "[one]"},
		"of another user":       {true, many(20, 2*time.Hour), other, 0, 1, "[one]"},
		"with an estimator":     {true, many(20, 2*time.Hour), estimated, 0, 1, "[one]"},
		"of a known time":       {true, many(20, 2*time.Hour), timed, 0, 1, "[one]"},
	} {
		s := guessing(t, LevelPolicy{}, c.bounds, c.past...)
		s.runsFor("one", 1, 10*time.Minute)
		s.runsFor("two", 2, time.Hour)
		s.runsFor("three", 3, 2*time.Hour)
		j := s.submit(c.r)
		if j.Guess != c.guess || j.Level != c.level || fmt.Sprint(j.Sites) != c.site || j.State != job.Queued {
			t.Errorf("%s: guess %v, %v at level %d, sites %v", name, j.Guess, j.State, j.Level, j.Sites)
		}
		lowered := 0
		for _, e := range j.Events {
			if e.Kind == store.ClaimLowered && e.Reason == job.LevelMismatch {
				lowered++
			}
		}
		if lowered != int(c.level)-1 {
			t.Errorf("%s: it went down %d times: %+v", name, lowered, j.Events)
		}
		for _, p := range func() []PlaceCopy { p, _ := sent[PlaceCopy](s); return p }() {
			if p.Before.Bound != 0 {
				t.Errorf("%s: a host is told of the bound %v", name, p.Before.Bound)
			}
		}
	}
}

// A level is passed over for one in reach only, and one of whose sites one is large enough is not.
func TestGuessNeedsALevelInReach(t *testing.T) {
	t.Parallel()
	past := make([]time.Duration, 20)
	for i := range past {
		past[i] = 2 * time.Hour
	}
	s := guessing(t, LevelPolicy{}, true, past...)
	s.runsFor("one", 1, 10*time.Minute)
	s.runsFor("two", 2, time.Hour)
	s.do(PeerDown{Site: "two"})
	if j := s.submit(jobOfAda()); j.Level != 1 {
		t.Errorf("it is at level %d, of which no site is in reach", j.Level)
	}
	s.runsFor("two", 2, time.Hour)
	s.runsFor("large", 1, 3*time.Hour)
	if j := s.submit(jobOfAda()); j.Level != 1 {
		t.Errorf("it is at level %d, and a site of level 1 does enough", j.Level)
	}
}

// The site's own level is looked at as those of others are; where a mismatch does nothing it takes all.
func TestGuessAtItsOwnLevel(t *testing.T) {
	t.Parallel()
	past := make([]time.Duration, 20)
	for i := range past {
		past[i] = 5 * time.Minute
	}
	for _, c := range []struct {
		mismatch level.Action
		run      time.Duration
		want     uint8
	}{{level.Default, 4 * time.Minute, 2}, {level.Off, 4 * time.Minute, 1}, {level.Default, 6 * time.Minute, 1}} {
		p := small()
		p.Run, p.Actions[level.Mismatch] = c.run, c.mismatch
		s := guessing(t, p, true, past...)
		s.runsFor("two", 2, time.Hour)
		if j := s.submit(jobOfAda()); j.Level != c.want {
			t.Errorf("%+v: it is at level %d", c, j.Level)
		}
	}
}

// A guess is of all that a job does: what attempts have done before is no more left. Where they have done
// more, it was too low, and says nothing.
func TestGuessIsLessWhatWasDone(t *testing.T) {
	t.Parallel()
	past := make([]time.Duration, 20)
	for i := range past {
		past[i] = 2 * time.Hour
	}
	for ran, want := range map[time.Duration]uint8{time.Minute: 3, 90 * time.Minute: 2, 3 * time.Hour: 2} {
		s := guessing(t, LevelPolicy{}, true, past...)
		s.runsFor("two", 2, time.Hour)
		r := jobOfAda()
		r.Level = 2
		j := s.submit(r)
		a := j.AttemptID()
		s.do(Receive{From: "two", Message: Claim{Attempt: a, Stamp: 1, Sent: s.now}})
		s.do(Receive{From: "two", Message: Started{Attempt: a, At: s.now}})
		start := s.now
		s.runsFor("three", 3, 10*time.Hour)
		s.now = s.now.Add(ran)
		s.runsFor("two", 2, time.Hour)
		s.do(Receive{From: "two", Message: Result{Attempt: a, Outcome: job.Outcome{Kind: job.Demoted, Cause: job.Requested, Start: start, End: s.now}}})
		if len(j.Demotions) != 1 || j.Level != want {
			t.Errorf("after %v: at level %d, %+v", ran, j.Level, j.Demotions)
		}
	}
}

// What a user's job did in attempts before its last one counts, where it went on with that.
func TestGuessIsOfWholeJobs(t *testing.T) {
	t.Parallel()
	s := guessing(t, LevelPolicy{}, true)
	for i := range 20 {
		s.seer.ended(&store.Past{
			Number: uint64(i + 1), Origin: "alpha", Site: "beta", User: "ada", Processors: 1, Limit: job.MaxWalltime, Run: 4 * time.Minute, Before: 7 * time.Minute,
			Submitted: 1, Started: 2, Ended: 3, Kind: job.Success,
		})
	}
	s.runsFor("one", 1, 10*time.Minute)
	s.runsFor("two", 2, time.Hour)
	if j := s.submit(jobOfAda()); j.Guess != 660 || j.Level != 2 {
		t.Errorf("guess %v, at level %d", j.Guess, j.Level)
	}
}
