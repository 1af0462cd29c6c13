package store_test

import (
	"errors"
	"testing"
	"time"

	"kith/internal/job"
	"kith/store"
	"kith/store/memstore"
)

// demoted returns a state with a job whose attempt was demoted, with what it left.
func demoted(t *testing.T, o job.Outcome) (*store.State, job.AttemptID) {
	t.Helper()
	s := store.NewState("alpha", 1)
	a := job.AttemptID{Job: s.NextID(), Number: 1}
	must(t, s, store.SubmitJob{ID: a.Job, Request: job.Request{Processors: 1, Walltime: time.Hour, Checkpoint: true}})
	begin(t, s, a, o)
	return s, a
}

// begin takes an attempt to its outcome.
func begin(t *testing.T, s *store.State, a job.AttemptID, o job.Outcome) {
	t.Helper()
	o.Kind = job.Demoted
	must(t, s, store.OpenAttempt{Attempt: a, Sites: []job.SiteID{"beta"}})
	must(t, s, store.GrantClaim{Attempt: a, Site: "beta"})
	must(t, s, store.RecordOutcome{Attempt: a, Site: "beta", Outcome: o})
}

func TestRequeueJob(t *testing.T) {
	t.Parallel()
	const second = job.Time(time.Second)
	s, a := demoted(t, job.Outcome{Start: second, End: 4 * second, Files: []byte("one"), Checkpoint: 3})
	j := s.Job(a.Job)
	if err := s.Apply(store.CloseJob{Job: a.Job}); !errors.Is(err, store.ErrState) {
		t.Errorf("closed: %v", err)
	}
	for what, c := range map[string]store.RequeueJob{
		"another site":    {Attempt: a, Site: "gamma"},
		"another attempt": {Attempt: job.AttemptID{Job: a.Job, Number: 2}, Site: "beta"},
	} {
		if err := s.Apply(c); !errors.Is(err, store.ErrStale) || j.State != job.Returning {
			t.Errorf("%s: %v, %v", what, err, j.State)
		}
	}
	must(t, s, store.RequeueJob{Attempt: a, Site: "beta"})
	if j.State != job.Pending || j.Outcome != nil || j.Holder != "" || j.Resume() != (store.Resume{Attempt: 1, Demotions: 1, Sequence: 3, Used: 3 * time.Second}) {
		t.Fatalf("%+v, %+v", j, j.Resume())
	}
	if err := s.Apply(store.RequeueJob{Attempt: a, Site: "beta"}); !errors.Is(err, store.ErrStale) || len(j.Demotions) != 1 {
		t.Errorf("twice: %v", err)
	}

	// An older checkpoint, one that did not come home and one without files never take the
	// place of a newer one.
	for i, o := range []job.Outcome{
		{Files: []byte("two"), Checkpoint: 2}, {Files: []byte("two"), Checkpoint: 3}, {Files: []byte("two")}, {Checkpoint: 9},
		{Files: []byte("lost"), Checkpoint: 8},
	} {
		o.Start, o.End = 10*second, 11*second
		a.Number++
		begin(t, s, a, o)
		c := store.RequeueJob{Attempt: a, Site: "beta"}
		if o.Checkpoint == 8 {
			c.FilesError = "it is gone"
		}
		must(t, s, c)
		if r := j.Resume(); r.Attempt != 1 || r.Sequence != 3 || r.Used != time.Duration(4+i)*time.Second || int(r.Demotions) != i+2 {
			t.Errorf("after %+v it goes on from %+v", o, r)
		}
	}
	a.Number++
	begin(t, s, a, job.Outcome{Start: second, End: 0, Files: []byte("new"), Checkpoint: 4})
	must(t, s, store.RequeueJob{Attempt: a, Site: "beta"})
	if r := j.Resume(); r.Attempt != a.Number || r.Sequence != 4 || r.Used != 8*time.Second {
		t.Errorf("it goes on from %+v", r)
	}

	var disk memstore.Disk
	b, err := memstore.Open(&disk, "alpha", 1)
	if err != nil {
		t.Fatal(err)
	}
	if err := b.Seal(s).Commit(); err != nil {
		t.Fatal(err)
	}
	for number, want := range map[uint32]string{1: "one", 2: "two", 5: "", 6: "", 7: "new"} {
		if got, err := b.AttemptFiles(job.AttemptID{Job: a.Job, Number: number}); string(got) != want || err != nil {
			t.Errorf("attempt %d left %q, %v", number, got, err)
		}
	}
	again, err := b.Load()
	if err != nil {
		t.Fatal(err)
	}
	if got := again.Job(a.Job); got.Resume() != j.Resume() || len(got.Demotions) != len(j.Demotions) || got.Demotions[4] != j.Demotions[4] {
		t.Errorf("read again it goes on from %+v: %+v", got.Resume(), got.Demotions)
	}
	must(t, s, store.CancelJob{Job: a.Job})
	must(t, s, store.PurgeJob{Job: a.Job})
	if err := b.Seal(s).Commit(); err != nil {
		t.Fatal(err)
	}
	if got, err := b.AttemptFiles(job.AttemptID{Job: a.Job, Number: 1}); got != nil || err != nil {
		t.Errorf("of a job that is forgotten %q is left, %v", got, err)
	}
}

