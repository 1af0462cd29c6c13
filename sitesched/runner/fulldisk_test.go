package runner

import (
	"testing"
	"time"

	"kith/internal/job"
	"kith/meta"
	"kith/store/blobstore"
)

// An attempt does not wait for room on a full disk for ever: it goes back to its origin,
// as another site may run it. With room it starts.
func TestFullDiskGivesBack(t *testing.T) {
	t.Parallel()
	s := newStaging(t)
	s.cfg.Staging = time.Second
	s.fails(&blobstore.FullError{Kind: blobstore.ErrDiskFull})
	a := job.AttemptID{Job: job.ID{Origin: "alpha", Generation: 1, Seq: 7}, Number: 1}
	launch := meta.Launch{Attempt: a, Request: job.Request{Processors: 1, Walltime: time.Minute}, Payload: s.payload}
	s.Launch(launch)
	for back := false; !back; {
		select {
		case ev := <-s.events:
			switch ev := ev.(type) {
			case meta.AttemptMissing: // this machine is slow: the bytes were not here in time
				s.Launch(launch)
			case meta.StartFailed:
				back = ev.Attempt == a
			default:
				t.Fatalf("%+v while the disk is full", ev)
			}
		case <-time.After(15 * time.Second):
			t.Fatal("it waits for ever")
		}
	}
	s.cfg.Staging = defaultStaging
	s.Clear(a)
	s.fails(nil)
	launch.Attempt.Number = 2
	s.Launch(launch)
	if got := s.outcome(); got.Kind != job.Success {
		t.Errorf("%+v with room on the disk", got)
	}
}
