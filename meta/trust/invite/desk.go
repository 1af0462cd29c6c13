package invite

import (
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"sync"
	"time"

	"kith/internal/job"
	"kith/meta/trust"
)

// Bounds of a desk.
const (
	MaxOffers      = 64 // that it holds, with those whose answer is repeated
	maxConnections = 16 // that have not proved the secret
)

// How long the exchange waits.
const (
	stepWait  = 5 * time.Second  // for one frame to come, or to go
	keepalive = 5 * time.Second  // between two signs that the operator is still asked
	patience  = 20 * time.Second // of the joiner for such a sign
)

// Errors of a desk.
var (
	// ErrDeskFull is returned when there are too many invitations.
	ErrDeskFull = fmt.Errorf("%d invitations are open or just ended, the most there may be; wait until some have expired", MaxOffers)
	// ErrNoOffer is returned for an invitation that the desk does not hold.
	ErrNoOffer = errors.New("no such invitation; it has expired and is forgotten, or another site made it")
)

// Self is what a site says of itself to the other one.
type Self struct {
	CA        *x509.Certificate // the one that signed its leaf
	Bundle    trust.Bundle
	Addresses []string // where it can be dialled, host:port; at most 8
	Version   string   // of its kithd
}

// Config is what a [Desk] needs. All but Report must be set; the functions are called
// from several goroutines.
type Config struct {
	// Site is the inviter.
	Site job.SiteID
	// Self returns what the joiner is told when it is admitted, and the own CA.
	Self func() Self
	// Now returns the time.
	Now func() time.Time
	// Keep makes the step from one offer to the next durable, and with an admitted one
	// its joiner in the trust table, before anybody is told. before is the zero Offer for
	// a new one. If it fails, nothing has changed. The context says who takes the step;
	// a step that has begun is brought to its end also if the context ends. Of one offer
	// a step is kept at a time; steps of others are kept meanwhile.
	Keep func(ctx context.Context, before, next Offer) error
	// Check says why a joiner cannot be admitted whatever the operator says: the
	// name is taken here by another bundle. nil if it can.
	Check func(Joiner) error
	// Report is told of each attempt to redeem and its end, for the audit log; nil
	// for nobody.
	Report func(Attempt)
}

// An Attempt is what became of a connection of a joiner.
type Attempt struct {
	Invitation ID         // zero if none was named
	Site       job.SiteID // as its certificate says; empty if it showed none that fits
	Address    string     // where it came from
	// Fingerprint is its CA for people.
	Fingerprint string
	// State is that of the invitation afterwards; of an unknown one it means nothing.
	State State
	// Reason says why it was refused; zero if it was not.
	Reason Reason
	// Err is what ended the connection early; nil if the exchange came to its end.
	Err error
}

// A Desk is where a site receives those it invited. It is safe for concurrent use.
type Desk struct {
	cfg  Config
	gate chan struct{} // a place for each connection without a proof

	// mu is held for what is in memory alone, never while Config.Keep or Check run: what
	// a step of an offer waits for, the others do not.
	mu    sync.Mutex
	offer map[ID]*entry
}

type entry struct {
	Offer // as it was kept; only the step under way changes it
	// isNew tells that it is being kept for the first time: nobody is told of it yet.
	isNew bool
	// busy is closed at the end of the step that is under way; nil if there is none.
	busy chan struct{}
	// settled is how the offer was ended elsewhere while a step was under way, which it
	// is when that step is over; Open for not.
	settled State
	// changed is closed, and made anew, when the offer changes or another connection
	// takes the place of the one that waits.
	changed chan struct{}
	turn    int // counts the connections that proved the secret: the latest waits
}

func (e *entry) wake() {
	close(e.changed)
	e.changed = make(chan struct{})
}

// NewDesk returns a desk that holds offers kept before; those that nobody needs any
// more are left out.
func NewDesk(cfg Config, kept []Offer) *Desk {
	d := &Desk{cfg: cfg, gate: make(chan struct{}, maxConnections), offer: make(map[ID]*entry)}
	if d.cfg.Report == nil {
		d.cfg.Report = func(Attempt) {}
	}
	for _, o := range kept {
		d.put(o)
	}
	d.forget()
	return d
}

func (d *Desk) put(o Offer) *entry {
	e := &entry{Offer: o, changed: make(chan struct{})}
	d.offer[o.ID] = e
	return e
}

