package meta

import (
	"testing"
	"time"

	"kith/cluster"
	"kith/internal/job"
	"kith/sitesched"
	"kith/store"
)

// siteOf returns the engine of a site, and its facts.
func siteOf(t *testing.T, st *store.State, processors int32, tune func(*Config)) *Engine {
	t.Helper()
	cfg := Default()
	cfg.Self = Self{Processors: processors, Speed: 1}
	if tune != nil {
		tune(&cfg)
	}
	s, err := sitesched.New(sitesched.Config{Processors: processors, Backfill: sitesched.EASY, Queues: sitesched.DualBackfill, Patience: time.Hour})
	if err != nil {
		t.Fatal(err)
	}
	e, err := New(cfg, st, s)
	if err != nil {
		t.Fatal(err)
	}
	e.Restore(1, nil)
	return e
}

// An origin that can never run a job says so with each copy, and the host keeps
// that across a restart.
func TestOriginSaysThatItIsTooSmall(t *testing.T) {
	alpha := siteOf(t, store.NewState("alpha", 1), 1, nil)
	alpha.Step(1, PeerUp{Site: "beta", Generation: 1})
	alpha.Step(1, LoadSeen{Digest: cluster.Digest{Site: "beta", Incarnation: 1, Sequence: 1, Processors: 2, Speed: 1, Time: 1}})
	place := func(processors int32) PlaceCopy {
		t.Helper()
		out := alpha.Step(2, Submit{Token: 1, Request: job.Request{Processors: processors, Copies: 2, Walltime: time.Second}})
		for _, o := range append(append([]Effect(nil), out...), alpha.Step(2, Pass{})...) {
			if s, ok := o.(Send); ok {
				if m, ok := s.Message.(PlaceCopy); ok {
					return m
				}
			}
		}
		t.Fatalf("no copy of a job of %d processors leaves", processors)
		return PlaceCopy{}
	}
	wide := place(2)
	if !wide.OriginTooSmall {
		t.Error("the origin does not say that it is too small for the wide job")
	}
	alpha.Step(2, Submit{Token: 2, Request: job.Request{Processors: 1, Copies: 1, Walltime: time.Hour}}) // keeps the site busy
	alpha.Step(2, Pass{})
	narrow := place(1)
	if narrow.OriginTooSmall {
		t.Error("the origin says that it is too small for the narrow job")
	}
	facts := store.NewState("beta", 1)
	beta := siteOf(t, facts, 2, nil)
	for range 2 {
		beta.Step(3, Receive{From: "alpha", Message: wide})
		beta.Step(3, Receive{From: "alpha", Message: narrow})
		for _, m := range []PlaceCopy{wide, narrow} {
			if got := beta.host.entry(facts.Copy(m.Attempt)).Elder; got != m.OriginTooSmall {
				t.Errorf("%v is queued as an elder: %v", m.Attempt, got)
			}
		}
		beta = siteOf(t, facts, 2, nil)
	}
}

// limits.copies bounds the copies of all other sites. Those of jobs submitted here
// do not count.
func TestLimitOfCopiesCountsThoseOfOthers(t *testing.T) {
	e := siteOf(t, store.NewState("beta", 1), 1, func(c *Config) { c.Limits.Copies, c.Limits.CopiesPerOrigin = 2, 2 })
	for range 3 {
		e.Step(1, Submit{Token: 1, Request: job.Request{Processors: 1, Copies: 1, Walltime: time.Second}})
	}
	for i, want := range []job.Reason{job.NoReason, job.NoReason, job.TooManyCopies} {
		origin := []job.SiteID{"alpha", "gamma", "delta"}[i]
		a := job.AttemptID{Job: job.ID{Origin: origin, Generation: 1, Seq: 1}, Number: 1}
		if got := e.host.refusal(0, origin, a, &job.Request{Processors: 1, Walltime: time.Second}, new(job.Progress), false); got != want {
			t.Errorf("the copy of %s is answered with %v, expected %v", origin, got, want)
		}
		e.Step(1, Receive{From: origin, Message: PlaceCopy{Attempt: a, Request: job.Request{Processors: 1, Walltime: time.Second}}})
	}
}
