package meta

import (
	"testing"
	"time"

	"kith/internal/job"
	"kith/sitesched"
	"kith/store"
)

// waysAsked is a local scheduler that counts for how many jobs it is asked who has to leave.
type waysAsked struct {
	*sitesched.Scheduler
	ways int
	told []job.AttemptID
}

func (a *waysAsked) MakeWay(now job.Time, id job.AttemptID, until job.Time) []job.AttemptID {
	a.ways++
	told := a.Scheduler.MakeWay(now, id, until)
	a.told = append(a.told, told...)
	return told
}

// boundedSite is a site at which guests leave at a bound of 10 min, with a grace of a minute. So many
// guests of a processor each run there, which fill it.
func boundedSite(t *testing.T, guests int) (*ofLevels, *waysAsked) {
	t.Helper()
	cfg := Default()
	processors := int32(guests) //nolint:gosec // A handful.
	cfg.Self, cfg.MaxGrace = Self{Processors: processors, Speed: 1}, time.Minute
	cfg.NoHarm = NoHarm{Measure: true, Mode: HarmBounded, Bound: 10 * time.Minute}
	cfg.Placement.Scheme = KDual
	site := &waysAsked{Scheduler: scheduler(t, sitesched.Config{Processors: processors, Backfill: sitesched.EASY, Queues: sitesched.DualBackfill})}
	s := unrestored(t, cfg, site)
	s.Restore(s.now, nil)
	s.peer("beta", 0, 1)
	for n := range guests {
		a := guestOf(n)
		s.do(Receive{From: "beta", Message: PlaceCopy{Attempt: a, Request: job.Request{Processors: 1, Walltime: 10 * time.Hour, Checkpoint: true}}})
		s.do(Receive{From: "beta", Message: Verdict{Attempt: a, Granted: true, Sent: s.claimOf(a)}})
		s.now = s.now.Add(time.Millisecond)
		s.do(AttemptStarted{Attempt: a, At: s.now})
	}
	return s, site
}

func guestOf(n int) job.AttemptID {
	return job.AttemptID{Job: job.ID{Origin: "beta", Generation: 1, Seq: uint64(n) + 1}, Number: 1} //nolint:gosec // A handful.
}

// until lets time pass as a driver does.
func (s *ofLevels) until(end job.Time) {
	s.t.Helper()
	for n := 0; ; n++ {
		next := max(s.NextWake(s.now), s.now)
		if next > end {
			s.now = end
			return
		}
		if n > 10_000 {
			s.t.Fatal("it spins")
		}
		s.now = next
		s.do(Tick{})
	}
}

// Who has to leave for a home job is looked for once, not in each pass, and for few jobs of an instant.
func TestWaysAreBounded(t *testing.T) {
	t.Parallel()
	const jobs = 3*mostWays + 2
	s, site := boundedSite(t, 2*jobs)
	for range jobs {
		s.submit(job.Request{Processors: 1, Walltime: time.Hour, Copies: 1})
	}
	since := s.now
	s.until(since.Add(8*time.Minute - time.Millisecond))
	if site.ways != 0 {
		t.Errorf("%d jobs are looked at before two graces ahead of the bound", site.ways)
	}
	s.until(since.Add(8 * time.Minute))
	if site.ways != mostWays {
		t.Errorf("%d jobs are looked at in one instant, want %d", site.ways, mostWays)
	}
	s.until(since.Add(8*time.Minute + 10*time.Second))
	for range 50 {
		s.host.passing = true
		s.do(Tick{})
	}
	if site.ways != jobs || len(site.told) != jobs {
		t.Errorf("%d looks and %d guests that leave for %d jobs", site.ways, len(site.told), jobs)
	}
	s.until(since.Add(8*time.Minute + 30*time.Second))
	s.do(AttemptEnded{Attempt: site.told[0], Outcome: job.Outcome{Kind: job.Demoted, Cause: job.Evicted, Start: 1, End: s.now}})
	if site.ways <= jobs {
		t.Error("a home job has started on what came free, and it was not looked whether others suffice")
	}
}

