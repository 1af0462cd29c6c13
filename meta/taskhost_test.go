package meta

import (
	"slices"
	"testing"
	"time"

	"kith/internal/job"
	"kith/meta/bags"
	"kith/store"
)

// What a bag is told of the errors of a task is of those that failed; one that was not
// started says why.
func TestErrorLineOfAResult(t *testing.T) {
	for _, test := range []struct {
		o    job.Outcome
		want string
	}{
		{job.Outcome{Kind: job.Failure, Start: 1, ErrorLine: "no such file", Reason: "exit code 3"}, "no such file"},
		{job.Outcome{Kind: job.Failure, Start: 1, Reason: "exit code 3"}, ""},
		{job.Outcome{Kind: job.Timeout, Start: 1, ErrorLine: "step 7"}, "step 7"},
		{job.Outcome{Kind: job.Failure, Reason: "not started:\n\x1b[1mno such command"}, "no such command"},
		{job.Outcome{Kind: job.Success, Start: 1, ErrorLine: "well"}, ""},
		{job.Outcome{Kind: job.Cancel, Reason: "cancelled"}, ""},
		{job.Outcome{Kind: job.Loss, Reason: "lost"}, ""},
	} {
		r := resultOf(7, &test.o)
		if err := r.Validate(); err != nil || r.ErrorLine != test.want {
			t.Errorf("%+v: %q, %v; want %q", test.o, r.ErrorLine, err, test.want)
		}
	}
}

// While a claim for tasks waits for its answer, what it gets may be on its way: a host does
// not say that it lacks it, neither in a list nor when it is to stop it.
func TestHostSaysNothingOfWhatIsOnItsWay(t *testing.T) {
	e := siteOf(t, store.NewState("alpha", 1), 2, nil)
	step := func(m Message) []Effect {
		out := slices.Clone(e.Step(2, Receive{From: "beta", Message: m}))
		return append(out, e.Step(2, Pass{})...)
	}
	e.Step(2, PeerUp{Site: "beta", Generation: 1})
	shape := bags.ShapeOf(&job.Request{Processors: 1, Walltime: time.Minute})
	var claim uint64
	for _, f := range step(Offer{Shape: shape, Tasks: 9}) {
		if s, ok := f.(Send); ok {
			if m, ok := s.Message.(TaskClaim); ok {
				claim = m.Stamp
			}
		}
	}
	if claim == 0 {
		t.Fatal("no claim for what is offered")
	}
	says := func() (list uint64, lacks bool) {
		for _, f := range append(step(DigestRequest{}), step(StopTasks{Bundle: job.AttemptID{Job: job.ID{Origin: "beta", Generation: 1, Seq: 1}, Number: 1}})...) {
			if s, ok := f.(Send); ok {
				switch m := s.Message.(type) {
				case CopyDigest:
					list = m.Stamp
				case GiveBack:
					lacks = true
				}
			}
		}
		return list, lacks
	}
	if list, lacks := says(); list >= claim || lacks {
		t.Errorf("claim %d has no answer: the list is as of %d, and it says that it lacks the bundle: %v", claim, list, lacks)
	}
	step(TaskVerdict{Stamp: claim, Sent: 2})
	if list, lacks := says(); list <= claim || !lacks {
		t.Errorf("claim %d has its answer: the list is as of %d, and it says that it lacks the bundle: %v", claim, list, lacks)
	}
}
