package peer

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"google.golang.org/protobuf/proto"

	"kith/internal/job"
	kithv1 "kith/proto/gen/kith/v1"
)

// Bounds of what waits for a stream. A stream that does not drain is closed.
const (
	maxQueuedMessages = 200_000
	maxQueuedBytes    = 64 << 20
	maxQueuedPieces   = 64
	maxFrameMessages  = 512
	maxFrameBytes     = 256 << 10
	// maxStuckMessages may wait for a stream on which nothing gets away.
	maxStuckMessages = 4096
)

// ErrSlow is the cause of closing a stream that the other side does not drain.
var ErrSlow = errors.New("peer does not keep up with what is sent to it")

// ErrSilent is the cause of closing a stream on which nothing comes.
var ErrSilent = errors.New("nothing was heard of the peer for three heartbeats")

// ErrReplaced is the cause of closing a stream because a newer one took its place.
var ErrReplaced = errors.New("replaced by another stream to the same peer")

// duplex is either end of the gRPC stream.
type duplex interface {
	send(*kithv1.Frame) error
	recv() (*kithv1.Frame, error)
}

// stream is the one connection to a site while it lasts.
type stream struct {
	site    job.SiteID
	dialled bool // by us
	hello   *kithv1.Hello
	wire    duplex
	cancel  context.CancelCauseFunc
	ctx     context.Context

	// patience is how long nothing may get away while much waits.
	patience time.Duration

	mu     sync.Mutex
	queue  []*kithv1.PeerMessage // protocol
	bytes  int
	moved  time.Time             // when the last frame had got away
	pieces []*kithv1.PeerMessage // files
	wake   chan struct{}

	grants     *grants
	taskGrants *taskGrants

	heard chan struct{} // pulsed by every frame
}

func newStream(ctx context.Context, w duplex, hello *kithv1.Hello, dialled bool, patience time.Duration) *stream {
	ctx, cancel := context.WithCancelCause(ctx)
	return &stream{
		site: job.SiteID(hello.GetSiteId()), dialled: dialled, hello: hello, wire: w, ctx: ctx, cancel: cancel,
		patience: patience, moved: time.Now(), grants: newGrants(), taskGrants: newTaskGrants(), wake: make(chan struct{}, 1), heard: make(chan struct{}, 1),
	}
}

// enqueue takes a protocol message; when too much waits, the stream is closed.
// Much is less where nothing gets away: a peer that does not read must not
// make this site keep, and repeat, what it will never hear.
func (s *stream) enqueue(m *kithv1.PeerMessage) {
	s.mu.Lock()
	s.bytes += proto.Size(m)
	s.queue = append(s.queue, m)
	over := len(s.queue) > maxQueuedMessages || s.bytes > maxQueuedBytes ||
		(len(s.queue) > maxStuckMessages && time.Since(s.moved) > s.patience)
	s.mu.Unlock()
	if over {
		s.cancel(ErrSlow)
	}
	s.poke()
}

// enqueuePiece takes a file message and reports whether there was room.
func (s *stream) enqueuePiece(m *kithv1.PeerMessage) bool {
	s.mu.Lock()
	ok := len(s.pieces) < maxQueuedPieces
	if ok {
		s.pieces = append(s.pieces, m)
	}
	s.mu.Unlock()
	s.poke()
	return ok
}

func (s *stream) poke() { poke(s.wake) }

// poke has the reader of c look again.
func poke(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

// nextFrame takes what fits into a frame, nil if nothing waits: protocol
// messages first, then grants, then one file piece.
func (s *stream) nextFrame() *kithv1.Frame {
	messages, size := s.nextMessages()
	messages, size = s.grants.fill(messages, size)
	if messages = s.taskGrants.fill(messages, size); len(messages) > 0 {
		return &kithv1.Frame{Messages: messages}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.pieces) == 0 {
		return nil
	}
	f := &kithv1.Frame{Messages: []*kithv1.PeerMessage{s.pieces[0]}}
	s.pieces = s.pieces[1:]
	return f
}

// nextMessages takes the protocol messages that fit into a frame, and says how
// large they are.
func (s *stream) nextMessages() (messages []*kithv1.PeerMessage, size int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.moved = time.Now()
	n := 0
	for n < len(s.queue) && n < maxFrameMessages && size < maxFrameBytes {
		size += proto.Size(s.queue[n])
		n++
	}
	if n == len(s.queue) {
		messages = s.queue
		s.queue, s.bytes = nil, 0
		return messages, size
	}
	messages = slices.Clone(s.queue[:n])
	clear(s.queue[:n])
	s.queue = s.queue[n:]
	s.bytes -= size
	return messages, size
}

// write sends until the stream ends; an empty frame is the heartbeat.
func (s *stream) write(heartbeat time.Duration) error {
	beat := time.NewTicker(heartbeat)
	defer beat.Stop()
	for {
		for f := s.nextFrame(); f != nil; f = s.nextFrame() {
			if err := s.wire.send(f); err != nil {
				return err
			}
		}
		select {
		case <-s.wake:
		case <-beat.C:
			if err := s.wire.send(&kithv1.Frame{}); err != nil {
				return err
			}
		case <-s.ctx.Done():
			return context.Cause(s.ctx)
		}
	}
}

// listen closes the stream when nothing is heard for three heartbeats.
func (s *stream) listen(heartbeat time.Duration) {
	silence := time.NewTimer(3 * heartbeat)
	defer silence.Stop()
	for {
		select {
		case <-s.heard:
			silence.Reset(3 * heartbeat)
		case <-silence.C:
			s.cancel(ErrSilent)
			return
		case <-s.ctx.Done():
			return
		}
	}
}

// read hands every frame to use until the stream ends.
func (s *stream) read(use func(*kithv1.Frame)) error {
	for {
		f, err := s.wire.recv()
		if err != nil {
			return err
		}
		select {
		case s.heard <- struct{}{}:
		default:
		}
		use(f)
	}
}
