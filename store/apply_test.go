package store_test

import (
	"bytes"
	"errors"
	"math/rand/v2"
	"testing"
	"time"

	"kith/internal/job"
	"kith/store"
	"kith/store/codec"
	"kith/store/storetest"
)

func must(t *testing.T, s *store.State, commands ...store.Command) {
	t.Helper()
	for _, c := range commands {
		if err := s.Apply(c); err != nil {
			t.Fatalf("%#v: %v", c, err)
		}
	}
}

func refused(t *testing.T, s *store.State, c store.Command, want error) {
	t.Helper()
	before := codec.Dump(s)
	if err := s.Apply(c); !errors.Is(err, want) {
		t.Errorf("%#v: %v, want %v", c, err, want)
	}
	if !bytes.Equal(codec.Dump(s), before) {
		t.Errorf("%#v failed and changed the state", c)
	}
}

// opened returns a state with one job whose attempt 1 is open at alpha and beta.
func opened(t *testing.T) (*store.State, job.AttemptID) {
	s := store.NewState("alpha", 9)
	id := s.NextID()
	a := job.AttemptID{Job: id, Number: 1}
	must(t, s,
		store.SubmitJob{ID: id, RequestID: "r1", Request: job.Request{Processors: 1, Walltime: time.Hour}, Time: 10},
		store.OpenAttempt{Attempt: a, Sites: []job.SiteID{"alpha", "beta"}, Time: 11})
	return s, a
}

func TestGrantIsASemaphore(t *testing.T) {
	s, a := opened(t)
	stale, future := a, a
	stale.Number, future.Number = 0, 2
	refused(t, s, store.GrantClaim{Attempt: stale, Site: "beta"}, store.ErrStale)
	refused(t, s, store.GrantClaim{Attempt: future, Site: "beta"}, store.ErrStale)
	refused(t, s, store.GrantClaim{Attempt: a, Site: "gamma"}, store.ErrNoCopy)
	must(t, s, store.GrantClaim{Attempt: a, Site: "beta", Stamp: 5, Time: 12})
	if j := s.Job(a.Job); j.State != job.Claimed || j.Holder != "beta" || j.HolderStamp != 5 {
		t.Fatalf("granted: %+v", j)
	}
	refused(t, s, store.GrantClaim{Attempt: a, Site: "alpha"}, store.ErrTaken)
	before := codec.Dump(s)
	must(t, s, store.GrantClaim{Attempt: a, Site: "beta", Stamp: 6, Time: 99}) // the same answer, and no trace
	if !bytes.Equal(codec.Dump(s), before) {
		t.Error("a repeated claim changed the state")
	}
	refused(t, s, store.GrantClaim{Attempt: job.AttemptID{Job: job.ID{Origin: "alpha", Generation: 9, Seq: 77}, Number: 1}, Site: "beta"}, store.ErrUnknown)
}

func TestOutcomeIsRecordedOnce(t *testing.T) {
	s, a := opened(t)
	done := store.RecordOutcome{Attempt: a, Site: "beta", Outcome: job.Outcome{Kind: job.Success, Start: 20, End: 30}, Time: 31}
	refused(t, s, done, store.ErrStale) // beta holds no claim
	must(t, s, store.GrantClaim{Attempt: a, Site: "beta"}, done)
	other := done
	other.Outcome = job.Outcome{Kind: job.Failure, ExitCode: 1}
	must(t, s, other) // acknowledged again, but the first stays
	foreign := done
	foreign.Site = "alpha"
	refused(t, s, foreign, store.ErrStale)
	must(t, s, store.CloseJob{Job: a.Job, Time: 40})
	j := s.Job(a.Job)
	if j.State != job.Completed || j.Outcome.Kind != job.Success || j.Started != 20 || j.Closed != 40 {
		t.Errorf("closed: %+v %+v", j, j.Outcome)
	}
	refused(t, s, store.CloseJob{Job: a.Job}, store.ErrState)
	refused(t, s, store.GrantClaim{Attempt: a, Site: "alpha"}, store.ErrState)
	refused(t, s, store.CancelJob{Job: a.Job}, store.ErrState)
	refused(t, s, store.OpenAttempt{Attempt: job.AttemptID{Job: a.Job, Number: 2}, Sites: []job.SiteID{"alpha"}}, store.ErrState)
}

