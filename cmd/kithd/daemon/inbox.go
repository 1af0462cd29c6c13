package daemon

import (
	"context"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"kith/internal/identity"
	"kith/internal/job"
	"kith/internal/places"
	"kith/meta"
	"kith/meta/api"
)

// input is one thing for the loop: an event, or a look at the engine.
type input struct {
	event meta.Event
	look  *look
	// turn has a token of this input until it is taken.
	turn turn
}

// inbox is where what is for the loop is brought. It is made before the
// loop: what the loop calls needs it when it is made.
type inbox struct {
	clock clock
	lanes *lanes
	// places are those in the lanes for all but peers, who have places of their own.
	places turn
	// controls are those for control, so that they are there while others take all.
	controls turn

	// own are events of this site's own attempts. Those who bring them must not
	// wait, see [inbox.tell].
	own struct {
		mu     sync.Mutex
		events []meta.Event
		wake   chan struct{}
	}

	trouble *trouble
	// room returns an error if there is no room for another job or bag.
	room func() error

	tokens  atomic.Uint64
	mu      sync.Mutex
	waiters map[uint64]chan meta.Reply

	// ended is what callers are told once it has ended.
	ended   error
	closing chan struct{} // senders that wait for room in the queue give up
	stop    chan struct{}
	done    chan struct{}
}

// newInbox returns an inbox whose clock is not earlier than latest, and which
// refuses new jobs and bags while room returns an error.
func newInbox(latest job.Time, room func() error, log *slog.Logger) *inbox {
	b := &inbox{
		clock: newClock(latest), trouble: newTrouble(log), room: room, ended: api.ErrStopping,
		lanes: newLanes(), places: make(turn, waitingInputs), controls: make(turn, waitingControls), waiters: make(map[uint64]chan meta.Reply),
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
// waits: what carries out effects may bring one, and the loop waits for that
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

// post gives the loop an event of the site itself; it waits while the loop is behind, and
// drops the event if the daemon stops meanwhile.
func (l *inbox) post(ev meta.Event) { l.postIn(lane{}, ev, l.places) }

// postIn is post for a lane whose sender waits for places among t.
func (l *inbox) postIn(k lane, ev meta.Event, t turn) {
	select {
	case t <- struct{}{}:
	default:
		select {
		case t <- struct{}{}:
		case <-l.closing:
			return
		}
	}
	l.lanes.put(k, input{event: ev, turn: t})
}

// laneOf returns the lane of a caller. Callers that are not known are told apart by their
// addresses.
func laneOf(ctx context.Context) lane {
	c := identity.From(ctx)
	if c.Proof != identity.NoProof || c.Address == "" {
		return lane{caller: string(c.Actor)}
	}
	return lane{caller: places.Sender(c.Address)}
}

// controls reports whether an event of a caller, nil for a look, is control: what always
// gets through. That is to cancel, and all that callers at the socket of this machine ask,
// as operators are, but to submit.
func controls(ctx context.Context, ev meta.Event) bool {
	if cancels(ev) {
		return true
	}
	switch ev.(type) {
	case meta.Submit, meta.SubmitBag:
		return false
	}
	return identity.From(ctx).Proof == identity.PeerCredential
}

// cancels reports whether an event is that a user cancels a job, a bag or tasks of one.
func cancels(ev meta.Event) bool {
	switch ev.(type) {
	case meta.Cancel, meta.CancelBag:
		return true
	}
	return false
}

// wayOf returns the lane of what a caller asks, and the places that it waits for.
func (l *inbox) wayOf(ctx context.Context, ev meta.Event) (lane, turn) {
	k := laneOf(ctx)
	if k.control = controls(ctx, ev); k.control {
		return k, l.controls
	}
	return k, l.places
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
	way, places := l.wayOf(ctx, ev)
	select {
	case places <- struct{}{}:
		l.lanes.put(way, input{event: ev, turn: places})
	case <-ctx.Done():
		forget()
		return meta.Reply{}, ctx.Err()
	case <-l.stop:
		forget()
		return meta.Reply{}, l.ended
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
				return meta.Reply{}, l.ended
			}
		}
	}
}

// cancelPatience is how long a client that cancels a job or a bag waits for a disk that
// takes nothing, before it is told so.
const cancelPatience = 5 * time.Second

// cancelTroubled returns what is closed while nothing can be written, for an event
// that is taken up even so; nil for any other.
func (l *inbox) cancelTroubled(ev meta.Event) <-chan struct{} {
	if !cancels(ev) {
		return nil
	}
	begins, _ := l.trouble.now()
	return begins
}

// refuses says why nothing can be done for a client at present, or for a new
// job or bag: the last room on the disk is for the facts about those taken before. To
// cancel a job or a bag is never refused: it may be what fills the disk, and is
// stopped before that is durable.
func (l *inbox) refuses(ev meta.Event) error {
	if cancels(ev) {
		return nil
	}
	if err := l.trouble.refuses(); err != nil {
		return err
	}
	switch ev.(type) {
	case meta.Submit, meta.SubmitBag:
		if err := l.trouble.refusesNew(); err != nil {
			return err
		}
		if l.room != nil {
			return l.room()
		}
	}
	return nil
}
