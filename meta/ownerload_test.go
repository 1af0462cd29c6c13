package meta

import (
	"testing"
	"time"

	"kith/cluster"
	"kith/internal/harvest"
	"kith/internal/job"
	"kith/sitesched"
	"kith/store"
)

// shared is a site of four processors whose owner takes half of each, in pieces of a minute.
type shared struct {
	*Engine
	t   *testing.T
	now job.Time
}

func halfTaken() *cluster.Owner {
	o := new(cluster.Owner)
	for i := range o.Loads {
		o.Loads[i] = harvest.Load{Lambda: 0.5 / 60, Rho: 0.5, Sigma: 60}
	}
	return o
}

func newShared(t *testing.T, st *store.State) *shared {
	t.Helper()
	cfg := Default()
	cfg.Self = Self{Processors: 4, Speed: 1}
	site, err := sitesched.New(sitesched.Config{Processors: 4})
	if err != nil {
		t.Fatal(err)
	}
	e, err := New(cfg, st, site)
	if err != nil {
		t.Fatal(err)
	}
	s := &shared{Engine: e, t: t, now: job.Time(time.Hour)}
	e.Restore(s.now, nil)
	return s
}

// step returns the limits that the driver was told to launch with.
func (s *shared) step(ev Event) (limits []time.Duration) {
	for _, event := range []Event{ev, Pass{}} {
		for _, ef := range s.Step(s.now, event) {
			if l, ok := ef.(Launch); ok {
				limits = append(limits, l.Request.Walltime)
			}
		}
	}
	return limits
}

// A job's limit counts so that the owner's work does not end it: where he takes half of the
// time it is more than twice as long, and it stays that when he goes and after a restart.
func TestLimitWhereAnOwnerComesFirst(t *testing.T) {
	t.Parallel()
	st := store.NewState("alpha", 1)
	s := newShared(t, st)
	submit := Submit{Request: job.Request{Processors: 1, Walltime: time.Hour, Copies: 1}}
	if got := s.step(submit); len(got) != 1 || got[0] != time.Hour {
		t.Fatalf("without an owner: %v", got)
	}
	s.step(OwnerSeen{Owner: halfTaken()})
	got := s.step(submit)
	// The mean is 2 h; one in twenty takes longer than the limit.
	if len(got) != 1 || got[0] < 2*time.Hour || got[0] > 4*time.Hour {
		t.Fatalf("beside an owner: %v", got)
	}
	// It is planned like that: what needs all processors waits for it.
	end, ok := s.host.site.EarliestStart(s.now, job.Copy{ID: job.AttemptID{Job: job.ID{Origin: "beta", Seq: 9}, Number: 1}, Request: job.Request{Processors: 4, Walltime: time.Minute}, Arrival: s.now, Remote: true})
	if !ok || end.Sub(s.now) < got[0] {
		t.Errorf("planned to end after %v", end.Sub(s.now))
	}
	s.step(OwnerSeen{})
	s.now += job.Time(time.Minute)
	again := newShared(t, st)
	again.now = s.now
	again.Restore(again.now, nil)
	for c := range st.Copies() {
		want := time.Hour
		if c.LimitSeconds != 0 {
			want = got[0]
		}
		if r := again.host.limited(c.Request, c.LimitSeconds); r.Walltime != want {
			t.Errorf("after a restart copy %v has the limit %v, had %v", c.ID, r.Walltime, want)
		}
	}
}

// The limit grows by half of what an origin waits for a job that is overdue at the most, also
// where nothing is left at all.
func TestLimitIsBounded(t *testing.T) {
	t.Parallel()
	s := newShared(t, store.NewState("alpha", 1))
	for _, rho := range []float64{0.2, 0.9, 0.999, 1} {
		o := new(cluster.Owner)
		for i := range o.Loads {
			o.Loads[i] = harvest.Load{Lambda: 1e-6, Rho: rho, Sigma: 1e6}
		}
		s.step(OwnerSeen{Owner: o})
		for _, limit := range []time.Duration{time.Second, time.Hour, 100 * 24 * time.Hour} {
			got := s.host.asked(&job.Request{Processors: 4, Walltime: limit}, nil).Walltime
			if got < limit || got > limit+s.cfg.Timing.Overdue/2 {
				t.Errorf("rho %v: a limit of %v became %v", rho, limit, got)
			}
		}
	}
}

// An owner who leaves less than a tenth makes the site refuse, by name of the reason; a job that
// only he holds back waits, and runs when he is gone.
func TestOwnerWhoLeavesNothing(t *testing.T) {
	t.Parallel()
	s := newShared(t, store.NewState("alpha", 1))
	o := halfTaken()
	o.Loads[harvest.Widths-1].Rho = 0.95 // of a job that takes all four
	s.step(OwnerSeen{Owner: o})
	query := func(processors int32) job.Reason {
		a := s.host.answerStart(s.now, "beta", &StartQuery{Request: job.Request{Processors: processors, Walltime: time.Hour}})
		return a.Reason
	}
	if got := query(1); got != job.NoReason {
		t.Errorf("one processor: %v", got)
	}
	if got := query(4); got != job.BusyOwner {
		t.Errorf("all processors: %v", got)
	}
	if got := s.step(Submit{Request: job.Request{Processors: 4, Walltime: time.Hour, Copies: 1}}); len(got) != 0 {
		t.Fatalf("it was launched with %v", got)
	}
	s.step(OwnerSeen{})
	for range 20 {
		s.now += job.Time(10 * time.Second)
		if got := s.step(Tick{}); len(got) == 1 {
			return
		}
	}
	t.Error("it never ran")
}

// The digest tells of the owner, and of more work to drain, as it takes longer.
func TestDigestTellsOfTheOwner(t *testing.T) {
	t.Parallel()
	s := newShared(t, store.NewState("alpha", 1))
	s.step(Submit{Request: job.Request{Processors: 4, Walltime: time.Hour, Copies: 1}})
	before := s.Views().Sites(s.now)[0]
	s.step(OwnerSeen{Owner: halfTaken()})
	after := s.Views().Sites(s.now)[0]
	if before.Owner != nil || after.Owner == nil || after.Load.Work != 2*before.Load.Work {
		t.Errorf("before %v, %v; after %v, %v", before.Owner, before.Load.Work, after.Owner, after.Load.Work)
	}
	if err := after.Possible(); err != nil {
		t.Error(err)
	}
}