func TestHoldFencesTheOldAttempt(t *testing.T) {
	s, a := opened(t)
	must(t, s, store.HoldJob{Job: a.Job})
	refused(t, s, store.GrantClaim{Attempt: a, Site: "beta"}, store.ErrState)
	must(t, s, store.ReleaseJob{Job: a.Job})
	refused(t, s, store.OpenAttempt{Attempt: a, Sites: []job.SiteID{"alpha"}}, store.ErrStale) // the number is used up
	next := job.AttemptID{Job: a.Job, Number: 2}
	must(t, s, store.OpenAttempt{Attempt: next, Sites: []job.SiteID{"beta"}})
	refused(t, s, store.GrantClaim{Attempt: a, Site: "beta"}, store.ErrStale)
	must(t, s, store.GrantClaim{Attempt: next, Site: "beta"})
	refused(t, s, store.HoldJob{Job: a.Job}, store.ErrState)
}

func TestMoveCopy(t *testing.T) {
	s, a := opened(t)
	refused(t, s, store.MoveCopy{Attempt: a, From: "gamma", To: "delta"}, store.ErrNoCopy)
	refused(t, s, store.MoveCopy{Attempt: a, From: "beta", To: "alpha"}, store.ErrExists)
	must(t, s, store.MoveCopy{Attempt: a, From: "beta", To: "gamma", Kind: store.CopyReplaced, Reason: job.Vanished})
	refused(t, s, store.GrantClaim{Attempt: a, Site: "beta"}, store.ErrNoCopy)
	must(t, s, store.MoveCopy{Attempt: a, From: "alpha", Kind: store.CopyReturned})
	refused(t, s, store.MoveCopy{Attempt: a, From: "gamma", Kind: store.CopyReturned}, store.ErrState) // that is UnplaceJob
	must(t, s, store.UnplaceJob{Attempt: a})
	if j := s.Job(a.Job); j.State != job.Pending || len(j.Sites) != 0 {
		t.Errorf("unplaced: %+v", j)
	}
}

func TestAddCopy(t *testing.T) {
	s, a := opened(t)
	refused(t, s, store.AddCopy{Attempt: a, Site: "beta"}, store.ErrExists)
	must(t, s, store.AddCopy{Attempt: a, Site: "gamma"}, store.GrantClaim{Attempt: a, Site: "gamma"})
	refused(t, s, store.AddCopy{Attempt: a, Site: "delta"}, store.ErrState)
}

func TestRequestIDs(t *testing.T) {
	s, a := opened(t)
	if j := s.JobOfRequest("r1"); j == nil || j.ID != a.Job {
		t.Errorf("job of request r1: %v", j)
	}
	refused(t, s, store.SubmitJob{ID: s.NextID(), RequestID: "r1"}, store.ErrExists)
	refused(t, s, store.SubmitJob{ID: a.Job, RequestID: "r2"}, store.ErrStale)
	refused(t, s, store.PurgeJob{Job: a.Job}, store.ErrState)
	must(t, s, store.CancelJob{Job: a.Job, Time: 5}, store.PurgeJob{Job: a.Job})
	if s.JobOfRequest("r1") != nil || s.JobOfRequest("") != nil {
		t.Error("a purged job still answers to its request id")
	}
}

func TestCopyPhases(t *testing.T) {
	s := store.NewState("alpha", 9)
	a := job.AttemptID{Job: job.ID{Origin: "beta", Generation: 1, Seq: 1}, Number: 1}
	refused(t, s, store.BeginAttempt{Attempt: a}, store.ErrUnknown)
	refused(t, s, store.AcceptCopy{Attempt: job.AttemptID{Job: a.Job}}, store.ErrStale)
	must(t, s, store.AcceptCopy{Attempt: a, Time: 3})
	refused(t, s, store.AcceptCopy{Attempt: a}, store.ErrExists)
	refused(t, s, store.EndAttempt{Attempt: a}, store.ErrState)
	refused(t, s, store.ForgetAttempt{Attempt: a}, store.ErrState)
	must(t, s, store.BeginAttempt{Attempt: a, BootID: "b", Time: 4})
	refused(t, s, store.BeginAttempt{Attempt: a}, store.ErrState) // exactly one start
	must(t, s, store.RequeueCopy{Attempt: a})
	refused(t, s, store.RequeueCopy{Attempt: a}, store.ErrState)
	must(t, s, store.BeginAttempt{Attempt: a, BootID: "b", Time: 4})
	refused(t, s, store.DropCopy{Attempt: a}, store.ErrState)
	must(t, s, store.EndAttempt{Attempt: a, Outcome: job.Outcome{Kind: job.Success}})
	refused(t, s, store.EndAttempt{Attempt: a, Outcome: job.Outcome{Kind: job.Failure}}, store.ErrState)
	must(t, s, store.ForgetAttempt{Attempt: a})
	if s.CopyCount() != 0 {
		t.Error("a forgotten attempt is still there")
	}
}

