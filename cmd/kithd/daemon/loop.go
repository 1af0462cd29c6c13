package daemon

import (
	"sync"
	"time"

	"kith/internal/job"
	"kith/meta"
	"kith/meta/commit"
	"kith/meta/flight"
	"kith/store"
)

// Bounds of the loop's queues. A sender that meets one waits, and so does the network or
// the client behind it.
const (
	waitingInputs = 4096
	// waitingControls is how much control waits, see [controls].
	waitingControls = 1024
	takenAtOnce     = 1024
	// mostGathered is how many effects may wait behind a batch that is not
	// durable yet until the loop takes nothing more.
	mostGathered = 1 << 16
)

// released is what may happen now that the facts behind it are durable.
type released struct {
	effects []meta.Effect
	waiting []func() // called after them
}

// loop owns the engine and the facts.
type loop struct {
	*inbox
	engine  *meta.Engine
	barrier *commit.Barrier

	committed chan struct{} // the committer is free again
	toCommit  chan commit.Ready
	toCarry   chan released
	// void is closed when the facts in memory are void, see [commit.Ready.Commit]; why says why.
	void chan struct{}
	why  error
	// carry carries out an effect. The dispatcher calls it, and the loop itself for
	// what need not wait for the disk, for which it must not wait for anything.
	carry func(meta.Effect)

	// records is told all that the engine is fed; nil where nothing is recorded. What it was
	// told goes to the disk behind the loop; flushed waits for that while the program dies.
	records *flight.Recorder
	flushed func()
}

func newLoop(in *inbox, engine *meta.Engine, barrier *commit.Barrier, carry func(meta.Effect)) *loop {
	return &loop{
		inbox: in, engine: engine, barrier: barrier, carry: carry, committed: make(chan struct{}, 1),
		toCommit: make(chan commit.Ready, 1), toCarry: make(chan released, 1), void: make(chan struct{}),
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
	orderly := false
	defer func() {
		if orderly {
			l.records.Stop()
		} else if l.records != nil { // a panic: what led to it is to be found
			l.records.Panicked()
			l.flushed()
		}
	}()
	l.add(first)
	l.step(meta.Pass{})
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		l.handOver()
		timer.Reset(l.untilWake())
		l.records.Turn()
		some, own, wake := l.lanes.wake, l.own.wake, timer.C
		if l.barrier.UnderWay() && len(l.barrier.Held()) > mostGathered {
			some, own, wake = nil, nil, nil
		}
		select {
		case <-some:
			l.take()
		case <-own:
			l.takeOwn()
		case <-l.committed:
			l.barrier.Done()
			continue
		case <-wake:
			l.step(meta.Tick{})
		case <-l.void:
			orderly = true
			return
		case <-l.stop:
			l.finish()
			orderly = true
			return
		}
		l.step(meta.Pass{})
	}
}

// take feeds what waits in the lanes, each in turn: it makes one instant.
func (l *loop) take() {
	defer l.lanes.end()
	for range takenAtOnce {
		in, ok := l.lanes.take()
		if !ok {
			return
		}
		if in.turn != nil {
			<-in.turn
		}
		if in.event != nil {
			l.step(in.event)
		}
		if in.look != nil {
			in.look.take(l.clock.now(), l.engine.Views())
			durable := in.look.durable
			l.barrier.Wait(func() { close(durable) })
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

func (l *loop) step(ev meta.Event) {
	now := l.clock.now()
	l.records.Event(now, ev)
	effects := l.engine.Step(now, ev)
	l.records.Effects(effects)
	l.add(effects)
}

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
	l.records.Wake(now, wake)
	if wake == job.Never {
		return time.Hour
	}
	// A wake that is due again at once must not become a busy loop.
	return max(wake.Sub(now), time.Millisecond)
}

// handOver starts the next batch on its way if the committer is free.
func (l *loop) handOver() {
	if r, ok := l.barrier.Next(); ok {
		l.records.Sealed()
		l.toCommit <- r
	}
}

// finish lets what is under way become durable and leave.
func (l *loop) finish() {
	for l.barrier.UnderWay() {
		select {
		case <-l.committed:
			l.barrier.Done()
		case <-l.lanes.wake:
			l.take()
		case <-l.void:
			return
		}
	}
	l.step(meta.Stopping{})
	l.handOver()
}

// commit makes batches durable, one after another. A disk that fails keeps
// the batch and everything behind it waiting; no effect of it has left.
func (l *loop) commit() {
	defer close(l.toCarry)
	givenUp := false // the daemon stops, and a batch was given up with all behind it
	for r := range l.toCommit {
		if !givenUp {
			effects, err := l.commitOne(&r)
			if givenUp = err != nil; !givenUp {
				l.toCarry <- released{effects, r.Waiting()}
			}
			if store.Void(err) {
				l.voided(err)
				continue
			}
		}
		l.committed <- struct{}{}
	}
}

// commitOne retries until the batch is durable and returns the effects that
// waited for it. It gives up, with the last error, when the daemon stops:
// the callers that wait for this batch were never answered.
func (l *loop) commitOne(r *commit.Ready) ([]meta.Effect, error) {
	for {
		empty := r.Empty()
		effects, err := r.Commit()
		if store.Void(err) {
			return nil, err
		}
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

// voided says that nothing of this loop may leave any more: it ends.
func (l *loop) voided(err error) {
	l.why = err
	close(l.void)
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

// close stops the loop; what was decided so far becomes durable and leaves.
func (l *loop) close() {
	close(l.stop)
	<-l.done
}
