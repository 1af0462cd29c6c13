package runner

import (
	"testing"
	"time"

	"kith/internal/job"
	"kith/meta"
	"kith/meta/transfer"
)

// Large output that is being collected keeps neither the processors of its job nor
// the end of one that left little.
func TestLittleOutputPassesMuch(t *testing.T) {
	t.Parallel()
	s := newStaging(t)
	for range largeAtOnce {
		s.large.enter(t.Context(), "gamma") // all places for large output are taken
	}
	launch := func(seq uint64, script string) job.AttemptID {
		a := job.AttemptID{Job: job.ID{Origin: "alpha", Generation: 1, Seq: seq}, Number: 1}
		s.Launch(meta.Launch{Attempt: a, Request: job.Request{Processors: 1, Walltime: time.Minute}, Payload: payloadOf(t, transfer.Set{}, script)})
		return a
	}
	until := func(what string, is func(meta.Event) bool) {
		t.Helper()
		for {
			select {
			case ev := <-s.events:
				if is(ev) {
					return
				}
				if _, ended := ev.(meta.AttemptEnded); ended {
					t.Fatalf("%+v before %s", ev, what)
				}
			case <-time.After(30 * time.Second):
				t.Fatalf("%s is not told", what)
			}
		}
	}
	ended := func(a job.AttemptID) func(meta.Event) bool {
		return func(ev meta.Event) bool {
			e, ok := ev.(meta.AttemptEnded)
			return ok && e.Attempt == a
		}
	}
	much := launch(1, "head -c 5000000 /dev/zero")
	until("that its processors are free", func(ev meta.Event) bool { return ev == meta.AttemptOver{Attempt: much} })
	little := launch(2, "echo little")
	until("the end of the one with little", ended(little))
	s.large.leave()
	until("the end of the one with much", ended(much))
}