func (d *Desk) forget() {
	now := d.cfg.Now()
	for id, e := range d.offer {
		if e.busy == nil && e.Forgettable(now) {
			delete(d.offer, id)
		}
	}
}

// held returns an offer that the desk holds, nil if it does not. d.mu is held.
func (d *Desk) held(id ID) *entry {
	if e := d.offer[id]; e != nil && !e.isNew {
		return e
	}
	return nil
}

// begin begins a step of an offer, when the one under way is over. The caller ends it with
// [Desk.end]. The error is [ErrNoOffer] or that of ctx.
func (d *Desk) begin(ctx context.Context, id ID) (*entry, error) {
	for {
		d.mu.Lock()
		e := d.held(id)
		if e == nil {
			d.mu.Unlock()
			return nil, fmt.Errorf("invitation %s: %w", id, ErrNoOffer)
		}
		busy := e.busy
		if busy == nil {
			e.busy = make(chan struct{})
		}
		d.mu.Unlock()
		if busy == nil {
			return e, nil
		}
		select {
		case <-busy:
		case <-ctx.Done():
			return nil, fmt.Errorf("invitation %s, of which a step is being kept: %w", id, ctx.Err())
		}
	}
}

// end ends the step of an offer, which is next now if that was kept.
func (d *Desk) end(e *entry, next Offer, kept bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	close(e.busy)
	e.busy = nil
	if kept {
		e.Offer = next
		e.wake()
	}
	if e.settled != Open {
		d.settle(e, e.settled)
		e.settled = Open
	}
}

// step takes a step of an offer: change says what becomes of it, and whether that is to be
// kept. It returns the offer as it is then. The error is that of [Desk.begin], of change or
// of keeping the step; an offer of which nothing is known is zero.
func (d *Desk) step(ctx context.Context, id ID, change func(Offer) (next Offer, keep bool, err error)) (Offer, error) {
	e, err := d.begin(ctx, id)
	if err != nil {
		return Offer{ID: id}, err
	}
	before := e.Offer
	next, keep, err := change(before)
	if err == nil && keep {
		if err = d.cfg.Keep(ctx, before, next); err != nil {
			err = fmt.Errorf("keep invitation %s: %w", id, err)
		}
	}
	d.end(e, next, keep && err == nil)
	if err != nil {
		return before, err
	}
	return next, nil
}

// Add holds a new offer. It is durable when Add returns. The error is [ErrDeskFull] or
// one of keeping it.
func (d *Desk) Add(ctx context.Context, o Offer) error {
	d.mu.Lock()
	d.forget()
	if len(d.offer) >= MaxOffers {
		d.mu.Unlock()
		return ErrDeskFull
	}
	e := d.put(o)
	e.isNew, e.busy = true, make(chan struct{})
	d.mu.Unlock()
	err := d.cfg.Keep(ctx, Offer{}, o)
	d.mu.Lock()
	e.isNew = false
	if err != nil {
		delete(d.offer, o.ID)
	}
	d.mu.Unlock()
	d.end(e, o, err == nil)
	if err != nil {
		return fmt.Errorf("keep invitation %s: %w", o.ID, err)
	}
	return nil
}

// IsOpen reports whether the desk waits for anybody, also for one who asks again: the
// port serves kith-join/1 only then.
func (d *Desk) IsOpen() bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.forget()
	for _, e := range d.offer {
		if !e.isNew {
			return true
		}
	}
	return false
}

// Decide says yes or no to the site with this CA that waits. The answer is durable when
// it returns without an error. The error wraps [ErrNoOffer], [ErrNothingToDecide], what
// Config.Check or Keep says, or that of ctx while a step of a joiner is being kept.
func (d *Desk) Decide(ctx context.Context, id ID, ca Pin, yes bool) error {
	_, err := d.step(ctx, id, func(o Offer) (Offer, bool, error) {
		o, err := o.Decide(ca, yes, d.cfg.Now())
		if err == nil && yes {
			// The name may have been taken while the operator was asked.
			if err = d.cfg.Check(*o.Joiner); err != nil {
				err = fmt.Errorf("site %s: %w", o.Joiner.Site, err)
			}
		}
		return o, true, err
	})
	return err
}

// Withdraw says no to whoever comes by an offer, or has come. Its errors are those of [Desk.Decide].
func (d *Desk) Withdraw(ctx context.Context, id ID) error {
	_, err := d.step(ctx, id, func(o Offer) (Offer, bool, error) {
		o, err := o.Withdraw(d.cfg.Now())
		return o, true, err
	})
	return err
}

