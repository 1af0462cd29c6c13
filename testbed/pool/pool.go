// Package pool carries out independent pieces of work, several at a time.
package pool

import (
	"context"
	"sync"
)

// Map runs f for each i below n in this order, as many at a time as there are
// workers, one at least, and returns the results in order. The first error, by
// time, ends all of it; f should return soon when its context ends, and must not
// depend on what other runs do.
func Map[T any](ctx context.Context, workers, n int, f func(ctx context.Context, i int) (T, error)) ([]T, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	results := make([]T, n)
	next := make(chan int)
	var running sync.WaitGroup
	for range min(max(workers, 1), n) {
		running.Go(func() {
			for i := range next {
				r, err := f(ctx, i)
				if err != nil {
					cancel(err)
					return
				}
				results[i] = r
			}
		})
	}
feed:
	for i := range n {
		select {
		case next <- i:
		case <-ctx.Done():
			break feed
		}
	}
	close(next)
	running.Wait()
	if err := context.Cause(ctx); err != nil {
		return nil, err
	}
	return results, nil
}
