package daemon

import (
	"context"
	"sync"

	"kith/internal/job"
	"kith/meta"
	"kith/meta/api"
)

// look is somebody who wants to see the engine between two events.
type look struct {
	// durable is closed when what was seen is.
	durable chan struct{}

	mu   sync.Mutex
	see  func(now job.Time, e *meta.Engine)
	gone bool
}

// take shows the engine, unless who wanted to see it has gone.
func (k *look) take(now job.Time, e *meta.Engine) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if !k.gone {
		k.see(now, e)
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
func (l *loop) Look(ctx context.Context, see func(now job.Time, e *meta.Engine)) error {
	if err := l.trouble.hides(); err != nil {
		return err
	}
	k := &look{durable: make(chan struct{}), see: see}
	select {
	case l.in <- input{look: k}:
	case <-ctx.Done():
		return ctx.Err()
	case <-l.done:
		return api.ErrStopping
	}
	for {
		troubled, _ := l.trouble.now()
		select {
		case <-k.durable:
			return nil
		case <-troubled:
			if err := l.trouble.hides(); err != nil {
				k.leave()
				return err
			}
		case <-ctx.Done():
			k.leave()
			return ctx.Err()
		case <-l.done:
			k.leave()
			return api.ErrStopping
		}
	}
}
