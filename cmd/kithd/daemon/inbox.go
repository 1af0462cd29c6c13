package daemon

import (
	"context"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"kith/internal/job"
	"kith/meta"
	"kith/meta/api"
)

// input is one thing for the loop: an event, or a look at the engine.
type input struct {
	event meta.Event
	look  *look
	// turn has a token of this input until it is taken; nil if its sender has no bound.
	turn turn
}

// inbox is where what is for the loop is brought. It is made before the
// loop: what the loop calls needs it when it is made.
type inbox struct {
	clock clock
	in    chan input

	// own are events of this site's own attempts. Those who bring them must not
	// wait, see [inbox.tell].
	own struct {
		mu     sync.Mutex
		events []meta.Event
		wake   chan struct{}
	}

	trouble *trouble
	// room returns an error if there is no room for another job.
	room func() error

	tokens  atomic.Uint64
	mu      sync.Mutex
	waiters map[uint64]chan meta.Reply

	closing chan struct{} // senders that wait for room in the queue give up
	stop    chan struct{}
	done    chan struct{}
}

// newInbox returns an inbox whose clock is not earlier than latest, and which
// refuses new jobs while room returns an error.
func newInbox(latest job.Time, room func() error, log *slog.Logger) *inbox {
	b := &inbox{
		clock: newClock(latest), trouble: newTrouble(log), room: room,
		in: make(chan input, waitingInputs), waiters: make(map[uint64]chan meta.Reply),
		closing: make(chan struct{}), stop: make(chan struct{}), done: make(chan struct{}),
	}
	b.own.wake = make(chan struct{}, 1)
	return b
}

func (l *inbox) answer(r meta.Reply) {
	l.mu.Lock()
	waiter := l.waiters[r.Token]
	delete(l.waiters, r.Token)
	l.mu.Unlock()
	if waiter != nil {
		waiter <- r // has room for one
	}
}

// tell gives the loop an event of one of this site's own attempts, and never
// waits: whoever carries out effects may bring one, and the loop waits for him
// when it has gathered as many as it may. There are at most a few of them per
// attempt under way.
func (l *inbox) tell(ev meta.Event) {
	l.own.mu.Lock()
	l.own.events = append(l.own.events, ev)
	l.own.mu.Unlock()
	select {
	case l.own.wake <- struct{}{}:
	default:
	}
}

// post gives the loop an event; it waits while the loop is behind, and drops
// the event if the daemon stops meanwhile.
func (l *inbox) post(ev meta.Event) { l.postIn(ev, nil) }

// postIn is post for a sender who waits while too much of its own is in the queue.
func (l *inbox) postIn(ev meta.Event, t turn) {
	if t != nil {
		select {
		case t <- struct{}{}:
		case <-l.closing:
			return
		}
	}
	in := input{event: ev, turn: t}
	select {
	case l.in <- in:
		return
	default:
	}
	select {
	case l.in <- in:
	case <-l.closing:
	}
}

// Ask implements api.Node.
func (l *inbox) Ask(ctx context.Context, make_ func(token uint64) meta.Event) (meta.Reply, error) {
	token := l.tokens.Add(1)
	ev := make_(token)
	if err := l.refuses(ev); err != nil {
		return meta.Reply{}, err
	}
	answer := make(chan meta.Reply, 1)
	l.mu.Lock()
	l.waiters[token] = answer
	l.mu.Unlock()
	forget := func() {
		l.mu.Lock()
		delete(l.waiters, token)
		l.mu.Unlock()
	}
	select {
	case l.in <- input{event: ev}:
	case <-ctx.Done():
		forget()
		return meta.Reply{}, ctx.Err()
	case <-l.stop:
		forget()
		return meta.Reply{}, api.ErrStopping
	}
	troubled := l.cancelTroubled(ev)
	var patience <-chan time.Time
	for {
		select {
		case r := <-answer:
			return r, r.Err
		case <-troubled:
			// The reserve, or what the job held, may be free in a moment.
			troubled, patience = nil, time.After(cancelPatience)
		case <-patience:
			if err := l.trouble.refusesCancel(); err != nil && len(answer) == 0 {
				forget()
				return meta.Reply{}, err
			}
			troubled, patience = l.cancelTroubled(ev), nil
		case <-ctx.Done():
			forget()
			return meta.Reply{}, ctx.Err()
		case <-l.done:
			select {
			case r := <-answer:
				return r, r.Err
			default:
				return meta.Reply{}, api.ErrStopping
			}
		}
	}
}

// cancelPatience is how long a client that cancels a job waits for a disk that
// takes nothing, before it is told so.
const cancelPatience = 5 * time.Second

// cancelTroubled returns what is closed while nothing can be written, for an event
// that is taken up even so; nil for any other.
func (l *inbox) cancelTroubled(ev meta.Event) <-chan struct{} {
	if _, ok := ev.(meta.Cancel); !ok {
		return nil
	}
	begins, _ := l.trouble.now()
	return begins
}

// refuses says why nothing can be done for a client at present, or for a new
// job: the last room on the disk is for the facts about jobs taken before. To
// cancel a job is never refused: it may be the one that fills the disk, and is
// stopped before that is durable.
func (l *inbox) refuses(ev meta.Event) error {
	if _, ok := ev.(meta.Cancel); ok {
		return nil
	}
	if err := l.trouble.refuses(); err != nil {
		return err
	}
	if _, ok := ev.(meta.Submit); ok {
		if err := l.trouble.refusesNew(); err != nil {
			return err
		}
		if l.room != nil {
			return l.room()
		}
	}
	return nil
}