// A guest whose origin was given up runs to its end: another one leaves in its place.
func TestForgottenGuestStays(t *testing.T) {
	t.Parallel()
	s, site := boundedSite(t, 2)
	s.host.copies.Get(guestOf(1)).forgotten = true // the younger one, which would lose less
	s.submit(job.Request{Processors: 1, Walltime: time.Hour, Copies: 1})
	s.out = nil
	s.until(s.now.Add(8*time.Minute + time.Second))
	var left []job.AttemptID
	for _, ef := range s.out {
		if f, ok := ef.(AskCheckpoint); ok {
			left = append(left, f.Attempt)
		}
	}
	if len(left) != 1 || left[0] != guestOf(0) {
		t.Errorf("%v are asked to leave, told %v, want %v", left, site.told, guestOf(0))
	}
}

// What says that a guest stays is kept with its copy.
func TestStaysIsKept(t *testing.T) {
	t.Parallel()
	s, _ := boundedSite(t, 1)
	for n, stays := range []bool{false, true} {
		a := guestOf(7 + n)
		s.do(Receive{From: "beta", Message: PlaceCopy{Attempt: a, Request: job.Request{Processors: 1, Walltime: time.Minute, Checkpoint: true}, Stays: stays}})
		if rec := s.st.Copy(a); rec == nil || rec.Stays != stays || s.host.entry(rec).Stays != stays {
			t.Errorf("stays %v: kept as %+v", stays, rec)
		}
	}
	a := guestOf(9)
	r := job.Request{Processors: 1, Walltime: time.Minute, Level: 3, OnSiteLost: job.Wait}
	if e := s.host.entry(&store.Copy{ID: a, Request: &r}); !e.Stays || e.Level != 3 {
		t.Errorf("a guest of level 3 that writes no checkpoints is queued as %+v", e)
	}
}

// A guest that could neither go on elsewhere nor be gone in time is refused by a site that has guests leave; one that
// may begin again, that saves, or whose limit is within the grace is taken.
func TestGuestsThatCannotBeMoved(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		r     job.Request
		stays bool
		want  job.Reason
	}{
		"waits for its site":   {job.Request{Walltime: time.Hour}, false, job.NotEvictable},
		"saves":                {job.Request{Walltime: time.Hour, Checkpoint: true}, false, job.NoReason},
		"begins again":         {job.Request{Walltime: time.Hour, OnSiteLost: job.Rerun}, false, job.NoReason},
		"races":                {job.Request{Walltime: time.Hour, OnSiteLost: job.Race}, false, job.NoReason},
		"is short":             {job.Request{Walltime: time.Minute}, false, job.NoReason},
		"is a second too long": {job.Request{Walltime: time.Minute + time.Second}, false, job.NotEvictable},
		"was evicted enough":   {job.Request{Walltime: time.Hour, Checkpoint: true}, true, job.NotEvictable},
	} {
		s, _ := boundedSite(t, 2)
		c.r.Processors = 1
		s.out = nil
		s.do(Receive{From: "beta", Message: PlaceCopy{Attempt: guestOf(7), Request: c.r, Stays: c.stays}})
		if answers, _ := sent[CopyAnswer](s); len(answers) != 1 || answers[0].Reason != c.want {
			t.Errorf("%s: %v, not %v", name, answers, c.want)
		}
	}
	// Where nobody leaves it is a guest as any other.
	s := newOfLevels(t, LevelPolicy{})
	s.peer("beta", 0, 1)
	s.do(Receive{From: "beta", Message: PlaceCopy{Attempt: guestOf(7), Request: job.Request{Processors: 1, Walltime: time.Hour}}})
	if answers, _ := sent[CopyAnswer](s); len(answers) != 1 || answers[0].Reason != job.NoReason {
		t.Errorf("nobody leaves there: %v", answers)
	}
}