// S1 and S3 of the design over random walks: one grant per attempt, one
// outcome per job, nothing moves once closed, and a command that fails leaves
// no trace.
func TestInvariantsOnRandomWalks(t *testing.T) {
	for seed := range uint64(8) {
		rng := rand.New(rand.NewPCG(seed, 0))
		s := store.NewState("alpha", 9)
		granted := map[job.AttemptID]job.SiteID{}
		ended := map[job.ID]job.State{}
		for step := range 3000 {
			c := storetest.Walk(rng, s)
			var before []byte
			if step%20 == 0 {
				before = codec.Dump(s)
			}
			if err := s.Apply(c); err != nil {
				if before != nil && !bytes.Equal(before, codec.Dump(s)) {
					t.Fatalf("seed %d, step %d: %#v failed and changed the state", seed, step, c)
				}
				continue
			}
			if g, ok := c.(store.GrantClaim); ok {
				if holder, again := granted[g.Attempt]; again && holder != g.Site {
					t.Fatalf("seed %d: S1: attempt %v granted to %s and to %s", seed, g.Attempt, holder, g.Site)
				}
				granted[g.Attempt] = g.Site
			}
			for j := range s.Jobs(job.ID{}) {
				if was, ok := ended[j.ID]; ok && was != j.State {
					t.Fatalf("seed %d: S3: job %v was %v, is %v after %#v", seed, j.ID, was, j.State, c)
				}
				if j.State.Terminal() {
					ended[j.ID] = j.State
				}
			}
		}
		if err := s.Check(); err != nil {
			t.Errorf("seed %d: %v", seed, err)
		}
		if len(granted) < 10 || len(ended) < 5 {
			t.Errorf("seed %d: the walk saw only %d grants and %d ends", seed, len(granted), len(ended))
		}
	}
}

func TestJobsInOrder(t *testing.T) {
	s := store.NewState("alpha", 9)
	var ids []job.ID
	for range 3000 {
		id := s.NextID()
		ids = append(ids, id)
		must(t, s, store.SubmitJob{ID: id}, store.CancelJob{Job: id})
		if id.Seq%3 != 0 {
			must(t, s, store.PurgeJob{Job: id}) // also makes the list compact itself
		}
	}
	var got []job.ID
	for j := range s.Jobs(job.ID{}) {
		got = append(got, j.ID)
	}
	if len(got) != 1000 || s.JobCount() != 1000 {
		t.Fatalf("%d jobs listed, %d counted, want 1000", len(got), s.JobCount())
	}
	for i, id := range got {
		if id != ids[3*i+2] {
			t.Fatalf("job %d of the list is %v, want %v", i, id, ids[3*i+2])
		}
	}
	for after, want := range map[int]int{0: 3, 2: 6, 3: 6, 2999: 0} { // purged ones too are places to go on from
		var next uint64
		for j := range s.Jobs(ids[after]) {
			next = j.ID.Seq
			break
		}
		if next != uint64(want) {
			t.Errorf("after %v comes %d, want %d", ids[after], next, want)
		}
	}
}

func TestClaimEventsAreBounded(t *testing.T) {
	s, a := opened(t)
	for i := range 100 {
		must(t, s, store.NoteClaim{Job: a.Job, Event: store.ClaimEvent{Time: job.Time(i), Attempt: 1, Kind: store.ClaimDenied}})
	}
	events := s.Job(a.Job).Events
	if len(events) != store.MaxClaimEvents || events[0].Kind != store.ClaimOpened || events[len(events)-1].Time != 99 {
		t.Errorf("%d events, first %+v, last %+v", len(events), events[0], events[len(events)-1])
	}
}

func TestFilesErrorExplains(t *testing.T) {
	s, a := opened(t)
	must(t, s, store.GrantClaim{Attempt: a, Site: "beta"},
		store.RecordOutcome{Attempt: a, Site: "beta", Outcome: job.Outcome{Kind: job.Failure, ExitCode: 3, Reason: "exit code 3", FilesRemain: true}},
		store.CloseJob{Job: a.Job, FilesError: "output lost: beta did not answer"})
	if o := s.Job(a.Job).Outcome; o.Reason != "exit code 3; output lost: beta did not answer" || !o.FilesRemain {
		t.Errorf("outcome %+v", o)
	}
}
