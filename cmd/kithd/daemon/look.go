package daemon

import (
	"context"
	"sync"

	"kith/internal/job"
	"kith/meta"
)

// look is a read run between two events.
type look struct {
	// durable is closed when what was seen is, seen when it was seen.
	durable, seen chan struct{}

	mu   sync.Mutex
	see  func(now job.Time, v meta.Views)
	gone bool
}

func newLook(see func(now job.Time, v meta.Views)) *look {
	return &look{durable: make(chan struct{}), seen: make(chan struct{}), see: see}
}

// take runs the read, unless its caller has gone.
func (k *look) take(now job.Time, v meta.Views) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if !k.gone {
		k.see(now, v)
	}
	close(k.seen)
}

// wait waits until the read has run.
func (k *look) wait(ctx context.Context, done <-chan struct{}, ended error) error {
	select {
	case <-k.seen:
		return nil
	case <-ctx.Done():
		k.leave()
		return ctx.Err()
	case <-done:
		k.leave()
		return ended
	}
}

// leave makes sure that see is not called from now on: what it writes to is
// its caller's again.
func (k *look) leave() {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.gone = true
}

// Look implements api.Node.
func (l *inbox) Look(ctx context.Context, see func(now job.Time, v meta.Views)) error {
	if err := l.trouble.hides(); err != nil {
		return err
	}
	return l.look(ctx, see, l.trouble.hides)
}

// Glance implements api.Node.
func (l *inbox) Glance(ctx context.Context, see func(now job.Time, v meta.Views)) error {
	return l.look(ctx, see, nil)
}

// look has the loop run a read. While facts cannot be written it returns what hides
// returns; without hides it then returns what is not durable.
func (l *inbox) look(ctx context.Context, see func(now job.Time, v meta.Views), hides func() error) error {
	k := newLook(see)
	way, places := l.wayOf(ctx, nil)
	select {
	case places <- struct{}{}:
		l.lanes.put(way, input{look: k, turn: places})
	case <-ctx.Done():
		return ctx.Err()
	case <-l.done:
		return l.ended
	}
	for {
		troubled, _ := l.trouble.now()
		select {
		case <-k.durable:
			return nil
		case <-troubled:
			if hides == nil {
				return k.wait(ctx, l.done, l.ended)
			}
			if err := hides(); err != nil {
				k.leave()
				return err
			}
		case <-ctx.Done():
			k.leave()
			return ctx.Err()
		case <-l.done:
			k.leave()
			return l.ended
		}
	}
}
