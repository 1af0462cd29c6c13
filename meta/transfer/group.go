package transfer

import (
	"context"
	"sync"
)

// A group runs functions in goroutines, a bounded number at a time. The first
// error cancels the context of the others. Its owner calls wait.
type group struct {
	ctx    context.Context
	cancel context.CancelFunc
	slots  chan struct{}
	wg     sync.WaitGroup
	once   sync.Once
	err    error
}

// newGroup returns a group that runs up to n functions at a time under ctx.
func newGroup(ctx context.Context, n int) *group {
	ctx, cancel := context.WithCancel(ctx)
	return &group{ctx: ctx, cancel: cancel, slots: make(chan struct{}, n)}
}

// run starts f as soon as fewer than n functions run. It reports false, and f
// never starts, when the group has failed or its context is done.
func (g *group) run(f func(ctx context.Context) error) bool {
	if g.ctx.Err() != nil {
		return false
	}
	select {
	case <-g.ctx.Done():
		return false
	case g.slots <- struct{}{}:
	}
	g.wg.Go(func() {
		defer func() { <-g.slots }()
		if err := f(g.ctx); err != nil {
			g.fail(err)
		}
	})
	return true
}

// fail records the first error and cancels the rest.
func (g *group) fail(err error) {
	g.once.Do(func() {
		g.err = err
		g.cancel()
	})
}

// wait returns when all functions have: the first error, or the context's.
func (g *group) wait() error {
	g.wg.Wait()
	err := g.ctx.Err()
	g.fail(nil) // Closes the window for further errors and frees the context.
	if g.err != nil {
		return g.err
	}
	return err
}
