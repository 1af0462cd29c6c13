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
	must(t, s, store.RecordOutcome{Attempt: a, Site: "beta", Outcome: o, Time: job.Time(time.Hour)})
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

// What a job has used is bounded by how long its claim was held, by the clock of its origin, whatever
// its host says of its times.
func TestRunIsBounded(t *testing.T) {
	t.Parallel()
	const minute = job.Time(time.Minute)
	for _, c := range []struct{ start, end, used job.Time }{
		{100 * minute, 105 * minute, 5 * minute},
		{100 * minute, 100_000 * minute, 10 * minute},
		{1, job.Never, 10 * minute},
		{100 * minute, 90 * minute, 0},
		{0, 90 * minute, 0}, // it did not start
	} {
		s := store.NewState("alpha", 1)
		a := job.AttemptID{Job: s.NextID(), Number: 1}
		must(t, s, store.SubmitJob{ID: a.Job, Request: job.Request{Processors: 1, Walltime: time.Hour, Checkpoint: true, Level: 1}},
			store.OpenAttempt{Attempt: a, Sites: []job.SiteID{"beta"}}, store.GrantClaim{Attempt: a, Site: "beta", Time: 20 * minute},
			store.RecordOutcome{Attempt: a, Site: "beta", Outcome: job.Outcome{Kind: job.Demoted, Start: c.start, End: c.end}, Time: 30 * minute},
			store.RequeueJob{Attempt: a, Site: "beta"})
		if j := s.Job(a.Job); j.Used() != time.Duration(c.used) || j.Before().Used != time.Duration(c.used) {
			t.Errorf("from %v to %v counts as %v, want %v", c.start, c.end, j.Used(), time.Duration(c.used))
		}
	}
}

// TestRecordSaved takes what an attempt saved while it ran, never in the place of what is as late, and goes on
// from it after a loss.
func TestRecordSaved(t *testing.T) {
	t.Parallel()
	const second = job.Time(time.Second)
	s := store.NewState("alpha", 1)
	a := job.AttemptID{Job: s.NextID(), Number: 1}
	must(t, s, store.SubmitJob{ID: a.Job, Request: job.Request{Processors: 1, Walltime: time.Hour, Checkpoint: true, SaveSeconds: 10, OnSiteLost: job.Rerun}})
	j := s.Job(a.Job)
	saved := func(a job.AttemptID, site job.SiteID, sequence uint64, want error) {
		t.Helper()
		before := j.Saved
		err := s.Apply(store.RecordSaved{Attempt: a, Site: site, Sequence: sequence, Ran: 30 * time.Second, Files: []byte{byte(sequence)}, Time: 20 * second})
		if !errors.Is(err, want) || want != nil && j.Saved != before {
			t.Errorf("%d: %v, %+v; want %v", sequence, err, j.Saved, want)
		}
	}
	begins := func(a job.AttemptID, at job.Time) {
		t.Helper()
		must(t, s, store.OpenAttempt{Attempt: a, Sites: []job.SiteID{"beta"}})
		must(t, s, store.GrantClaim{Attempt: a, Site: "beta", Time: at})
		saved(a, "beta", 9, store.ErrState) // it does not run yet
		must(t, s, store.RecordStart{Attempt: a, Site: "beta", Started: at})
	}
	begins(a, 10*second)
	s.TakeChanges()
	saved(a, "gamma", 3, store.ErrStale)
	saved(a, "beta", 3, nil)
	if files := s.TakeChanges().AttemptFiles; len(files) != 1 || files[0].Attempt != store.SavedFiles(a.Job) || files[0].Data[0] != 3 {
		t.Errorf("files %v", files)
	}
	saved(a, "beta", 3, store.ErrStale)
	saved(a, "beta", 2, store.ErrStale)
	if got := j.Resume(); got != (store.Resume{Attempt: 1, Sequence: 3, Early: true}) || j.StartedFrom() != 0 {
		t.Errorf("%+v, from %d", got, j.StartedFrom())
	}
	must(t, s, store.RevokeClaim{Attempt: a, Site: "beta", Reason: job.AttemptLost, Time: 30 * second})
	// It had the claim for 10 s, whatever its host says.
	want := store.Resume{Attempt: 1, Demotions: 1, Sequence: 3, Used: 10 * time.Second, Early: true}
	if got := j.Resume(); got != want || j.Begun() != 1 || j.DemotedFor(job.HostLost) != 1 || got.Files(a.Job) != store.SavedFiles(a.Job) {
		t.Errorf("%+v after %d attempts", got, j.Begun())
	}
	saved(a, "beta", 5, store.ErrStale)
	// The next one saves nothing that counts and is lost; then one that leaves a later checkpoint, and one an older.
	a.Number = 2
	begins(a, 40*second)
	must(t, s, store.RevokeClaim{Attempt: a, Site: "beta", Reason: job.AttemptLost, Time: 50 * second})
	if j.Resume() != want || j.Begun() != 2 || j.StartedFrom() != 3 {
		t.Errorf("%+v", j.Resume())
	}
	for i, sequence := range []uint64{7, 0} {
		a.Number = uint32(3 + i)
		begins(a, 60*second)
		must(t, s, store.RecordOutcome{Attempt: a, Site: "beta", Outcome: job.Outcome{Kind: job.Demoted, Files: []byte("left"), Checkpoint: sequence}})
		must(t, s, store.RequeueJob{Attempt: a, Site: "beta"})
		if r := j.Resume(); r.Attempt != 3 || r.Sequence != 7 || r.Early || r.Files(a.Job).Number != 3 {
			t.Errorf("%+v", r)
		}
	}
	a.Number = 5
	begins(a, 70*second)
	must(t, s, store.CancelJob{Job: a.Job})
	saved(a, "beta", 20, store.ErrState)
}
