package storetest

import (
	"testing"
	"time"

	"kith/internal/job"
	"kith/store"
)

// testPast checks that attempts that have ended are remembered across restarts, at the origin
// and at the host, up to a bound, oldest first, also once the records of their jobs are gone.
func testPast(t *testing.T, open Opener) {
	b := open(t)
	s := load(t, b)
	if p, err := b.Past(0); len(p) != 0 || err != nil {
		t.Errorf("a new site has the past %v, %v", p, err)
	}
	s.KeepPast(5)
	for i := range 4 {
		id := s.NextID()
		a := job.AttemptID{Job: id, Number: 1}
		outcome := job.Outcome{Kind: job.Success, Start: job.Time(1000 * i), End: job.Time(1000*i + 300)}
		apply(t, s, store.SubmitJob{ID: id, Request: job.Request{Name: "fit", User: "ada", Processors: 4, MemoryBytes: 5, Walltime: time.Hour, Script: 1<<63 + 7}, Time: job.Time(i)})
		apply(t, s, store.HoldJob{Job: id, Time: job.Time(i)})
		apply(t, s, store.ReleaseJob{Job: id, Time: job.Time(i + 20)})
		apply(t, s, store.OpenAttempt{Attempt: a, Sites: []job.SiteID{"beta"}})
		apply(t, s, store.NoteHarm{Job: id, Harm: store.Harm{Blocked: time.Duration(i), Moved: 1}})
		apply(t, s, store.NoteHarm{Job: id, Harm: store.Harm{Blocked: 40, Moved: 1}})
		if h := s.Harm(id); h != (store.Harm{Blocked: time.Duration(i + 40), Moved: 2}) {
			t.Errorf("%+v", h)
		}
		commit(t, b, s)
		closed(t, b)
		b = open(t) // what it was blocked for outlasts a restart while it runs
		s = load(t, b)
		s.KeepPast(5)
		apply(t, s, store.GrantClaim{Attempt: a, Site: "beta"})
		apply(t, s, store.RecordOutcome{Attempt: a, Site: "beta", Outcome: outcome})
		apply(t, s, store.CloseJob{Job: id, Speed: 2})
		apply(t, s, store.PurgeJob{Job: id})
		guest := job.AttemptID{Job: job.ID{Origin: "beta", Generation: 1, Seq: uint64(i) + 1}, Number: 1} //nolint:gosec // A few.
		apply(t, s, store.AcceptCopy{Attempt: guest, Request: job.Request{User: "bob", Processors: 1, Walltime: time.Minute}, Time: 77})
		apply(t, s, store.BeginAttempt{Attempt: guest})
		apply(t, s, store.EndAttempt{Attempt: guest, Outcome: outcome})
		apply(t, s, store.ForgetAttempt{Attempt: guest})
		commit(t, b, s)
		closed(t, b)
		b = open(t)
		s = load(t, b)
		s.KeepPast(5)
	}
	list := pastOf(t, b)
	if len(list) != 5 || list[0].Number != 4 || list[4].Number != 8 {
		t.Fatalf("what is past: %+v", list)
	}
	home := store.Past{
		Number: 7, Origin: "alpha", Site: "beta", User: "ada", Name: list[3].Name, Processors: 4, Limit: time.Hour, Run: 600,
		Submitted: 3, Started: 3000, Ended: 3300, Kind: job.Success, Ready: 23, Harm: store.Harm{Blocked: 43, Moved: 2}, MemoryBytes: 5,
		Script: 1<<63 + 7,
	}
	guest := store.Past{
		Number: 8, Origin: "beta", Site: "alpha", User: "bob", Processors: 1, Limit: time.Minute, Run: 300, Submitted: 77, Started: 3000, Ended: 3300, Kind: job.Success,
	}
	if list[3] != home || list[4] != guest || home.Name == 0 {
		t.Errorf("the last two are %+v and %+v", list[3], list[4])
	}
	apply(t, s, store.SetDrain{Draining: true, Time: 5000})
	apply(t, s, store.SetDrain{Time: 6000})
	commit(t, b, s)
	if p := pastOf(t, b); len(p) != 5 || !p[4].Drained() || p[4] != (store.Past{Number: 9, Site: "alpha", Started: 5000, Ended: 6000}) {
		t.Errorf("after a drain: %+v", p)
	}
	if p, err := b.Past(7); err != nil || len(p) != 3 || p[0].Number != 7 {
		t.Errorf("from 7 on: %+v, %v", p, err)
	}
	closed(t, b)
}

// pastOf reads all that is past.
func pastOf(t *testing.T, b store.Backend) []store.Past {
	t.Helper()
	var list []store.Past
	for p, err := range store.AllPast(b) {
		if err != nil {
			t.Fatal(err)
		}
		list = append(list, p)
	}
	return list
}

// testPastStretches checks that more than a stretch is read whole, and that a smaller bound is met.
func testPastStretches(t *testing.T, open Opener) {
	b := open(t)
	s := load(t, b)
	const many = 2*store.PastStretch + 10
	end := func(i int) {
		guest := job.AttemptID{Job: job.ID{Origin: "beta", Generation: 1, Seq: uint64(i) + 1}, Number: 1} //nolint:gosec // Some thousands.
		apply(t, s, store.AcceptCopy{Attempt: guest, Request: job.Request{User: "bob", Processors: 1, Walltime: time.Minute}})
		apply(t, s, store.BeginAttempt{Attempt: guest})
		apply(t, s, store.EndAttempt{Attempt: guest, Outcome: job.Outcome{Kind: job.Loss}})
		apply(t, s, store.ForgetAttempt{Attempt: guest})
	}
	for i := range many {
		end(i)
	}
	commit(t, b, s)
	list := pastOf(t, b)
	if len(list) != many {
		t.Fatalf("%d of %d", len(list), many)
	}
	for i := range list {
		if list[i].Number != uint64(i)+1 || list[i].Learnt() { //nolint:gosec // Some thousands.
			t.Fatalf("record %d is %+v", i, list[i])
		}
	}
	s.KeepPast(many - 100)
	for i := range 100 {
		end(many + i)
	}
	commit(t, b, s)
	if list = pastOf(t, b); len(list) != many-100 || list[len(list)-1].Number != many+100 {
		t.Errorf("%d are left", len(list))
	}
	closed(t, b)
}
