package sim_test

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"kith/internal/job"
	"kith/meta"
	"kith/store"
	"kith/testbed/sim"
)

// Sites revoke one another while jobs run, die in the midst of it, and admit each other
// again: no job starts twice, each ends, and what a revocation left behind is cleared.
func TestRevokedSites(t *testing.T) {
	names := []job.SiteID{"s0", "s1", "s2"}
	stopped, leased := 0, 0
	for seed := range uint64(60) {
		rng := rand.New(rand.NewPCG(seed, 7))
		span := func(most time.Duration) time.Duration { return time.Duration(rng.Int64N(int64(most))) }
		w := newWorld(t, kept(seed, 2, 3, 2))
		admit := func(at, other job.SiteID) {
			w.Ask(at, func(token uint64) meta.Event {
				return meta.AdmitSite{Token: token, Site: other, Bundle: store.Bundle{Data: []byte(other), Keys: []store.KeyID{{1}}, Sequence: 1}, Actor: "ada"}
			}, func(r meta.Reply) {
				if r.Err != nil {
					t.Errorf("seed %d: %s admits %s: %v", seed, at, other, r.Err)
				}
			})
		}
		for _, at := range names {
			for _, other := range names {
				if at != other {
					w.At(sim.Start.Add(time.Millisecond), func() { admit(at, other) })
					w.At(sim.Start.Add(10*time.Minute), func() { admit(at, other) }) // if it was down then
				}
			}
		}
		for n := range 24 {
			r := request(1+rng.Int32N(2), 3*time.Minute)
			r.OnSiteLost = []job.OnSiteLost{job.Rerun, job.Race}[n%2]
			submitAt(w, time.Second+span(3*time.Minute), names[n%3], sim.Submission{Request: r, RunTime: 10*time.Second + span(time.Minute)})
		}
		for range 4 {
			at, other := names[rng.IntN(3)], names[rng.IntN(3)]
			if at == other {
				continue
			}
			when, letRun := 5*time.Second+span(3*time.Minute), rng.IntN(2) == 0
			w.At(sim.Start.Add(when), func() {
				w.Ask(at, func(token uint64) meta.Event {
					return meta.RevokeSite{Token: token, Site: other, LetRun: letRun, Actor: "ada"}
				}, func(r meta.Reply) {
					if r.Revoked != nil {
						stopped, leased = stopped+r.Revoked.Stopped, leased+r.Revoked.Leased
					}
				})
			})
			if rng.IntN(2) == 0 { // before, while or after it is on disk
				down := when + span(3*time.Millisecond)
				w.At(sim.Start.Add(down), w.Site(at).Crash)
				w.At(sim.Start.Add(down+span(20*time.Second)), func() {
					if err := w.Site(at).Restart(); err != nil {
						t.Error(err)
					}
				})
			}
			w.At(sim.Start.Add(when+30*time.Second+span(2*time.Minute)), func() { admit(at, other) })
		}
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) { finish(t, w) })
	}
	if stopped == 0 || leased == 0 {
		t.Errorf("%d attempts were stopped and %d were under a lease: the test looks at nothing", stopped, leased)
	}
}