// A job that was to be cancelled meanwhile ends so, with what its attempt left.
func TestRequeueCancelled(t *testing.T) {
	t.Parallel()
	s, a := demoted(t, job.Outcome{Start: 1, End: 2, Files: []byte("one"), Checkpoint: 3})
	must(t, s, store.CancelJob{Job: a.Job, Actor: "ada"})
	must(t, s, store.RequeueJob{Attempt: a, Site: "beta", Time: 9})
	if j := s.Job(a.Job); j.State != job.Cancelled || j.Outcome == nil || j.Outcome.Kind != job.Cancel || j.Closed != 9 || len(j.Demotions) != 0 {
		t.Errorf("%+v", j)
	}
}

// Not more than so many attempts are ever counted.
func TestRequeueIsBounded(t *testing.T) {
	t.Parallel()
	s, a := demoted(t, job.Outcome{})
	for ; a.Number <= job.MaxAttempts; a.Number++ {
		must(t, s, store.RequeueJob{Attempt: a, Site: "beta"})
		next := a
		next.Number++
		begin(t, s, next, job.Outcome{})
	}
	if err := s.Apply(store.RequeueJob{Attempt: a, Site: "beta"}); !errors.Is(err, store.ErrState) || len(s.Job(a.Job).Demotions) != job.MaxAttempts {
		t.Errorf("demoted %d times: %v", a.Number, err)
	}
}

// What is not demoted does not go on.
func TestRequeueNeedsADemotion(t *testing.T) {
	t.Parallel()
	s := store.NewState("alpha", 1)
	a := job.AttemptID{Job: s.NextID(), Number: 1}
	must(t, s, store.SubmitJob{ID: a.Job, Request: job.Request{Processors: 1, Walltime: time.Hour, Checkpoint: true}})
	must(t, s, store.OpenAttempt{Attempt: a, Sites: []job.SiteID{"beta"}})
	must(t, s, store.GrantClaim{Attempt: a, Site: "beta"})
	for _, kind := range []job.OutcomeKind{job.NoOutcome, job.Success, job.Failure, job.Timeout, job.Cancel, job.Loss} {
		if kind == job.Success {
			must(t, s, store.RecordOutcome{Attempt: a, Site: "beta", Outcome: job.Outcome{Kind: kind}})
		} else if kind != job.NoOutcome {
			s.Job(a.Job).Outcome.Kind = kind
		}
		if err := s.Apply(store.RequeueJob{Attempt: a, Site: "beta"}); !errors.Is(err, store.ErrState) {
			t.Errorf("kind %d: %v", kind, err)
		}
	}
}
