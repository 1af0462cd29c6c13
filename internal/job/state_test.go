package job

import (
	"errors"
	"strings"
	"testing"
	"time"
)

// lifeCycle repeats the transition table in words, so that a slip in either is
// seen. Every pair that is not named here must be impossible.
const lifeCycle = `
PENDING    place           QUEUED
PENDING    hold            HELD
PENDING    request cancel  CANCELLED
PENDING    outrace         RETURNING
PENDING    block           BLOCKED
BLOCKED    unblock         PENDING
BLOCKED    hold            HELD
BLOCKED    request cancel  CANCELLED
BLOCKED    refuse          CANCELLED
HELD       release         PENDING
HELD       request cancel  CANCELLED
HELD       outrace         RETURNING
HELD       refuse          CANCELLED
QUEUED     unplace         PENDING
QUEUED     hold            HELD
QUEUED     grant           CLAIMED
QUEUED     request cancel  CANCELLED
QUEUED     outrace         RETURNING
CLAIMED    give back       PENDING
CLAIMED    begin           RUNNING
CLAIMED    request cancel  CANCELLING
CLAIMED    finish          RETURNING
CLAIMED    revoke          PENDING
CLAIMED    outrace         RETURNING
RUNNING    request cancel  CANCELLING
RUNNING    finish          RETURNING
RUNNING    revoke          PENDING
RUNNING    outrace         RETURNING
CANCELLING begin           CANCELLING
CANCELLING give back       CANCELLED
CANCELLING request cancel  CANCELLING
CANCELLING finish          RETURNING
CANCELLING revoke          CANCELLED
CANCELLING outrace         RETURNING
RETURNING  request cancel  RETURNING
RETURNING  revoke          PENDING
RETURNING  requeue         PENDING
RETURNING  close: success  COMPLETED
RETURNING  close: failure  FAILED
RETURNING  close: timeout  TIMEOUT
RETURNING  close: cancel   CANCELLED
RETURNING  close: loss     LOST
`

func TestLifeCycleExhaustively(t *testing.T) {
	checkTable(t, lifeCycle, State(stateCount), eventCount, State.Next)
}

// checkTable compares a transition table with what a text says of it: a state, an event and
// the next state a line. Every pair that the text does not name must be impossible, also with
// numbers beyond the last state and event.
func checkTable[S, E interface {
	~uint8
	String() string
}](t *testing.T, text string, states S, events E, next func(S, E) (S, bool),
) {
	t.Helper()
	want := map[string]string{}
	for line := range strings.Lines(strings.TrimSpace(text)) {
		f := strings.Fields(line)
		want[f[0]+"/"+strings.Join(f[1:len(f)-1], " ")] = f[len(f)-1]
	}
	seen := 0
	for s := range states + 2 {
		for ev := range events + 2 {
			to, ok := next(s, ev)
			target, possible := want[s.String()+"/"+ev.String()]
			switch {
			case ok != possible:
				t.Errorf("%v + %v possible: %v, want %v", s, ev, ok, possible)
			case ok && to.String() != target:
				t.Errorf("%v + %v = %v, want %s", s, ev, to, target)
			case !ok && to != s:
				t.Errorf("%v + %v is impossible but moves to %v", s, ev, to)
			case ok:
				seen++
			}
		}
	}
	if seen != len(want) {
		t.Errorf("%d transitions, want %d", seen, len(want))
	}
}

func TestLifeCycleEnds(t *testing.T) {
	// From every state an end can be reached, and nothing leaves an end.
	reaches := map[State]bool{}
	for s := Completed; s <= Lost; s++ {
		reaches[s] = true
		for ev := range Event(eventCount) { //nolint:unconvert // it gives ev its type
			if to, ok := s.Next(ev); ok {
				t.Errorf("%v is an end but %v leads to %v", s, ev, to)
			}
		}
	}
	for range stateCount {
		for s := range State(stateCount) {
			for ev := range Event(eventCount) { //nolint:unconvert // it gives ev its type
				if to, ok := s.Next(ev); ok && reaches[to] {
					reaches[s] = true
				}
			}
		}
	}
	for s := Pending; s < stateCount; s++ {
		if !reaches[s] {
			t.Errorf("no end can be reached from %v", s)
		}
		if s.Terminal() != (s >= Completed && s != Blocked) {
			t.Errorf("%v.Terminal() = %v", s, s.Terminal())
		}
	}
}

