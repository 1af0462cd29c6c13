package daemon

import (
	"context"
	"sync"

	"kith/internal/job"
	"kith/meta"
	"kith/meta/api"
)

// look is a read run between two events.
type look struct {
	// durable is closed when what was seen is.
	durable chan struct{}

	mu   sync.Mutex
	see  func(now job.Time, v meta.Views)
	gone bool
}

// take runs the read, unless its caller has gone.
func (k *look) take(now job.Time, v meta.Views) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if !k.gone {
		k.see(now, v)
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
