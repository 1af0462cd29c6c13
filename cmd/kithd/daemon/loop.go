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
	"kith/meta/commit"
)

// Bounds of the loop's queues. Who meets one waits, and the network or the
// client behind it with him.
const (
	waitingInputs = 4096
	takenAtOnce   = 1024
	// mostGathered is how many effects may wait behind a batch that is not
	// durable yet until the loop takes nothing more.
	mostGathered = 1 << 16
)

// input is one thing for the loop: an event, or a look at the engine.
type input struct {
	event meta.Event
	look  *look
}

// released is what may happen now that the facts behind it are durable.
type released struct {
	effects []meta.Effect
	waiting []func() // called after them
}

// loop owns the engine and the facts.
type loop struct {
	engine  *meta.Engine
	barrier *commit.Barrier
	clock   clock
	log     *slog.Logger

	in        chan input
	committed chan struct{} // the committer is free again
	toCommit  chan commit.Ready
	toCarry   chan released
	// carry carries out an effect. The dispatcher calls it, and the loop itself for
	// what need not wait for the disk, for which it must not wait for anything.
	carry func(meta.Effect)

	// own are events of this site's own attempts. Those who bring them must not
	// wait, see [loop.tell].
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

	closing chan struct{} // whoever waits for room in the queue gives up
	stop    chan struct{}
	done    chan struct{}
}

func newLoop(engine *meta.Engine, barrier *commit.Barrier, carry func(meta.Effect), latest job.Time, log *slog.Logger) *loop {
	l := &loop{
		engine: engine, barrier: barrier, carry: carry, log: log, clock: newClock(latest), trouble: newTrouble(log),
		in: make(chan input, waitingInputs), committed: make(chan struct{}, 1),
		toCommit: make(chan commit.Ready, 1), toCarry: make(chan released, 1),
		waiters: make(map[uint64]chan meta.Reply),
		closing: make(chan struct{}), stop: make(chan struct{}), done: make(chan struct{}),
	}
	l.own.wake = make(chan struct{}, 1)
	return l
}

// run runs until close; first are the effects of restoring.
func (l *loop) run(first []meta.Effect) {
	var stages sync.WaitGroup
	stages.Go(l.commit)
	stages.Go(l.dispatch)
	defer func() {
		close(l.toCommit)
		stages.Wait()
		close(l.done)
	}()
	l.add(first)
	l.step(meta.Pass{})
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		l.handOver()
		timer.Reset(l.untilWake())
		in, own, wake := l.in, l.own.wake, timer.C
		if l.barrier.UnderWay() && len(l.barrier.Held()) > mostGathered {
			in, own, wake = nil, nil, nil
		}
		select {
		case in := <-in:
			l.take(in)
		case <-own:
			l.takeOwn()
		case <-l.committed:
			l.barrier.Done()
			continue
		case <-wake:
			l.step(meta.Tick{})
		case <-l.stop:
			l.finish()
			return
		}
		l.step(meta.Pass{})
	}
}

// take feeds an input and those that wait behind it: they make one instant.
func (l *loop) take(in input) {
	for n := 1; ; n++ {
		if in.event != nil {
			l.step(in.event)
		}
		if in.look != nil {
			in.look.take(l.clock.now(), l.engine.Views())
			durable := in.look.durable
			l.barrier.Wait(func() { close(durable) })
		}
		if n == takenAtOnce {
			return // what has been received must be taken: nobody else will
		}
		select {
		case in = <-l.in:
		default:
			return
		}
	}
}

// takeOwn feeds what came by tell.
func (l *loop) takeOwn() {
	l.own.mu.Lock()
	events := l.own.events
	l.own.events = nil
	l.own.mu.Unlock()
	for _, ev := range events {
		l.step(ev)
	}
}

func (l *loop) step(ev meta.Event) { l.add(l.engine.Step(l.clock.now(), ev)) }

// add holds effects until their facts are durable, and carries out those that
// need not wait for it.
func (l *loop) add(effects []meta.Effect) {
	for _, f := range l.barrier.Add(effects) {
		l.release(f)
	}
}

func (l *loop) untilWake() time.Duration {
	now := l.clock.now()
	wake := l.engine.NextWake(now)
	if wake == job.Never {
		return time.Hour
	}
	// A wake that is due again at once must not become a busy loop.
	return max(wake.Sub(now), time.Millisecond)
}

// handOver starts the next batch on its way if the committer is free.
func (l *loop) handOver() {
	if r, ok := l.barrier.Next(); ok {
		l.toCommit <- r
	}
}

// finish lets what is under way become durable and leave.
func (l *loop) finish() {
	for l.barrier.UnderWay() {
		select {
		case <-l.committed:
			l.barrier.Done()
		case in := <-l.in:
			l.take(in)
		}
	}
	l.handOver()
}

// commit makes batches durable, one after another. A disk that fails keeps
// the batch and everything behind it waiting; nobody was told of it.
func (l *loop) commit() {
	defer close(l.toCarry)
	givenUp := false // the daemon stops, and a batch was given up with all behind it
	for r := range l.toCommit {
		if !givenUp {
			effects, err := l.commitOne(&r)
			if givenUp = err != nil; !givenUp {
				l.toCarry <- released{effects, r.Waiting()}
			}
		}
		l.committed <- struct{}{}
	}
}

// commitOne retries until the batch is durable and returns the effects that
// waited for it. It gives up, with the last error, when the daemon stops:
// whoever waits for this batch was never answered.
func (l *loop) commitOne(r *commit.Ready) ([]meta.Effect, error) {
	for {
		empty := r.Empty()
		effects, err := r.Commit()
		if !empty {
			l.trouble.note(err)
		}
		if err == nil {
			return effects, nil
		}
		select {
		case <-time.After(time.Second):
		case <-l.stop:
			return nil, err
		}
	}
}

// dispatch carries out effects in order.
func (l *loop) dispatch() {
	for out := range l.toCarry {
		for _, f := range out.effects {
			l.release(f)
		}
		for _, f := range out.waiting {
			f()
		}
	}
}

func (l *loop) release(f meta.Effect) {
	if r, ok := f.(meta.Reply); ok {
		l.answer(r)
		return
	}
	l.carry(f)
}

func (l *loop) answer(r meta.Reply) {
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
func (l *loop) tell(ev meta.Event) {
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
func (l *loop) post(ev meta.Event) {
	select {
	case l.in <- input{event: ev}:
		return
	default:
	}
	select {
	case l.in <- input{event: ev}:
	case <-l.closing:
	}
}

// Ask implements api.Node.
func (l *loop) Ask(ctx context.Context, make_ func(token uint64) meta.Event) (meta.Reply, error) {
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
	select {
	case r := <-answer:
		return r, r.Err
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

// refuses says why nothing can be done for a client at present, or for a new
// job: the last room on the disk is for the facts about jobs taken before.
func (l *loop) refuses(ev meta.Event) error {
	if err := l.trouble.refuses(); err != nil {
		return err
	}
	if _, ok := ev.(meta.Submit); ok && l.room != nil {
		return l.room()
	}
	return nil
}

// close stops the loop; what was decided so far becomes durable and leaves.
func (l *loop) close() {
	close(l.stop)
	<-l.done
}
