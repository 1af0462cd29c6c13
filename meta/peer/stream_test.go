package peer

import (
	"context"
	"errors"
	"io"
	"testing"
	"testing/synctest"
	"time"

	kithv1 "kith/proto/gen/kith/v1"
)

// stuckWire lets frames go one by one.
type stuckWire struct {
	ctx context.Context
	let chan struct{}
}

func (w stuckWire) send(*kithv1.Frame) error {
	select {
	case <-w.let:
		return nil
	case <-w.ctx.Done():
		return w.ctx.Err()
	}
}

func (w stuckWire) recv() (*kithv1.Frame, error) { return nil, io.EOF }

// stuckStream writes to a wire whose frames get away one each time something
// is sent to the returned channel.
func stuckStream(t *testing.T, patience time.Duration) (*stream, chan<- struct{}) {
	t.Helper()
	let := make(chan struct{})
	ctx, cancel := context.WithCancel(t.Context())
	t.Cleanup(cancel)
	s := newStream(ctx, stuckWire{ctx, let}, &kithv1.Hello{SiteId: "beta"}, true, patience)
	go s.write(time.Second) //nolint:errcheck // it ends with the context
	return s, let
}

func fill(s *stream, n int) {
	for range n {
		s.enqueue(&kithv1.PeerMessage{})
	}
}

// A peer that reads nothing is let go of once little waits for it, not only
// when the queue is at its end.
func TestPeerThatNeverReads(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const patience = 15 * time.Second
		s, _ := stuckStream(t, patience)
		fill(s, 2*maxStuckMessages) // a burst is no reason
		time.Sleep(patience - time.Second)
		fill(s, 1)
		if s.ctx.Err() != nil {
			t.Fatal("the stream was closed before its peer could have read")
		}
		time.Sleep(2 * time.Second)
		fill(s, 1)
		if !errors.Is(context.Cause(s.ctx), ErrSlow) {
			t.Errorf("nothing was read for longer than %v, and the stream is kept: %v", patience, context.Cause(s.ctx))
		}
	})
}

// A peer that reads slowly keeps its stream.
func TestPeerThatReadsSlowly(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const patience = 15 * time.Second
		s, let := stuckStream(t, patience)
		for range 40 { // a frame takes two thirds of the patience
			fill(s, maxFrameMessages/2)
			time.Sleep(patience * 2 / 3)
			let <- struct{}{}
		}
		fill(s, 2*maxStuckMessages)
		if s.ctx.Err() != nil {
			t.Error(context.Cause(s.ctx))
		}
	})
}

// Little may wait for ever.
func TestLittleMayWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, _ := stuckStream(t, time.Second)
		for range maxStuckMessages {
			fill(s, 1)
			time.Sleep(time.Minute)
		}
		if s.ctx.Err() != nil {
			t.Error(context.Cause(s.ctx))
		}
	})
}
