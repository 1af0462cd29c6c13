package store_test

import (
	"testing"

	"kith/internal/job"
	"kith/store"
)

// The first cancellation counts, also if another user repeats it, and the acts are bounded.
func TestActs(t *testing.T) {
	s := store.NewState("alpha", 1)
	id := s.NextID()
	must(t, s, store.SubmitJob{ID: id, Actor: "ada", Time: 1})
	for range store.MaxActs {
		must(t, s, store.HoldJob{Job: id, Actor: "ada", Time: 2}, store.ReleaseJob{Job: id, Actor: "bob", Time: 3})
	}
	before := s.Job(id).Acts
	must(t, s, store.NoteForgotten{Job: id, Site: "beta", Actor: "eve", Time: 4},
		store.CancelJob{Job: id, Actor: "ada", Reason: "first", Time: 5})
	j := s.Job(id)
	if n := len(j.Acts); n != store.MaxActs {
		t.Errorf("%d acts, want %d", n, store.MaxActs)
	}
	if before[0].Kind != store.ActHold || before[len(before)-1].Kind != store.ActRelease {
		t.Error("acts that were read before changed in place")
	}
	want := store.Act{Time: 5, Kind: store.ActCancel, Actor: "ada", Reason: "first"}
	if a, ok := j.LastAct(store.ActCancel); !ok || a != want {
		t.Errorf("cancelled: %+v, want %+v", a, want)
	}
	if a, ok := j.LastAct(store.ActForget); !ok || a.Actor != "eve" || a.Site != "beta" {
		t.Errorf("forgotten: %+v", a)
	}
	if j.Submitter != "ada" || j.Version == 0 {
		t.Errorf("submitter %q, version %d", j.Submitter, j.Version)
	}

	running := s.NextID()
	a := job.AttemptID{Job: running, Number: 1}
	must(t, s, store.SubmitJob{ID: running}, store.OpenAttempt{Attempt: a, Sites: []job.SiteID{"beta"}},
		store.GrantClaim{Attempt: a, Site: "beta"}, store.CancelJob{Job: running, Actor: "ada", Reason: "first"},
		store.CancelJob{Job: running, Actor: "bob", Reason: "second"})
	if got, _ := s.Job(running).LastAct(store.ActCancel); got.Actor != "ada" || got.Reason != "first" {
		t.Errorf("cancelled twice: %+v", got)
	}
}
