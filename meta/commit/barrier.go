package commit

import (
	"kith/internal/job"
	"kith/meta"
	"kith/store"
)

// Sealer encodes what has changed in the facts. Every [store.Backend] is one.
type Sealer interface {
	Seal(s *store.State) store.Batch
}

// Barrier holds the effects of a site's engine until the facts behind them are
// durable. It belongs to the goroutine that owns the engine.
type Barrier struct {
	facts *store.State
	// sealer is nil if the site keeps no disk.
	sealer Sealer
	// shared is whether another member of the site may lead by now.
	shared bool
	// launched reports whether the driver has launched or adopted an attempt
	// that has not ended.
	launched func(job.AttemptID) bool

	held     []meta.Effect // since the last batch was sealed
	waiting  []func()
	underWay bool
	spare    []meta.Effect // see Recycle
}

// New returns a barrier before the facts of a site, which sealer makes durable.
// Without a sealer nothing is ever written: facts count as durable at once. The
// function launched reports whether the driver has launched or adopted an attempt
// that has not ended. It is called by [Barrier.Add]; nil stands for never.
func New(facts *store.State, sealer Sealer, launched func(job.AttemptID) bool) *Barrier {
	_, shared := sealer.(store.Replicated)
	return &Barrier{facts: facts, sealer: sealer, shared: shared, launched: launched}
}

// Add takes the effects of a step, or of several. It returns those that may be
// carried out before the facts of the step are durable; the driver carries them
// out at once. Neither slice is kept.
func (b *Barrier) Add(effects []meta.Effect) (now []meta.Effect) {
	if b.sealer == nil { // there is no disk to wait for
		b.held = append(b.held, effects...)
		return nil
	}
	for _, f := range effects {
		at := b.leaves(f)
		if at != afterCommit {
			now = append(now, f)
		}
		if at != atOnce {
			b.held = append(b.held, f)
		}
	}
	return now
}

// Wait has a function called once all that was added or changed so far is
// durable and has been carried out, see [Ready.Waiting].
func (b *Barrier) Wait(f func()) { b.waiting = append(b.waiting, f) }

// Held returns the effects that wait for the next batch to be sealed. The slice
// is valid until the next call of any method.
func (b *Barrier) Held() []meta.Effect { return b.held }

// UnderWay reports whether a batch was handed out and is not done with.
func (b *Barrier) UnderWay() bool { return b.underWay }

// Next seals the facts that have changed since the last batch, together with the
// effects that wait for them. It reports false if there is nothing to do, or if
// the batch before is still under way.
func (b *Barrier) Next() (Ready, bool) {
	if b.underWay || len(b.held) == 0 && len(b.waiting) == 0 && !b.facts.Dirty() {
		return Ready{}, false
	}
	r := Ready{effects: b.held, waiting: b.waiting, confirm: b.shared}
	b.held, b.spare, b.waiting = b.spare[:0], nil, nil
	if b.sealer == nil {
		b.facts.DropChanges()
	} else {
		r.batch = b.sealer.Seal(b.facts)
	}
	b.underWay = true
	return r, true
}

// Done says that the batch under way has been committed, or given up with all
// that is held for it: the next one may be sealed. It must not be called after an
// error of which [store.Void] is true: nothing of this barrier may leave any more.
func (b *Barrier) Done() { b.underWay = false }

// Recycle takes back the slice of effects that [Ready.Commit] returned, to spare
// an allocation. The caller must not use it any more.
func (b *Barrier) Recycle(effects []meta.Effect) {
	clear(effects)
	b.spare = effects[:0]
}

// Ready is a batch of facts with the effects that are held for it. It may be
// handed to another goroutine. The zero value holds nothing.
type Ready struct {
	batch   store.Batch // nil if the site keeps no disk
	effects []meta.Effect
	waiting []func()
	// confirm is whether even an empty batch must be committed, see [store.Replicated].
	confirm bool
	void    error // what Commit has said for good
}

// Empty reports whether there is nothing to write and nobody to ask, so that
// Commit cannot fail and takes no time.
func (r *Ready) Empty() bool { return r.batch == nil || !r.confirm && r.batch.Empty() }

// Commit makes the facts durable. It then returns the effects that waited for
// them, to be carried out in this order. On an error no effect may leave. There
// are three answers:
//
//   - nil: the facts are durable.
//   - An error: nothing is durable, and Commit may be called again.
//   - An error of which [store.Void] is true: the facts in memory are void. The effects
//     are given up, Commit says the same for ever, and no function of Waiting may be
//     called. The driver stops this engine, and if it goes on, then with facts that
//     it loads again.
func (r *Ready) Commit() ([]meta.Effect, error) {
	if r.void != nil {
		return nil, r.void
	}
	if !r.Empty() {
		if err := r.batch.Commit(); err != nil {
			if store.Void(err) {
				r.void, r.effects, r.waiting = err, nil, nil
			}
			return nil, err
		}
	}
	return r.effects, nil
}

// Waiting returns the functions given to [Barrier.Wait]. The driver calls them
// after the effects that Commit returned.
func (r *Ready) Waiting() []func() { return r.waiting }
