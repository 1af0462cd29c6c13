package peer

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"google.golang.org/protobuf/proto"

	"kith/internal/job"
	"kith/meta"
	kithv1 "kith/proto/gen/kith/v1"
)

// Grants carry what the jobs run, up to 3 MiB each. A host that claims for a
// thousand copies at once over a thin line must not fill the memory of the origin
// with what waits for it, nor be let go of for that. So a grant waits as a name;
// what its job runs is read shortly before it leaves, and a grant for a claim that is
// repeated meanwhile takes the place of the one that waits.

const (
	// maxReadyBytes is how much of what jobs run is read ahead of the stream; the
	// last one may go beyond it.
	maxReadyBytes = 1 << 20
	// payloadPause is how long after a failure what a job runs is read again.
	payloadPause = time.Second
)

// PayloadFunc reads what the job of a grant runs. On [ErrNoGrant] the grant is
// dropped, on any other error it is tried again after a while.
type PayloadFunc func(g meta.Grant) ([]byte, error)

// ErrNoGrant is returned by a [PayloadFunc] if there is nothing to grant any more.
var ErrNoGrant = errors.New("the job is gone")

// Grant sends a grant to a site when the stream has room for what the job runs.
// Protocol messages that are sent later may overtake it. Without a stream it is dropped,
// and so is what waits when the stream ends.
func (l *Links) Grant(g meta.Grant) {
	if s := l.session(g.To); s != nil {
		s.grants.add(g)
	}
}

// grants are the verdicts that wait for room on a stream, at most one an attempt.
type grants struct {
	mu      sync.Mutex
	known   map[job.AttemptID]meta.Grant // all that wait, and those of the frame under way
	waiting []job.AttemptID              // whose payload has yet to be read
	ready   []meta.Verdict               // those with their payloads
	bytes   int                          // of ready
	leaving []job.AttemptID              // in the frame under way
	wake    chan struct{}                // to the one that reads
}

func newGrants() *grants {
	return &grants{known: make(map[job.AttemptID]meta.Grant), wake: make(chan struct{}, 1)}
}

// add takes a grant. If one of the attempt waits, that answers the newer claim; if
// it is on its way, it is answer enough.
func (q *grants) add(g meta.Grant) {
	q.mu.Lock()
	defer q.mu.Unlock()
	_, waits := q.known[g.Attempt]
	q.known[g.Attempt] = g
	if !waits {
		q.waiting = append(q.waiting, g.Attempt)
		poke(q.wake)
	}
}

// next returns the grant whose payload is to be read, false while there is none or
// enough is ready.
func (q *grants) next() (meta.Grant, bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if len(q.waiting) == 0 || q.bytes >= maxReadyBytes {
		return meta.Grant{}, false
	}
	return q.known[q.waiting[0]], true
}

// loaded takes up what came of reading the payload of the first that waits, and
// reports whether to pause before the next.
func (q *grants) loaded(payload []byte, err error) (pause bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	a := q.waiting[0]
	q.waiting = q.waiting[1:]
	switch {
	case errors.Is(err, ErrNoGrant):
		delete(q.known, a)
	case err != nil:
		q.waiting = append(q.waiting, a)
		return true
	default:
		q.ready = append(q.ready, q.known[a].Message(payload))
		q.bytes += len(payload)
	}
	return false
}

// take returns the next grant that is ready, nil if there is none.
func (q *grants) take() *kithv1.PeerMessage {
	q.mu.Lock()
	defer q.mu.Unlock()
	if len(q.ready) == 0 {
		return nil
	}
	v := q.ready[0]
	q.ready[0] = meta.Verdict{}
	q.ready = q.ready[1:]
	q.bytes -= len(v.Payload)
	g := q.known[v.Attempt] // a claim may have been repeated since
	q.leaving = append(q.leaving, v.Attempt)
	poke(q.wake)
	return toProto(g.Message(v.Payload))
}

// left forgets the grants of the frame that has left.
func (q *grants) left() {
	q.mu.Lock()
	defer q.mu.Unlock()
	for _, a := range q.leaving {
		delete(q.known, a)
	}
	q.leaving = q.leaving[:0]
}

// load reads payloads until the stream ends.
func (q *grants) load(ctx context.Context, payload PayloadFunc, written func()) {
	keepReading(ctx, q.wake, func() (pause, more bool) {
		g, ok := q.next()
		return ok && q.loaded(payload(g)), ok
	}, written)
}

// keepReading calls read as long as there is more, and again when woken, until the stream
// ends; after what could not be read it pauses. It calls written after each.
func keepReading(ctx context.Context, wake <-chan struct{}, read func() (pause, more bool), written func()) {
	for {
		for pause, more := read(); more; pause, more = read() {
			written()
			if !pause {
				continue
			}
			select {
			case <-time.After(payloadPause):
			case <-ctx.Done():
				return
			}
		}
		select {
		case <-wake:
		case <-ctx.Done():
			return
		}
	}
}

// fill adds grants to the messages of a frame as long as there is room. The frame
// before has left.
func (q *grants) fill(messages []*kithv1.PeerMessage, size int) ([]*kithv1.PeerMessage, int) {
	q.left()
	return fillFrame(slices.Clip(messages), size, q.take)
}

// fillFrame adds what take returns to the messages of a frame, until there is none or the
// frame is full. It returns the frame's size as well.
func fillFrame(messages []*kithv1.PeerMessage, size int, take func() *kithv1.PeerMessage) ([]*kithv1.PeerMessage, int) {
	for len(messages) < maxFrameMessages && size < maxFrameBytes {
		m := take()
		if m == nil {
			break
		}
		size += proto.Size(m)
		messages = append(messages, m)
	}
	return messages, size
}