func TestClaimFollowsState(t *testing.T) {
	want := map[State]ClaimState{
		Pending: ClaimNone, OnHold: ClaimNone, Blocked: ClaimNone, Queued: ClaimOpen,
		Claimed: ClaimTaken, Running: ClaimTaken, Cancelling: ClaimTaken, Returning: ClaimTaken,
		Completed: ClaimClosed, Failed: ClaimClosed, TimedOut: ClaimClosed, Cancelled: ClaimClosed, Lost: ClaimClosed,
	}
	for s := Pending; s < stateCount; s++ {
		if s.Claim() != want[s] {
			t.Errorf("%v.Claim() = %v, want %v", s, s.Claim(), want[s])
		}
	}
}

func TestEveryOutcomeCloses(t *testing.T) {
	for kind, want := range map[OutcomeKind]State{
		Success: Completed, Failure: Failed, Timeout: TimedOut, Cancel: Cancelled, Loss: Lost,
	} {
		if got, ok := Returning.Next(kind.Event()); !ok || got != want {
			t.Errorf("outcome %d closes as %v, %v; want %v", kind, got, ok, want)
		}
	}
}

func TestRequestValidate(t *testing.T) {
	good := Request{Name: "x", Processors: 1, Walltime: time.Second}
	if err := good.Validate(); err != nil {
		t.Fatalf("a good request: %v", err)
	}
	for name, c := range map[string]struct {
		break_ func(*Request)
		want   error
	}{
		"no processors":       {func(r *Request) { r.Processors = 0 }, errProcessors},
		"negative processors": {func(r *Request) { r.Processors = -3 }, errProcessors},
		"absurd processors":   {func(r *Request) { r.Processors = MaxProcessors + 1 }, errProcessors},
		"no walltime":         {func(r *Request) { r.Walltime = 0 }, errWalltime},
		"negative walltime":   {func(r *Request) { r.Walltime = -time.Second }, errWalltime},
		"absurd walltime":     {func(r *Request) { r.Walltime = MaxWalltime + 1 }, errWalltime},
		"negative copies":     {func(r *Request) { r.Copies = -1 }, errCopies},
		"absurd copies":       {func(r *Request) { r.Copies = MaxCopies + 1 }, errCopies},
		"negative memory":     {func(r *Request) { r.MemoryBytes = -1 }, errMemory},
		"long name":           {func(r *Request) { r.Name = strings.Repeat("n", MaxNameLength+1) }, errName},
	} {
		t.Run(name, func(t *testing.T) {
			r := good
			c.break_(&r)
			if err := r.Validate(); !errors.Is(err, c.want) {
				t.Errorf("Validate() = %v, want %v", err, c.want)
			}
		})
	}
	var all Request
	all.Processors, all.Walltime, all.Copies = -1, -1, -1
	err := all.Validate()
	for _, want := range []error{errProcessors, errWalltime, errCopies} {
		if !errors.Is(err, want) {
			t.Errorf("Validate() = %v does not name %v", err, want)
		}
	}
}

func TestEveryReasonHasWords(t *testing.T) {
	seen := map[string]bool{}
	for r := NoReason + 1; r < reasonCount; r++ {
		if r.String() == "" || r.Sentence() == "" || seen[r.String()] {
			t.Errorf("reason %d: word %q, sentence %q", r, r.String(), r.Sentence())
		}
		seen[r.String()] = true
	}
	if Reason(200).String() != "reason-200" || !strings.Contains(Reason(200).Sentence(), "200") {
		t.Error("a reason of a later version must still print")
	}
}
