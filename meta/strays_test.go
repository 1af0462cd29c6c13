package meta

import (
	"testing"
	"time"

	"kith/internal/job"
)

// A host that lists copies which it was never given is asked for a bounded number of
// them, and for the next ones when it has answered.
func TestInventedCopiesAreBounded(t *testing.T) {
	h := newSilentHost(t, 1)
	const page = 1 << 14
	var next uint64
	list := func(begun bool) (asked []job.AttemptID) {
		m := CopyDigest{Stamp: 1, Entries: make([]DigestEntry, page)}
		for i := range m.Entries {
			next++
			m.Entries[i] = DigestEntry{Attempt: job.AttemptID{Job: job.ID{Origin: "beta", Generation: 1, Seq: next}, Number: 1}, Begun: begun}
		}
		for _, e := range h.Step(h.now, Receive{From: "alpha", Message: m}) {
			if s, ok := e.(Send); ok {
				switch m := s.Message.(type) {
				case Withdraw:
					asked = append(asked, m.Attempt)
				case Stop:
					asked = append(asked, m.Attempt)
				}
			}
		}
		return asked
	}
	first := list(false)
	for i := range 10 {
		if n := len(list(i%2 == 0)); len(first)+n > mostRecalled {
			t.Fatalf("%d requests without an answer, at most %d", len(first)+n, mostRecalled)
		}
		h.now = h.now.Add(time.Second)
	}
	if n := len(h.peers.links["alpha"].waiting); n == 0 || n > mostRecalled {
		t.Errorf("%d requests wait, want 1 to %d", n, mostRecalled)
	}
	for _, a := range first {
		h.Step(h.now, Receive{From: "alpha", Message: WithdrawAck{Attempt: a}})
	}
	if n := len(list(false)); n == 0 {
		t.Error("what is listed after its answers is not recalled")
	}
}
