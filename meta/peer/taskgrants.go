package peer

import (
	"context"
	"errors"
	"slices"
	"sync"

	"kith/internal/job"
	"kith/meta"
	kithv1 "kith/proto/gen/kith/v1"
)

// Answers to claims for tasks wait as grants do: as names, of which what the tasks run is
// read shortly before it leaves. One answer may be too large for a message, and is then told
// in several. A claim that is repeated while its answer waits changes that answer.

// maxTaskGrants is how many answers wait for a stream; more are dropped, as their claims are
// repeated.
const maxTaskGrants = 1024

// BundleFunc makes what the tasks of a bundle run. On [ErrNoGrant] the bundle is left out, on
// any other error it is tried again after a while.
type BundleFunc func(bundle job.AttemptID, tasks *job.TaskSet) ([]byte, error)

// GrantTasks sends an answer to a claim for tasks, when the stream has room for what they
// run; see [Links.Grant].
func (l *Links) GrantTasks(g meta.GrantTasks) {
	if s := l.session(g.To); s != nil && s.hello.GetTasks() {
		s.taskGrants.add(g.Verdict)
	}
}

// taskGrants are the answers that wait for room on a stream.
type taskGrants struct {
	mu      sync.Mutex
	waiting []*meta.TaskVerdict // of which the bundles have yet to be read, those not told
	part    []meta.GivenBundle  // of the first of them, read
	bytes   int                 // of part
	ready   []meta.TaskVerdict
	held    int // bytes of ready
	wake    chan struct{}
}

func newTaskGrants() *taskGrants { return &taskGrants{wake: make(chan struct{}, 1)} }

// add takes an answer. If one of the stamp waits, that becomes the newer one's, but for
// bundles that have left: the claim had not come to the answer.
func (q *taskGrants) add(v meta.TaskVerdict) {
	q.mu.Lock()
	defer q.mu.Unlock()
	for _, w := range q.waiting {
		if w.Stamp == v.Stamp {
			w.Sent = v.Sent
			return
		}
	}
	if len(q.waiting) == maxTaskGrants {
		return
	}
	v.Bundles = slices.Clone(v.Bundles)
	q.waiting = append(q.waiting, &v)
	poke(q.wake)
}

// next returns the bundle that is to be read, false while there is none or enough is ready.
func (q *taskGrants) next() (meta.GivenBundle, bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if len(q.waiting) == 0 || q.held >= maxReadyBytes {
		return meta.GivenBundle{}, false
	}
	return q.waiting[0].Bundles[0], true
}

// loaded takes up what came of reading the first bundle that waits, and reports whether to
// pause before the next.
func (q *taskGrants) loaded(payload []byte, err error) (pause bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	v := q.waiting[0]
	switch {
	case errors.Is(err, ErrNoGrant):
	case err != nil:
		return true
	default:
		if q.bytes+len(payload) > maxReadyBytes {
			q.close(v)
		}
		b := v.Bundles[0]
		b.Payload = payload
		q.part = append(q.part, b)
		q.bytes += len(payload)
	}
	if v.Bundles = v.Bundles[1:]; len(v.Bundles) == 0 {
		q.close(v)
		q.waiting = q.waiting[1:]
	}
	return false
}

// close makes a message of the bundles that were read. A message has more than
// maxReadyBytes of what they run only if that is one bundle's.
func (q *taskGrants) close(v *meta.TaskVerdict) {
	if len(q.part) == 0 {
		return
	}
	q.ready = append(q.ready, meta.TaskVerdict{Stamp: v.Stamp, Sent: v.Sent, Bundles: q.part})
	q.held += q.bytes
	q.part, q.bytes = nil, 0
}

// take returns the next message that is ready, nil if there is none.
func (q *taskGrants) take() *kithv1.PeerMessage {
	q.mu.Lock()
	defer q.mu.Unlock()
	if len(q.ready) == 0 {
		return nil
	}
	v := q.ready[0]
	q.ready[0] = meta.TaskVerdict{}
	q.ready = q.ready[1:]
	for i := range v.Bundles {
		q.held -= len(v.Bundles[i].Payload)
	}
	poke(q.wake)
	return toProto(v)
}

// load reads what bundles run until the stream ends.
func (q *taskGrants) load(ctx context.Context, read BundleFunc, written func()) {
	keepReading(ctx, q.wake, func() (pause, more bool) {
		b, ok := q.next()
		return ok && q.loaded(read(b.Bundle, &b.Tasks)), ok
	}, written)
}

// fill adds answers to the messages of a frame as long as there is room.
func (q *taskGrants) fill(messages []*kithv1.PeerMessage, size int) []*kithv1.PeerMessage {
	messages, _ = fillFrame(messages, size, q.take)
	return messages
}
