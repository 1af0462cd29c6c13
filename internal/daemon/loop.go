package daemon

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"kith/internal/job"
	"kith/meta"
	"kith/meta/api"
	"kith/store"
	"kith/store/blobstore"
)

// Bounds of the loop's queues. Who meets one waits, and the network or the
// client behind it with him.
const (
	waitingInputs = 4096
	takenAtOnce   = 1024
)

// input is one thing for the loop: an event, or a look at the engine.
type input struct {
	event meta.Event
	look  func(now job.Time, e *meta.Engine)
	// looked is closed when what look saw is durable.
	looked chan struct{}
}

// outgoing is a batch of facts with what may happen once they are durable.
type outgoing struct {
	batch   store.Batch
	effects []meta.Effect
	looked  []chan struct{}
}

// loop owns the engine and the facts.
type loop struct {
	engine  *meta.Engine
	state   *store.State
	backend store.Backend
	clock   clock
	log     *slog.Logger

	in        chan input
	committed chan struct{} // the committer is free again
	toCommit  chan outgoing
	toCarry   chan outgoing
	carry     func(meta.Effect)

	// gathering is what goes into the next batch.
	effects    []meta.Effect
	looked     []chan struct{}
	committing bool

	// diskTrouble holds the last error of a commit that is being retried.
	diskTrouble atomic.Pointer[error]

	tokens  atomic.Uint64
	mu      sync.Mutex
	waiters map[uint64]chan meta.Reply

	stop chan struct{}
	done chan struct{}
}

// clock tells the time that the engines see: the wall's at the start and the
// monotonic one's since, so that it never steps back.
type clock struct{ start time.Time }

func (c clock) now() job.Time { return job.Instant(c.start).Add(time.Since(c.start)) }

func newLoop(engine *meta.Engine, state *store.State, backend store.Backend, carry func(meta.Effect), log *slog.Logger) *loop {
	return &loop{
		engine: engine, state: state, backend: backend, carry: carry, log: log, clock: clock{time.Now()},
		in: make(chan input, waitingInputs), committed: make(chan struct{}, 1),
		toCommit: make(chan outgoing, 1), toCarry: make(chan outgoing, 1),
		waiters: make(map[uint64]chan meta.Reply), stop: make(chan struct{}), done: make(chan struct{}),
	}
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
	l.effects = append(l.effects, first...)
	l.step(meta.Pass{})
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		l.handOver()
		timer.Reset(l.untilWake())
		select {
		case in := <-l.in:
			l.take(in)
		case <-l.committed:
			l.committing = false
			continue
		case <-timer.C:
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
	for range takenAtOnce {
		if in.event != nil {
			l.step(in.event)
		}
		if in.look != nil {
			in.look(l.clock.now(), l.engine)
			l.looked = append(l.looked, in.looked)
		}
		select {
		case in = <-l.in:
		default:
			return
		}
	}
}

func (l *loop) step(ev meta.Event) {
	l.effects = append(l.effects, l.engine.Step(l.clock.now(), ev)...)
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
	if l.committing || (len(l.effects) == 0 && len(l.looked) == 0 && !l.state.Dirty()) {
		return
	}
	l.toCommit <- outgoing{batch: l.backend.Seal(l.state), effects: l.effects, looked: l.looked}
	l.effects, l.looked, l.committing = nil, nil, true
}

// finish lets what is under way become durable and leave.
func (l *loop) finish() {
	for l.committing {
		select {
		case <-l.committed:
			l.committing = false
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
	for out := range l.toCommit {
		if !out.batch.Empty() && !l.commitOne(out.batch) {
			return
		}
		l.toCarry <- out
		l.committed <- struct{}{}
	}
}

// commitOne retries until the batch is durable or the daemon stops.
func (l *loop) commitOne(b store.Batch) bool {
	for {
		err := b.Commit()
		if err == nil {
			l.diskTrouble.Store(nil)
			return true
		}
		l.diskTrouble.Store(&err)
		l.log.Error("commit failed; nothing is acknowledged until it succeeds", "error", err.Error())
		select {
		case <-time.After(time.Second):
		case <-l.stop:
			// Whoever waits for this batch was never answered.
			l.committed <- struct{}{}
			return false
		}
	}
}

// dispatch carries out effects in order.
func (l *loop) dispatch() {
	for out := range l.toCarry {
		for _, f := range out.effects {
			if r, ok := f.(meta.Reply); ok {
				l.answer(r)
				continue
			}
			l.carry(f)
		}
		for _, c := range out.looked {
			close(c)
		}
	}
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

// post gives the loop an event; it waits while the loop is behind, and drops
// the event if the daemon stops.
func (l *loop) post(ev meta.Event) {
	select {
	case l.in <- input{event: ev}:
	case <-l.done:
	}
}

// Ask implements api.Node.
func (l *loop) Ask(ctx context.Context, make_ func(token uint64) meta.Event) (meta.Reply, error) {
	token := l.tokens.Add(1)
	ev := make_(token)
	if trouble := l.diskTrouble.Load(); trouble != nil {
		return meta.Reply{}, diskError(*trouble)
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

// Look implements api.Node.
func (l *loop) Look(ctx context.Context, look func(now job.Time, e *meta.Engine)) error {
	looked := make(chan struct{})
	select {
	case l.in <- input{look: look, looked: looked}:
	case <-ctx.Done():
		return ctx.Err()
	case <-l.done:
		return api.ErrStopping
	}
	select {
	case <-looked:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	case <-l.done:
		return api.ErrStopping
	}
}

// close stops the loop; what was decided so far becomes durable and leaves.
func (l *loop) close() {
	close(l.stop)
	<-l.done
}

// diskError is what a client is told while facts cannot be written.
func diskError(err error) error {
	return fmt.Errorf("this site cannot write to its data folder and takes nothing on: %w: %w", blobstore.ErrDiskFull, err)
}
