package store_test

import (
	"testing"
	"time"

	"kith/internal/job"
	"kith/store"
	"kith/store/memstore"
)

// Which ends say something about run times, and what does not: it is kept all the same.
func TestWhatIsLearntFrom(t *testing.T) {
	for kind, want := range map[job.OutcomeKind]bool{
		job.Success: true, job.Failure: true, job.Timeout: true, job.Cancel: false, job.Loss: false, job.NoOutcome: false,
	} {
		if p := (store.Past{Kind: kind, Started: 1}); p.Learnt() != want {
			t.Errorf("kind %d: %v", kind, p.Learnt())
		}
	}
	if p := (store.Past{Kind: job.Failure}); p.Learnt() {
		t.Error("what never started has a run time")
	}
}

// Of a job that runs where it was submitted one record is left; what was refused leaves none.
func TestPastIsRememberedOnce(t *testing.T) {
	s := store.NewState("alpha", 1)
	id := s.NextID()
	a := job.AttemptID{Job: id, Number: 1}
	r := job.Request{User: "ada", Processors: 1, Walltime: time.Hour}
	outcome := job.Outcome{Kind: job.Timeout, Start: 5, End: 5 + job.Time(time.Hour)}
	must(t, s, store.SubmitJob{ID: id, Request: r, Time: 3})
	must(t, s, store.OpenAttempt{Attempt: a, Sites: []job.SiteID{"alpha"}})
	must(t, s, store.AcceptCopy{Attempt: a, Request: r})
	must(t, s, store.GrantClaim{Attempt: a, Site: "alpha"})
	must(t, s, store.BeginAttempt{Attempt: a})
	must(t, s, store.EndAttempt{Attempt: a, Outcome: outcome})
	refused(t, s, store.CloseJob{Job: id}, store.ErrState)
	must(t, s, store.RecordOutcome{Attempt: a, Site: "alpha", Outcome: outcome})
	must(t, s, store.CloseJob{Job: id})
	refused(t, s, store.CloseJob{Job: id}, store.ErrState)
	must(t, s, store.ForgetAttempt{Attempt: a})
	c := s.TakeChanges()
	if len(c.Past) != 1 || c.Past[0].Run != time.Hour || c.Past[0].Submitted != 3 || c.Past[0].Kind != job.Timeout {
		t.Errorf("%+v", c.Past)
	}
	if first, next := s.PastNumbers(); first != 1 || next != 2 {
		t.Errorf("numbers %d to %d", first, next)
	}
}

// A clock that was set back while it ran makes no run time.
func TestPastOfAClockSetBack(t *testing.T) {
	s := store.NewState("alpha", 1)
	guest := job.AttemptID{Job: job.ID{Origin: "beta", Generation: 1, Seq: 1}, Number: 1}
	must(t, s, store.AcceptCopy{Attempt: guest, Request: job.Request{Processors: 1, Walltime: time.Hour}})
	must(t, s, store.BeginAttempt{Attempt: guest})
	must(t, s, store.EndAttempt{Attempt: guest, Outcome: job.Outcome{Kind: job.Success, Start: 100, End: 50}})
	must(t, s, store.ForgetAttempt{Attempt: guest, Speed: 1e-9})
	if c := s.TakeChanges(); len(c.Past) != 1 || c.Past[0].Run != 0 {
		t.Errorf("%+v", c.Past)
	}
}

// A job that was cancelled while copies of it waited is remembered, one that never had any is
// not; what it was blocked for is known by then.
func TestPastOfAJobCancelledWhileItWaits(t *testing.T) {
	s := store.NewState("alpha", 1)
	r := job.Request{User: "ada", Processors: 1, Walltime: time.Hour}
	first := s.NextID()
	must(t, s, store.SubmitJob{ID: first, Request: r, Time: 3})
	must(t, s, store.CancelJob{Job: first, Time: 4})
	second := s.NextID()
	must(t, s, store.SubmitJob{ID: second, Request: r, Time: 5})
	must(t, s, store.OpenAttempt{Attempt: job.AttemptID{Job: second, Number: 1}, Sites: []job.SiteID{"alpha"}})
	refused(t, s, store.NoteHarm{Job: second, Harm: store.Harm{Blocked: -1}}, store.ErrBounds)
	refused(t, s, store.NoteHarm{Job: s.NextID()}, store.ErrUnknown)
	must(t, s, store.NoteHarm{Job: second, Harm: store.Harm{Blocked: time.Minute}})
	must(t, s, store.CancelJob{Job: second, Time: 9})
	c := s.TakeChanges()
	if len(c.Past) != 1 {
		t.Fatalf("%+v", c.Past)
	}
	if p := c.Past[0]; p.Site != "" || p.Submitted != 5 || p.Ended != 9 || p.Started != 0 || p.Kind != job.Cancel || p.Harm.Blocked != time.Minute || p.Learnt() {
		t.Errorf("%+v", p)
	}
}

// Of a job that went on from checkpoints it is remembered how long those attempts ran whose work it went on
// with, on a processor of speed 1. What one did that left none, or an older one, was done again.
func TestPastOfAJobThatWentOn(t *testing.T) {
	const second = job.Time(time.Second)
	for name, c := range map[string]struct {
		left []uint64 // checkpoints, of attempts of 10, 20, 30 ... s, at speeds 1, 2, 3 ...
		want time.Duration
	}{
		"none":                  {nil, 0},
		"each leaves a later":   {[]uint64{1, 2, 5}, (10 + 40 + 90) * time.Second},
		"one leaves nothing":    {[]uint64{1, 0, 5}, (10 + 90) * time.Second},
		"one leaves an older":   {[]uint64{4, 3, 5}, (10 + 90) * time.Second},
		"one leaves the same":   {[]uint64{4, 4}, 10 * time.Second},
		"nothing is ever saved": {[]uint64{0, 0}, 0},
	} {
		var disk memstore.Disk
		b, err := memstore.Open(&disk, "alpha", 1)
		if err != nil {
			t.Fatal(err)
		}
		s, err := b.Load()
		if err != nil {
			t.Fatal(err)
		}
		a := job.AttemptID{Job: s.NextID(), Number: 1}
		must(t, s, store.SubmitJob{ID: a.Job, Request: job.Request{Processors: 1, Walltime: time.Hour, Checkpoint: true}})
		for i, sequence := range c.left {
			o := job.Outcome{Start: second, End: second.Add(time.Duration(10*(i+1)) * time.Second), Checkpoint: sequence}
			if sequence > 0 {
				o.Files = []byte("left")
			}
			begin(t, s, a, o)
			must(t, s, store.RequeueJob{Attempt: a, Site: "beta", Speed: float64(i + 1)})
			a.Number++
		}
		last := job.Outcome{Kind: job.Success, Start: second, End: 6 * second}
		must(t, s, store.OpenAttempt{Attempt: a, Sites: []job.SiteID{"beta"}})
		must(t, s, store.GrantClaim{Attempt: a, Site: "beta"})
		must(t, s, store.RecordOutcome{Attempt: a, Site: "beta", Outcome: last, Time: job.Time(time.Hour)})
		must(t, s, store.CloseJob{Job: a.Job, Speed: 1})
		if err := b.Seal(s).Commit(); err != nil {
			t.Fatal(err)
		}
		p, err := b.Past(1)
		if err != nil || len(p) != 1 || p[0].Run != 5*time.Second || p[0].Before != c.want {
			t.Errorf("%s: %+v, %v", name, p, err)
		}
	}
}