// Settle takes up that an offer was ended elsewhere, durably, as declined, expired or
// burnt: who waits is told. An offer that is decided stays as it is. It waits for nothing:
// while a step of the offer is being kept, it counts when that is over.
func (d *Desk) Settle(id ID, state State) {
	d.mu.Lock()
	defer d.mu.Unlock()
	switch e := d.offer[id]; {
	case e == nil:
	case e.busy != nil:
		e.settled = state
	default:
		d.settle(e, state)
	}
}

// settle ends an offer that is not decided. d.mu is held, and no step is under way.
func (d *Desk) settle(e *entry, state State) {
	if e.State == Open || e.State == Came {
		e.State, e.Decided = state, d.cfg.Now()
		e.wake()
	}
}

// Offer returns an offer that the desk holds, as it is when the step under way is over: who was told
// of that step by the facts may ask before the desk knows that it was kept. The error is [ErrNoOffer]
// or that of ctx.
func (d *Desk) Offer(ctx context.Context, id ID) (Offer, error) {
	return d.step(ctx, id, func(o Offer) (Offer, bool, error) { return o.At(d.cfg.Now()), false, nil })
}

// try has a site redeem an invitation by its proof.
func (d *Desk) try(ctx context.Context, id ID, site job.SiteID, ca Pin, fits func(Verifier) bool) (Offer, Reason) {
	return d.joins(ctx, id, func(o Offer) (Offer, bool, Reason) {
		next, why := o.Try(site, ca, fits(o.Verifier), d.cfg.Now())
		return next, next.State != o.State || next.Wrong != o.Wrong, why
	})
}

// come records a joiner and returns the turn of its connection.
func (d *Desk) come(ctx context.Context, id ID, j Joiner) (turn int, o Offer, why Reason) {
	o, why = d.joins(ctx, id, func(o Offer) (Offer, bool, Reason) {
		next, why := o.Come(j, d.cfg.Now())
		return next, (why == NoReason && next.State == Came) || next.State != o.State, why
	})
	if why != NoReason {
		return 0, o, why
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	e := d.held(id)
	if e == nil {
		return 0, Offer{ID: id}, UnknownInvitation
	}
	e.turn++
	e.wake()
	return e.turn, o, NoReason
}

// joins takes a step that a joiner asks for. Its connection does not wait longer for a step
// of another one than for a frame.
func (d *Desk) joins(ctx context.Context, id ID, change func(Offer) (Offer, bool, Reason)) (Offer, Reason) {
	ctx, cancel := context.WithTimeout(ctx, stepWait)
	defer cancel()
	why := NoReason
	o, err := d.step(ctx, id, func(o Offer) (next Offer, keep bool, err error) {
		if o.Forgettable(d.cfg.Now()) {
			return o, false, ErrNoOffer
		}
		next, keep, why = change(o)
		return next, keep, nil
	})
	switch {
	case errors.Is(err, ErrNoOffer):
		return Offer{ID: id}, UnknownInvitation
	case err != nil:
		return o, Unavailable
	}
	return o, why
}

// look returns the offer now, whether it is still the turn of a connection, and what
// is closed when that may change.
func (d *Desk) look(id ID, turn int) (o Offer, mine bool, changed <-chan struct{}) {
	d.mu.Lock()
	defer d.mu.Unlock()
	e := d.held(id)
	if e == nil {
		return Offer{ID: id, State: Expired}, true, nil
	}
	return e.At(d.cfg.Now()), e.turn == turn, e.changed
}

// ended returns why a connection that waits is over, NoReason if it is admitted;
// more is false then.
func ended(o Offer) (why Reason, more bool) {
	switch o.State {
	case Came:
		return NoReason, true
	case Admitted:
		return NoReason, false
	case Declined:
		return Operator, false
	case Burnt:
		return WasBurnt, false
	}
	return TimeOver, false
}

// interrupt ends what conn waits for when ctx is done. After stop it leaves the deadlines
// of conn alone.
func interrupt(ctx context.Context, conn interface{ SetDeadline(time.Time) error }) (stop func()) {
	over := make(chan struct{})
	prevent := context.AfterFunc(ctx, func() {
		defer close(over)
		_ = conn.SetDeadline(time.Unix(1, 0))
	})
	return sync.OnceFunc(func() {
		if !prevent() {
			<-over
		}
	})
}
